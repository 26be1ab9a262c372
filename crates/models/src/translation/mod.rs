//! Translation from English to Korean: sentences to learn from, the vocabulary to write them in, and scores.
//!
//! ```
//! use foveal_models::layer::Random;
//! use foveal_models::translation::Grammar;
//!
//! let pair = Grammar::new().sample(&mut Random::new(5));
//! println!("{} = {}", pair.english_text(), pair.korean_text());
//! ```

pub mod attention;
mod grammar;
pub mod korean;
mod pairs;
pub mod score;
mod vocabulary;

pub use self::grammar::{Certainty, Combination, Corpus, Grammar, Link, Pair, Place, Sizes, Word, tokens};
pub use self::pairs::{Pairs, Problem, ProblemKind, TextPair, write_pairs};
pub use self::vocabulary::{Case, Vocabulary};
