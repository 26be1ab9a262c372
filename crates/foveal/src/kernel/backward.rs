//! Backward: one tile of keys against a range of query rows.
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
//! pack K and V as columns, K as rows
//! for each head of the group, for each block of up to 192 rows
//!   pack Q and dOut as rows
//!   for each group of 12 rows:  S ⟵ Q·Kᵀ;  dP ⟵ dOut·Vᵀ;  P ⟵ exp(S − lse);  dS ⟵ P∘(dP − δ);  dQ ⟵ dQ + dS·K
//!   for each group of 12 keys:  dV ⟵ dV + Pᵀ·dOut;  dK ⟵ dK + dSᵀ·Q
//! ```
//!
//! Keys and values belong to one task alone; dQ is collected by each task in rows of its own (see `crate::backward`).
//! Under distance masks every product is cut to what its 12 rows or keys can see. With dropout, P and dP are both
//! multiplied by the factors of the forward pass, and δ stays what it is. With a softcap, ds is taken through 1 − tanh².

use std::cell::OnceCell;
use std::ops::Range;

use ndarray::{ArrayView3, ArrayView4};

use super::gemm::{Left, MAX_ROWS, Out, Right, Store};
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
    /// dQ, and behind it Shaw's gradient: [chunks, B·H, rows, width].
    pub part: Rows<'a>,
    /// dK and dV: [B, key heads, S, ·].
    pub dk: Rows<'a>,
    pub dv: Rows<'a>,
    /// A dense bias's gradient.
    pub dense: Rows<'a>,
    /// The gradient of each head's slope or table of distances: [chunks, 1, B·H, entries].
    pub table: Rows<'a>,
}

/// One tile of keys of one key head, against the query rows `rows` of all its query heads.
pub struct Backward<'a, 't> {
    pub inputs: Inputs<'a>,
    pub targets: Targets<'t>,
    pub chunk: usize,
    pub b: usize,
    pub kv: usize,
    pub keys: Range<usize>,
    pub rows: Range<usize>,
    pub slot: &'t mut Slot,
}

/// Values per row of `Targets::part`.
pub fn part_width(scores: &Scores, dim: usize) -> usize {
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

/// The parts of the scratch.
pub fn parts(scores: &Scores, dim: usize, value_dim: usize) -> [usize; 15] {
    let (wide, value_wide) = (dim.next_multiple_of(2 * LINE), value_dim.next_multiple_of(2 * LINE));
    let table = scores.shaw_distances().next_multiple_of(2 * LINE) * dim;
    [
        KEYS * dim,
        KEYS * value_dim,
        KEYS * wide,
        KEYS * wide,
        KEYS * value_wide,
        ROWS * dim,
        ROWS * value_dim,
        ROWS * wide,
        ROWS * value_wide,
        ROWS * STRIDE,
        ROWS * STRIDE,
        MAX_ROWS * STRIDE,
        2 * ROWS,
        ROWS * rows::shaw_width(scores),
        table,
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

/// A block of query rows, packed, with the tile's P and dS.
struct Queries<'s> {
    block: Block,
    q: &'s [f32],
    dout: &'s [f32],
    q_rows: Right<'s>,
    dout_rows: Right<'s>,
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
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Backward { inputs, targets, chunk, b, kv, keys: range, rows, slot } = self;
        let scores = inputs.scores;
        let (k, v) = (Matrix::new(inputs.k, b, kv), Matrix::new(inputs.v, b, kv));
        let (dim, value_dim) = (k.cols(), v.cols());
        let (wide, value_wide) = (dim.next_multiple_of(S::LANES), value_dim.next_multiple_of(S::LANES));
        let [k_cols, v_cols, k_rows, dk, dv, q, dout, q_rows, dout_rows, p, ds, capped, row_values, relative, table] =
            slot.cut(parts(&scores, dim, value_dim));
        let keys = Keys {
            k,
            k_cols: pack::columns(simd, k, range.clone(), scores.scale, k_cols),
            v_cols: pack::columns(simd, v, range.clone(), 1.0, v_cols),
            k_rows: pack::rows::<S>(k, range.clone(), scores.scale, k_rows),
            finite: OnceCell::new(),
            range,
        };
        // SAFETY: these keys belong to this task alone, and no other slice of their gradients is held.
        let (dk_out, dv_out) =
            unsafe { (targets.dk.block(b, kv, keys.range.clone()), targets.dv.block(b, kv, keys.range.clone())) };
        copy_rows(dk_out, dim, dk, wide);
        copy_rows(dv_out, value_dim, dv, value_wide);

        for h in kv * inputs.group..(kv + 1) * inputs.group {
            for first in rows.clone().step_by(ROWS) {
                let block = Block { b, heads: h..h + 1, rows: first..(first + ROWS).min(rows.end) };
                let n = block.len();
                let Some(whole) = rows::part::<S>(&scores, &block, &(0..n), &keys.range) else { continue };
                let (lse, delta) = row_values.split_at_mut(ROWS);
                for (r, i) in block.rows.clone().enumerate() {
                    (lse[r], delta[r]) = (inputs.lse[[b, h, i]], inputs.delta[[b, h, i]]);
                }
                let q = rows::gather(inputs.q, &block, q);
                rows::relative(simd, &scores, &block, q, table, relative);
                let queries = Queries {
                    q,
                    dout: rows::gather(inputs.dout, &block, dout),
                    q_rows: pack::rows::<S>(Matrix::new(inputs.q, b, h), block.rows.clone(), scores.scale, q_rows),
                    dout_rows: pack::rows::<S>(Matrix::new(inputs.dout, b, h), block.rows.clone(), 1.0, dout_rows),
                    relative,
                    lse: &lse[..n],
                    delta: &delta[..n],
                    finite: OnceCell::new(),
                    block,
                };
                let start = first - rows.start;
                // SAFETY: this chunk's rows belong to this task alone, and no other slice of them is held.
                let dq = unsafe { targets.part.block(chunk, b * inputs.q.dim().1 + h, start..start + n) };
                for r0 in (0..n).step_by(S::ROWS) {
                    let group = r0..(r0 + S::ROWS).min(n);
                    let tile = r0 * STRIDE..group.end * STRIDE;
                    let (p, ds) = (&mut p[tile.clone()], &mut ds[tile]);
                    match rows::part::<S>(&scores, &queries.block, &group, &keys.range) {
                        Some(part) => {
                            group_scores(
                                simd,
                                &inputs,
                                (&targets, chunk),
                                &keys,
                                &queries,
                                &group,
                                &part,
                                (p, ds),
                                capped,
                                dq,
                            );
                            add_dq(simd, &scores, &keys, &queries, &group, &part, ds, dq);
                        }
                        None => {
                            p.fill(0.0);
                            ds.fill(0.0);
                        }
                    }
                }
                let all_seen = whole.view == View::Full && whole.len == keys.range.len();
                if all_seen || (keys.finite() && queries.finite()) {
                    for j0 in (0..keys.range.len()).step_by(S::ROWS) {
                        let group = j0..(j0 + S::ROWS).min(keys.range.len());
                        let seen = scores.seeing(b, &queries.block.rows, &keys.range, &group, all_seen);
                        let dv = Out { data: &mut dv[j0 * value_wide..], row: value_wide };
                        add_transposed(simd, p, &group, seen.clone(), queries.dout_rows, dv);
                        let dk = Out { data: &mut dk[j0 * wide..], row: wide };
                        add_transposed(simd, ds, &group, seen, queries.q_rows, dk);
                    }
                } else {
                    add_visible(&scores, &keys, &queries, (p, ds), (dk, wide), (dv, value_wide));
                }
            }
        }
        copy_rows(dk, wide, dk_out, dim);
        copy_rows(dv, value_wide, dv_out, value_dim);
    }
}

/// P and dS of a group of rows, zero where nothing is seen; and the gradient of the bias.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "one step of the loop above, which owns all of these")]
fn group_scores<S: Simd>(
    simd: S,
    inputs: &Inputs,
    (targets, chunk): (&Targets, usize),
    keys: &Keys,
    queries: &Queries,
    group: &Range<usize>,
    part: &Part,
    (p, ds): (&mut [f32], &mut [f32]),
    capped: &mut [f32],
    dq: &mut [f32],
) {
    let (scores, block) = (&inputs.scores, &queries.block);
    let skip = part.first - keys.range.start;
    let (n, dim, value_dim) = (block.len(), queries.q.len() / block.len(), queries.dout.len() / block.len());
    let left = Left { data: &queries.q[group.start * dim..], row: dim, step: 1 };
    rows::products(
        simd,
        left,
        group.len(),
        keys.k_cols,
        keys.range.start,
        part,
        Out { data: &mut p[skip..], row: STRIDE },
    );
    let left = Left { data: &queries.dout[group.start * value_dim..], row: value_dim, step: 1 };
    rows::products(
        simd,
        left,
        group.len(),
        keys.v_cols,
        keys.range.start,
        part,
        Out { data: &mut ds[skip..], row: STRIDE },
    );

    for r in group.clone() {
        let (h, i) = block.at(r);
        let row = (r - group.start) * STRIDE..(r - group.start) * STRIDE + KEYS;
        let (p, ds) = (&mut p[row.clone()], &mut ds[row]);
        for unseen in [0..skip, skip + part.len..KEYS] {
            p[unseen.clone()].fill(0.0);
            ds[unseen].fill(0.0);
        }
        let whole = part.len.next_multiple_of(S::LANES);
        let (p, ds, capped) = (&mut p[skip..skip + whole], &mut ds[skip..skip + part.len], &mut capped[..part.len]);
        rows::finish(scores, block, r, part, rows::relative_row(scores, queries.relative, r), p, Some(capped));
        softmax::exp(simd, p, queries.lse[r]);
        let p = &mut p[..part.len];
        let dropout = scores.dropout(block.b, h, i);
        if let Some(dropout) = dropout {
            dropout.apply(part.first, ds);
        }
        let delta = queries.delta[r];
        p.iter().zip(&mut *ds).for_each(|(p, ds)| *ds = p * (*ds - delta));
        if let Some(dropout) = dropout {
            dropout.apply(part.first, p);
        }
        if part.view == View::Partial {
            scores.hide(block.b, h, i, part.first, ds, 0.0);
        }
        let width = dq.len() / n;
        let shaw = &mut dq[(r + 1) * width - rows::shaw_width(scores)..][..scores.shaw_distances()];
        add_bias_gradient(inputs, (targets, chunk), (block.b, h, i), part.first, ds, shaw);
        if let Some(cap) = scores.softcap() {
            ds.iter_mut().zip(&*capped).for_each(|(ds, s)| *ds *= 1.0 - (s / cap) * (s / cap));
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
            let start = scores.alibi_distance(b, i, first);
            let sum = ds.iter().enumerate().map(|(j, ds)| -ds * (start + j as i32 as f32).abs()).sum::<f32>();
            // SAFETY: this chunk's tables belong to this task alone.
            unsafe { targets.table.update((chunk, 0, head), 0, &[sum], add) };
        }
        Kind::T5(t5) => {
            // SAFETY: as above; no other slice of it is held.
            let table = unsafe { targets.table.block(chunk, 0, head..head + 1) };
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

/// dQ ⟵ dQ + dS·K for a group of rows.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "one step of the loop above, which owns all of these")]
fn add_dq<S: Simd>(
    simd: S,
    scores: &Scores,
    keys: &Keys,
    queries: &Queries,
    group: &Range<usize>,
    part: &Part,
    ds: &[f32],
    dq: &mut [f32],
) {
    let skip = part.first - keys.range.start;
    let (width, dim) = (dq.len() / queries.block.len(), keys.k.cols());
    let dq = &mut dq[group.start * width..];
    if part.view == View::Full || (keys.finite() && queries.finite()) {
        let ds = Left { data: &ds[skip..], row: STRIDE, step: 1 };
        let k = Right { data: &keys.k_rows.data[skip * keys.k_rows.step..], ..keys.k_rows };
        simd.gemm((group.len(), dim.div_ceil(S::LANES), part.len), ds, k, Out { data: dq, row: width }, Store::Add);
        return;
    }
    // A hidden 0 times a NaN would be NaN: only the visible pairs, one by one.
    for r in 0..group.len() {
        let (h, i) = queries.block.at(group.start + r);
        for j in (part.first..part.first + part.len).filter(|j| scores.visible(queries.block.b, h, i, *j)) {
            let ds = ds[r * STRIDE + j - keys.range.start];
            (0..dim).for_each(|d| dq[r * width + d] += ds * scores.scale * keys.k.get(j, d));
        }
    }
}

/// C\[keys\] ⟵ C + A\[rows, keys\]ᵀ·B\[rows\], for a group of keys and the rows that see it.
#[inline(always)]
fn add_transposed<S: Simd>(simd: S, a: &[f32], keys: &Range<usize>, rows: Range<usize>, b: Right, c: Out) {
    let vectors = c.row / S::LANES;
    if rows.is_empty() || vectors == 0 {
        return;
    }
    let a = Left { data: &a[rows.start * STRIDE + keys.start..], row: 1, step: STRIDE };
    let b = Right { data: &b.data[rows.start * b.step..], ..b };
    simd.gemm((keys.len(), vectors, rows.len()), a, b, c, Store::Add);
}

/// dV ⟵ dV + Pᵀ·dOut and dK ⟵ dK + dSᵀ·Q over the visible pairs one by one: a hidden 0 times a NaN would be NaN.
fn add_visible(
    scores: &Scores,
    keys: &Keys,
    queries: &Queries,
    (p, ds): (&[f32], &[f32]),
    (dk, wide): (&mut [f32], usize),
    (dv, value_wide): (&mut [f32], usize),
) {
    let n = queries.block.len();
    let (dim, value_dim) = (queries.q.len() / n, queries.dout.len() / n);
    for r in 0..n {
        let (h, i) = queries.block.at(r);
        for j in (0..keys.range.len()).filter(|j| scores.visible(queries.block.b, h, i, keys.range.start + j)) {
            let (p, ds) = (p[r * STRIDE + j], ds[r * STRIDE + j]);
            (0..value_dim).for_each(|d| dv[j * value_wide + d] += p * queries.dout[r * value_dim + d]);
            (0..dim).for_each(|d| dk[j * wide + d] += ds * scores.scale * queries.q[r * dim + d]);
        }
    }
}

/// Copies rows of `from` values to rows of `to` values; what they have more is set to zero.
#[inline(always)]
fn copy_rows(src: &[f32], from: usize, dst: &mut [f32], to: usize) {
    if from == 0 || to == 0 {
        return;
    }
    for (src, dst) in src.chunks_exact(from).zip(dst.chunks_exact_mut(to)) {
        let n = from.min(to);
        dst[..n].copy_from_slice(&src[..n]);
        dst[n..].fill(0.0);
    }
}
