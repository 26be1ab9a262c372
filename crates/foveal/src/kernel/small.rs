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

use foveal_compute::scratch::{LINE, Memory};

use super::backward::{Inputs, RowState, Targets};
use super::forward::{End, Results, ln};
use super::gemm::{Left, Out, PANEL, Right, Store};
use super::nonfinite::Stray;
use super::plan::Span;
use super::precise::{self, PreciseRow};
use super::rows::{TileKeys, dots};
use super::simd::Simd;
use super::source::Source;
use super::{Kernel, options, pack, softmax};
use crate::scores::{Scores, View};

/// One head of the forward pass.
pub struct Forward<'a> {
    pub q: Source<'a>,
    pub k: Source<'a>,
    pub v: Source<'a>,
    pub scores: Scores<'a>,
    pub b: usize,
    pub h: usize,
    pub memory: &'a mut Memory,
    pub results: Results<'a>,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Forward { q, k, v, scores, b, h, memory, results } = self;
        let (queries, keys, dim, value_dim) = (q.rows(), k.rows(), q.cols(), v.cols());
        let (width, wide) = (keys.next_multiple_of(S::LANES), value_dim.next_multiple_of(S::LANES));
        let [q_rows, k_columns, v_rows, p, acc] = memory.cut([
            Copied::room::<S>(q),
            keys.next_multiple_of(PANEL * S::LANES) * dim,
            Copied::room::<S>(v),
            queries * width,
            queries * wide,
        ]);
        let (q, mut v) = (Copied::new(simd, q, 1.0, q_rows), Copied::new(simd, v, 1.0, v_rows));
        let strays = if hides(&scores, b, queries) { v.take_out() } else { Vec::new() };
        let k = k.columns(simd, 0..keys, scores.key_scale, k_columns);
        let unit = scores.unit();
        let mut sums = [0.0; TOKENS];
        let mut max = [0.0; TOKENS];
        for rows in groups::<S>(queries) {
            let (n, end) = (rows.len(), scores.interval(b, rows.end - 1).end);
            let (p, acc) = (&mut p[rows.start * width..], &mut acc[rows.start * wide..]);
            let vectors = end.div_ceil(S::LANES);
            dots(simd, (n, vectors, dim), q.left(rows.start), k, Out { data: p, row: width });
            for (i, row) in rows.clone().zip(p.chunks_exact_mut(width)) {
                let row = &mut row[..vectors * S::LANES];
                options::hide_outside(simd, row, scores.interval(b, i), f32::NEG_INFINITY);
                max[i] = softmax::largest(simd, row);
                let mut sum = [0.0; LINE];
                softmax::exp(simd, row, max[i], &mut sum[..S::LANES], unit);
                sums[i] = softmax::total(simd, &sum[..S::LANES]);
                scores.drop_weights((b, h, i), 0, &mut row[..end]);
            }
            let (weights, values) = (Left { data: p, row: width, step: 1 }, v.right::<S>(0));
            simd.gemm((n, wide / S::LANES, end), weights, values, Out { data: acc, row: wide }, Store::Set);
            for stray in &strays {
                for i in rows.clone().filter(|i| scores.interval(b, *i).contains(&stray.row)) {
                    let weight = p[(i - rows.start) * width + stray.row];
                    acc[(i - rows.start) * wide + stray.column] += weight * stray.value;
                }
            }
        }
        // In a loop of their own, which becomes vectors.
        let mut logs = [0.0; TOKENS];
        logs.iter_mut().zip(&sums).take(queries).for_each(|(log, sum)| *log = ln(*sum));
        let sink = scores.sink(h);
        for i in 0..queries {
            let row = &mut acc[i * wide..][..wide];
            let (at, ended) = (scores.query_row((b, h, i)), End::with_log(max[i], sums[i], logs[i], sink, unit));
            softmax::multiply(simd, row, ended.factor);
            // SAFETY: each head belongs to one task.
            unsafe {
                results.out.write(at, &row[..value_dim]);
                results.lse.update(at, 0, &[ended.lse], |_, lse| lse);
            }
        }
    }
}

/// Tokens of a short sequence at most.
pub const TOKENS: usize = 64;

/// One head of the backward pass.
pub struct Backward<'a, 't> {
    pub inputs: Inputs<'a>,
    pub targets: Targets<'t>,
    pub b: usize,
    pub h: usize,
    /// Whether it is the first that shares the key head, and the old content of dK and dV does not matter.
    pub first: bool,
    pub memory: &'t mut Memory,
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Backward { inputs, targets, b, h, first, memory } = self;
        let (scores, kv) = (inputs.scores, h / inputs.group);
        let (q, dout) = (scores.query_head(&inputs.q, b, h), scores.query_head(&inputs.dout, b, h));
        let (k, v) = (scores.key_head(&inputs.k, b, kv), scores.key_head(&inputs.v, b, kv));
        let (queries, keys, dim, value_dim) = (q.rows(), k.rows(), q.cols(), v.cols());
        let [width, wide_k, wide_v] = [keys, dim, value_dim].map(|n| n.next_multiple_of(S::LANES));
        let columns = keys.next_multiple_of(PANEL * S::LANES);
        let [q_rows, k_rows, dout_rows, k_columns, v_columns, p, ds, of_q, of_k, of_v] = memory.cut([
            Copied::room::<S>(q),
            Copied::room::<S>(k),
            Copied::room::<S>(dout),
            columns * dim,
            columns * value_dim,
            queries * width,
            queries * width,
            queries * wide_k,
            keys * wide_k,
            keys * wide_v,
        ]);
        let mut q_copy = Copied::new(simd, q, 1.0, q_rows);
        let mut k_copy = Copied::new(simd, k, 1.0, k_rows);
        let mut dout_copy = Copied::new(simd, dout, 1.0, dout_rows);
        let row = |i: usize| scores.query_row((b, h, i));
        let lse = |i: usize| inputs.lse[row(i)];
        let sound = !hides(&scores, b, queries)
            || [&q_copy, &k_copy, &dout_copy].iter().all(|copied| pack::all_finite(copied.data))
                && v.is_finite(0..keys)
                && (0..queries).all(|i| lse(i) < f64::INFINITY && inputs.delta[row(i)].is_finite());
        let of_k_strays = if sound { Vec::new() } else { k_copy.take_out() };
        let k_columns = k.columns(simd, 0..keys, scores.key_scale, k_columns);
        let v_columns = v.columns(simd, 0..keys, 1.0, v_columns);
        for rows in groups::<S>(queries) {
            let (n, end) = (rows.len(), scores.interval(b, rows.end - 1).end);
            let (p, ds) = (&mut p[rows.start * width..], &mut ds[rows.start * width..]);
            let vectors = end.div_ceil(S::LANES);
            let to_p = Out { data: p, row: width };
            dots(simd, (n, vectors, dim), q_copy.left(rows.start), k_columns, to_p);
            let to_ds = Out { data: ds, row: width };
            dots(simd, (n, vectors, value_dim), dout_copy.left(rows.start), v_columns, to_ds);
            for ((i, p), ds) in rows.clone().zip(p.chunks_exact_mut(width)).zip(ds.chunks_exact_mut(width)) {
                let (p, p_rest) = p.split_at_mut(vectors * S::LANES);
                let (ds, ds_rest) = ds.split_at_mut(vectors * S::LANES);
                let (seen, state) = (scores.interval(b, i), RowState::new(&inputs, (b, h, i)));
                if let Some((lse, _)) = state.precise {
                    let (q, span) = (q_copy.row(i), Span { rows: 0..1, first: 0, len: end, view: View::Partial });
                    let row = PreciseRow { q, at: (b, h, i), span: &span, relative: &[], lse };
                    precise::finish(simd, &scores, &TileKeys::Packed(k_columns, 0), row, p, None);
                } else {
                    options::hide_outside(simd, p, seen.clone(), f32::NEG_INFINITY);
                }
                scores.drop_weights((b, h, i), 0, &mut ds[..end]);
                state.weights_and_gradient(simd, p, ds);
                if !sound {
                    // 0·NaN is NaN.
                    options::hide_outside(simd, p, seen.clone(), 0.0);
                    options::hide_outside(simd, ds, seen, 0.0);
                }
                scores.drop_weights((b, h, i), 0, &mut p[..end]);
                p_rest.fill(0.0);
                ds_rest.fill(0.0);
            }
            let to_q = Out { data: &mut of_q[rows.start * wide_k..], row: wide_k };
            let left = Left { data: ds, row: width, step: 1 };
            simd.gemm((n, wide_k / S::LANES, end), left, k_copy.right::<S>(0), to_q, Store::Set);
            for stray in &of_k_strays {
                for i in rows.clone().filter(|i| scores.interval(b, *i).contains(&stray.row)) {
                    let ds = ds[(i - rows.start) * width + stray.row];
                    of_q[i * wide_k + stray.column] += ds * stray.value;
                }
            }
        }
        let of_q_strays = if sound { Vec::new() } else { q_copy.take_out() };
        let of_dout_strays = if sound { Vec::new() } else { dout_copy.take_out() };
        for (weights, right, to, strays) in
            [(&*p, &dout_copy, &mut *of_v, of_dout_strays), (&*ds, &q_copy, &mut *of_k, of_q_strays)]
        {
            let wide = right.width;
            for group in groups::<S>(keys) {
                let rows = scores.seeing(b, &(0..queries), &(0..keys), &group);
                let from = (rows.start * width + group.start).min(weights.len());
                let left = Left { data: &weights[from..], row: 1, step: width };
                let to = Out { data: &mut to[group.start * wide..], row: wide };
                let size = (group.len(), wide / S::LANES, rows.len());
                simd.gemm(size, left, right.right::<S>(rows.start), to, Store::Set);
            }
            for stray in &strays {
                for j in scores.interval(b, stray.row) {
                    to[j * wide + stray.column] += weights[stray.row * width + j] * stray.value;
                }
            }
        }
        softmax::multiply(simd, of_k, scores.scale);
        softmax::multiply(simd, of_q, scores.scale);
        let (dq, dk, dv) = (targets.dq, targets.dk, targets.dv);
        // SAFETY: each key head, with all heads that share it, belongs to one task.
        unsafe {
            (0..queries).for_each(|i| dq.put(row(i), &of_q[i * wide_k..][..dim], targets.adds));
            for j in 0..keys {
                let at = scores.key_row((b, kv, j));
                let adds = targets.adds || !first;
                dk.put(at, &of_k[j * wide_k..][..dim], adds);
                dv.put(at, &of_v[j * wide_v..][..value_dim], adds);
            }
        }
    }
}

/// Whether some row does not see some key. Both ends of what a row sees grow with the row.
#[inline(always)]
fn hides(scores: &Scores, b: usize, queries: usize) -> bool {
    scores.interval(b, 0).end < scores.keys(b) || scores.interval(b, queries - 1).start > 0
}

/// Groups of the same size, rather than whole ones and a small rest.
#[inline(always)]
fn groups<S: Simd>(n: usize) -> impl Iterator<Item = Range<usize>> {
    let size = n.div_ceil(n.div_ceil(S::ROWS).max(1)).max(1);
    (0..n).step_by(size).map(move |first| first..(first + size).min(n))
}

/// The rows of a matrix next to each other, filled up with zeros to whole vectors.
struct Copied<'a> {
    data: &'a mut [f32],
    width: usize,
    columns: usize,
}

impl<'a> Copied<'a> {
    fn room<S: Simd>(m: Source) -> usize {
        m.rows() * m.cols().next_multiple_of(S::LANES)
    }

    #[inline(always)]
    fn new<S: Simd>(simd: S, m: Source, scale: f32, data: &'a mut [f32]) -> Self {
        let width = m.cols().next_multiple_of(S::LANES);
        for (i, dst) in data.chunks_exact_mut(width.max(1)).enumerate() {
            m.copy_row(simd, i, scale, dst);
        }
        Copied { data, width, columns: m.cols() }
    }

    /// Takes out what is not finite; see [`super::nonfinite`].
    fn take_out(&mut self) -> Vec<Stray> {
        let mut strays = Vec::new();
        if pack::all_finite(self.data) {
            return strays;
        }
        for (row, values) in self.data.chunks_exact_mut(self.width.max(1)).enumerate() {
            for (column, value) in values[..self.columns].iter_mut().enumerate().filter(|(_, x)| !x.is_finite()) {
                strays.push(Stray { row, column, value: *value });
                *value = 0.0;
            }
        }
        strays
    }

    /// One row, without what it is filled up with.
    #[inline(always)]
    fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.width..][..self.columns]
    }

    /// As a left operand, from a row on.
    #[inline(always)]
    fn left(&self, first: usize) -> Left<'_> {
        Left { data: &self.data[first * self.width..], row: self.width, step: 1 }
    }

    /// As a right operand, from a row on.
    #[inline(always)]
    fn right<S: Simd>(&self, first: usize) -> Right<'_> {
        Right { data: &self.data[first * self.width..], panel: PANEL * S::LANES, step: self.width }
    }
}
