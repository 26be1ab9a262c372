//! How good translations are: exact match, BLEU, chrF; and how good alignments are: the alignment error rate.
//!
//! BLEU and chrF give the numbers that `sacrebleu` gives, so that they can be compared with those of others.
//!
//! ```
//! use foveal_models::translation::score::{Tokens, bleu, chrf, exact_match};
//!
//! let pairs = [("학생이 책을 읽어요.", "학생이 책을 읽었어요."), ("집이 커요.", "집이 커요.")];
//! assert_eq!(exact_match(pairs), 50.0);
//! assert_eq!(format!("{:.2}", bleu(pairs, Tokens::Mteval).score), "54.11");
//! assert_eq!(format!("{:.2}", chrf(pairs)), "62.74");
//! ```

mod alignment;
mod bleu;
mod chrf;
mod tokens;

use std::collections::HashMap;
use std::hash::Hash;

pub use self::alignment::AlignmentScore;
pub use self::bleu::{Bleu, bleu};
pub use self::chrf::chrf;
pub use self::tokens::Tokens;

/// How many of the translations are their reference to the letter, in percent; spaces around them do not count. Pairs
/// are (translation, reference).
pub fn exact_match<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> f64 {
    let (mut same, mut all) = (0u64, 0u64);
    for (found, expected) in pairs {
        same += u64::from(found.trim() == expected.trim());
        all += 1;
    }
    100.0 * same as f64 / all.max(1) as f64
}

/// How often each run of `order` items occurs.
fn runs<T: Eq + Hash>(items: &[T], order: usize) -> HashMap<&[T], u64> {
    let mut counts = HashMap::new();
    for run in items.windows(order) {
        *counts.entry(run).or_default() += 1;
    }
    counts
}

/// How many runs two texts have in common, each counted as often as both have it.
fn common<T: Eq + Hash>(found: &HashMap<&[T], u64>, expected: &HashMap<&[T], u64>) -> u64 {
    found.iter().map(|(run, &count)| count.min(expected.get(run).copied().unwrap_or(0))).sum()
}
