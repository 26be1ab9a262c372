//! The largest of many scores, without reading all of the vectors that they are made of.
//!
//! The scores of all tokens are x·wᵥ. To choose one, only the largest are needed, and most of them can be told not to be among
//! those from a coarse copy of the vectors, c in 8 bits with a scale s for each:
//!
//! $$ |x \cdot w_v - s_v\, x \cdot c_v| \le \lVert x \rVert\, \lVert w_v - s_v c_v \rVert $$
//!
//! (Cauchy and Schwarz), a lower and an upper bound on every score. A token whose upper bound is below the k-th largest lower
//! bound cannot be in the top k. The few tokens that remain are scored as they would have been among all others, so the choice
//! is exact. A quarter of the bytes are read: generating text waits for its weights, of which these are a third in a GPT-2.

use foveal::Threads;
use foveal_compute::{Operand, affine, vectorise};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use super::{parallel, vector};
use crate::Error;

/// Norms of x between which no sum of the estimates comes near the end of f32's range, and none near its beginning.
const NORMS: std::ops::Range<f64> = 1e-15..1e30;
/// The same for the product of the norms, and so for the scores.
const SAFE: f64 = 1e37;

/// A coarse copy of the rows of a matrix.
#[derive(Clone, Debug)]
pub struct Sketch {
    /// c: [V, D]
    codes: Array2<i8>,
    rows: Vec<Row>,
    /// The largest norm of a row; ∞ if one is not a number.
    norm: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// s: what a code of 1 stands for.
    scale: f32,
    /// By how much a score may differ from its estimate at most, for an x of norm 1.
    slack: f32,
}

impl Sketch {
    /// Of a matrix [V, D].
    pub fn new(matrix: Operand) -> Self {
        let (vocabulary, dim) = matrix.dim();
        let mut codes = Array2::zeros((vocabulary, dim));
        let room = codes.as_slice_mut().expect("in standard layout");
        foveal_compute::advise_large_pages(room);
        let mut rows = vec![Row::default(); vocabulary];
        let block = parallel::block(dim);
        let pieces = room.par_chunks_mut(block * dim.max(1)).zip(rows.par_chunks_mut(block)).enumerate();
        let largest = pieces.map(|(i, (codes, rows))| {
            let mut values = matrix.rows(i * block..i * block + rows.len()).widened();
            let values = parallel::contiguous(&mut values);
            vectorise(
                #[inline(always)]
                || {
                    let rows = rows.iter_mut().zip(codes.chunks_exact_mut(dim));
                    let rows = rows.zip(values.chunks_exact_mut(dim));
                    rows.fold(0.0, |largest: f64, ((row, codes), values)| {
                        let norm;
                        (*row, norm) = encode(values, codes);
                        largest.max(if norm.is_nan() { f64::INFINITY } else { norm })
                    })
                },
            )
        });
        let norm = largest.reduce(|| 0.0, f64::max);
        Sketch { codes, rows, norm }
    }

    /// The numbers of all rows whose product with x: [1, D] may be one of the k largest, ascending. None if that cannot be told.
    ///
    /// # Errors
    /// If x has another width.
    pub fn candidates(&self, x: ArrayView2<f32>, k: usize) -> Result<Option<Vec<usize>>, Error> {
        let sums = affine(x, Operand::from(&self.codes).t(), None, Threads::Rayon)?;
        let norm = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if !NORMS.contains(&norm) || norm * self.norm > SAFE || k == 0 {
            return Ok(None);
        }
        let (mut least, mut most) = (vec![0.0; self.rows.len()], vec![0.0; self.rows.len()]);
        let norm = above(norm);
        vectorise(
            #[inline(always)]
            || {
                let bounds = least.iter_mut().zip(&mut most);
                for ((least, most), (row, sum)) in bounds.zip(self.rows.iter().zip(parallel::values(&sums))) {
                    // Products of tiny numbers vanish; together they stay below the least number there is.
                    let (estimate, slack) = (row.scale * sum, row.slack * norm + f32::MIN_POSITIVE);
                    (*least, *most) = (estimate - slack, estimate + slack);
                }
            },
        );
        let threshold = match k {
            1 => vectorise(
                #[inline(always)]
                || vector::max(&least),
            ),
            k if k < least.len() => *least.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1,
            _ => f32::NEG_INFINITY,
        };
        Ok(Some((0..most.len()).filter(|row| most[*row] >= threshold).collect()))
    }
}

/// codes ⟵ a row in 8 bits; what they stand for, and the norm of the row. Leaves in it what they do not stand for.
#[inline(always)]
fn encode(values: &mut [f32], codes: &mut [i8]) -> (Row, f64) {
    /// The largest code.
    const MOST: f32 = 127.0;
    /// A row of smaller numbers is left to its slack.
    const LEAST: f32 = 1e-15;
    let largest = vector::max_abs(values);
    let norm = vector::squares(values).sqrt();
    let scale = if largest > LEAST && largest.is_finite() { largest / MOST } else { 0.0 };
    let factor = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    codes.iter_mut().zip(&*values).for_each(|(code, value)| *code = vector::nearest(value * factor) as i8);
    values.iter_mut().zip(&*codes).for_each(|(value, code)| *value -= scale * f32::from(*code));
    let left = vector::squares(values).sqrt();
    // What the sums of D terms may lose by rounding, once in the estimate and once in the score itself, is far below.
    let rounding = f64::from(f32::EPSILON) * (values.len() + 8) as f64 * (norm + left);
    (Row { scale, slack: above(left + rounding) }, norm)
}

/// An f32 that lies a little above x, so that products with it do so, too.
fn above(x: f64) -> f32 {
    (x * (1.0 + 1e-6)) as f32
}
