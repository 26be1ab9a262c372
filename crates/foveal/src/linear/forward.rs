//! Linear attention forward.
//!
//! Where every query sees every key, S is summed once and N = φ(Q)·S. A causal query sees a part of the keys that grows from
//! row to row: S holds all keys before a chunk, and within the chunk the products are written out, see `linear/chunk.rs`. With
//! L = 1 where key ≤ query, else 0, and the scaled features and values of `linear/levels.rs`:
//!
//! ```text
//! for each chunk
//!   N ⟵ φ̂(Q)·S + (L∘φ̂(Q)·φ̂(K)ᵀ)·V̂              [C, Dv + 1]
//!   S ⟵ S + φ̂(K)ᵀ·V̂                             [m, Dv + 1]
//!   out ⟵ N[..Dv] / N[Dv],  lse ⟵ ln N[Dv] + shift
//! ```

use ndarray::{ArrayView1, ArrayView2, ArrayView4, ArrayViewMut2, Axis, Zip, s};

use super::chunk::{Chunk, LOST, add_seen, last, times};
use super::levels::exp;
use super::sums::Sums;
use super::tokens::{cut, pieces};
use super::{Call, LinearState, tokens};
use crate::results::Forward;

/// One head of the inputs.
#[derive(Clone, Copy)]
struct Head<'a> {
    b: usize,
    q: ArrayView2<'a, f32>,
    k: ArrayView2<'a, f32>,
    v: ArrayView2<'a, f32>,
}

impl Call<'_> {
    pub fn forward(&self, q: ArrayView4<f32>, k: ArrayView4<f32>, v: ArrayView4<f32>) -> Forward {
        let mut fwd = self.nothing();
        let segments = self.query_segments();
        let before = if self.is_causal() && self.segments(self.shape.keys).len() <= 1 {
            vec![vec![self.no_sums()]; self.shape.batch * self.shape.kv_heads]
        } else {
            self.key_sums(k, v)
        };
        let outs = pieces(fwd.out.view_mut(), &segments);
        let lses = pieces(fwd.lse.view_mut().insert_axis(Axis(3)), &segments);
        self.each(outs.into_iter().zip(lses).collect(), |((head, segment, out), (_, _, lse))| {
            let (b, h) = (head / self.shape.heads, head % self.shape.heads);
            let sums = &before[b * self.shape.kv_heads + h / self.shape.group()];
            let (head, first) = (self.head(b, h, q, k, v), segments[b][segment].start);
            let mut target = Target { call: self, first, out, lse };
            if self.is_causal() {
                self.sweep(head, self.chunks(b, segment), &mut sums[segment].clone(), &mut target);
            } else if let Some(levels) = &sums[0].levels {
                for rows in cut(&segments[b][segment]) {
                    let phi = self.features.logs(self.isa, head.q.slice(s![rows.clone(), ..])).times(levels);
                    let numbers = times(phi.values.view(), sums[0].values.view());
                    for (n, i) in rows.enumerate() {
                        target.divide(i, numbers.row(n), phi.shifts[n]);
                    }
                }
            }
        });
        fwd
    }

    /// The new tokens of every head, starting from what has been summed up before.
    pub fn step(&self, q: ArrayView4<f32>, k: ArrayView4<f32>, v: ArrayView4<f32>, state: &mut LinearState) -> Forward {
        let (mut fwd, group, tokens) = (self.nothing(), self.shape.group(), self.shape.keys);
        let all = vec![std::iter::once(0..tokens).collect(); self.shape.batch];
        let outs = pieces(fwd.out.view_mut(), &all);
        let lses = pieces(fwd.lse.view_mut().insert_axis(Axis(3)), &all);
        let before = &state.sums;
        let mut after: Vec<_> = outs.into_iter().zip(lses).map(|outs| (outs, self.no_sums())).collect();
        self.each(after.iter_mut().collect(), |(((n, _, out), (_, _, lse)), sums)| {
            let (b, h) = (*n / self.shape.heads, *n % self.shape.heads);
            sums.clone_from(&before[b * self.shape.kv_heads + h / group]);
            let mut target = Target { call: self, first: 0, out: out.view_mut(), lse: lse.view_mut() };
            for segment in 0..self.segments(tokens).len() {
                self.sweep(self.head(b, h, q, k, v), self.chunks(b, segment), sums, &mut target);
            }
        });
        // The heads of a group have summed up the same keys.
        let sums = after.into_iter().map(|(_, sums)| sums).step_by(group.max(1)).collect();
        (state.sums, state.len) = (sums, state.len + tokens);
        fwd
    }

    /// For each sequence and key head: if causal, the sums over the keys before each segment, and last over all; else over all.
    pub fn key_sums(&self, k: ArrayView4<f32>, v: ArrayView4<f32>) -> Vec<Vec<Sums>> {
        let (segments, kv_heads) = (self.segments(self.shape.keys), self.shape.kv_heads);
        let mut all = vec![self.no_sums(); self.shape.batch * kv_heads * segments.len()];
        self.each(all.iter_mut().enumerate().collect(), |(n, sums): (usize, &mut Sums)| {
            let (head, segment) = (n / segments.len(), n % segments.len());
            let (b, kv) = (head / kv_heads, head % kv_heads);
            for keys in cut(&segments[segment]) {
                let keys = self.keys_at(b, &keys);
                let rows = keys.of(k.slice_move(s![b, kv, .., ..]));
                sums.take_in(&self.features.logs(self.isa, rows.view()), keys.with_ones(v.slice(s![b, kv, .., ..])));
            }
        });
        self.scanned(&all, self.shape.batch * kv_heads, &self.no_sums(), Sums::add)
    }

    fn head<'a>(
        &self,
        b: usize,
        h: usize,
        q: ArrayView4<'a, f32>,
        k: ArrayView4<'a, f32>,
        v: ArrayView4<'a, f32>,
    ) -> Head<'a> {
        let of = |array: ArrayView4<'a, f32>, h| array.index_axis_move(Axis(0), b).index_axis_move(Axis(0), h);
        let kv = h / self.shape.group();
        Head { b, q: of(q, h), k: of(k, kv), v: of(v, kv) }
    }

    pub fn no_sums(&self) -> Sums {
        Sums::zero(self.width, self.shape.value_dim + 1)
    }

    /// The causal queries of `chunks`; `sums` holds the keys before them, and afterwards theirs as well.
    fn sweep(&self, head: Head, chunks: Vec<tokens::Chunk>, sums: &mut Sums, target: &mut Target) {
        for tokens::Chunk { rows, keys } in &chunks {
            let k = keys.of(head.k);
            let logs = |x| self.features.logs(self.isa, x);
            let (q, k) = (logs(head.q.slice(s![rows.clone(), ..])), logs(k.view()));
            let (at, v) = ((head.b, rows, keys), keys.with_ones(head.v));
            let Some(chunk) = Chunk::new(self, at, (&q, &k), v, sums.levels.as_ref()) else { continue };
            let before = times(chunk.phi_q.values.view(), sums.values.view());
            let mut numbers = if chunk.unit == 0.0 { before.clone() } else { before.mapv(|x| x * exp(-chunk.unit)) };
            let within = chunk.within(chunk.phi_q.values.view(), chunk.phi_k.values.view());
            add_seen(within.view(), chunk.weighed.view(), numbers.view_mut());
            for (n, i) in rows.clone().enumerate() {
                if last(&numbers)[n] < LOST {
                    let before = sums.levels.as_ref().map(|_| before.row(n));
                    let (numbers, shift) = chunk.exactly(n, before);
                    target.divide(i, ArrayView1::from(&numbers), shift);
                } else {
                    target.divide(i, numbers.row(n), chunk.phi_q.shifts[n] + chunk.unit);
                }
            }
            chunk.add_to(sums);
        }
    }
}

/// Rows of the output, of which the first is row `first`.
struct Target<'a> {
    call: &'a Call<'a>,
    first: usize,
    out: ArrayViewMut2<'a, f32>,
    lse: ArrayViewMut2<'a, f64>,
}

impl Target<'_> {
    /// out ⟵ N[..Dv] / N[Dv], and the logarithm of N[Dv]·e^shift, of row i; nothing if that is 0.
    fn divide(&mut self, i: usize, numbers: ArrayView1<f32>, shift: f64) {
        let (at, values) = (i - self.first, numbers.len() - 1);
        let sum = numbers[values];
        if sum != 0.0 {
            let out = self.out.row_mut(at);
            Zip::from(out).and(numbers.slice(s![..values])).for_each(|out, number| *out = number / sum);
            self.lse[[at, 0]] = f64::from(sum).ln() + shift + self.call.features.log_scale();
        }
    }
}
