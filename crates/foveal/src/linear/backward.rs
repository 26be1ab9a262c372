//! Linear attention backward.
//!
//! Let gᵢ = (doutᵢ, −doutᵢ·outᵢ) / N[i, Dv], the gradient in row i of N = φ(Q)·S. Since nᵢ = Σⱼ (φ(qᵢ)·φ(kⱼ)) vⱼ⁺ over the keys
//! that i sees,
//!
//! $$ d\phi(q_i) = \sum_j (g_i \cdot v_j^+)\, \phi(k_j), \qquad
//!    d\phi(k_j) = \sum_i (g_i \cdot v_j^+)\, \phi(q_i), \qquad
//!    dv_j = \sum_i (\phi(q_i) \cdot \phi(k_j))\, g_i[..D_v] $$
//!
//! and all of them go through S = Σ φ(k)·v⁺ᵀ or R = Σ φ(q)·gᵀ. If causal, S holds the keys before a chunk and R the queries after
//! it; within the chunk the products are written out, with L = 1 where key ≤ query, else 0:
//!
//! ```text
//! forwards:   dφ(Q) ⟵ G·Sᵀ + (L∘G·V⁺ᵀ)·φ(K)        S ⟵ S + φ(K)ᵀ·V⁺
//! backwards:  dφ(K) ⟵ V⁺·Rᵀ + (L∘G·V⁺ᵀ)ᵀ·φ(Q)
//!             dV    ⟵ φ(K)·R + (L∘φ(Q)·φ(K)ᵀ)ᵀ·G     R ⟵ R + φ(Q)ᵀ·G
//! ```

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayView2, ArrayView4, ArrayViewMut2, s};

use super::Call;
use super::features::product;
use super::sums::{Sums, add_seen, cut, hide, pieces, times, with_ones};
use crate::attention::{Forward, Gradients};

struct Backward<'a> {
    call: &'a Call<'a>,
    q: ArrayView4<'a, f32>,
    k: ArrayView4<'a, f32>,
    v: ArrayView4<'a, f32>,
    dout: ArrayView4<'a, f32>,
    fwd: &'a Forward,
    /// For each sequence and key head, with one shift for all of them; see [`Call::key_sums`].
    before: Vec<Vec<Sums>>,
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
        let mut before = self.key_sums(k, v);
        for sums in &mut before {
            let shift = sums.last().map_or(0.0, |sums| sums.shift);
            sums.iter_mut().for_each(|sums| sums.shift_to(shift));
        }
        let backward = Backward { call: self, q, k, v, dout, fwd, before };
        let mut grads = Gradients {
            dq: Array4::zeros(q.dim()),
            dk: Array4::zeros(k.dim()),
            dv: Array4::zeros(v.dim()),
            dbias: None,
        };
        let segments = self.query_segments();
        self.each(pieces(grads.dq.view_mut(), &segments), |(head, segment, dq)| {
            backward.queries((head / self.shape.heads, head % self.shape.heads), segment, &segments[segment], dq);
        });
        let after = backward.query_sums();
        let segments = self.segments(self.shape.keys);
        let (dk, dv) = (pieces(grads.dk.view_mut(), &segments), pieces(grads.dv.view_mut(), &segments));
        self.each(dk.into_iter().zip(dv).collect(), |((head, segment, dk), (_, _, dv))| {
            let (b, kv) = (head / self.shape.kv_heads, head % self.shape.kv_heads);
            backward.keys((b, kv), segment, &segments[segment], &after, dk, dv);
        });
        grads
    }
}

impl Backward<'_> {
    fn sums(&self, b: usize, kv: usize) -> &[Sums] {
        &self.before[b * self.call.shape.kv_heads + kv]
    }

    /// φ̂(q) of the rows, and the gradient in their rows of N.
    fn of_rows(&self, b: usize, h: usize, rows: &Range<usize>) -> (Array2<f32>, Array2<f32>) {
        let call = self.call;
        let (phi, shifts) = call.features.of_queries(call.isa, self.q.slice(s![b, h, rows.clone(), ..]));
        let shift = self.sums(b, h / call.shape.group())[0].shift + call.features.log_scale();
        let out = self.fwd.out.slice(s![b, h, rows.clone(), ..]);
        let dout = self.dout.slice(s![b, h, rows.clone(), ..]);
        let mut g = with_ones(dout);
        for (i, mut row) in g.rows_mut().into_iter().enumerate() {
            let lse = self.fwd.lse[[b, h, rows.start + i]];
            row[call.shape.value_dim] = -out.row(i).dot(&dout.row(i));
            // A row that sees nothing has no gradient.
            let factor = if lse == f32::NEG_INFINITY { 0.0 } else { (shifts[i] + shift - lse).exp() };
            row.mapv_inplace(|x| x * factor);
        }
        (phi, g)
    }

    /// φ̂(k) and v⁺ of the keys.
    fn of_keys(&self, b: usize, kv: usize, keys: &Range<usize>) -> (Array2<f32>, Array2<f32>) {
        let (call, shift) = (self.call, self.sums(b, kv)[0].shift);
        let (phi, _) = call.features.of_keys(call.isa, self.k.slice(s![b, kv, keys.clone(), ..]), shift);
        (phi, with_ones(self.v.slice(s![b, kv, keys.clone(), ..])))
    }

    /// G·V⁺ᵀ or φ(Q)·φ(K)ᵀ, where the queries see the keys.
    fn within(&self, a: ArrayView2<f32>, b: ArrayView2<f32>, rows: &Range<usize>, keys: &Range<usize>) -> Array2<f32> {
        let mut products = times(a, b);
        hide(&mut products, rows, keys, self.call.offset());
        products
    }

    /// dQ of a segment.
    fn queries(&self, (b, h): (usize, usize), segment: usize, rows: &Range<usize>, mut dq: ArrayViewMut2<f32>) {
        let (call, kv) = (self.call, h / self.call.shape.group());
        let mut finish = |chunk: Range<usize>, phi: &Array2<f32>, dphi: Array2<f32>| {
            let at = chunk.start - rows.start..chunk.end - rows.start;
            call.features.backward(self.q.slice(s![b, h, chunk, ..]), phi, dphi, dq.slice_mut(s![at, ..]));
        };
        if !call.causal {
            for chunk in cut(rows) {
                let (phi, g) = self.of_rows(b, h, &chunk);
                finish(chunk, &phi, times(g.view(), self.sums(b, kv)[0].values.t()));
            }
            return;
        }
        let mut sums = self.sums(b, kv)[segment].values.clone();
        for positions in cut(&call.segments(call.shape.keys)[segment]) {
            let (keys, rows) = (call.keys_at(b, &positions), call.rows_at(&positions));
            let ((phi_q, g), (phi_k, v)) = (self.of_rows(b, h, &rows), self.of_keys(b, kv, &keys));
            let mut dphi = times(g.view(), sums.t());
            let within = self.within(g.view(), v.t(), &rows, &keys);
            add_seen(within.view(), phi_k.view(), dphi.view_mut());
            product(1.0, phi_k.t(), v.view(), 1.0, sums.view_mut());
            finish(rows, &phi_q, dphi);
        }
    }

    /// For each sequence and head: R over the queries after each segment if causal, else over all.
    fn query_sums(&self) -> Vec<Vec<Array2<f32>>> {
        let (call, segments, heads) = (self.call, self.call.query_segments(), self.call.shape.heads);
        let zero = Array2::<f32>::zeros((call.width, call.shape.value_dim + 1));
        // The last segment first.
        let mut all = vec![zero.clone(); call.shape.batch * heads * segments.len()];
        call.each(all.iter_mut().enumerate().collect(), |(n, sums): (usize, &mut Array2<f32>)| {
            let (head, segment) = (n / segments.len(), segments.len() - 1 - n % segments.len());
            for rows in cut(&segments[segment]) {
                let (phi, g) = self.of_rows(head / heads, head % heads, &rows);
                product(1.0, phi.t(), g.view(), 1.0, sums.view_mut());
            }
        });
        let mut after = call.scanned(&all, call.shape.batch * heads, &zero, |sum, more| *sum += more);
        for sums in &mut after {
            sums.truncate(segments.len().max(1));
            sums.reverse();
        }
        after
    }

    /// dK and dV of a segment: all query heads that share this key head, one after the other.
    fn keys(
        &self,
        (b, kv): (usize, usize),
        segment: usize,
        all: &Range<usize>,
        after: &[Vec<Array2<f32>>],
        mut dk: ArrayViewMut2<f32>,
        mut dv: ArrayViewMut2<f32>,
    ) {
        let (call, values) = (self.call, self.call.shape.value_dim);
        let at = |keys: &Range<usize>| keys.start - all.start..keys.end - all.start;
        let mut dphi_all = Array2::<f32>::zeros((all.len(), call.width));
        for h in kv * call.shape.group()..(kv + 1) * call.shape.group() {
            let mut sums = after[b * call.shape.heads + h][if call.causal { segment } else { 0 }].clone();
            for positions in cut(all).rev() {
                let keys = call.keys_at(b, &positions);
                let (phi_k, v) = self.of_keys(b, kv, &keys);
                let mut dphi = dphi_all.slice_mut(s![at(&keys), ..]);
                let mut dv = dv.slice_mut(s![at(&keys), ..]);
                product(1.0, v.view(), sums.t(), 1.0, dphi.view_mut());
                product(1.0, phi_k.view(), sums.slice(s![.., ..values]), 1.0, dv.view_mut());
                if call.causal {
                    let rows = call.rows_at(&positions);
                    let (phi_q, g) = self.of_rows(b, h, &rows);
                    let within = self.within(g.view(), v.t(), &rows, &keys);
                    add_seen(within.t(), phi_q.view(), dphi);
                    let within = self.within(phi_q.view(), phi_k.t(), &rows, &keys);
                    add_seen(within.t(), g.slice(s![.., ..values]), dv);
                    product(1.0, phi_q.t(), g.view(), 1.0, sums.view_mut());
                }
            }
        }
        for keys in cut(&call.keys_at(b, all)) {
            let (phi, _) = self.of_keys(b, kv, &keys);
            let dphi = dphi_all.slice(s![at(&keys), ..]).to_owned();
            call.features.backward(
                self.k.slice(s![b, kv, keys.clone(), ..]),
                &phi,
                dphi,
                dk.slice_mut(s![at(&keys), ..]),
            );
        }
    }
}
