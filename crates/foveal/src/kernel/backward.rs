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
//! for each tile of 192 keys that some row sees
//!   pack K and V as columns, K as rows
//!   for each block of 192 rows
//!     for each group of 12 rows:  S ⟵ Q·Kᵀ;  dP ⟵ dOut·Vᵀ;  P ⟵ exp(S − lse);  dS ⟵ P∘(dP − δ);  dQ ⟵ dQ + dS·K
//!     for each group of 12 keys:  dV ⟵ dV + Pᵀ·dOut;  dK ⟵ dK + dSᵀ·Q
//! ```
//!
//! Keys and values belong to one task alone; dQ is collected by each task in rows of its own (see `crate::backward`).
//! Every product is cut to what its 12 rows or keys can see (see `plan.rs`). With dropout, P and dP are both
//! multiplied by the factors of the forward pass, and δ stays what it is. With a softcap, ds is taken through 1 − tanh².

use std::cell::OnceCell;
use std::ops::Range;

use ndarray::{ArrayView3, ArrayView4};

use super::gemm::{MAX_ROWS, PANEL};
use super::gradient::{Group, Home, Keys, Padded, Queries, add_transposed, add_visible, block_of, pack_block, seeing};
use super::matrix::{Matrix, Rows};
use super::rows::{self, Block};
use super::simd::Simd;
use super::{Kernel, pack, softmax};
use crate::scores::{Scores, View};
use crate::scratch::{LINE, Slot};

/// Keys per tile and rows per block: both score tiles (156 KiB each) stay in L2, and sums over 192 terms keep their
/// accumulators in registers long enough.
pub const KEYS: usize = 192;
pub const ROWS: usize = 192;
/// Distance of two rows of a score tile; see [`super::rows::STRIDE`].
pub const STRIDE: usize = KEYS + LINE;

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
    /// dQ: [B, H, T, D], for the tasks that collect it alone.
    pub dq: Rows<'a>,
    /// dK and dV: [B, key heads, S, ·].
    pub dk: Rows<'a>,
    pub dv: Rows<'a>,
    /// Whether every tile of keys belongs to one task of the whole call: then the old content of dK and dV does not matter.
    pub once: bool,
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
    /// Tile t starts at key t·KEYS.
    pub tiles: &'t [usize],
    pub b: usize,
    pub h: usize,
    pub rows: Range<usize>,
    /// dQ of these rows, and behind each row Shaw's gradient; without it dQ goes to its target.
    pub dq: Option<&'t mut [f32]>,
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
pub fn parts(scores: &Scores, n: usize, dim: usize, value_dim: usize) -> [usize; 16] {
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
        n * dq_width(scores, dim),
    ]
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Backward { inputs, targets, chunk, tiles, b, h, rows, dq, slot } = self;
        let (scores, kv, n) = (inputs.scores, h / inputs.group, rows.len());
        let (k, v) = (Matrix::new(inputs.k, b, kv), Matrix::new(inputs.v, b, kv));
        let (dim, value_dim) = (k.cols(), v.cols());
        let Slot { memory, plan } = slot;
        let [k_cols, v_cols, k_rows, dk, dv, q, dout, q_rows, dout_rows, state, relative, table, p, ds, capped, own] =
            memory.cut(parts(&scores, n, dim, value_dim));
        let block = Block { b, heads: h..h + 1, rows: rows.clone() };
        let q = rows::gather(inputs.q, &block, q);
        let dout = rows::gather(inputs.dout, &block, dout);
        rows::relative(simd, &scores, &block, q, table, relative);
        let (lse, delta) = state.split_at_mut(n);
        for (r, i) in rows.clone().enumerate() {
            (lse[r], delta[r]) = (inputs.lse[[b, h, i]], inputs.delta[[b, h, i]]);
        }
        for first in (0..n).step_by(ROWS) {
            let block = block_of(b, h, &rows, first);
            // Of a sparse pattern a chunk may see a few blocks of many.
            if !scores.is_sparse() || plan.sees_any(&scores, &block, tiles, KEYS) {
                pack_block(simd, Matrix::new(inputs.q, b, h), &block, first, scores.scale, q_rows);
                pack_block(simd, Matrix::new(inputs.dout, b, h), &block, first, 1.0, dout_rows);
            }
        }
        let q_rows = &q_rows[..n * dim.next_multiple_of(PANEL * S::LANES)];
        let dout_rows = &dout_rows[..n * value_dim.next_multiple_of(PANEL * S::LANES)];
        let finite = OnceCell::new();
        let queries = Queries { b, h, rows: rows.clone(), q, dout, q_rows, dout_rows, relative, lse, delta, finite };
        let (width, to_target) = (dq_width(&scores, dim), dq.is_none());
        let dq = dq.unwrap_or(own);
        dq.fill(0.0);

        for tile in tiles {
            let range = tile * KEYS..((tile + 1) * KEYS).min(inputs.k.dim().2);
            let keys = Keys {
                k,
                v,
                k_cols: pack::columns(simd, k, range.clone(), scores.scale, &mut *k_cols),
                v_cols: pack::columns(simd, v, range.clone(), 1.0, &mut *v_cols),
                k_rows: pack::rows(simd, k, range.clone(), scores.scale, &mut *k_rows),
                finite: OnceCell::new(),
                range: range.clone(),
            };
            let dk_home = Home { rows: targets.dk, b, h: kv, range, once: targets.once };
            let dv_home = Home { rows: targets.dv, ..dk_home.clone() };
            // SAFETY: these keys belong to this task alone, and no other slice of their gradients is held.
            let (mut dk, mut dv) =
                unsafe { (Padded::new::<S>(dk_home, dim, dk), Padded::new::<S>(dv_home, value_dim, dv)) };
            for first in (0..n).step_by(ROWS) {
                let block = queries.block(first);
                let dq = &mut dq[first * width..(first + block.len()) * width];
                plan.make(&scores, &block, S::ROWS, &keys.range);
                if plan.next_tile::<S>(&scores, &block, keys.range.start, KEYS).is_none() {
                    continue;
                }
                let (mut all_seen, seeing_rows) = (true, plan.rows());
                for (rows, parts) in plan.groups() {
                    if parts.is_empty() && (rows.end <= seeing_rows.start || seeing_rows.end <= rows.start) {
                        // Nobody reads these rows of P and dS.
                        all_seen = false;
                        continue;
                    }
                    let tile = rows.start * STRIDE..rows.end * STRIDE;
                    let (p, ds) = (&mut p[tile.clone()], &mut ds[tile]);
                    let dq = &mut dq[rows.start * width..rows.end * width];
                    let alone = parts.len() == 1;
                    if !alone {
                        p.fill(0.0);
                        ds.fill(0.0);
                    }
                    all_seen &= alone && parts[0].view == View::Full && parts[0].len == keys.range.len();
                    for part in parts {
                        let group = Group { block: &block, first, part, alone };
                        group.scores(simd, &inputs, (&targets, chunk), &keys, &queries, (p, ds), capped, dq);
                        group.add_dq(simd, &scores, &keys, &queries, ds, (dq, width));
                    }
                }
                // What all rows see is one product; else each group of keys takes the rows that see it.
                if all_seen || (keys.finite() && queries.finite()) {
                    let step = if all_seen { KEYS } else { S::ROWS };
                    for j0 in (0..keys.range.len()).step_by(step) {
                        let group = j0..(j0 + step).min(keys.range.len());
                        let seen = if all_seen {
                            0..block.len()
                        } else if scores.is_sparse() {
                            seeing(plan, &(keys.range.start + group.start..keys.range.start + group.end))
                        } else {
                            let seen = scores.seeing(b, &block.rows, &keys.range, &group);
                            let start = seen.start.max(seeing_rows.start);
                            start..seen.end.min(seeing_rows.end).max(start)
                        };
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
        if to_target {
            for (i, dq) in rows.zip(dq.chunks_exact(width)) {
                // SAFETY: these rows belong to this task alone.
                unsafe { targets.dq.write((b, h, i), 0, &dq[..dim]) };
            }
        }
    }
}
