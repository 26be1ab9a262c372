//! Translation: the grammar, the pairs of a file, vocabularies, scores.

mod grammar;
mod pairs;
mod scores;
mod vocabulary;
