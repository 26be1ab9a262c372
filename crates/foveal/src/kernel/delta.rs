//! δ, which makes the gradients of a row's scores sum up to 0: ds = p∘(dp − δ) with δ = Σ p·dp = dout·out.
//!
//! [`RowDots`] takes the second form. It adds up in the order in which dp = dout·v is added up, so that a row with a single key,
//! for which out = v, gets ds = 0 and not what rounding leaves of it.
//!
//! What a bias learns is a sum of ds over many keys of a row, or over rows, in which rounding errors of δ add up where those of dp
//! cancel. For these [`Refined`] takes the first form, from the very dp and p that ds is then made of: two products more. It does
//! so as well for rows of [large scores](super::precise), of which out and lse were computed from rounded scores, and for a few
//! queries, which cost little.

use std::ops::Range;

use foveal_compute::scratch::{LINE, Memory};
use ndarray::ArrayView3;

use super::Kernel;
use super::gemm::{Left, MAX_ROWS, Out, PANEL};
use super::precise::{self, PreciseRow};
use super::rows::{self, Block, KEYS, STRIDE, TileKeys, terms};
use super::simd::Simd;
use super::softmax::{self, Lse};
use super::source::Source;
use crate::scores::Scores;
use crate::scratch::Slot;
use crate::tensor::Tensor;

/// δ ⟵ dout·out for some rows of one head.
pub struct RowDots<'a> {
    pub dout: Source<'a>,
    pub out: Source<'a>,
    pub rows: Range<usize>,
    pub delta: &'a mut [f32],
    pub memory: &'a mut Memory,
}

impl Kernel for RowDots<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let RowDots { dout, out, rows, delta, memory } = self;
        let width = PANEL * S::LANES;
        let [a, b] = memory.cut([out.cols() * width; 2]);
        for (n, delta) in delta.chunks_mut(width).enumerate() {
            let first = rows.start + n * width;
            let (rows, mut dots) = (first..first + delta.len(), [0.0; PANEL * LINE]);
            column_dots(simd, (dout, out), rows, (&mut *a, &mut *b), &mut dots);
            delta.copy_from_slice(&dots[..delta.len()]);
        }
    }
}

/// The dot products of up to a panel's width of rows, added up as [`super::rows::dots`] does.
#[inline(always)]
fn column_dots<S: Simd>(
    simd: S,
    (x, y): (Source, Source),
    rows: Range<usize>,
    (a, b): (&mut [f32], &mut [f32]),
    dots: &mut [f32; PANEL * LINE],
) {
    let width = PANEL * S::LANES;
    let (count, columns) = (rows.len(), x.cols());
    x.columns(simd, rows.clone(), 1.0, a);
    y.columns(simd, rows, 1.0, b);
    for vector in (0..count.next_multiple_of(S::LANES)).step_by(S::LANES) {
        let mut sum = simd.splat(0.0);
        for first in (0..columns).step_by(terms(columns)) {
            let mut part = simd.splat(0.0);
            for d in first..(first + terms(columns)).min(columns) {
                let (a, b) = (&a[d * width + vector..][..S::LANES], &b[d * width + vector..][..S::LANES]);
                // SAFETY: both have LANES values.
                part = unsafe { simd.fma(simd.load(a.as_ptr()), simd.load(b.as_ptr()), part) };
            }
            sum = if first == 0 { part } else { simd.add(sum, part) };
        }
        // SAFETY: `dots` has room for a panel's width.
        unsafe { simd.store(dots[vector..vector + S::LANES].as_mut_ptr(), sum) };
    }
}

/// δ ⟵ Σ p·dp / Σ p for a block of rows of one head; and for those of large scores 1 / Σ p, as their lse was computed from rounded
/// scores.
pub struct Refined<'a> {
    pub q: Tensor<'a>,
    pub dout: Tensor<'a>,
    pub k: Source<'a>,
    pub v: Source<'a>,
    pub lse: &'a ArrayView3<'a, f64>,
    pub scores: Scores<'a>,
    pub block: Block,
    /// Whether for all of them, or for those of large scores.
    pub all: bool,
    pub slot: &'a mut Slot,
    /// Of the block's rows.
    pub delta: &'a mut [f32],
    pub factor: &'a mut [f32],
}

/// The parts of the scratch for blocks of `n` rows.
pub fn memory(scores: &Scores, n: usize, dim: usize, value_dim: usize) -> [usize; 8] {
    let table = scores.shaw_distances().next_multiple_of(2 * LINE) * dim;
    let scores_of_group = MAX_ROWS * STRIDE;
    [
        n * dim,
        n * value_dim,
        KEYS * dim,
        KEYS * value_dim,
        scores_of_group,
        scores_of_group,
        n * rows::shaw_width(scores),
        table,
    ]
}

impl Kernel for Refined<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Refined { q, dout, k, v, lse, scores, block, all, slot, delta, factor } = self;
        let (n, dim, value_dim) = (block.len(), k.cols(), v.cols());
        let Slot { memory: slot_memory, plan } = slot;
        let [q_copy, dout_copy, k_cols, v_cols, p, dp, relative, table] =
            slot_memory.cut(memory(&scores, n, dim, value_dim));
        let (scale, rest) = rows::query_scale(&scores, &k);
        let q = rows::gather(simd, &q, (&scores, &block), scale, q_copy);
        let dout = rows::gather(simd, &dout, (&scores, &block), 1.0, dout_copy);
        rows::relative(simd, (&scores, &block), (q, rest), table, relative);
        let mut sums = vec![(0.0f64, 0.0f64); n];
        plan.make(&scores, &block, S::ROWS, &(0..k.rows()));
        while let Some(tile) = plan.next_tile::<S>(&scores, &block, 0, KEYS) {
            let keys = TileKeys::new(simd, &scores, k, &tile, k_cols);
            let v_cols = (v.columns(simd, tile.clone(), 1.0, v_cols), tile.start);
            for span in plan.spans() {
                let r0 = span.rows.start;
                keys.multiply(simd, &q[r0 * dim..], dim, span, Out { data: p, row: STRIDE });
                let left = Left { data: &dout[r0 * value_dim..], row: value_dim, step: 1 };
                rows::products(simd, left, v_cols, span, Out { data: dp, row: STRIDE });
                for r in span.rows.clone() {
                    let at = block.at(r);
                    let whole = span.len.next_multiple_of(S::LANES);
                    let row = (r - r0) * STRIDE..(r - r0) * STRIDE + whole;
                    let (p, dp) = (&mut p[row.clone()], &mut dp[row]);
                    let relative = rows::relative_row(&scores, relative, r);
                    let lse = lse[scores.query_row(at)];
                    if scores.is_precise(lse) {
                        let row = PreciseRow { q: &q[r * dim..(r + 1) * dim], at, span, relative, lse };
                        precise::finish(simd, &scores, &keys, row, p, None);
                        softmax::weights(simd, p, Lse::subtracted());
                    } else {
                        rows::finish(simd, &scores, at, (span, relative), p, None);
                        softmax::weights(simd, p, Lse::new(lse, scores.unit()));
                    }
                    scores.drop_weights(at, span.first, &mut dp[..span.len]);
                    let weighed = p.iter().zip(&*dp).filter(|(p, _)| **p != 0.0);
                    let dot: f64 = weighed.map(|(p, dp)| f64::from(*p) * f64::from(*dp)).sum();
                    sums[r].0 += dot;
                    sums[r].1 += p.iter().map(|p| f64::from(*p)).sum::<f64>();
                }
            }
        }
        for (r, (dot, total)) in sums.into_iter().enumerate() {
            let at = block.at(r);
            let lse = lse[scores.query_row(at)];
            let precise = scores.is_precise(lse);
            if all || precise {
                let margin = if precise { precise::MARGIN } else { 0.0 };
                let of_sink = scores.sink(at.1).map_or(0.0, |sink| (f64::from(sink) - lse - margin).exp());
                delta[r] = if total == 0.0 { 0.0 } else { (dot / (total + of_sink)) as f32 };
                if precise && total > 0.0 {
                    factor[r] = (1.0 / (total + of_sink)) as f32;
                }
            }
        }
    }
}
