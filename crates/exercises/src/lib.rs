//! Exercises on attention that check themselves.
//!
//! An [`Exercise`] has a name and a chapter; its [`Task`] is computed when it is asked for: the question, tables and pictures,
//! hints in steps, the right answer, and the answers that common mistakes lead to, each with the reason why it is wrong. All of
//! these come from the engine and the models inside; none is typed in. A task prints nothing and reads nothing; whoever asks it
//! passes the learner's words to [`Task::check`] and shows the [`Verdict`].
//!
//! ```
//! let task = foveal_exercises::find("weights")?.task()?;
//! // The softmax of the scores as they are: the scale was forgotten.
//! let verdict = task.check("0.090 0.245 0.665");
//! assert_eq!(verdict.mistake(), Some("no-scale"));
//! # Ok::<(), foveal_exercises::Error>(())
//! ```
//!
//! Exercises that are programs ([`Code`]) are built and run by `cargo`, in a folder of the caller's ([`Workshop`]).

#![deny(unsafe_code)]

mod answer;
mod chapter;
mod code;
mod error;
mod exercise;
mod number;
mod progress;
mod switched_off;
mod task;
mod workshop;

pub use answer::Answer;
pub use code::{Case, Code, Mistaken};
pub use error::{Error, Result};
pub use exercise::{EXERCISES, Exercise, find};
pub use foveal_labs::Language;
pub use progress::{Progress, Record};
pub use switched_off::{SwitchedOff, switched_off};
pub use task::{Expected, Mistake, Task, Verdict};
pub use workshop::Workshop;
