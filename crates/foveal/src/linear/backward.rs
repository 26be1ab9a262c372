//! Linear attention backward.
//!
//! With ℓ = ln φ, nᵢ = Σⱼ φ(qᵢ)·φ(kⱼ) = e^lseᵢ and gᵢ = (doutᵢ, −doutᵢ·outᵢ), each feature f of each pair that i sees has a share
//!
//! $$ u_{ijf} = \frac{\phi(q_i)_f\, \phi(k_j)_f}{n_i}, \qquad \sum_{jf} u_{ijf} = 1 $$
//!
//! in the output of i, from which everything follows:
//!
//! $$ d\ell(q_i)_f = \sum_j (g_i \cdot v_j^+)\, u_{ijf}, \qquad
//!    d\ell(k_j)_f = \sum_i (g_i \cdot v_j^+)\, u_{ijf}, \qquad
//!    dv_j = \sum_{if} u_{ijf}\, dout_i $$
//!
//! All of them go through S = Σ φ(k)·v⁺ᵀ or R = Σ φ(q)/n·gᵀ. If causal, S holds the keys before a chunk and R the queries after
//! it; within the chunk the products are written out, with L = 1 where key ≤ query, else 0, and Ĝ = φ̂-scaled G / n:
//!
//! ```text
//! forwards:   dℓ(Q) ⟵ φ̂(Q)∘(Ĝ·Sᵀ + (L∘Ĝ·V̂ᵀ)·φ̂(K))                  S ⟵ S + φ̂(K)ᵀ·V̂
//! backwards:  dℓ(K) ⟵ φ̂(K)∘(V̂·Rᵀ + (L∘Ĝ·V̂ᵀ)ᵀ·φ̂(Q))
//!             dV    ⟵ φ̂(K)·R + (L∘φ̂(Q)·φ̂(K)ᵀ)ᵀ·Ĝ                   R ⟵ R + φ̂(Q)ᵀ·Ĝ
//! ```
//!
//! Shares are at most 1. Where their parts are not of a size for f32, the query is lost and computed pair by pair, as in
//! `linear/chunk.rs`.

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayView1, ArrayView4, ArrayViewMut2, Axis, s};

use super::chunk::{Chunk, LOST, add_seen, scale_rows, times};
use super::levels::{Logs, exp};
use super::sums::Sums;
use super::tokens::{Keys, cut, pieces, with_ones};
use super::{Call, tokens};
use crate::results::{Forward, Gradients};

struct Backward<'a> {
    call: &'a Call<'a>,
    q: ArrayView4<'a, f32>,
    k: ArrayView4<'a, f32>,
    v: ArrayView4<'a, f32>,
    dout: ArrayView4<'a, f32>,
    fwd: &'a Forward,
    /// For each sequence and key head; see [`Call::key_sums`].
    before: Vec<Vec<Sums>>,
}

/// Some queries of a head.
struct Queries<'a> {
    logs: Logs<'a>,
    /// g: [rows, Dv + 1]
    g: Array2<f32>,
    /// ln n; ∞ for a query that sees nothing.
    lse: Vec<f64>,
}

impl Call<'_> {
    pub fn backward(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        v: ArrayView4<f32>,
        fwd: &Forward,
        dout: ArrayView4<f32>,
    ) -> Gradients {
        let backward = Backward { call: self, q, k, v, dout, fwd, before: self.key_sums(k, v) };
        let mut grads = Gradients {
            dq: Array4::zeros(q.dim()),
            dk: Array4::zeros(k.dim()),
            dv: Array4::zeros(v.dim()),
            dbias: None,
            dsinks: None,
        };
        let segments = self.query_segments();
        self.each(pieces(grads.dq.view_mut(), &segments), |(head, segment, dq)| {
            let (b, h) = (head / self.shape.heads, head % self.shape.heads);
            backward.queries((b, h), segment, &segments[b][segment], dq);
        });
        let after = backward.query_sums();
        let segments = vec![self.segments(self.shape.keys); self.shape.batch];
        let (dk, dv) = (pieces(grads.dk.view_mut(), &segments), pieces(grads.dv.view_mut(), &segments));
        self.each(dk.into_iter().zip(dv).collect(), |((head, segment, dk), (_, _, dv))| {
            let (b, kv) = (head / self.shape.kv_heads, head % self.shape.kv_heads);
            let mut keys = KeyGradients::new(&backward, (b, kv), &segments[b][segment], dv);
            for h in kv * self.shape.group()..(kv + 1) * self.shape.group() {
                let after = &after[b * self.shape.heads + h];
                keys.add(h, segment, after[if self.is_causal() { segment } else { 0 }].clone());
            }
            keys.finish(dk);
        });
        grads
    }
}

impl Backward<'_> {
    fn queries_at(&self, b: usize, h: usize, rows: &Range<usize>) -> Queries<'_> {
        let call = self.call;
        let logs = call.features.logs(call.isa, self.q.slice_move(s![b, h, rows.clone(), ..]));
        let out = self.fwd.out.slice(s![b, h, rows.clone(), ..]);
        let dout = self.dout.slice(s![b, h, rows.clone(), ..]);
        let mut g = with_ones(dout);
        let mut lse = Vec::with_capacity(rows.len());
        for (n, mut row) in g.rows_mut().into_iter().enumerate() {
            let of_row = self.fwd.lse[[b, h, rows.start + n]];
            if of_row == f64::NEG_INFINITY {
                // A query that sees nothing has no gradient, whatever dout is.
                row.fill(0.0);
                lse.push(f64::INFINITY);
            } else {
                row[call.shape.value_dim] = -out.row(n).dot(&dout.row(n));
                lse.push(of_row - call.features.log_scale());
            }
        }
        Queries { logs, g, lse }
    }

    /// The chunk of a causal head, by the levels of `sums` if there are any.
    fn chunk<'a, 'q, 'k>(
        &'a self,
        (b, kv): (usize, usize),
        (rows, keys): (&'a Range<usize>, &'a Keys),
        logs: (&'a Logs<'q>, &'a Logs<'k>),
        sums: Option<&Sums>,
    ) -> Option<Chunk<'a, 'q, 'k>> {
        let v = keys.with_ones(self.v.slice(s![b, kv, .., ..]));
        Chunk::new(self.call, (b, rows, keys), logs, v, sums.and_then(|sums| sums.levels.as_ref()))
    }

    /// dQ of a segment.
    fn queries(&self, (b, h): (usize, usize), segment: usize, all: &Range<usize>, mut dq: ArrayViewMut2<f32>) {
        let (call, kv) = (self.call, h / self.call.shape.group());
        let sums = &self.before[b * call.shape.kv_heads + kv];
        let mut finish = |rows: &Range<usize>, dlogs: Array2<f32>| {
            let x = self.q.slice(s![b, h, rows.clone(), ..]);
            let at = rows.start - all.start..rows.end - all.start;
            call.features.backward(x, &dlogs, dq.slice_mut(s![at, ..]));
        };
        if !call.is_causal() {
            let Some(levels) = &sums[0].levels else { return };
            for rows in cut(all) {
                let Queries { logs, mut g, lse } = self.queries_at(b, h, &rows);
                let phi = logs.times(levels);
                scale_rows(&mut g, phi.shifts.iter().zip(&lse).map(|(shift, lse)| exp(shift - lse)));
                finish(&rows, times(g.view(), sums[0].values.t()) * &phi.values);
            }
            return;
        }
        let mut sums = sums[segment].clone();
        for tokens::Chunk { rows, keys } in &call.chunks(b, segment) {
            let Queries { logs, g, lse } = self.queries_at(b, h, rows);
            let k = keys.of(self.k.slice_move(s![b, kv, .., ..]));
            let logs = (&logs, &call.features.logs(call.isa, k.view()));
            let Some(chunk) = self.chunk((b, kv), (rows, keys), logs, Some(&sums)) else { continue };
            let (scaled, lost) = scaled(&chunk, &g, &lse);
            let mut dlogs = times(scaled.view(), sums.values.t());
            if chunk.unit != 0.0 {
                dlogs *= exp(-chunk.unit);
            }
            let within = chunk.within(scaled.view(), chunk.weighed.view());
            add_seen(within.view(), chunk.phi_k.values.view(), dlogs.view_mut());
            dlogs *= &chunk.phi_q.values;
            for n in lost {
                let mut dlogs = dlogs.row_mut(n);
                if sums.levels.is_some() {
                    // All that there is before the chunk is part of n: this is not too large.
                    let factor = exp(chunk.phi_q.shifts[n] - lse[n]);
                    dlogs.assign(&(sums.values.dot(&g.row(n)) * chunk.phi_q.values.row(n) * factor));
                }
                chunk.each_share(n, lse[n], |j, shares| {
                    dlogs.scaled_add(g.row(n).dot(&chunk.v.row(j)), &ArrayView1::from(shares));
                });
            }
            chunk.add_to(&mut sums);
            finish(rows, dlogs);
        }
    }

    /// For each sequence and head: R over the queries after each segment if causal, else over all.
    fn query_sums(&self) -> Vec<Vec<Sums>> {
        let (call, segments, heads) = (self.call, self.call.query_segments(), self.call.shape.heads);
        let count = segments.first().map_or(0, Vec::len);
        // The last segment first.
        let mut all = vec![call.no_sums(); call.shape.batch * heads * count];
        call.each(all.iter_mut().enumerate().collect(), |(n, sums): (usize, &mut Sums)| {
            let (head, segment) = (n / count, count - 1 - n % count);
            let (b, h) = (head / heads, head % heads);
            cut(&segments[b][segment]).for_each(|rows| self.queries_at(b, h, &rows).add_to(sums));
        });
        let mut after = call.scanned(&all, call.shape.batch * heads, &call.no_sums(), Sums::add);
        for sums in &mut after {
            sums.truncate(count.max(1));
            sums.reverse();
        }
        after
    }
}

impl Queries<'_> {
    /// R ⟵ R + φ(Q)ᵀ·G / n
    fn add_to(mut self, sums: &mut Sums) {
        self.logs.rows.iter_mut().zip(&self.lse).for_each(|(row, lse)| *row -= lse);
        sums.take_in(&self.logs, self.g);
    }
}

/// Ĝ = e^(shift + unit)·G / n, and which queries are lost; their rows are 0.
fn scaled(chunk: &Chunk, g: &Array2<f32>, lse: &[f64]) -> (Array2<f32>, Vec<usize>) {
    let (mut scaled, mut lost) = (g.clone(), Vec::new());
    for (n, mut row) in scaled.rows_mut().into_iter().enumerate() {
        let factor = (chunk.phi_q.shifts[n] + chunk.unit - lse[n]).exp();
        if factor > 1.0 / f64::from(LOST) {
            row.fill(0.0);
            lost.push(n);
        } else if lse[n] < f64::INFINITY || lse[n].is_nan() {
            row.mapv_inplace(|x| x * factor as f32);
        }
    }
    (scaled, lost)
}

/// dK and dV of the keys of a segment, from all query heads that share them, one after the other.
struct KeyGradients<'a> {
    backward: &'a Backward<'a>,
    b: usize,
    kv: usize,
    all: &'a Range<usize>,
    /// dℓ of all keys: [keys, m]
    dlogs: Array2<f32>,
    dv: ArrayViewMut2<'a, f32>,
}

impl<'a> KeyGradients<'a> {
    fn new(
        backward: &'a Backward<'a>,
        (b, kv): (usize, usize),
        all: &'a Range<usize>,
        dv: ArrayViewMut2<'a, f32>,
    ) -> Self {
        KeyGradients { backward, b, kv, all, dlogs: Array2::zeros((all.len(), backward.call.width)), dv }
    }

    /// What head h gives, with R over the queries after the segment.
    fn add(&mut self, h: usize, segment: usize, mut sums: Sums) {
        let call = self.backward.call;
        if !call.is_causal() {
            cut(self.all).for_each(|keys| self.add_after(&call.keys_at(self.b, &keys), &sums));
            return;
        }
        for tokens::Chunk { rows, keys } in call.chunks(self.b, segment).iter().rev() {
            self.add_after(keys, &sums);
            let queries = self.backward.queries_at(self.b, h, rows);
            self.add_within(rows, keys, &queries);
            queries.add_to(&mut sums);
        }
    }

    /// What all queries in R give to these keys.
    fn add_after(&mut self, keys: &Keys, sums: &Sums) {
        let (call, values) = (self.backward.call, self.backward.call.shape.value_dim);
        let Some(levels) = &sums.levels else { return };
        let k = keys.of(self.backward.k.slice_move(s![self.b, self.kv, .., ..]));
        let phi = call.features.logs(call.isa, k.view()).times(levels);
        let v = phi.weigh(keys.with_ones(self.backward.v.slice(s![self.b, self.kv, .., ..])), 0.0);
        let dlogs = times(v.view(), sums.values.t()) * &phi.values;
        let dv = phi.weigh(times(phi.values.view(), sums.values.slice(s![.., ..values])), 0.0);
        self.write(keys, &dlogs, &dv);
    }

    /// What the queries of a chunk give to its keys.
    fn add_within(&mut self, rows: &Range<usize>, keys: &Keys, queries: &Queries) {
        let (backward, values) = (self.backward, self.backward.call.shape.value_dim);
        let call = backward.call;
        let k = keys.of(backward.k.slice_move(s![self.b, self.kv, .., ..]));
        let logs = (&queries.logs, &call.features.logs(call.isa, k.view()));
        let Some(chunk) = backward.chunk((self.b, self.kv), (rows, keys), logs, None) else { return };
        let (scaled, lost) = scaled(&chunk, &queries.g, &queries.lse);
        let (phi_q, phi_k) = (chunk.phi_q.values.view(), chunk.phi_k.values.view());
        let mut dlogs = Array2::zeros(phi_k.dim());
        let within = chunk.within(scaled.view(), chunk.weighed.view());
        add_seen(within.t(), phi_q, dlogs.view_mut());
        dlogs *= &phi_k;
        let mut dv = Array2::zeros((keys.len(), values));
        let within = chunk.within(phi_q, phi_k);
        add_seen(within.t(), scaled.slice(s![.., ..values]), dv.view_mut());
        dv = chunk.phi_k.weigh(dv, chunk.unit);
        for n in lost {
            let g = queries.g.row(n);
            chunk.each_share(n, queries.lse[n], |j, shares| {
                dlogs.row_mut(j).scaled_add(g.dot(&chunk.v.row(j)), &ArrayView1::from(shares));
                dv.row_mut(j).scaled_add(shares.iter().sum(), &g.slice(s![..values]));
            });
        }
        self.write(keys, &dlogs, &dv);
    }

    fn write(&mut self, keys: &Keys, dlogs: &Array2<f32>, dv: &Array2<f32>) {
        keys.add_to(self.dlogs.view_mut(), self.all.start, dlogs);
        keys.add_to(self.dv.view_mut(), self.all.start, dv);
    }

    /// dK from dℓ. Keys that no one can see have none.
    fn finish(self, mut dk: ArrayViewMut2<f32>) {
        let call = self.backward.call;
        for range in cut(self.all) {
            let keys = call.keys_at(self.b, &range);
            let k = keys.of(self.backward.k.slice(s![self.b, self.kv, .., ..]));
            let at: Vec<usize> = keys.positions().iter().map(|key| key - self.all.start).collect();
            let dlogs = self.dlogs.select(Axis(0), &at);
            let mut of_keys = Array2::zeros(k.dim());
            call.features.backward(k.view(), &dlogs, of_keys.view_mut());
            keys.add_to(dk.view_mut(), self.all.start, &of_keys);
        }
    }
}
