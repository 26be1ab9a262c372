//! Translation: pairs of sentences to learn from, the vocabulary to write them in, and scores.

pub mod attention;
mod evaluation;
mod languages;
mod pairs;
pub mod score;
mod sentences;
mod unknown;
mod vocabulary;

pub use self::evaluation::{Evaluation, Judged, Split};
pub use self::languages::{Languages, LinkedPair, Translation};
pub use self::pairs::{PairFile, Problem, ProblemKind, TextPair, write_pairs};
pub use self::sentences::sentences;
pub use self::unknown::{Sentence, Unknown};
pub use self::vocabulary::{Case, Vocabulary};
