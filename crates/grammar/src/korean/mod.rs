//! The spelling of Korean, as far as a sentence needs it: particles that follow the last sound of a noun, and verbs and
//! adjectives that change with their ending.
//!
//! ```
//! use foveal_grammar::korean::{Ending, Particle, Stem};
//!
//! assert_eq!(["학생", "의사"].map(|noun| Particle::Topic.after(noun)), ["은", "는"]);
//! assert_eq!(Stem::regular("읽다").with(Ending::Polite).to_string(), "읽어요");
//! assert_eq!(Stem::irregular("듣다").with(Ending::Past).to_string(), "들었어요");
//! ```

mod conjugation;
#[cfg(test)]
mod forms;
mod hangul;
mod number;
mod particle;

pub use self::conjugation::{Ending, Form, Stem};
pub use self::number::{native_number, sino_number};
pub use self::particle::Particle;
