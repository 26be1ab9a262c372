//! Translation: the pairs of a file, vocabularies, scores.

mod evaluation;
mod pairs;
mod scores;
mod vocabulary;
