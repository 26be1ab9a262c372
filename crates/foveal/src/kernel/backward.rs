//! Backward: some tiles of keys against a stretch of query rows of one head.
//!
//! With p = exp(s − lse) computed again and δᵢ = doutᵢ·outᵢ, the chain rule through out = Σ p·v and the softmax gives
//!
//! ```text
//! dv_j = Σ_i p_ij dout_i                    (Pᵀ·dOut)
//! ds_ij = p_ij (dout_i·v_j − δ_i)           (dOut·Vᵀ)
//! dq_i = scale Σ_j ds_ij k_j                (dS·K)
//! dk_j = scale Σ_i ds_ij q_i                (dSᵀ·Q)
//! ```
//!
//! because ∂p_ij/∂s_il = p_ij(δ_jl − p_il) and Σ_j p_ij (dout_i·v_j) = dout_i·out_i. Five products, none of them larger
//! than a tile:
//!
//! ```text
//! pack Q and dOut as rows
//! for each tile of 192 keys
//!   pack K and V as columns, K as rows
//!   for each block of 192 rows
//!     for each group of 12 rows:  S ⟵ Q·Kᵀ;  dP ⟵ dOut·Vᵀ;  P ⟵ exp(S − lse);  dS ⟵ P∘(dP − δ);  dQ ⟵ dQ + dS·K
//!     for each group of 12 keys:  dV ⟵ dV + Pᵀ·dOut;  dK ⟵ dK + dSᵀ·Q
//! ```
//!
//! Keys and values belong to one task alone; dQ is collected by each task in rows of its own (see `crate::backward`).
//! Under distance masks every product is cut to what its 12 rows or keys can see. With dropout, P and dP are both
//! multiplied by the factors of the forward pass, and δ stays what it is. With a softcap, ds is taken through 1 − tanh².

use std::cell::OnceCell;
use std::ops::Range;

use ndarray::{ArrayView3, ArrayView4};

use super::gemm::{Left, MAX_ROWS, Out, PANEL, Right, Store};
use super::matrix::{Matrix, Rows, add};
use super::rows::{self, Block, Part};
use super::simd::Simd;
use super::{Kernel, pack, softmax};
use crate::bias::Kind;
use crate::scores::{Scores, View};
use crate::scratch::{LINE, Slot};

/// Keys per tile and rows per block: both score tiles (156 KiB each) stay in L2, and sums over 192 terms keep their
/// accumulators in registers long enough.
pub const KEYS: usize = 192;
const ROWS: usize = 192;
/// Distance of two rows of a score tile; see [`super::rows::STRIDE`].
const STRIDE: usize = KEYS + LINE;

/// The inputs of a call.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub q: &'a ArrayView4<'a, f32>,
    pub k: &'a ArrayView4<'a, f32>,
    pub v: &'a ArrayView4<'a, f32>,
    pub dout: &'a ArrayView4<'a, f32>,
    pub lse: &'a ArrayView3<'a, f32>,
    /// dout·out of every row: [B, H, T].
    pub delta: &'a ArrayView3<'a, f32>,
    pub scores: Scores<'a>,
    /// Query heads per key head.
    pub group: usize,
}

/// Where the gradients go.
#[derive(Clone, Copy)]
pub struct Targets<'a> {
    /// dK and dV: [B, key heads, S, ·].
    pub dk: Rows<'a>,
    pub dv: Rows<'a>,
    /// A dense bias's gradient.
    pub dense: Rows<'a>,
    /// The gradient of each head's slope or table of distances: [chunks, 1, B·H, entries].
    pub table: Rows<'a>,
}

/// The tiles of keys of one chunk, against the query rows `rows` of head h.
pub struct Backward<'a, 't> {
    pub inputs: Inputs<'a>,
    pub targets: Targets<'t>,
    pub chunk: usize,
    /// Chunk c of n has the tiles c, c + n, c + 2n, …
    pub chunks: usize,
    pub b: usize,
    pub h: usize,
    pub rows: Range<usize>,
    /// dQ of these rows, and behind each row Shaw's gradient.
    pub dq: &'t mut [f32],
    pub slot: &'t mut Slot,
}

/// Values per row of [`Backward::dq`].
pub fn dq_width(scores: &Scores, dim: usize) -> usize {
    dim.next_multiple_of(LINE) + rows::shaw_width(scores)
}

/// δ = dout·out for every row of one head.
pub struct RowDots<'a> {
    pub dout: Matrix<'a>,
    pub out: Matrix<'a>,
    pub delta: &'a mut [f32],
}

impl Kernel for RowDots<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (i, delta) in self.delta.iter_mut().enumerate() {
            *delta = match (self.dout.row(i), self.out.row(i)) {
                (Some(dout), Some(out)) => softmax::dot(simd, dout, out),
                _ => (0..self.out.cols()).map(|d| self.dout.get(i, d) * self.out.get(i, d)).sum(),
            };
        }
    }
}

/// The parts of the scratch, for stretches of `n` rows.
pub fn parts(scores: &Scores, n: usize, dim: usize, value_dim: usize) -> [usize; 15] {
    let (wide, value_wide) = (dim.next_multiple_of(2 * LINE), value_dim.next_multiple_of(2 * LINE));
    let table = scores.shaw_distances().next_multiple_of(2 * LINE) * dim;
    [
        KEYS * dim,
        KEYS * value_dim,
        KEYS * wide,
        KEYS * wide,
        KEYS * value_wide,
        n * dim,
        n * value_dim,
        n * wide,
        n * value_wide,
        2 * n,
        n * rows::shaw_width(scores),
        table,
        // Half a page more, so that no row of P lies a multiple of 4 KiB from the same row of dS: the processor would take a
        // load from one for a load of what was just stored to the other.
        ROWS * STRIDE + 512,
        ROWS * STRIDE,
        MAX_ROWS * STRIDE,
    ]
}

/// A tile of keys and values, packed.
struct Keys<'s> {
    range: Range<usize>,
    k: Matrix<'s>,
    k_cols: Right<'s>,
    v_cols: Right<'s>,
    k_rows: Right<'s>,
    finite: OnceCell<bool>,
}

impl Keys<'_> {
    #[inline(always)]
    fn finite(&self) -> bool {
        *self.finite.get_or_init(|| pack::all_finite(self.k_cols.data) && pack::all_finite(self.v_cols.data))
    }
}

/// A stretch of query rows: as they lie, and block by block as right operands.
struct Queries<'s> {
    b: usize,
    h: usize,
    rows: Range<usize>,
    q: &'s [f32],
    dout: &'s [f32],
    q_rows: &'s [f32],
    dout_rows: &'s [f32],
    relative: &'s [f32],
    lse: &'s [f32],
    delta: &'s [f32],
    finite: OnceCell<bool>,
}

impl Queries<'_> {
    #[inline(always)]
    fn finite(&self) -> bool {
        *self.finite.get_or_init(|| {
            let seen = self.lse.iter().all(|lse| *lse < f32::INFINITY);
            seen && [self.q, self.dout, self.delta].into_iter().all(pack::all_finite)
        })
    }

    /// The rows `start..start + ROWS` of the stretch, as far as there are any.
    #[inline(always)]
    fn block(&self, start: usize) -> Block {
        let first = self.rows.start + start;
        Block { b: self.b, heads: self.h..self.h + 1, rows: first..(first + ROWS).min(self.rows.end) }
    }

    /// The rows of a block from `skip` on, as a right operand.
    #[inline(always)]
    fn right<'r, S: Simd>(&self, packed: &'r [f32], block: &Block, skip: usize) -> Right<'r> {
        let (n, width) = (self.rows.len(), PANEL * S::LANES);
        let wide = packed.len() / n;
        let start = (block.rows.start - self.rows.start) * wide;
        let data = &packed[start..start + block.len() * wide];
        Right { data: &data[(skip * width).min(data.len())..], panel: width * block.len(), step: width }
    }
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Backward { inputs, targets, chunk, chunks, b, h, rows, dq, slot } = self;
        let (scores, kv, n) = (inputs.scores, h / inputs.group, rows.len());
        let (k, v) = (Matrix::new(inputs.k, b, kv), Matrix::new(inputs.v, b, kv));
        let (dim, value_dim) = (k.cols(), v.cols());
        let [k_cols, v_cols, k_rows, dk, dv, q, dout, q_rows, dout_rows, state, relative, table, p, ds, capped] =
            slot.cut(parts(&scores, n, dim, value_dim));
        let block = Block { b, heads: h..h + 1, rows: rows.clone() };
        let q = rows::gather(inputs.q, &block, q);
        let dout = rows::gather(inputs.dout, &block, dout);
        rows::relative(simd, &scores, &block, q, table, relative);
        let (lse, delta) = state.split_at_mut(n);
        for (r, i) in rows.clone().enumerate() {
            (lse[r], delta[r]) = (inputs.lse[[b, h, i]], inputs.delta[[b, h, i]]);
        }
        pack_blocks::<S>(Matrix::new(inputs.q, b, h), &rows, scores.scale, q_rows);
        pack_blocks::<S>(Matrix::new(inputs.dout, b, h), &rows, 1.0, dout_rows);
        let q_rows = &q_rows[..n * dim.next_multiple_of(PANEL * S::LANES)];
        let dout_rows = &dout_rows[..n * value_dim.next_multiple_of(PANEL * S::LANES)];
        let finite = OnceCell::new();
        let queries = Queries { b, h, rows: rows.clone(), q, dout, q_rows, dout_rows, relative, lse, delta, finite };
        let width = dq_width(&scores, dim);
        dq.fill(0.0);

        for start in (chunk * KEYS..inputs.k.dim().2).step_by(chunks * KEYS) {
            let range = start..(start + KEYS).min(inputs.k.dim().2);
            if !scores.any_sees(b, &rows, &range) {
                continue;
            }
            let keys = Keys {
                k,
                k_cols: pack::columns(simd, k, range.clone(), scores.scale, &mut *k_cols),
                v_cols: pack::columns(simd, v, range.clone(), 1.0, &mut *v_cols),
                k_rows: pack::rows::<S>(k, range.clone(), scores.scale, &mut *k_rows),
                finite: OnceCell::new(),
                range: range.clone(),
            };
            // SAFETY: these keys belong to this task alone, and no other slice of their gradients is held.
            let (dk_out, dv_out) =
                unsafe { (targets.dk.standard(b, kv, range.clone()), targets.dv.standard(b, kv, range)) };
            let mut dk = Padded::new::<S>(dk_out, dim, dk);
            let mut dv = Padded::new::<S>(dv_out, value_dim, dv);
            for first in (0..n).step_by(ROWS) {
                let block = queries.block(first);
                let dq = &mut dq[first * width..(first + block.len()) * width];
                let Some(whole) = rows::part::<S>(&scores, &block, &(0..block.len()), &keys.range) else { continue };
                for r0 in (0..block.len()).step_by(S::ROWS) {
                    let group = r0..(r0 + S::ROWS).min(block.len());
                    let tile = r0 * STRIDE..group.end * STRIDE;
                    let (p, ds) = (&mut p[tile.clone()], &mut ds[tile]);
                    let dq = &mut dq[r0 * width..group.end * width];
                    match rows::part::<S>(&scores, &block, &group, &keys.range) {
                        Some(part) => {
                            let group = Group { block: &block, rows: group, first, part };
                            group.scores(simd, &inputs, (&targets, chunk), &keys, &queries, (p, ds), capped, dq);
                            group.add_dq(simd, &scores, &keys, &queries, ds, (dq, width));
                        }
                        None => {
                            p.fill(0.0);
                            ds.fill(0.0);
                        }
                    }
                }
                // What all rows see is one product; else each group of keys takes the rows that see it.
                let all_seen = whole.view == View::Full && whole.len == keys.range.len();
                if all_seen || (keys.finite() && queries.finite()) {
                    let step = if all_seen { KEYS } else { S::ROWS };
                    for j0 in (0..keys.range.len()).step_by(step) {
                        let group = j0..(j0 + step).min(keys.range.len());
                        let seen =
                            if all_seen { 0..block.len() } else { scores.seeing(b, &block.rows, &keys.range, &group) };
                        let dout = queries.right::<S>(queries.dout_rows, &block, seen.start);
                        add_transposed(simd, p, &group, &seen, dout, dv.rows(j0));
                        let q = queries.right::<S>(queries.q_rows, &block, seen.start);
                        add_transposed(simd, ds, &group, &seen, q, dk.rows(j0));
                    }
                } else {
                    add_visible(&scores, &keys, &queries, &block, first, (p, ds), (&mut dk, &mut dv));
                }
            }
            dk.finish();
            dv.finish();
        }
    }
}

/// Packs the rows block by block, as [`Queries::right`] reads them.
#[inline(always)]
fn pack_blocks<S: Simd>(m: Matrix, rows: &Range<usize>, scale: f32, dst: &mut [f32]) {
    let wide = m.cols().next_multiple_of(PANEL * S::LANES);
    for start in rows.clone().step_by(ROWS) {
        pack::rows::<S>(m, start..(start + ROWS).min(rows.end), scale, &mut dst[(start - rows.start) * wide..]);
    }
}

/// Rows of gradients to add to: where they belong if they are whole vectors wide, else padded, in a buffer.
struct Padded<'s> {
    rows: &'s mut [f32],
    width: usize,
    home: Option<(&'s mut [f32], usize)>,
}

impl<'s> Padded<'s> {
    #[inline(always)]
    fn new<S: Simd>(home: &'s mut [f32], dim: usize, buffer: &'s mut [f32]) -> Self {
        let width = dim.next_multiple_of(S::LANES);
        if width == dim {
            return Padded { rows: home, width, home: None };
        }
        for (from, to) in home.chunks_exact(dim).zip(buffer.chunks_exact_mut(width)) {
            to[..dim].copy_from_slice(from);
            to[dim..].fill(0.0);
        }
        Padded { rows: buffer, width, home: Some((home, dim)) }
    }

    /// The rows from `first` on.
    #[inline(always)]
    fn rows(&mut self, first: usize) -> Out<'_> {
        Out { data: &mut self.rows[first * self.width..], row: self.width }
    }

    #[inline(always)]
    fn finish(self) {
        if let Some((home, dim)) = self.home {
            for (to, from) in home.chunks_exact_mut(dim).zip(self.rows.chunks_exact(self.width)) {
                to.copy_from_slice(&from[..dim]);
            }
        }
    }
}

/// A group of rows of a block, and what it sees of a tile.
struct Group<'s> {
    block: &'s Block,
    /// Counted from the block's first row.
    rows: Range<usize>,
    /// The block's first row, counted from the stretch's.
    first: usize,
    part: Part,
}

impl Group<'_> {
    /// P and dS, zero where nothing is seen; and the gradient of the bias.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one step of the loop above, which owns all of these")]
    fn scores<S: Simd>(
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
        let Group { block, rows, first, part } = self;
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

        for r in 0..rows.len() {
            let (h, i) = block.at(rows.start + r);
            let row = r * STRIDE..r * STRIDE + KEYS;
            let (p, ds) = (&mut p[row.clone()], &mut ds[row]);
            let whole = part.len.next_multiple_of(S::LANES);
            for unseen in [0..skip, skip + whole..KEYS] {
                p[unseen.clone()].fill(0.0);
                ds[unseen].fill(0.0);
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
            let (lse, delta) = (queries.lse[at + r], queries.delta[at + r]);
            match scores.dropout(block.b, h, i) {
                None => softmax::exp_and_gradient(simd, p, ds, lse, delta),
                Some(dropout) => {
                    dropout.apply(part.first, &mut ds[..part.len]);
                    softmax::exp_and_gradient(simd, p, ds, lse, delta);
                    dropout.apply(part.first, &mut p[..part.len]);
                }
            }
            ds[part.len..].fill(0.0);
            let ds = &mut ds[..part.len];
            if part.view == View::Partial {
                scores.hide(simd, (block.b, h, i), part.first, ds, 0.0);
            }
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
    fn add_dq<S: Simd>(
        &self,
        simd: S,
        scores: &Scores,
        keys: &Keys,
        queries: &Queries,
        ds: &[f32],
        (dq, width): (&mut [f32], usize),
    ) {
        let Group { block, rows, part, .. } = self;
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
fn add_transposed<S: Simd>(simd: S, a: &[f32], keys: &Range<usize>, rows: &Range<usize>, b: Right, c: Out) {
    if rows.is_empty() || c.row == 0 {
        return;
    }
    let a = Left { data: &a[rows.start * STRIDE + keys.start..], row: 1, step: STRIDE };
    simd.gemm((keys.len(), c.row / S::LANES, rows.len()), a, b, c, Store::Add);
}

/// dV ⟵ dV + Pᵀ·dOut and dK ⟵ dK + dSᵀ·Q over the visible pairs one by one: a hidden 0 times a NaN would be NaN.
fn add_visible(
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
