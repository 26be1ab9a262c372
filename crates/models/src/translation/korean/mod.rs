//! The spelling of Korean, as far as a sentence needs it: particles that follow the last sound of a noun, and verbs and
//! adjectives that change with their ending.
//!
//! ```
//! use foveal_models::translation::korean::{Particle, Stem};
//!
//! assert_eq!(["학생", "의사"].map(|noun| Particle::Topic.after(noun)), ["은", "는"]);
//! assert_eq!(Stem::regular("읽다").polite().to_string(), "읽어요");
//! assert_eq!(Stem::irregular("듣다").past().to_string(), "들었어요");
//! ```

mod conjugation;
mod hangul;
mod particle;

pub use self::conjugation::{Form, Stem};
pub use self::particle::Particle;
