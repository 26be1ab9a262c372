//! Backward: some tiles of keys against some query rows of one head.
//!
//! With p = exp(s − lse) computed again and δᵢ = doutᵢ·outᵢ − dlseᵢ, the chain rule through out = Σ p·v, lse and the softmax
//! gives
//!
//! ```text
//! dv_j = Σ_i p_ij dout_i                    (Pᵀ·dOut)
//! ds_ij = p_ij (dout_i·v_j − δ_i)           (dOut·Vᵀ)
//! dq_i = scale Σ_j ds_ij k_j                (dS·K)
//! dk_j = scale Σ_i ds_ij q_i                (dSᵀ·Q)
//! ```
//!
//! because ∂p_ij/∂s_il = p_ij(δ_jl − p_il), ∂lse_i/∂s_il = p_il, and Σ_j p_ij (dout_i·v_j) = dout_i·out_i. A sink is a key
//! without a value, so its ds is −p δ, and nothing else changes. Five products, none of them larger than a tile:
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
//! multiplied by the factors of the forward pass, and δ stays what it is. With a softcap or a score function, ds is taken
//! through their derivatives.

use std::ops::Range;

use foveal_compute::scratch::{LINE, Memory};
use ndarray::ArrayView3;

use super::Kernel;
use super::gemm::{MAX_ROWS, Out};
use super::gradient::{Group, Keys, Pair, Queries, add_transposed, seeing};
use super::matrix::Rows;
use super::rows::{self, Block};
use super::simd::Simd;
use super::softmax::{self, Lse};
use crate::scores::{At, Scores, View};
use crate::scratch::Slot;
use crate::tensor::Tensor;

/// Keys per tile and rows per block: both score tiles (156 KiB each) stay in L2, and sums over 192 terms keep their
/// accumulators in registers long enough.
pub const KEYS: usize = 192;
pub const ROWS: usize = 192;
/// Distance of two rows of a score tile; see [`super::rows::STRIDE`].
pub const STRIDE: usize = KEYS + LINE;

/// The inputs of a call.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub q: Tensor<'a>,
    pub k: Tensor<'a>,
    pub v: Tensor<'a>,
    pub dout: Tensor<'a>,
    /// Shaped like the queries, as is `delta`: [B, H, T].
    pub lse: &'a ArrayView3<'a, f64>,
    /// What weights that were computed [precisely](super::precise) are multiplied with.
    pub factor: &'a ArrayView3<'a, f32>,
    pub delta: &'a ArrayView3<'a, f32>,
    pub scores: Scores<'a>,
    /// Query heads per key head.
    pub group: usize,
}

/// Where the gradients go.
#[derive(Clone, Copy)]
pub struct Targets<'a> {
    /// dQ: [B, H, T, D], for the tasks that collect it alone.
    pub dq: Gradient<'a>,
    /// dK and dV: [B, key heads, S, ·].
    pub dk: Gradient<'a>,
    pub dv: Gradient<'a>,
    /// Whether the gradients are added to what is there.
    pub adds: bool,
    /// A dense bias's gradient.
    pub dense: DenseGradient<'a>,
    /// The gradient of each head's slope or table of distances: [chunks, 1, B·H, entries].
    pub table: Rows<'a, f64>,
}

/// The gradient of a dense bias: in f64 where sequences, heads or queries share it, and its numbers are fewer and sums.
#[derive(Clone, Copy)]
pub enum DenseGradient<'a> {
    Own(Rows<'a>),
    Shared(Rows<'a, f64>),
}

impl DenseGradient<'_> {
    /// Adds to a row, from column `first` on.
    ///
    /// # Safety
    /// No other thread may access these values at the same time.
    #[inline(always)]
    pub unsafe fn add(&self, at: At, first: usize, ds: &[f32]) {
        // SAFETY: passed on.
        unsafe {
            match self {
                DenseGradient::Own(rows) => rows.update(at, first, ds, |old, new| old + new),
                DenseGradient::Shared(rows) => rows.update(at, first, ds, |old, new| old + f64::from(new)),
            }
        }
    }
}

/// A gradient that tasks write or add rows to.
#[derive(Clone, Copy)]
pub struct Gradient<'a>(pub Rows<'a>);

impl Gradient<'_> {
    /// Writes a row, or adds it to what is there.
    ///
    /// # Safety
    /// No other thread may access this row at the same time.
    #[inline(always)]
    pub unsafe fn put(&self, at: At, values: &[f32], adds: bool) {
        // SAFETY: passed on.
        unsafe {
            if adds {
                self.0.update(at, 0, values, |old, new| old + new);
            } else {
                self.0.write(at, 0, values);
            }
        }
    }
}

/// The tiles of keys of one chunk, against the query rows `rows` of head h.
pub struct Backward<'a, 't> {
    pub inputs: Inputs<'a>,
    pub targets: Targets<'t>,
    pub chunk: usize,
    pub tiles: &'t [KeyTile],
    pub b: usize,
    pub h: usize,
    pub rows: Range<usize>,
    /// dQ of these rows, and behind each row Shaw's gradient; without it dQ goes to its target.
    pub dq: Option<&'t mut [f32]>,
    pub slot: &'t mut Slot,
}

/// A tile of keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyTile {
    /// It starts at key index·KEYS.
    pub index: usize,
    /// Whether nobody has given anything to dK and dV of these keys before.
    pub first: bool,
}

/// Values per row of [`Backward::dq`].
pub fn dq_width(scores: &Scores, dim: usize) -> usize {
    dim.next_multiple_of(LINE) + rows::shaw_width(scores)
}

/// Working memory for `n` query rows.
struct Workspace<'w> {
    /// K and V of a tile as columns, K as rows.
    k_cols: &'w mut [f32],
    v_cols: &'w mut [f32],
    k_rows: &'w mut [f32],
    /// The gradients of a tile.
    dk: &'w mut [f32],
    dv: &'w mut [f32],
    /// Q and dOut, where they do not lie well, and packed as rows.
    q: &'w mut [f32],
    dout: &'w mut [f32],
    q_rows: &'w mut [f32],
    dout_rows: &'w mut [f32],
    /// Shaw's scale·q·a, and its table, packed.
    relative: &'w mut [f32],
    table: &'w mut [f32],
    /// P and dS of a block.
    pair: Pair<'w>,
    /// dQ, where it is not collected elsewhere.
    dq: &'w mut [f32],
}

/// The lengths of the parts of [`Workspace`], for `n` query rows.
pub fn memory(scores: &Scores, n: usize, dim: usize, value_dim: usize) -> [usize; 15] {
    let (wide, value_wide) = (dim.next_multiple_of(2 * LINE), value_dim.next_multiple_of(2 * LINE));
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
        n * rows::shaw_width(scores),
        scores.shaw_distances().next_multiple_of(2 * LINE) * dim,
        // Half a page more, so that no row of P lies a multiple of 4 KiB from the same row of dS: the processor would take a
        // load from one for a load of what was just stored to the other.
        ROWS * STRIDE + 512,
        ROWS * STRIDE,
        MAX_ROWS * STRIDE,
        n * dq_width(scores, dim),
    ]
}

impl<'w> Workspace<'w> {
    fn cut(memory: &'w mut Memory, lengths: [usize; 15]) -> Self {
        let [k_cols, v_cols, k_rows, dk, dv, q, dout, q_rows, dout_rows, relative, table, p, ds, bent, dq] =
            memory.cut(lengths);
        let pair = Pair { p, ds, bent };
        Workspace { k_cols, v_cols, k_rows, dk, dv, q, dout, q_rows, dout_rows, relative, table, pair, dq }
    }
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Backward { inputs, targets, chunk, tiles, b, h, rows, dq, slot } = self;
        let (scores, kv, n) = (inputs.scores, h / inputs.group, rows.len());
        let (k, v) = (scores.key_head(&inputs.k, b, kv), scores.key_head(&inputs.v, b, kv));
        let (dim, value_dim) = (k.cols(), v.cols());
        let Slot { memory: slot_memory, plan } = slot;
        let Workspace {
            k_cols,
            v_cols,
            k_rows,
            dk,
            dv,
            q,
            dout,
            q_rows,
            dout_rows,
            relative,
            table,
            mut pair,
            dq: own,
        } = Workspace::cut(slot_memory, memory(&scores, n, dim, value_dim));
        let all = Block { b, heads: h..h + 1, rows: rows.clone() };
        let (scale, rest) = rows::query_scale(&scores, &k);
        let q = rows::gather(simd, &inputs.q, (&scores, &all), scale, q);
        let dout = rows::gather(simd, &inputs.dout, (&scores, &all), 1.0, dout);
        rows::relative(simd, (&scores, &all), (q, rest), table, relative);
        let mut queries = Queries::new::<S>(&inputs, all, (q, dout), (q_rows, dout_rows), relative);
        for first in (0..n).step_by(ROWS) {
            // Of a sparse pattern a chunk may see a few blocks of many.
            if !scores.is_sparse() || plan.sees_any(&scores, &queries.block(first), tiles, KEYS) {
                queries.pack(simd, &inputs, first);
            }
        }
        let (width, to_target) = (dq_width(&scores, dim), dq.is_none());
        let dq = dq.unwrap_or(own);
        dq.fill(0.0);

        for &KeyTile { index, first: first_rows } in tiles {
            let range = index * KEYS..((index + 1) * KEYS).min(k.rows());
            let mut keys = Keys::new(simd, &scores, (k, v), range.clone(), (&mut *k_cols, &mut *v_cols, &mut *k_rows));
            let (wide, value_wide) = (dim.next_multiple_of(S::LANES), value_dim.next_multiple_of(S::LANES));
            let (dk, dv) = (&mut dk[..range.len() * wide], &mut dv[..range.len() * value_wide]);
            dk.fill(0.0);
            dv.fill(0.0);
            for first in (0..n).step_by(ROWS) {
                let block = queries.block(first);
                let dq = &mut dq[first * width..(first + block.len()) * width];
                plan.make(&scores, &block, S::ROWS, &range);
                if plan.next_tile::<S>(&scores, &block, range.start, KEYS).is_none() {
                    continue;
                }
                let (mut all_seen, seeing_rows) = (true, plan.rows());
                for (rows, spans) in plan.groups() {
                    if spans.is_empty() && (rows.end <= seeing_rows.start || seeing_rows.end <= rows.start) {
                        // Nobody reads these rows of P and dS.
                        all_seen = false;
                        continue;
                    }
                    let dq = &mut dq[rows.start * width..rows.end * width];
                    let alone = spans.len() == 1;
                    if !alone {
                        pair.clear(rows);
                    }
                    all_seen &= alone && spans[0].view == View::Full && spans[0].len == range.len();
                    for span in spans {
                        let group = Group { block: &block, first, span, alone };
                        group.gradients(simd, &inputs, (&targets, chunk), &keys, &queries, (&mut pair, &mut *dq));
                        if span.view == View::Partial {
                            keys.check(simd);
                        }
                        group.add_dq(simd, &scores, &keys, pair.ds, (dq, width));
                    }
                }
                if !all_seen {
                    queries.check(simd);
                }
                // What all rows see is one product; else each group of keys takes the rows that see it.
                let step = if all_seen { KEYS } else { S::ROWS };
                for j0 in (0..range.len()).step_by(step) {
                    let group = j0..(j0 + step).min(range.len());
                    let seen = if all_seen {
                        0..block.len()
                    } else if scores.is_sparse() {
                        seeing(plan, &(range.start + group.start..range.start + group.end))
                    } else {
                        let seen = scores.seeing(b, &block.rows, &range, &group);
                        let start = seen.start.max(seeing_rows.start);
                        start..seen.end.min(seeing_rows.end).max(start)
                    };
                    let dout = queries.right::<S>(queries.dout_rows, &block, seen.start);
                    let to = Out { data: &mut dv[j0 * value_wide..], row: value_wide };
                    add_transposed(simd, pair.p, &group, &seen, dout, to);
                    let q = queries.right::<S>(queries.q_rows, &block, seen.start);
                    let to = Out { data: &mut dk[j0 * wide..], row: wide };
                    add_transposed(simd, pair.ds, &group, &seen, q, to);
                }
                queries.add_strays(&scores, &block, &range, &pair, (&mut *dk, wide), (&mut *dv, value_wide));
            }
            softmax::multiply(simd, dk, scores.scale);
            for (n, j) in range.enumerate() {
                let (at, adds) = (scores.key_row((b, kv, j)), targets.adds || !first_rows);
                // SAFETY: these keys belong to this task alone.
                unsafe {
                    targets.dk.put(at, &dk[n * wide..][..dim], adds);
                    targets.dv.put(at, &dv[n * value_wide..][..value_dim], adds);
                }
            }
        }
        for row in dq.chunks_exact_mut(width) {
            row[..dim].iter_mut().for_each(|x| *x *= scores.scale);
        }
        if to_target {
            for (i, dq) in rows.zip(dq.chunks_exact(width)) {
                // SAFETY: these rows belong to this task alone.
                unsafe { targets.dq.put(scores.query_row((b, h, i)), &dq[..dim], targets.adds) };
            }
        }
    }
}

/// What is known of a row.
#[derive(Clone, Copy)]
pub struct RowState {
    pub lse: Lse,
    pub delta: f32,
    pub lse_is_nan: bool,
    /// Where scores are computed in f64 (see [`super::precise`]): the log-sum-exp, and what weights are multiplied with.
    pub precise: Option<(f64, f32)>,
}

impl RowState {
    pub fn new(inputs: &Inputs, at: At) -> RowState {
        let row = inputs.scores.query_row(at);
        let lse = inputs.lse[row];
        let precise = inputs.scores.is_precise(lse).then(|| (lse, inputs.factor[row]));
        let for_row = if precise.is_some() { Lse::subtracted() } else { Lse::new(lse, inputs.scores.unit()) };
        RowState { lse: for_row, delta: inputs.delta[row], lse_is_nan: lse.is_nan(), precise }
    }

    /// p ⟵ exp(p − lse) and ds ⟵ p∘(ds − δ)
    #[inline(always)]
    pub fn weights_and_gradient<S: Simd>(&self, simd: S, p: &mut [f32], ds: &mut [f32]) {
        softmax::exp_and_gradient(simd, p, ds, self.lse, self.delta);
        if let Some((_, factor)) = self.precise {
            softmax::multiply(simd, p, factor);
            softmax::multiply(simd, ds, factor);
        }
    }
}
