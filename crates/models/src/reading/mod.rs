//! Questions about passages: how they become tokens for a [`Reader`](crate::model::Reader), and its answers.
//!
//! The reader sees `<s> question <q> passage </s>` for each passage, and with each token a mark: to which side it belongs, and
//! how far its words stand on the other side, too (see [`matching`]). It writes the answer, or `<none>`.

mod answer;
mod input;
pub mod matching;
mod prompt;
mod vocabulary;

pub use self::answer::{Answered, Asker, Limits, Place, WatchedAnswer, refusal};
pub use self::input::{Input, Padded, Question, ReaderTokens};
pub use self::matching::MARKS;
pub use self::prompt::ask_language_model;
pub use self::vocabulary::reader_vocabulary;
