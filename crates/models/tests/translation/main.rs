//! Translation: the pairs of a file, vocabularies, scores.

mod evaluation;
mod guided;
mod pairs;
mod scores;
mod vocabulary;
