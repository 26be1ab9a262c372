//! A score function of the caller's.

use std::fmt;

/// A function of the scores and their positions, of the caller's, in every path: s = f(softcap(scale·q·k)) + bias. (FlexAttention
/// calls it `score_mod`.) It works on a row at a time, a stretch of keys of one query.
///
/// ```
/// use foveal::{Attention, ScoreFunction, ScoreRow};
/// use ndarray::Array4;
/// use std::sync::Arc;
///
/// /// ALiBi.
/// #[derive(Debug)]
/// struct Distance(Vec<f32>);
///
/// impl ScoreFunction for Distance {
///     fn apply(&self, row: ScoreRow, scores: &mut [f32]) {
///         let (slope, start) = (self.0[row.head], (row.first_key - row.position) as f32);
///         scores.iter_mut().enumerate().for_each(|(n, s)| *s -= slope * (start + n as f32).abs());
///     }
///     // The derivative is 1: ds stays as it is.
///     fn backward(&self, _: ScoreRow, _: &[f32], _: &mut [f32]) {}
/// }
///
/// let x = Array4::<f32>::from_shape_fn((1, 2, 9, 4), |(_, h, i, d)| ((h + 3 * i + d) % 7) as f32);
/// let own = Attention::new().score(Arc::new(Distance(vec![0.5, 0.25]))).forward(&x, &x, &x)?;
/// let alibi = Attention::new().bias(foveal::Bias::alibi_with(vec![0.5, 0.25])).forward(&x, &x, &x)?;
/// assert!(own.out.iter().zip(&alibi.out).all(|(a, b)| (a - b).abs() < 1e-5));
/// # Ok::<(), foveal::Error>(())
/// ```
pub trait ScoreFunction: Send + Sync + fmt::Debug {
    /// scores ⟵ f(scores), for successive keys. Keys that a mask hides may be among them; what becomes of these does not matter.
    fn apply(&self, row: ScoreRow, scores: &mut [f32]);

    /// ds ⟵ ds·f′(scores), with the scores that [`apply`](ScoreFunction::apply) was given.
    fn backward(&self, row: ScoreRow, scores: &[f32], ds: &mut [f32]);

    /// For what the function has learned: it is handed each row's scores, as [`apply`](ScoreFunction::apply) was, and ds, the
    /// gradient in its result, 0 where a key is hidden. Rows come from several threads at once, each once, in any order.
    fn gradient(&self, row: ScoreRow, scores: &[f32], ds: &[f32]) {
        let _ = (row, scores, ds);
    }
}

/// Which scores a [`ScoreFunction`] is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScoreRow {
    /// The sequence.
    pub batch: usize,
    /// The query head.
    pub head: usize,
    /// The number of the query.
    pub query: isize,
    /// Where the query stands among the keys; see [`Align`](crate::Align).
    pub position: isize,
    /// The number of the first key; the others follow.
    pub first_key: isize,
}
