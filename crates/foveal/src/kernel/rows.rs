//! A block of query rows, and the scores of its rows on a tile of keys.

use std::ops::Range;

use ndarray::{ArrayView4, Axis};

use super::gemm::{Left, Out, Right, Store};
use super::matrix::Matrix;
use super::pack;
use super::plan::Part;
use super::simd::Simd;
use super::softmax;
use crate::scores::Scores;
use crate::scratch::LINE;

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

    /// The head and query of row r of the block.
    #[inline(always)]
    pub fn at(&self, r: usize) -> (usize, usize) {
        if self.heads.len() == 1 {
            (self.heads.start, self.rows.start + r)
        } else {
            (self.heads.start + r / self.rows.len(), self.rows.start + r % self.rows.len())
        }
    }

    /// The place of row r in an output whose sequence is `b`.
    #[inline(always)]
    pub fn place(&self, b: usize, r: usize) -> (usize, usize, usize) {
        let (h, i) = self.at(r);
        (b, h, i)
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

/// The rows of q that a block needs, one after the other: as they lie, or copied.
#[inline(always)]
pub fn gather<'a>(q: &ArrayView4<'a, f32>, block: &Block, dst: &'a mut [f32]) -> &'a [f32] {
    let first = Matrix::new(q, block.b, block.heads.start);
    if let (1, Some(rows)) = (block.heads.len(), first.block(block.rows.clone())) {
        return rows;
    }
    let dim = first.cols();
    for r in 0..block.len() {
        let (h, i) = block.at(r);
        Matrix::new(q, block.b, h).copy_row(i, &mut dst[r * dim..(r + 1) * dim]);
    }
    &dst[..block.len() * dim]
}

/// Shaw's scale·q·a for every row of the block and every distance: rows of `shaw_width` values. Empty without Shaw.
#[inline(always)]
pub fn relative<S: Simd>(simd: S, scores: &Scores, block: &Block, q: &[f32], packed: &mut [f32], dst: &mut [f32]) {
    for h in block.heads.clone() {
        let Some(table) = scores.shaw_table(h) else { return };
        let ((distances, dim), width) = (table.dim(), shaw_width(scores));
        let table = Matrix::new(&table.insert_axis(Axis(0)).insert_axis(Axis(0)), 0, 0);
        let b = pack::columns(simd, table, 0..distances, scores.scale, packed);
        let n = block.rows.len();
        let first = (h - block.heads.start) * n;
        simd.gemm(
            (n, distances.div_ceil(S::LANES), dim),
            Left { data: &q[first * dim..], row: dim, step: 1 },
            b,
            Out { data: &mut dst[first * width..], row: width },
            Store::Set,
        );
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

/// S\[group, part\] ⟵ scale·Q·Kᵀ, from keys packed for the whole tile.
#[inline(always)]
pub fn products<S: Simd>(simd: S, q: Left, rows: usize, keys: Right, tile: usize, part: &Part, s: Out) {
    let skip = (part.first - tile) / keys.step * keys.panel;
    let depth = keys.panel / keys.step;
    let keys = Right { data: &keys.data[skip..], ..keys };
    simd.gemm((rows, part.len.div_ceil(S::LANES), depth), q, keys, s, Store::Set);
}

/// Keys to ask for ahead of time when they are read in place: some 8 KiB at D = 64, what memory delivers within its latency.
const AHEAD: usize = 32;

/// The same for a few rows, as dot products with the keys as they lie: packing would cost more than it saves.
#[inline(always)]
pub fn thin_products<S: Simd>(
    simd: S,
    q: &[f32],
    k: Matrix,
    scale: f32,
    part: &Part,
    buffer: &mut [f32],
    s: &mut [f32],
) {
    let dim = k.cols();
    for n in 0..part.len {
        k.prefetch(simd, part.first + n + AHEAD..part.first + n + AHEAD + 1);
        let key = match k.row(part.first + n) {
            Some(key) => key,
            None => {
                k.copy_row(part.first + n, &mut buffer[..dim]);
                &buffer[..dim]
            }
        };
        for (r, q) in q.chunks_exact(dim).enumerate() {
            s[r * STRIDE + n] = softmax::dot(simd, q, key) * scale;
        }
    }
}

/// Softcap, bias and mask on the products of row r with the keys of `part`; what is left of the last vector is hidden.
/// The scores as they are between softcap and bias go to `capped`, if asked for.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a row's place, its products, and what they become")]
pub fn finish<S: Simd>(
    simd: S,
    scores: &Scores,
    block: &Block,
    r: usize,
    part: &Part,
    relative: &[f32],
    row: &mut [f32],
    capped: Option<&mut [f32]>,
) {
    let (h, i) = block.at(r);
    if scores.changes() {
        scores.cap(simd, row);
    }
    if scores.changes() {
        let seen = &mut row[..part.len];
        if let Some(capped) = capped {
            capped[..part.len].copy_from_slice(seen);
        }
        scores.add_bias(simd, (block.b, h, i), part.first, relative, seen);
    }
    scores.hide(simd, (block.b, h, i), part, row, f32::NEG_INFINITY);
}
