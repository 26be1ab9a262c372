//! Rows of large scores, for gradients.
//!
//! A score of 300 is rounded to f32 by up to 1.5e-5, and so, relatively, is the weight computed from it; in gradients, where
//! weights cancel, that shows. But where a weight counts, s − lse is small. So q·k is summed in f64, the log-sum-exp is
//! subtracted there, and only the difference is rounded. That takes about three times as long as the product in f32, for the
//! rows that need it.

use super::plan::Span;
use super::rows::{KEYS, TileKeys};
use super::simd::Simd;
use crate::scores::{At, Scores};

/// From this |lse| on.
pub const LARGE: f64 = 16.0;

/// And below this: beyond, an lse computed from rounded scores may be further off than [`MARGIN`].
pub const HUGE: f64 = 1e6;

/// Subtracted beside the log-sum-exp, which is that of rounded scores: so no weight comes near 1, where it would be cut off. The
/// weights are divided by their sum afterwards.
pub const MARGIN: f64 = 1.0;

/// A row of scores to be computed.
pub struct PreciseRow<'a> {
    /// As for [`TileKeys::multiply`].
    pub q: &'a [f32],
    pub at: At,
    pub span: &'a Span,
    /// Shaw's scale·q·a.
    pub relative: &'a [f32],
    pub lse: f64,
}

/// row ⟵ s − lse − MARGIN, −∞ where a key is hidden: [`super::rows::finish`] for rows without a score function.
#[inline(always)]
pub fn finish<S: Simd>(
    simd: S,
    scores: &Scores,
    keys: &TileKeys,
    PreciseRow { q, at, span, relative, lse }: PreciseRow,
    row: &mut [f32],
    capped: Option<&mut [f32]>,
) {
    let mut sums = [0.0; KEYS];
    let (sums, rest) = (&mut sums[..span.len], f64::from(scores.rest()));
    keys.sums(simd, q, span, sums);
    sums.iter_mut().for_each(|sum| *sum *= rest);
    if scores.caps() {
        row.iter_mut().zip(&*sums).for_each(|(x, sum)| *x = *sum as f32);
        scores.cap(simd, row);
        if let Some(capped) = capped {
            capped[..span.len].copy_from_slice(&row[..span.len]);
        }
        sums.iter_mut().zip(&*row).for_each(|(sum, x)| *sum = f64::from(*x));
    }
    scores.add_bias_to_sums(simd, at, span.first, relative, sums);
    row.iter_mut().zip(&*sums).for_each(|(x, sum)| *x = (sum - lse - MARGIN) as f32);
    scores.hide(simd, at, span, row, f32::NEG_INFINITY);
}
