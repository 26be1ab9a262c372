//! The steps of [`super::backward`]: packed keys and queries, and what a group of rows gives to each gradient.

use std::cell::OnceCell;
use std::ops::Range;

use super::backward::{Inputs, KEYS, ROWS, STRIDE, Targets};
use super::gemm::{Left, Out, PANEL, Right, Store};
use super::matrix::{Matrix, Rows, add};
use super::plan::{Part, Plan};
use super::rows::{self, Block};
use super::simd::Simd;
use super::{pack, softmax};
use crate::bias::Kind;
use crate::scores::{Scores, View};

/// A tile of keys and values, packed.
pub struct Keys<'s> {
    pub range: Range<usize>,
    pub k: Matrix<'s>,
    pub v: Matrix<'s>,
    pub k_cols: Right<'s>,
    pub v_cols: Right<'s>,
    pub k_rows: Right<'s>,
    pub finite: OnceCell<bool>,
}

impl Keys<'_> {
    #[inline(always)]
    pub fn finite(&self) -> bool {
        // No closure: it would be compiled without the instruction set.
        if self.finite.get().is_none() {
            let _ =
                self.finite.set(pack::all_finite(self.k_rows.data) && pack::rows_finite(self.v, self.range.clone()));
        }
        self.finite.get() == Some(&true)
    }
}

/// A stretch of query rows: as they lie, and block by block as right operands.
pub struct Queries<'s> {
    pub b: usize,
    pub h: usize,
    pub rows: Range<usize>,
    pub q: &'s [f32],
    pub dout: &'s [f32],
    pub q_rows: &'s [f32],
    pub dout_rows: &'s [f32],
    pub relative: &'s [f32],
    pub lse: &'s [f32],
    pub delta: &'s [f32],
    pub finite: OnceCell<bool>,
}

impl Queries<'_> {
    #[inline(always)]
    pub fn finite(&self) -> bool {
        if self.finite.get().is_none() {
            let mut finite = self.lse.iter().all(|lse| *lse < f32::INFINITY);
            for values in [self.q, self.dout, self.delta] {
                finite = finite && pack::all_finite(values);
            }
            let _ = self.finite.set(finite);
        }
        self.finite.get() == Some(&true)
    }

    /// The rows `start..start + ROWS` of the stretch, as far as there are any.
    #[inline(always)]
    pub fn block(&self, start: usize) -> Block {
        block_of(self.b, self.h, &self.rows, start)
    }

    /// The rows of a block from `skip` on, as a right operand.
    #[inline(always)]
    pub fn right<'r, S: Simd>(&self, packed: &'r [f32], block: &Block, skip: usize) -> Right<'r> {
        let (n, width) = (self.rows.len(), PANEL * S::LANES);
        let wide = packed.len() / n;
        let start = (block.rows.start - self.rows.start) * wide;
        let data = &packed[start..start + block.len() * wide];
        Right { data: &data[(skip * width).min(data.len())..], panel: width * block.len(), step: width }
    }
}

/// The rows `start..start + ROWS` of a stretch of rows of a head.
#[inline(always)]
pub fn block_of(b: usize, h: usize, stretch: &Range<usize>, start: usize) -> Block {
    let first = stretch.start + start;
    Block { b, heads: h..h + 1, rows: first..(first + ROWS).min(stretch.end) }
}

/// Packs a block of rows, which starts `first` rows into its stretch, as [`Queries::right`] reads it.
#[inline(always)]
pub fn pack_block<S: Simd>(simd: S, m: Matrix, block: &Block, first: usize, scale: f32, dst: &mut [f32]) {
    let wide = m.cols().next_multiple_of(PANEL * S::LANES);
    pack::rows(simd, m, block.rows.clone(), scale, &mut dst[first * wide..]);
}

/// Rows of gradients to add to: where they belong if they lie there without gaps and are whole vectors wide, else padded, in
/// a buffer.
pub struct Padded<'s> {
    rows: &'s mut [f32],
    width: usize,
    dim: usize,
    home: Option<Home<'s>>,
}

/// Where gradients belong: these rows of head `h` of sequence `b`.
#[derive(Clone)]
pub struct Home<'s> {
    pub rows: Rows<'s>,
    pub b: usize,
    pub h: usize,
    pub range: Range<usize>,
    /// Whether nobody has written anything there before, nor will again.
    pub once: bool,
}

impl<'s> Padded<'s> {
    /// # Safety
    /// Until it is dropped, nobody else may access these rows.
    #[inline(always)]
    pub unsafe fn new<S: Simd>(home: Home<'s>, dim: usize, buffer: &'s mut [f32]) -> Self {
        let width = dim.next_multiple_of(S::LANES);
        // SAFETY: passed on; the slice is the only one, unless it is given up at once.
        let in_place = unsafe { home.rows.block(home.b, home.h, home.range.clone()) }.filter(|_| width == dim);
        if let Some(rows) = in_place {
            if home.once {
                rows.fill(0.0);
            }
            return Padded { rows, width, dim, home: None };
        }
        let rows = &mut buffer[..home.range.len() * width];
        rows.fill(0.0);
        Padded { rows, width, dim, home: Some(home) }
    }

    /// The rows from `first` on.
    #[inline(always)]
    pub fn rows(&mut self, first: usize) -> Out<'_> {
        Out { data: &mut self.rows[first * self.width..], row: self.width }
    }

    #[inline(always)]
    pub fn finish(self) {
        let Some(Home { rows, b, h, range, once }) = self.home else { return };
        for (i, from) in range.zip(self.rows.chunks_exact(self.width)) {
            // SAFETY: the rows are the caller's alone, as promised to `new`.
            unsafe {
                if once {
                    rows.write((b, h, i), 0, &from[..self.dim]);
                } else {
                    rows.update((b, h, i), 0, &from[..self.dim], add);
                }
            }
        }
    }
}

/// A group of rows of a block, and what it sees of a tile.
pub struct Group<'s> {
    pub block: &'s Block,
    /// The block's first row, counted from the stretch's.
    pub first: usize,
    pub part: &'s Part,
    /// Whether this is all that the group sees of the tile. If not, P and dS have been set to 0 before.
    pub alone: bool,
}

impl Group<'_> {
    /// P and dS, zero where nothing is seen; and the gradient of the bias.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one step of the loop above, which owns all of these")]
    pub fn scores<S: Simd>(
        &self,
        simd: S,
        inputs: &Inputs,
        targets: (&Targets, usize),
        keys: &Keys,
        queries: &Queries,
        (p, ds): (&mut [f32], &mut [f32]),
        capped: &mut [f32],
        dq: &mut [f32],
    ) {
        let Group { block, first, part, alone } = self;
        let rows = &part.rows;
        let scores = &inputs.scores;
        let skip = part.first - keys.range.start;
        let n = queries.rows.len();
        let (dim, value_dim) = (queries.q.len() / n, queries.dout.len() / n);
        let at = first + rows.start;
        let q = Left { data: &queries.q[at * dim..], row: dim, step: 1 };
        rows::products(
            simd,
            q,
            rows.len(),
            keys.k_cols,
            keys.range.start,
            part,
            Out { data: &mut p[skip..], row: STRIDE },
        );
        let dout = Left { data: &queries.dout[at * value_dim..], row: value_dim, step: 1 };
        rows::products(
            simd,
            dout,
            rows.len(),
            keys.v_cols,
            keys.range.start,
            part,
            Out { data: &mut ds[skip..], row: STRIDE },
        );

        // Most groups see whole tiles, of which there is nothing more to say.
        let plain = *alone && part.view == View::Full && part.len == KEYS && !scores.changes() && !scores.drops();
        for r in 0..rows.len() {
            let row = r * STRIDE..r * STRIDE + KEYS;
            let (p, ds) = (&mut p[row.clone()], &mut ds[row]);
            let (lse, delta) = (queries.lse[at + r], queries.delta[at + r]);
            if plain {
                softmax::exp_and_gradient(simd, p, ds, lse, delta);
                continue;
            }
            let (h, i) = block.at(rows.start + r);
            let whole = part.len.next_multiple_of(S::LANES);
            if *alone {
                for unseen in [0..skip, (skip + whole).min(keys.range.len())..keys.range.len()] {
                    p[unseen.clone()].fill(0.0);
                    ds[unseen].fill(0.0);
                }
            }
            let (p, ds) = (&mut p[skip..skip + whole], &mut ds[skip..skip + whole]);
            let relative = rows::relative_row(scores, queries.relative, at + r);
            rows::finish(
                simd,
                scores,
                block,
                rows.start + r,
                part,
                relative,
                p,
                scores.softcap().map(|_| &mut *capped),
            );
            match scores.dropout(block.b, h, i) {
                None => softmax::exp_and_gradient(simd, p, ds, lse, delta),
                Some(dropout) => {
                    dropout.apply(part.first, &mut ds[..part.len]);
                    softmax::exp_and_gradient(simd, p, ds, lse, delta);
                    dropout.apply(part.first, &mut p[..part.len]);
                }
            }
            scores.hide(simd, (block.b, h, i), part, ds, 0.0);
            let ds = &mut ds[..part.len];
            let width = dq.len() / rows.len();
            let shaw = &mut dq[(r + 1) * width - rows::shaw_width(scores)..][..scores.shaw_distances()];
            add_bias_gradient(inputs, targets, (block.b, h, i), part.first, ds, shaw);
            if let Some(cap) = scores.softcap() {
                ds.iter_mut().zip(&*capped).for_each(|(ds, s)| *ds *= 1.0 - (s / cap) * (s / cap));
            }
        }
    }

    /// dQ ⟵ dQ + dS·K
    #[inline(always)]
    pub fn add_dq<S: Simd>(
        &self,
        simd: S,
        scores: &Scores,
        keys: &Keys,
        queries: &Queries,
        ds: &[f32],
        (dq, width): (&mut [f32], usize),
    ) {
        let Group { block, part, .. } = self;
        let rows = &part.rows;
        let (skip, dim) = (part.first - keys.range.start, keys.k.cols());
        if part.view == View::Full || (keys.finite() && queries.finite()) {
            let ds = Left { data: &ds[skip..], row: STRIDE, step: 1 };
            let k = Right { data: &keys.k_rows.data[skip * keys.k_rows.step..], ..keys.k_rows };
            simd.gemm((rows.len(), dim.div_ceil(S::LANES), part.len), ds, k, Out { data: dq, row: width }, Store::Add);
            return;
        }
        // A hidden 0 times a NaN would be NaN: only the visible pairs, one by one.
        for r in 0..rows.len() {
            let (h, i) = block.at(rows.start + r);
            for j in (part.first..part.first + part.len).filter(|j| scores.visible(block.b, h, i, *j)) {
                let ds = ds[r * STRIDE + j - keys.range.start] * scores.scale;
                (0..dim).for_each(|d| dq[r * width + d] += ds * keys.k.get(j, d));
            }
        }
    }
}

/// The gradient of the bias of row (b, h, i) on the keys from `first` on: the sum of dS over everything that shares it.
#[inline(always)]
fn add_bias_gradient(
    inputs: &Inputs,
    (targets, chunk): (&Targets, usize),
    (b, h, i): (usize, usize, usize),
    first: usize,
    ds: &[f32],
    shaw: &mut [f32],
) {
    let scores = &inputs.scores;
    let head = b * inputs.q.dim().1 + h;
    match scores.bias() {
        Kind::None => {}
        Kind::Shaw(_) => scores.distances(b, i, first, ds.len(), shaw.len()).collect(ds, shaw),
        Kind::Alibi(_) => {
            // Σⱼ ds is 0, so any constant may be taken off the distances. Without the nearest, rounding weighs less.
            let (start, nearest) = (scores.alibi_distance(b, i, first), scores.nearest(b, i));
            let far = |j: usize| (start + j as i32 as f32).abs() - nearest;
            let sum = -ds.iter().enumerate().map(|(j, ds)| ds * far(j)).sum::<f32>();
            // SAFETY: this chunk's tables belong to this task alone.
            unsafe { targets.table.update((chunk, 0, head), 0, &[sum], add) };
        }
        Kind::T5(t5) => {
            // SAFETY: as above; no other slice of it is held.
            let table = unsafe { targets.table.standard(chunk, 0, head..head + 1) };
            scores.distances(b, i, first, ds.len(), t5.bucket.len()).collect(ds, table);
        }
        Kind::Swin(swin) => {
            // SAFETY: as above.
            let table = unsafe { targets.table.standard(chunk, 0, head..head + 1) };
            let mut n = 0;
            while n < ds.len() {
                let (entries, distances) = scores.swin_row(swin, b, i, first + n, ds.len() - n);
                distances.collect(&ds[n..n + distances.len], &mut table[entries]);
                n += distances.len;
            }
        }
        Kind::Dense(bias) => {
            let (batch, heads, rows, _) = bias.dim();
            let pick = |index: usize, len: usize| if len == 1 { 0 } else { index };
            // SAFETY: these keys belong to this task, whatever shares the bias (see `crate::backward::Cut`).
            unsafe { targets.dense.update((pick(b, batch), pick(h, heads), pick(i, rows)), first, ds, add) };
        }
    }
}

/// C\[keys\] ⟵ C + A\[rows, keys\]ᵀ·B\[rows\], for a group of keys and the rows that see it; B starts at these rows.
#[inline(always)]
pub fn add_transposed<S: Simd>(simd: S, a: &[f32], keys: &Range<usize>, rows: &Range<usize>, b: Right, c: Out) {
    if rows.is_empty() || c.row == 0 {
        return;
    }
    let a = Left { data: &a[rows.start * STRIDE + keys.start..], row: 1, step: STRIDE };
    simd.gemm((keys.len(), c.row / S::LANES, rows.len()), a, b, c, Store::Add);
}

/// The rows of a block, counted from its first, outside which none sees any of the keys.
#[inline(always)]
pub fn seeing(plan: &Plan, keys: &Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (usize::MAX, 0);
    for part in plan.parts() {
        if part.first < keys.end && keys.start < part.first + part.len {
            (start, end) = (start.min(part.rows.start), end.max(part.rows.end));
        }
    }
    start.min(end)..end
}

/// dV ⟵ dV + Pᵀ·dOut and dK ⟵ dK + dSᵀ·Q over the visible pairs one by one: a hidden 0 times a NaN would be NaN.
pub fn add_visible(
    scores: &Scores,
    keys: &Keys,
    queries: &Queries,
    block: &Block,
    first: usize,
    (p, ds): (&[f32], &[f32]),
    (dk, dv): (&mut Padded, &mut Padded),
) {
    let n = queries.rows.len();
    let (dim, value_dim) = (queries.q.len() / n, queries.dout.len() / n);
    for r in 0..block.len() {
        let (h, i) = block.at(r);
        let (q, dout) = (&queries.q[(first + r) * dim..], &queries.dout[(first + r) * value_dim..]);
        for j in (0..keys.range.len()).filter(|j| scores.visible(block.b, h, i, keys.range.start + j)) {
            let (p, ds) = (p[r * STRIDE + j], ds[r * STRIDE + j] * scores.scale);
            dv.rows(j).data.iter_mut().zip(&dout[..value_dim]).for_each(|(x, dout)| *x += p * dout);
            dk.rows(j).data.iter_mut().zip(&q[..dim]).for_each(|(x, q)| *x += ds * q);
        }
    }
}
