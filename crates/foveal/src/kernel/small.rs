//! Short sequences: one head at once, all of it in the nearest cache.
//!
//! The kernels for long sequences spend their time on tiles, plans and running sums, which a head of 16 tokens has no use for.
//! Here the rows of a head are copied next to each other, and each step is one product over all of them (see
//! [`super::backward`] for the equations):
//!
//! ```text
//! for each group of up to 12 rows, against the keys up to the last that it sees
//!   S ⟵ Q·Kᵀ;  P ⟵ exp(S − m);  out ⟵ P·V / Σ P                                forward
//!   S ⟵ Q·Kᵀ;  dP ⟵ dOut·Vᵀ;  P ⟵ exp(S − lse);  dS ⟵ P∘(dP − δ);  dQ ⟵ dS·K   backward
//! for each group of up to 12 keys, from the rows that see it:  dV ⟵ Pᵀ·dOut;  dK ⟵ dSᵀ·Q
//! ```

use std::ops::Range;

use ndarray::ArrayView1;

use super::forward::ln;
use super::gemm::{Left, Out, PANEL, Right, Store};
use super::matrix::{Matrix, Rows, add};
use super::simd::Simd;
use super::{Kernel, options, pack, softmax};
use crate::scores::Scores;
use crate::scratch::{LINE, Memory};

/// One head of the forward pass. Says whether it was done: not if a NaN or ∞ is hidden, which would spread here.
pub struct Forward<'a> {
    pub q: Matrix<'a>,
    pub k: Matrix<'a>,
    pub v: Matrix<'a>,
    pub scores: Scores<'a>,
    pub b: usize,
    pub h: usize,
    pub memory: &'a mut Memory,
    pub out: Rows<'a>,
    pub lse: Rows<'a>,
}

impl Kernel for Forward<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let Forward { q, k, v, scores, b, h, memory, out, lse } = self;
        let (queries, keys, dim) = (q.rows(), k.rows(), q.cols());
        if hides(&scores, b, queries) && !pack::rows_finite(v, 0..keys) {
            return false;
        }
        let (width, wide) = (keys.next_multiple_of(S::LANES), v.cols().next_multiple_of(S::LANES));
        let [q_rows, k_columns, v_rows, p, acc, state] = memory.cut([
            Copied::room::<S>(q),
            keys.next_multiple_of(PANEL * S::LANES) * dim,
            Copied::room::<S>(v),
            queries * width,
            queries * wide,
            2 * queries,
        ]);
        let (q, v_copy) = (Copied::new(simd, q, scores.scale, q_rows), Copied::new(simd, v, 1.0, v_rows));
        let k = pack::columns(simd, k, 0..keys, 1.0, k_columns);
        let (max, sum) = state.split_at_mut(queries);
        for rows in groups::<S>(queries) {
            let (n, end) = (rows.len(), scores.interval(b, rows.end - 1).end);
            let (p, acc) = (&mut p[rows.start * width..], &mut acc[rows.start * wide..]);
            let vectors = end.div_ceil(S::LANES);
            simd.gemm((n, vectors, dim), q.left(rows.start), k, Out { data: p, row: width }, Store::Set);
            for (i, row) in rows.clone().zip(p.chunks_exact_mut(width)) {
                let row = &mut row[..vectors * S::LANES];
                options::hide_outside(simd, row, scores.interval(b, i), f32::NEG_INFINITY);
                max[i] = softmax::largest(simd, row);
                let mut sums = [0.0; LINE];
                softmax::exp(simd, row, max[i], &mut sums[..S::LANES]);
                sum[i] = softmax::total(simd, &sums[..S::LANES]);
                if let Some(dropout) = scores.dropout(b, h, i) {
                    dropout.apply(0, &mut row[..end]);
                }
            }
            let (weights, values) = (Left { data: p, row: width, step: 1 }, v_copy.right::<S>(0));
            simd.gemm((n, wide / S::LANES, end), weights, values, Out { data: acc, row: wide }, Store::Set);
            for (i, row) in rows.zip(acc.chunks_exact_mut(wide.max(1))) {
                softmax::multiply(simd, row, if sum[i] == 0.0 { 0.0 } else { 1.0 / sum[i] });
                // SAFETY: each head belongs to one task.
                unsafe { out.write((b, h, i), 0, &row[..v.cols()]) };
            }
        }
        max.iter_mut()
            .zip(&*sum)
            .for_each(|(max, sum)| *max = if *sum == 0.0 { f32::NEG_INFINITY } else { *max + ln(*sum) });
        // SAFETY: as above.
        (0..queries).for_each(|i| unsafe { lse.write((b, h, i), 0, &max[i..=i]) });
        true
    }
}

/// One head of the backward pass. Says whether it was done, as [`Forward`] does.
pub struct Backward<'a> {
    pub q: Matrix<'a>,
    pub k: Matrix<'a>,
    pub v: Matrix<'a>,
    pub dout: Matrix<'a>,
    pub out: Matrix<'a>,
    pub lse: ArrayView1<'a, f32>,
    pub scores: Scores<'a>,
    pub b: usize,
    pub h: usize,
    /// The key head.
    pub kv: usize,
    /// Whether it is the first that shares the key head: then the old content of dK and dV does not matter.
    pub first: bool,
    pub memory: &'a mut Memory,
    pub dq: Rows<'a>,
    pub dk: Rows<'a>,
    pub dv: Rows<'a>,
}

impl Kernel for Backward<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let Backward { q, k, v, dout, out, lse, scores, b, h, kv, first, memory, dq, dk, dv } = self;
        let (queries, keys, dim, value_dim) = (q.rows(), k.rows(), q.cols(), v.cols());
        let [width, wide_k, wide_v] = [keys, dim, value_dim].map(|n| n.next_multiple_of(S::LANES));
        let columns = keys.next_multiple_of(PANEL * S::LANES);
        let [q_rows, k_rows, dout_rows, delta, k_columns, v_columns, p, ds, of_q, of_k, of_v] = memory.cut([
            Copied::room::<S>(q),
            Copied::room::<S>(k),
            Copied::room::<S>(dout),
            queries,
            columns * dim,
            columns * value_dim,
            queries * width,
            queries * width,
            queries * wide_k,
            keys * wide_k,
            keys * wide_v,
        ]);
        // Scaled once, they serve the scores as well as the gradients.
        let q_copy = Copied::new(simd, q, scores.scale, q_rows);
        let k_copy = Copied::new(simd, k, scores.scale, k_rows);
        let dout_copy = Copied::new(simd, dout, 1.0, dout_rows);
        for (i, delta) in delta.iter_mut().enumerate() {
            *delta = match out.row(i) {
                Some(out) => softmax::dot(simd, &dout_copy.row(i)[..value_dim], out),
                None => (0..value_dim).map(|j| dout.get(i, j) * out.get(i, j)).sum(),
            };
        }
        if hides(&scores, b, queries) {
            let inputs = [q_copy.data, k_copy.data, dout_copy.data, &*delta];
            let finite = inputs.iter().all(|values| pack::all_finite(values)) && pack::rows_finite(v, 0..keys);
            if !finite || !lse.iter().all(|lse| *lse < f32::INFINITY) {
                return false;
            }
        }
        let k_columns = pack::columns(simd, k, 0..keys, 1.0, k_columns);
        let v_columns = pack::columns(simd, v, 0..keys, 1.0, v_columns);
        for rows in groups::<S>(queries) {
            let (n, end) = (rows.len(), scores.interval(b, rows.end - 1).end);
            let (p, ds) = (&mut p[rows.start * width..], &mut ds[rows.start * width..]);
            let vectors = end.div_ceil(S::LANES);
            let to_p = Out { data: p, row: width };
            simd.gemm((n, vectors, dim), q_copy.left(rows.start), k_columns, to_p, Store::Set);
            let to_ds = Out { data: ds, row: width };
            simd.gemm((n, vectors, value_dim), dout_copy.left(rows.start), v_columns, to_ds, Store::Set);
            for ((i, p), ds) in rows.clone().zip(p.chunks_exact_mut(width)).zip(ds.chunks_exact_mut(width)) {
                let (p, p_rest) = p.split_at_mut(vectors * S::LANES);
                let (ds, ds_rest) = ds.split_at_mut(vectors * S::LANES);
                options::hide_outside(simd, p, scores.interval(b, i), f32::NEG_INFINITY);
                match scores.dropout(b, h, i) {
                    None => softmax::exp_and_gradient(simd, p, ds, lse[i], delta[i]),
                    Some(dropout) => {
                        dropout.apply(0, &mut ds[..end]);
                        softmax::exp_and_gradient(simd, p, ds, lse[i], delta[i]);
                        dropout.apply(0, &mut p[..end]);
                    }
                }
                p_rest.fill(0.0);
                ds_rest.fill(0.0);
            }
            let (ds, to_q) = (Left { data: ds, row: width, step: 1 }, &mut of_q[rows.start * wide_k..]);
            let to_q = Out { data: to_q, row: wide_k };
            simd.gemm((n, wide_k / S::LANES, end), ds, k_copy.right::<S>(0), to_q, Store::Set);
        }
        for group in groups::<S>(keys) {
            let rows = scores.seeing(b, &(0..queries), &(0..keys), &group);
            for (weights, right, to, wide) in [(&*p, dout_copy, &mut *of_v, wide_v), (&*ds, q_copy, &mut *of_k, wide_k)]
            {
                let from = (rows.start * width + group.start).min(weights.len());
                let left = Left { data: &weights[from..], row: 1, step: width };
                let to = Out { data: &mut to[group.start * wide..], row: wide };
                let size = (group.len(), wide / S::LANES, rows.len());
                simd.gemm(size, left, right.right::<S>(rows.start), to, Store::Set);
            }
        }
        // SAFETY: each key head, with all heads that share it, belongs to one task.
        unsafe {
            (0..queries).for_each(|i| dq.write((b, h, i), 0, &of_q[i * wide_k..][..dim]));
            for j in 0..keys {
                let (of_k, of_v) = (&of_k[j * wide_k..][..dim], &of_v[j * wide_v..][..value_dim]);
                if first {
                    dk.write((b, kv, j), 0, of_k);
                    dv.write((b, kv, j), 0, of_v);
                } else {
                    dk.update((b, kv, j), 0, of_k, add);
                    dv.update((b, kv, j), 0, of_v, add);
                }
            }
        }
        true
    }
}

/// Whether some row does not see some key. Both ends of what a row sees grow with the row.
#[inline(always)]
fn hides(scores: &Scores, b: usize, queries: usize) -> bool {
    scores.interval(b, 0).end < scores.keys() || scores.interval(b, queries - 1).start > 0
}

/// Groups of the same size, rather than whole ones and a small rest.
#[inline(always)]
fn groups<S: Simd>(n: usize) -> impl Iterator<Item = Range<usize>> {
    let size = n.div_ceil(n.div_ceil(S::ROWS).max(1)).max(1);
    (0..n).step_by(size).map(move |first| first..(first + size).min(n))
}

/// The rows of a matrix next to each other, filled up with zeros to whole vectors.
#[derive(Clone, Copy)]
struct Copied<'a> {
    data: &'a [f32],
    width: usize,
}

impl<'a> Copied<'a> {
    fn room<S: Simd>(m: Matrix) -> usize {
        m.rows() * m.cols().next_multiple_of(S::LANES)
    }

    #[inline(always)]
    fn new<S: Simd>(simd: S, m: Matrix, scale: f32, dst: &'a mut [f32]) -> Self {
        let width = m.cols().next_multiple_of(S::LANES);
        for (i, dst) in dst.chunks_exact_mut(width.max(1)).enumerate() {
            let (values, rest) = dst.split_at_mut(m.cols());
            match m.row(i) {
                Some(row) => pack::scaled(simd, row, scale, values),
                None => values.iter_mut().enumerate().for_each(|(j, x)| *x = scale * m.get(i, j)),
            }
            rest.fill(0.0);
        }
        Copied { data: dst, width }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &'a [f32] {
        &self.data[i * self.width..(i + 1) * self.width]
    }

    /// As a left operand, from a row on.
    #[inline(always)]
    fn left(&self, first: usize) -> Left<'a> {
        Left { data: &self.data[first * self.width..], row: self.width, step: 1 }
    }

    /// As a right operand, from a row on.
    #[inline(always)]
    fn right<S: Simd>(&self, first: usize) -> Right<'a> {
        Right { data: &self.data[first * self.width..], panel: PANEL * S::LANES, step: self.width }
    }
}
