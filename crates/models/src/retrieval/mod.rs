//! Finding the passages that may answer a question: documents are cut into passages, and these are ranked.
//!
//! ```
//! use foveal_models::retrieval::{Bm25, cut};
//!
//! let notes = "The lamp is in the cellar.\n\nAnna lives in Rome. She paints.";
//! let passages: Vec<&str> = cut(notes, 400).into_iter().map(|place| &notes[place]).collect();
//! assert_eq!(passages.len(), 2);
//! let ranked = Bm25::new(&passages).rank("Where does Anna live?");
//! assert_eq!(ranked[0].passage, 1);
//! ```

mod bm25;
mod embeddings;
mod passages;

pub use self::bm25::Bm25;
pub use self::embeddings::rank_by_meaning;
pub use self::passages::cut;

/// A passage and how well it fits a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Its number.
    pub passage: usize,
    /// Larger where it fits better; 0 where nothing does.
    pub score: f32,
}

/// Best first; the earlier one of equals.
fn sorted(scores: impl IntoIterator<Item = f32>) -> Vec<Ranked> {
    let ranked = scores.into_iter().enumerate().map(|(passage, score)| Ranked { passage, score });
    let mut ranked: Vec<Ranked> = ranked.collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked
}
