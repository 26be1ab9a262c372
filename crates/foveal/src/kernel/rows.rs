//! A block of query rows, and the scores of its rows on a tile of keys.

use std::ops::Range;

use foveal_compute::scratch::LINE;
use ndarray::Axis;

use super::gemm::{Left, Out, PANEL, Right, Store};
use super::matrix::Matrix;
use super::pack;
use super::plan::Span;
use super::simd::Simd;
use super::softmax;
use super::source::Source;
use crate::scores::{At, Scores};
use crate::tensor::Tensor;

/// Keys per tile. With 256, the packed keys and values of a tile (64 KiB each at D = 64) stay in L2 while hundreds of rows
/// pass over them, and a row's bookkeeping is spread over 16 vectors.
pub const KEYS: usize = 256;
/// Distance of two rows of scores: one line more than KEYS, so that the rows of a group do not fall on the same cache sets.
pub const STRIDE: usize = KEYS + LINE;

/// Query rows of one head, or (for a few new tokens) of all heads that share a key head.
#[derive(Clone)]
pub struct Block {
    pub b: usize,
    pub heads: Range<usize>,
    pub rows: Range<usize>,
}

impl Block {
    pub fn len(&self) -> usize {
        self.heads.len() * self.rows.len()
    }

    /// Sequence, head and query of row r of the block.
    #[inline(always)]
    pub fn at(&self, r: usize) -> At {
        if self.heads.len() == 1 {
            (self.b, self.heads.start, self.rows.start + r)
        } else {
            (self.b, self.heads.start + r / self.rows.len(), self.rows.start + r % self.rows.len())
        }
    }

    /// The queries of the block's rows `group`.
    #[inline(always)]
    pub fn queries(&self, group: &Range<usize>) -> Range<usize> {
        if self.heads.len() == 1 {
            self.rows.start + group.start..self.rows.start + group.end
        } else {
            self.rows.clone()
        }
    }
}

/// The rows of an array like the queries that a block needs, times `scale`, one after the other: as they lie, or copied.
#[inline(always)]
pub fn gather<'a, S: Simd>(
    simd: S,
    array: &Tensor<'a>,
    (scores, block): (&Scores, &Block),
    scale: f32,
    dst: &'a mut [f32],
) -> &'a [f32] {
    let first = scores.query_head(array, block.b, block.heads.start);
    if let (1, Some(rows), true) = (block.heads.len(), first.block(block.rows.clone()), scale == 1.0) {
        return rows;
    }
    let dim = first.cols();
    for r in 0..block.len() {
        let (b, h, i) = block.at(r);
        scores.query_head(array, b, h).copy_row(simd, i, scale, &mut dst[r * dim..(r + 1) * dim]);
    }
    &dst[..block.len() * dim]
}

/// Shaw's scale·q·a for every row of the block and every distance: rows of `shaw_width` values. Empty without Shaw. `scale` is
/// what the rows of q are still to be multiplied with.
#[inline(always)]
pub fn relative<S: Simd>(
    simd: S,
    (scores, block): (&Scores, &Block),
    (q, scale): (&[f32], f32),
    packed: &mut [f32],
    dst: &mut [f32],
) {
    for h in block.heads.clone() {
        let Some(table) = scores.shaw_table(h) else { return };
        let ((distances, dim), width) = (table.dim(), shaw_width(scores));
        let table = Matrix::new(&table.insert_axis(Axis(0)).insert_axis(Axis(0)), 0, 0);
        let b = pack::columns(simd, table, 0..distances, scale, packed);
        let n = block.rows.len();
        let first = (h - block.heads.start) * n;
        let to = Out { data: &mut dst[first * width..], row: width };
        let q = Left { data: &q[first * dim..], row: dim, step: 1 };
        dots(simd, (n, distances.div_ceil(S::LANES), dim), q, b, to);
    }
}

/// Values per row of [`relative`].
pub fn shaw_width(scores: &Scores) -> usize {
    scores.shaw_distances().next_multiple_of(LINE)
}

/// Row r of [`relative`].
#[inline(always)]
pub fn relative_row<'a>(scores: &Scores, relative: &'a [f32], r: usize) -> &'a [f32] {
    let width = shaw_width(scores);
    &relative[r * width..r * width + scores.shaw_distances()]
}

/// The keys of a tile, for scale·q·k, [`Scores::rest`] aside. Of few rows of queries these are multiplied with the scale, of many
/// the packed keys.
#[derive(Clone, Copy)]
pub enum TileKeys<'t> {
    InPlace(Source<'t>),
    Packed(Right<'t>, usize),
}

impl<'t> TileKeys<'t> {
    #[inline(always)]
    pub fn new<S: Simd>(
        simd: S,
        scores: &Scores,
        k: Source<'t>,
        tile: &Range<usize>,
        dst: &'t mut [f32],
    ) -> TileKeys<'t> {
        if scores.in_place(&k) {
            return TileKeys::InPlace(k);
        }
        TileKeys::Packed(k.columns(simd, tile.clone(), scores.key_scale, dst), tile.start)
    }

    /// S\[group, span\] ⟵ scale·Q·Kᵀ, from queries multiplied with [`query_scale`], the span's first row first.
    #[inline(always)]
    pub fn multiply<S: Simd>(&self, simd: S, q: &[f32], dim: usize, span: &Span, s: Out) {
        match *self {
            TileKeys::InPlace(k) => {
                k.dots(simd, &q[..span.rows.len() * dim], span.first..span.first + span.len, s);
            }
            TileKeys::Packed(columns, tile) => {
                products(simd, Left { data: q, row: dim, step: 1 }, (columns, tile), span, s);
            }
        }
    }
}

impl TileKeys<'_> {
    /// [`multiply`](TileKeys::multiply) of one row, in f64.
    #[inline(always)]
    pub fn sums<S: Simd>(&self, _: S, q: &[f32], span: &Span, sums: &mut [f64]) {
        match *self {
            TileKeys::InPlace(k) => {
                for (n, sum) in sums.iter_mut().enumerate() {
                    let term = |(d, q): (usize, &f32)| f64::from(*q) * f64::from(k.get(span.first + n, d));
                    *sum = q.iter().enumerate().map(term).sum();
                }
            }
            TileKeys::Packed(columns, tile) => {
                let width = PANEL * S::LANES;
                let first = (span.first - tile) / width;
                for (n, sums) in sums.chunks_mut(width).enumerate() {
                    let panel = &columns.data[(first + n) * columns.panel..][..columns.panel];
                    let mut panel_sums = [0.0; PANEL * LINE];
                    for (q, keys) in q.iter().zip(panel.chunks_exact(width)) {
                        let q = f64::from(*q);
                        panel_sums[..width].iter_mut().zip(keys).for_each(|(sum, k)| *sum += q * f64::from(*k));
                    }
                    sums.copy_from_slice(&panel_sums[..sums.len()]);
                }
            }
        }
    }
}

/// What queries are multiplied with before [`TileKeys::multiply`], and what is left to multiply them with.
#[inline(always)]
pub fn query_scale(scores: &Scores, k: &Source) -> (f32, f32) {
    if scores.in_place(k) { (scores.key_scale, scores.rest()) } else { (1.0, scores.scale) }
}

/// S\[group, span\] ⟵ A·Bᵀ, from rows of B packed as columns for the whole tile, which starts at key `tile`.
#[inline(always)]
pub fn products<S: Simd>(simd: S, a: Left, (columns, tile): (Right, usize), span: &Span, s: Out) {
    let skip = (span.first - tile) / columns.step * columns.panel;
    let depth = columns.panel / columns.step;
    let columns = Right { data: &columns.data[skip..], ..columns };
    dots(simd, (span.rows.len(), span.len.div_ceil(S::LANES), depth), a, columns, s);
}

/// The terms of a dot product that are added up one after the other; see [`dots`].
pub const TERMS: usize = 64;

/// The lengths of the sums that a dot product of `depth` terms is made of.
pub fn terms(depth: usize) -> usize {
    depth.div_ceil(depth.div_ceil(TERMS).max(1)).max(1)
}

/// C ⟵ A·B, the same to the bit wherever scores or their gradients are computed. Long dot products are sums of shorter ones,
/// which are rounded less.
#[inline(always)]
pub fn dots<S: Simd>(simd: S, (m, vectors, depth): (usize, usize, usize), a: Left, b: Right, c: Out) {
    let size = terms(depth);
    simd.gemm((m, vectors, size.min(depth)), a, b, Out { data: &mut *c.data, row: c.row }, Store::Set);
    for first in (size..depth).step_by(size) {
        let (a, b) = (Left { data: &a.data[first * a.step..], ..a }, Right { data: &b.data[first * b.step..], ..b });
        simd.gemm((m, vectors, size.min(depth - first)), a, b, Out { data: &mut *c.data, row: c.row }, Store::Add);
    }
}

/// Softcap, score function, bias and mask on the products of row `at` with the keys of a span; what is left of the last vector is
/// hidden. `relative` is [`relative_row`]. The scores between softcap and score function go to `bent`, if asked for.
#[inline(always)]
pub fn finish<S: Simd>(
    simd: S,
    scores: &Scores,
    at: At,
    (span, relative): (&Span, &[f32]),
    row: &mut [f32],
    bent: Option<&mut [f32]>,
) {
    if scores.changes() {
        if scores.rest() != 1.0 {
            softmax::multiply(simd, row, scores.rest());
        }
        scores.cap(simd, row);
    }
    if scores.changes() {
        let seen = &mut row[..span.len];
        if let Some(bent) = bent {
            bent[..span.len].copy_from_slice(seen);
        }
        scores.apply_function(at, span.first, seen);
        scores.add_bias(simd, at, span.first, relative, seen);
    }
    scores.hide(simd, at, span, row, f32::NEG_INFINITY);
}
