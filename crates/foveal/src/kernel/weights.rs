//! Weights: any rectangle of w = exp(s − lse), handed row by row to whoever wants it.

use std::ops::Range;

use foveal_compute::scratch::LINE;
use ndarray::ArrayView3;

use super::gemm::{MAX_ROWS, Out};
use super::matrix::{Rows, add};
use super::rows::{self, Block, KEYS, STRIDE, TileKeys};
use super::simd::Simd;
use super::softmax::Lse;
use super::source::Source;
use super::{Kernel, softmax};
use crate::Pool;
use crate::scores::Scores;
use crate::scratch::Slot;
use crate::tensor::Tensor;

/// Takes the weights of a rectangle, tile by tile. What a mask hides whole never comes, and counts as 0.
pub trait Sink {
    /// The lines of KEYS values that it needs to collect a tile.
    fn lines(&self) -> usize;
    /// The weights of query i on the keys from `first` on, which lie in the tile that starts at `tile`.
    fn row(&mut self, i: usize, tile: usize, first: usize, weights: &[f32], lines: &mut [f32]);
    /// All rows of this tile have come.
    fn end(&mut self, tile: Range<usize>, lines: &mut [f32]);
}

/// The rectangle `block` × `cols` of one head.
pub struct Weights<'a, K> {
    pub q: Tensor<'a>,
    pub k: Source<'a>,
    pub lse: &'a ArrayView3<'a, f64>,
    pub scores: Scores<'a>,
    pub block: Block,
    pub cols: Range<usize>,
    pub slot: &'a mut Slot,
    pub sink: K,
}

/// The lengths of the parts of the scratch for blocks of `n` rows; the sink's lines are at most one a row.
pub fn memory(scores: &Scores, n: usize, dim: usize) -> [usize; 6] {
    let table = scores.shaw_distances().next_multiple_of(2 * LINE) * dim;
    [n * dim, KEYS * dim, MAX_ROWS * STRIDE, n * rows::shaw_width(scores), table, n * KEYS]
}

impl<K: Sink> Kernel for Weights<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Weights { q, k, lse, scores, block, cols, slot, mut sink } = self;
        let (n, dim) = (block.len(), k.cols());
        let Slot { memory: slot_memory, plan } = slot;
        let [q_copy, k_packed, s, relative, table, lines] = slot_memory.cut(memory(&scores, n, dim));
        let (scale, rest) = rows::query_scale(&scores, &k);
        let q = rows::gather(simd, &q, (&scores, &block), scale, q_copy);
        rows::relative(simd, (&scores, &block), (q, rest), table, relative);
        let lines = &mut lines[..sink.lines() * KEYS];
        lines.fill(0.0);

        plan.make(&scores, &block, S::ROWS, &cols);
        while let Some(tile) = plan.next_tile::<S>(&scores, &block, cols.start, KEYS) {
            let keys = TileKeys::new(simd, &scores, k, &tile, k_packed);
            for span in plan.spans() {
                let r0 = span.rows.start;
                keys.multiply(simd, &q[r0 * dim..], dim, span, Out { data: s, row: STRIDE });
                for r in span.rows.clone() {
                    let at = block.at(r);
                    let row = &mut s[(r - r0) * STRIDE..][..span.len.next_multiple_of(S::LANES)];
                    let relative = rows::relative_row(&scores, relative, r);
                    rows::finish(simd, &scores, at, (span, relative), row, None);
                    let lse = lse[scores.query_row(at)];
                    softmax::weights(simd, row, Lse::new(lse, scores.unit()));
                    if lse.is_nan() {
                        // Of a row that is NaN, what it does not see is 0 all the same.
                        scores.hide(simd, at, span, row, 0.0);
                    }
                    sink.row(at.2, tile.start, span.first, &row[..span.len], lines);
                }
            }
            sink.end(tile, lines);
        }
    }
}

/// The weights as they are.
pub struct Copy<'a> {
    pub out: Rows<'a>,
    pub at: (usize, usize),
    /// The query and key of the array's first element. (Packed sequences lie further on: then the query is negative.)
    pub first: (isize, usize),
}

impl Sink for Copy<'_> {
    fn lines(&self) -> usize {
        0
    }

    #[inline(always)]
    fn row(&mut self, i: usize, _: usize, first: usize, weights: &[f32], _: &mut [f32]) {
        // SAFETY: each row of the rectangle belongs to one block, and each block to one task.
        unsafe {
            self.out.write((self.at.0, self.at.1, (i as isize - self.first.0) as usize), first - self.first.1, weights);
        };
    }

    #[inline(always)]
    fn end(&mut self, _: Range<usize>, _: &mut [f32]) {}
}

/// Pixel p of `pixels` over `cells` cells starts at this cell: every cell belongs to one pixel.
pub fn bounds(cells: usize, pixels: usize, p: usize) -> usize {
    (p as u128 * cells as u128 / pixels as u128) as usize
}

/// The pixel that a cell belongs to.
fn pixel_of(cells: usize, pixels: usize, cell: usize) -> usize {
    // The largest p whose start, ⌊p·cells/pixels⌋, is not beyond the cell.
    (((cell as u128 + 1) * pixels as u128 - 1) / cells as u128) as usize
}

/// The larger one; unlike `f32::max` it does not hide a NaN.
#[inline(always)]
fn larger(x: f32, y: f32) -> f32 {
    if y > x || y.is_nan() { y } else { x }
}

/// The weights pooled to pixels. Rows are pooled first, a vector at a time, into one line per row of pixels; when a tile is
/// complete, each line is pooled along itself.
pub struct Pooled<'a> {
    pub out: Rows<'a>,
    pub pool: Pool,
    /// The rows of pixels of this block.
    pub pixels: Range<usize>,
    /// The rectangle of the whole picture, in queries and keys, and its size in pixels.
    pub rows: Range<usize>,
    pub cols: Range<usize>,
    pub size: (usize, usize),
}

impl Sink for Pooled<'_> {
    fn lines(&self) -> usize {
        self.pixels.len()
    }

    #[inline(always)]
    fn row(&mut self, i: usize, tile: usize, first: usize, weights: &[f32], lines: &mut [f32]) {
        let p = pixel_of(self.rows.len(), self.size.0, i - self.rows.start) - self.pixels.start;
        let line = &mut lines[p * KEYS + first - tile..][..weights.len()];
        match self.pool {
            Pool::Max => line.iter_mut().zip(weights).for_each(|(x, w)| *x = larger(*x, *w)),
            Pool::Mean | Pool::Sum => line.iter_mut().zip(weights).for_each(|(x, w)| *x += w),
        }
    }

    #[inline(always)]
    fn end(&mut self, tile: Range<usize>, lines: &mut [f32]) {
        let (width, cells) = (self.size.1, self.cols.len());
        for p in self.pixels.clone() {
            let line = &lines[(p - self.pixels.start) * KEYS..][..tile.len()];
            let row = bounds(self.rows.len(), self.size.0, p + 1) - bounds(self.rows.len(), self.size.0, p);
            let mut cell = tile.start - self.cols.start;
            let stop = tile.end - self.cols.start;
            let mut c = pixel_of(cells, width, cell);
            while cell < stop {
                let (start, end) = (bounds(cells, width, c), bounds(cells, width, c + 1));
                let next = end.min(stop);
                let part = &line[cell + self.cols.start - tile.start..next + self.cols.start - tile.start];
                // SAFETY: each row of pixels belongs to one block, and each block to one task.
                unsafe {
                    match self.pool {
                        Pool::Max => {
                            let max = part.iter().fold(0.0, |x, w| larger(x, *w));
                            self.out.update((0, 0, p), c, &[max], larger);
                        }
                        Pool::Mean => {
                            let mean = part.iter().sum::<f32>() / (row * (end - start)) as f32;
                            self.out.update((0, 0, p), c, &[mean], add);
                        }
                        Pool::Sum => self.out.update((0, 0, p), c, &[part.iter().sum()], add),
                    }
                }
                (cell, c) = (next, c + 1);
            }
        }
        lines.fill(0.0);
    }
}
