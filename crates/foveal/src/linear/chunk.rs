//! The queries of one chunk against the keys of the same chunk, of which each sees another part: their products are written out.
//!
//! ```text
//! N = φ̂(Q)·S + (L∘φ̂(Q)·φ̂(K)ᵀ)·V̂        V̂ = e^shift·V⁺, L = 1 where key ≤ query, else 0
//! ```
//!
//! One set of levels serves the whole chunk: those of S, or if there is nothing in S yet, of the keys of the chunk. A query whose
//! own keys lie far below these, as do those before a much larger key, gets products that f32 cannot hold: its sum comes out as
//! next to nothing. Such a query is *lost*. What is known of the others is sound: products that are too small to be held
//! are too small to count. The lost ones are computed again, pair by pair and by logarithms.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};

use super::Call;
use super::features::product;
use super::levels::{Levels, Logs, Scaled};
use super::sums::{RISE, Sums};
use super::tokens::Keys;

/// Sums below this, e⁻⁴⁰, are lost. Features below e⁻⁶⁹ count as 0, and there are not e²⁹ / 10⁷ products in a sum: what is missing
/// in larger ones is less than their last digit.
pub(super) const LOST: f32 = 4e-18;

/// Queries and keys of a chunk, by the same levels.
pub(super) struct Chunk<'a, 'q, 'k> {
    pub call: &'a Call<'a>,
    pub b: usize,
    pub rows: &'a Range<usize>,
    pub keys: &'a Keys,
    pub q: &'a Logs<'q>,
    pub k: &'a Logs<'k>,
    levels: Levels,
    pub phi_q: Scaled,
    pub phi_k: Scaled,
    /// V⁺ of the keys.
    pub v: Array2<f32>,
    /// e^(shift − unit)·V⁺
    pub weighed: Array2<f32>,
    /// 0, or what keeps the largest of these from overflowing.
    pub unit: f64,
}

impl<'a, 'q, 'k> Chunk<'a, 'q, 'k> {
    /// None if there are neither levels nor keys to take them from.
    pub fn new(
        call: &'a Call<'a>,
        (b, rows, keys): (usize, &'a Range<usize>, &'a Keys),
        (q, k): (&'a Logs<'q>, &'a Logs<'k>),
        v: Array2<f32>,
        levels: Option<&Levels>,
    ) -> Option<Self> {
        let levels = levels.cloned().or_else(|| k.levels())?;
        let (phi_q, phi_k) = (q.times(&levels), k.over(&levels));
        let top = phi_k.top();
        let unit = if top > RISE { top } else { 0.0 };
        let weighed = phi_k.weigh(v.clone(), unit);
        Some(Chunk { call, b, rows, keys, q, k, levels, phi_q, phi_k, v, weighed, unit })
    }

    /// L∘A·Bᵀ
    pub fn within(&self, a: ArrayView2<f32>, b: ArrayView2<f32>) -> Array2<f32> {
        let mut products = times(a, b.t());
        self.call.hide(&mut products, self.b, self.rows, self.keys);
        products
    }

    /// Adds the keys to the sum whose levels these are, or to an empty one.
    pub fn add_to(self, sums: &mut Sums) {
        sums.levels.get_or_insert(self.levels);
        if self.unit == 0.0 {
            product(1.0, self.phi_k.values.t(), self.weighed.view(), 1.0, sums.values.view_mut());
        } else {
            sums.include(self.k, &self.phi_k, self.v);
        }
    }

    /// How many keys of the chunk its query n sees.
    pub fn seen(&self, n: usize) -> usize {
        self.call.seen(self.b, self.rows.start + n, self.keys)
    }

    /// The numbers of query n, divided by e^(the second): Σⱼ φ(q)·φ(kⱼ)·vⱼ⁺ over the keys of the chunk, one by one, and those
    /// before, of which `before` holds φ̂(q)·S.
    pub fn exactly(&self, n: usize, before: Option<ArrayView1<f32>>) -> (Vec<f32>, f64) {
        let columns = self.v.dim().1;
        let mut parts: Vec<(f64, ArrayView1<f32>, f64)> =
            (0..self.seen(n)).map(|j| (self.q.ln_product(n, self.k, j), self.v.row(j), 1.0)).collect();
        if let Some(before) = before {
            let sum = f64::from(before[columns - 1]);
            parts.push((sum.ln() + self.phi_q.shifts[n], before, 1.0 / sum));
        }
        let top = parts.iter().fold(f64::NEG_INFINITY, |top, (log, ..)| top.max(*log));
        let mut numbers = vec![0.0; columns];
        for (log, values, factor) in parts.iter().filter(|(log, ..)| *log > f64::NEG_INFINITY) {
            let weight = (log - top).exp() * factor;
            numbers.iter_mut().zip(values).for_each(|(x, v)| *x += weight * f64::from(*v));
        }
        (numbers.into_iter().map(|x| x as f32).collect(), top)
    }

    /// Calls `give` with each key j that query n sees, and φ(q)·φ(k) / e^lse of each feature.
    pub fn each_share(&self, n: usize, lse: f64, mut give: impl FnMut(usize, &[f32])) {
        for j in 0..self.seen(n) {
            let shares: Vec<f32> = self.q.pair(n, self.k, j).map(|log| (log - lse).exp() as f32).collect();
            give(j, &shares);
        }
    }
}

/// a·b
pub(super) fn times(a: ArrayView2<f32>, b: ArrayView2<f32>) -> Array2<f32> {
    let mut c = Array2::zeros((a.dim().0, b.dim().1));
    product(1.0, a, b, 0.0, c.view_mut());
    c
}

/// c ⟵ c + a·b, where a 0 in `a` means that nothing is to be added, not even 0·NaN.
pub(super) fn add_seen(a: ArrayView2<f32>, b: ArrayView2<f32>, mut c: ArrayViewMut2<f32>) {
    if b.iter().fold(0.0, |sum, x| sum + x * 0.0) == 0.0 {
        return product(1.0, a, b, 1.0, c);
    }
    for ((i, k), x) in a.indexed_iter().filter(|(_, x)| **x != 0.0) {
        c.row_mut(i).scaled_add(*x, &b.row(k));
    }
}

/// The rows of `values` times a factor each.
pub(super) fn scale_rows(values: &mut Array2<f32>, factors: impl IntoIterator<Item = f32>) {
    for (mut row, factor) in values.rows_mut().into_iter().zip(factors) {
        row.mapv_inplace(|x| x * factor);
    }
}

/// The last column: the sums, where the others are sums times values.
pub(super) fn last(values: &Array2<f32>) -> ArrayView1<'_, f32> {
    values.slice(s![.., -1])
}
