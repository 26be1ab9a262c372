//! Linear attention forward.
//!
//! Where every query sees every key, S is summed once and N = φ(Q)·S. A causal query sees a part of the keys that grows from
//! row to row: S holds all keys before a chunk, and within the chunk the products are written out. With L = 1 where
//! key ≤ query, else 0:
//!
//! ```text
//! for each chunk
//!   S ⟵ e^(shift − new shift)·S                  where a key of the chunk has a larger exponent than all before
//!   N ⟵ φ̂(Q)·S + (L∘φ̂(Q)·φ̂(K)ᵀ)·V⁺              [C, Dv + 1]
//!   S ⟵ S + φ̂(K)ᵀ·V⁺                             [m, Dv + 1]
//!   out ⟵ N[..Dv] / N[Dv]
//! ```

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayView4, ArrayViewMut2, Axis, Zip, s};

use super::features::product;
use super::sums::{Sums, add_seen, cut, hide, pieces, times, with_ones};
use super::{Call, LinearState};
use crate::attention::Forward;

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
        let before = if self.causal && segments.len() <= 1 {
            vec![vec![self.no_sums()]; self.shape.batch * self.shape.kv_heads]
        } else {
            self.key_sums(k, v)
        };
        let outs = pieces(fwd.out.view_mut(), &segments);
        let lses = pieces(fwd.lse.view_mut().insert_axis(Axis(3)), &segments);
        self.each(outs.into_iter().zip(lses).collect(), |((head, segment, mut out), (_, _, mut lse))| {
            let (b, h) = (head / self.shape.heads, head % self.shape.heads);
            let sums = &before[b * self.shape.kv_heads + h / self.shape.group()];
            let (head, rows) = (self.head(b, h, q, k, v), segments[segment].clone());
            if self.causal {
                let positions = self.segments(self.shape.keys)[segment].clone();
                self.sweep(head, positions, rows.start, &mut sums[segment].clone(), out, lse);
                return;
            }
            for chunk in cut(&rows) {
                let (phi, shifts) = self.features.of_queries(self.isa, head.q.slice(s![chunk.clone(), ..]));
                let numbers = times(phi.view(), sums[0].values.view());
                let at = chunk.start - rows.start..chunk.end - rows.start;
                let (out, lse) = (out.slice_mut(s![at.clone(), ..]), lse.slice_mut(s![at, ..]));
                self.divide(&numbers, &shifts, sums[0].shift, out, lse);
            }
        });
        fwd
    }

    /// The new tokens of every head, starting from what has been summed up before.
    pub fn step(&self, q: ArrayView4<f32>, k: ArrayView4<f32>, v: ArrayView4<f32>, state: &mut LinearState) -> Forward {
        let (mut fwd, group, tokens) = (self.nothing(), self.shape.group(), self.shape.keys);
        let all = 0..tokens;
        let outs = pieces(fwd.out.view_mut(), std::slice::from_ref(&all));
        let lses = pieces(fwd.lse.view_mut().insert_axis(Axis(3)), std::slice::from_ref(&all));
        let before = &state.sums;
        let mut after: Vec<_> = outs.into_iter().zip(lses).map(|outs| (outs, self.no_sums())).collect();
        self.each(after.iter_mut().collect(), |(((n, _, out), (_, _, lse)), sums)| {
            let (b, h) = (*n / self.shape.heads, *n % self.shape.heads);
            sums.clone_from(&before[b * self.shape.kv_heads + h / group]);
            self.sweep(self.head(b, h, q, k, v), 0..tokens, 0, sums, out.view_mut(), lse.view_mut());
        });
        // The heads of a group have summed up the same keys.
        let sums = after.into_iter().map(|(_, sums)| sums).step_by(group.max(1)).collect();
        (state.sums, state.len) = (sums, state.len + tokens);
        fwd
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

    fn no_sums(&self) -> Sums {
        Sums::zero(self.width, self.shape.value_dim + 1)
    }

    /// The causal queries at `positions`, the first of which is row `first`; `sums` holds the keys before them, and
    /// afterwards theirs as well.
    fn sweep(
        &self,
        head: Head,
        positions: Range<usize>,
        first: usize,
        sums: &mut Sums,
        mut out: ArrayViewMut2<f32>,
        mut lse: ArrayViewMut2<f32>,
    ) {
        for positions in cut(&positions) {
            let (keys, rows) = (self.keys_at(head.b, &positions), self.rows_at(&positions));
            let (phi_k, shift) = self.features.of_keys(self.isa, head.k.slice(s![keys.clone(), ..]), sums.shift);
            sums.shift_to(shift);
            let v = with_ones(head.v.slice(s![keys.clone(), ..]));
            let (phi_q, shifts) = self.features.of_queries(self.isa, head.q.slice(s![rows.clone(), ..]));
            let mut numbers = times(phi_q.view(), sums.values.view());
            let mut within = times(phi_q.view(), phi_k.t());
            hide(&mut within, &rows, &keys, self.offset());
            add_seen(within.view(), v.view(), numbers.view_mut());
            product(1.0, phi_k.t(), v.view(), 1.0, sums.values.view_mut());
            let at = rows.start - first..rows.end - first;
            let (out, lse) = (out.slice_mut(s![at.clone(), ..]), lse.slice_mut(s![at, ..]));
            self.divide(&numbers, &shifts, shift, out, lse);
        }
    }

    /// out ⟵ N[..Dv] / N[Dv], and the logarithm of N[Dv], where it is not 0.
    fn divide(
        &self,
        numbers: &Array2<f32>,
        shifts: &[f32],
        shift: f32,
        mut out: ArrayViewMut2<f32>,
        mut lse: ArrayViewMut2<f32>,
    ) {
        let last = numbers.dim().1 - 1;
        for (i, row) in numbers.outer_iter().enumerate() {
            let sum = row[last];
            if sum != 0.0 {
                Zip::from(out.row_mut(i)).and(row.slice(s![..last])).for_each(|out, number| *out = number / sum);
                lse[[i, 0]] = sum.ln() + shifts[i] + shift + self.features.log_scale();
            }
        }
    }
}
