//! The steps of [`super::backward`]: packed keys and queries, and what a group of rows gives to each gradient.

use std::ops::Range;

use super::backward::{Inputs, KEYS, ROWS, RowState, STRIDE, Targets};
use super::gemm::{Left, Out, PANEL, Right, Store};
use super::nonfinite::{self, Stray};
use super::plan::{Plan, Span};
use super::precise::{self, PreciseRow};
use super::rows::{self, Block, TileKeys};
use super::simd::Simd;
use super::source::Source;
use crate::bias::Kind;
use crate::scores::{At, Scores, View};

/// P and dS of a block of rows and a tile of keys; and one group's scores between softcap and score function.
pub struct Pair<'w> {
    pub p: &'w mut [f32],
    pub ds: &'w mut [f32],
    pub bent: &'w mut [f32],
}

impl Pair<'_> {
    /// Sets some rows to 0.
    pub fn clear(&mut self, rows: &Range<usize>) {
        self.p[rows.start * STRIDE..rows.end * STRIDE].fill(0.0);
        self.ds[rows.start * STRIDE..rows.end * STRIDE].fill(0.0);
    }
}

/// A tile of keys and values, packed.
pub struct Keys<'s> {
    pub range: Range<usize>,
    dim: usize,
    keys: TileKeys<'s>,
    v_cols: Right<'s>,
    k_rows: &'s mut [f32],
    checked: bool,
    strays: Vec<Stray>,
}

impl<'s> Keys<'s> {
    #[inline(always)]
    pub fn new<S: Simd>(
        simd: S,
        scores: &Scores,
        (k, v): (Source<'s>, Source<'s>),
        range: Range<usize>,
        (k_cols, v_cols, k_rows): (&'s mut [f32], &'s mut [f32], &'s mut [f32]),
    ) -> Self {
        let keys = TileKeys::new(simd, scores, k, &range, k_cols);
        let v_cols = v.columns(simd, range.clone(), 1.0, v_cols);
        k.packed_rows(simd, range.clone(), 1.0, &mut *k_rows);
        Keys { range, dim: k.cols(), keys, v_cols, k_rows, checked: false, strays: Vec::new() }
    }

    /// Before a product of which some pairs are hidden: takes out what is not finite.
    #[inline(always)]
    pub fn check<S: Simd>(&mut self, simd: S) {
        if !self.checked {
            self.checked = true;
            let len = self.dim.next_multiple_of(PANEL * S::LANES) * self.range.len();
            nonfinite::take_out(simd, &mut self.k_rows[..len], self.range.len(), self.dim, &mut self.strays);
        }
    }
}

/// Some query rows: as they lie, and block by block as right operands.
pub struct Queries<'s> {
    all: Block,
    q: &'s [f32],
    dout: &'s [f32],
    pub q_rows: &'s mut [f32],
    pub dout_rows: &'s mut [f32],
    relative: &'s [f32],
    states: Vec<RowState>,
    checked: bool,
    q_strays: Vec<Stray>,
    dout_strays: Vec<Stray>,
}

impl<'s> Queries<'s> {
    #[inline(always)]
    pub fn new<S: Simd>(
        inputs: &Inputs,
        all: Block,
        (q, dout): (&'s [f32], &'s [f32]),
        (q_rows, dout_rows): (&'s mut [f32], &'s mut [f32]),
        relative: &'s [f32],
    ) -> Self {
        let n = all.len();
        let wide = |values: &[f32]| (values.len() / n).next_multiple_of(PANEL * S::LANES);
        let (q_rows, dout_rows) = (&mut q_rows[..n * wide(q)], &mut dout_rows[..n * wide(dout)]);
        let states = (0..n).map(|r| RowState::new(inputs, all.at(r))).collect();
        let (q_strays, dout_strays) = (Vec::new(), Vec::new());
        Queries { all, q, dout, q_rows, dout_rows, relative, states, checked: false, q_strays, dout_strays }
    }

    /// The rows `first..first + ROWS`, as far as there are any.
    #[inline(always)]
    pub fn block(&self, first: usize) -> Block {
        let start = self.all.rows.start + first;
        Block { rows: start..(start + ROWS).min(self.all.rows.end), ..self.all.clone() }
    }

    /// Packs the block that starts with row `first`.
    #[inline(always)]
    pub fn pack<S: Simd>(&mut self, simd: S, inputs: &Inputs, first: usize) {
        let (b, h, rows, n) = (self.all.b, self.all.heads.start, self.block(first).rows, self.all.len());
        for (array, packed) in [(inputs.q, &mut *self.q_rows), (inputs.dout, &mut *self.dout_rows)] {
            let wide = packed.len() / n;
            let head = inputs.scores.query_head(&array, b, h);
            head.packed_rows(simd, rows.clone(), 1.0, &mut packed[first * wide..]);
        }
    }

    /// The rows of a block from `skip` on, as a right operand.
    #[inline(always)]
    pub fn right<'r, S: Simd>(&self, packed: &'r [f32], block: &Block, skip: usize) -> Right<'r> {
        let (n, width) = (self.all.len(), PANEL * S::LANES);
        let wide = packed.len() / n;
        let start = (block.rows.start - self.all.rows.start) * wide;
        let data = &packed[start..start + block.len() * wide];
        Right { data: &data[(skip * width).min(data.len())..], panel: width * block.len(), step: width }
    }

    /// Before a product of which some pairs are hidden: takes out what is not finite. (Blocks that were not packed hold what
    /// an earlier call left there; nothing of them is used.)
    #[inline(always)]
    pub fn check<S: Simd>(&mut self, simd: S) {
        if self.checked {
            return;
        }
        self.checked = true;
        let n = self.all.len();
        for (packed, plain, strays) in
            [(&mut *self.q_rows, self.q, &mut self.q_strays), (&mut *self.dout_rows, self.dout, &mut self.dout_strays)]
        {
            let (wide, columns) = (packed.len() / n, plain.len() / n);
            let mut of_block = Vec::new();
            for first in (0..n).step_by(ROWS) {
                let rows = (n - first).min(ROWS);
                let packed = &mut packed[first * wide..(first + rows) * wide];
                nonfinite::take_out(simd, packed, rows, columns, &mut of_block);
                strays.extend(of_block.iter().map(|stray| Stray { row: first + stray.row, ..*stray }));
            }
        }
    }

    /// What was taken out, for the keys that these rows see.
    #[inline(always)]
    pub fn add_strays(
        &self,
        scores: &Scores,
        block: &Block,
        keys: &Range<usize>,
        pair: &Pair,
        (dk, wide): (&mut [f32], usize),
        (dv, value_wide): (&mut [f32], usize),
    ) {
        let first = block.rows.start - self.all.rows.start;
        for (strays, weights, to, wide) in
            [(&self.q_strays, &*pair.ds, dk, wide), (&self.dout_strays, &*pair.p, dv, value_wide)]
        {
            for stray in strays.iter().filter(|stray| (first..first + block.len()).contains(&stray.row)) {
                let r = stray.row - first;
                for n in (0..keys.len()).filter(|n| scores.visible(block.at(r), keys.start + n)) {
                    to[n * wide + stray.column] += weights[r * STRIDE + n] * stray.value;
                }
            }
        }
    }
}

/// A group of rows of a block, and what it sees of a tile.
pub struct Group<'s> {
    pub block: &'s Block,
    /// The block's first row, counted from the first of all rows.
    pub first: usize,
    pub span: &'s Span,
    /// Whether this is all that the group sees of the tile. If not, P and dS have been set to 0 before.
    pub alone: bool,
}

impl Group<'_> {
    /// P and dS, zero where nothing is seen; and the gradient of the bias.
    #[inline(always)]
    pub fn gradients<S: Simd>(
        &self,
        simd: S,
        inputs: &Inputs,
        targets: (&Targets, usize),
        keys: &Keys,
        queries: &Queries,
        (pair, dq): (&mut Pair, &mut [f32]),
    ) {
        let Group { block, first, span, alone } = *self;
        let (rows, scores) = (&span.rows, &inputs.scores);
        let skip = span.first - keys.range.start;
        let n = queries.all.len();
        let (dim, value_dim) = (queries.q.len() / n, queries.dout.len() / n);
        let at = first + rows.start;
        let tile = rows.start * STRIDE..rows.end * STRIDE;
        let (p, ds, bent) = (&mut pair.p[tile.clone()], &mut pair.ds[tile], &mut *pair.bent);
        let to = Out { data: &mut p[skip..], row: STRIDE };
        keys.keys.multiply(simd, &queries.q[at * dim..], dim, span, to);
        let dout = Left { data: &queries.dout[at * value_dim..], row: value_dim, step: 1 };
        rows::products(simd, dout, (keys.v_cols, keys.range.start), span, Out { data: &mut ds[skip..], row: STRIDE });

        // Most groups see whole tiles, of which there is nothing more to say.
        let plain = alone && span.view == View::Full && span.len == KEYS && !scores.changes() && !scores.drops();
        for r in 0..rows.len() {
            let row = r * STRIDE..r * STRIDE + KEYS;
            let (p, ds) = (&mut p[row.clone()], &mut ds[row]);
            let state = queries.states[at + r];
            if plain && state.precise.is_none() {
                state.weights_and_gradient(simd, p, ds);
                continue;
            }
            let place = block.at(rows.start + r);
            let whole = span.len.next_multiple_of(S::LANES);
            if alone {
                for unseen in [0..skip, (skip + whole).min(keys.range.len())..keys.range.len()] {
                    p[unseen.clone()].fill(0.0);
                    ds[unseen].fill(0.0);
                }
            }
            let (p, ds) = (&mut p[skip..skip + whole], &mut ds[skip..skip + whole]);
            let relative = rows::relative_row(scores, queries.relative, at + r);
            let kept = if scores.bends() { Some(&mut *bent) } else { None };
            if let Some((lse, _)) = state.precise {
                let q = &queries.q[(at + r) * dim..(at + r + 1) * dim];
                precise::finish(simd, scores, &keys.keys, PreciseRow { q, at: place, span, relative, lse }, p, kept);
            } else {
                rows::finish(simd, scores, place, (span, relative), p, kept);
            }
            scores.drop_weights(place, span.first, &mut ds[..span.len]);
            state.weights_and_gradient(simd, p, ds);
            if state.lse_is_nan {
                // −∞ − NaN is NaN, but what is hidden is 0.
                scores.hide(simd, place, span, p, 0.0);
            }
            scores.hide(simd, place, span, ds, 0.0);
            scores.drop_weights(place, span.first, &mut p[..span.len]);
            let width = dq.len() / rows.len();
            let shaw = &mut dq[(r + 1) * width - rows::shaw_width(scores)..][..scores.shaw_distances()];
            if scores.collects_bias() {
                add_bias_gradient(inputs, targets, place, span.first, &ds[..span.len], shaw);
            }
            if scores.bends() {
                scores.unbend(place, span.first, &bent[..span.len], &mut ds[..span.len]);
                scores.hide(simd, place, span, ds, 0.0);
            }
        }
    }

    /// dQ ⟵ dQ + dS·K
    #[inline(always)]
    pub fn add_dq<S: Simd>(&self, simd: S, scores: &Scores, keys: &Keys, ds: &[f32], (dq, width): (&mut [f32], usize)) {
        let Group { block, span, .. } = self;
        let (rows, skip) = (&span.rows, span.first - keys.range.start);
        let ds = &ds[rows.start * STRIDE..rows.end * STRIDE];
        let left = Left { data: &ds[skip..], row: STRIDE, step: 1 };
        let k = nonfinite::right(simd, &*keys.k_rows, keys.range.len(), keys.dim);
        let k = Right { data: &k.data[skip * k.step..], ..k };
        let size = (rows.len(), keys.dim.div_ceil(S::LANES), span.len);
        simd.gemm(size, left, k, Out { data: &mut *dq, row: width }, Store::Add);
        let seen = skip..skip + span.len;
        for stray in keys.strays.iter().filter(|stray| seen.contains(&stray.row)) {
            let key = keys.range.start + stray.row;
            for r in (0..rows.len()).filter(|r| scores.visible(block.at(rows.start + r), key)) {
                dq[r * width + stray.column] += ds[r * STRIDE + stray.row] * stray.value;
            }
        }
    }
}

/// The gradient of the bias of row (b, h, i) on the keys from `first` on: the sum of dS over everything that shares it.
#[inline(always)]
fn add_bias_gradient(
    inputs: &Inputs,
    (targets, chunk): (&Targets, usize),
    (b, h, i): At,
    first: usize,
    ds: &[f32],
    shaw: &mut [f32],
) {
    let scores = &inputs.scores;
    let head = b * inputs.q.dim()[1] + h;
    // What all rows of a head add to is summed in f64.
    let wide = |old: f64, new: f32| old + f64::from(new);
    match scores.bias() {
        Kind::None => {}
        Kind::Shaw(_) => scores.distances(b, i, first, ds.len(), shaw.len()).collect(ds, shaw, |old, new| old + new),
        Kind::Alibi(_) => {
            let start = scores.alibi_distance(b, i, first);
            let far = |j: usize| f64::from(start + j as f32).abs();
            let sum = -ds.iter().enumerate().map(|(j, ds)| f64::from(*ds) * far(j)).sum::<f64>();
            // SAFETY: this chunk's tables belong to this task alone.
            unsafe { targets.table.update((chunk, 0, head), 0, &[sum], |old, new| old + new) };
        }
        Kind::T5(t5) => {
            // SAFETY: as above; no other slice of it is held.
            let table = unsafe { targets.table.standard(chunk, 0, head..head + 1) };
            scores.distances(b, i, first, ds.len(), t5.bucket.len()).collect(ds, table, wide);
        }
        Kind::Swin(swin) => {
            // SAFETY: as above.
            let table = unsafe { targets.table.standard(chunk, 0, head..head + 1) };
            let mut n = 0;
            while n < ds.len() {
                let (entries, distances) = scores.swin_row(swin, (b, i), first + n, ds.len() - n);
                distances.collect(&ds[n..n + distances.len], &mut table[entries], wide);
                n += distances.len;
            }
        }
        Kind::Dense(bias) => {
            let (batch, heads, rows, _) = bias.dim();
            let pick = |index: usize, len: usize| if len == 1 { 0 } else { index };
            let at = (pick(b, batch), pick(h, heads), pick(i, rows));
            // SAFETY: these keys belong to this task, whatever shares the bias (see `crate::backward::Schedule`).
            unsafe { targets.dense.add(at, first, ds) };
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
    for span in plan.spans() {
        if span.first < keys.end && keys.start < span.first + span.len {
            (start, end) = (start.min(span.rows.start), end.max(span.rows.end));
        }
    }
    start.min(end)..end
}
