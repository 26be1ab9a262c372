//! The weights that linear attention amounts to: wᵢⱼ = φ(qᵢ)·φ(kⱼ) / Σ, from q, k and the logarithm of each row's sum.

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayView1, ArrayView3, ArrayView4, Axis, s};

use super::Call;
use super::chunk::{LOST, times};
use super::levels::exp;
use super::tokens::cut;

/// The exponent from which on a product that is lost to f32 may stand for a weight of more than 10⁻¹⁰.
const COUNTS: f64 = 17.0;

impl Call<'_> {
    pub fn weights(&self, q: ArrayView4<f32>, k: ArrayView4<f32>) -> Array4<f32> {
        let shape = self.shape;
        let nothing = Array4::zeros((shape.batch, shape.kv_heads, shape.keys, 0));
        let lse = self.forward(q, k, nothing.view()).lse;
        let mut out = Array4::zeros((shape.batch, shape.heads, shape.queries, shape.keys));
        for (n, mut head) in out.outer_iter_mut().enumerate() {
            for (h, mut head) in head.outer_iter_mut().enumerate() {
                head.assign(&self.tile(q, k, lse.view(), (n, h), &(0..shape.queries), &(0..shape.keys)));
            }
        }
        out
    }

    pub fn tile(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        lse: ArrayView3<f64>,
        at: (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Array2<f32> {
        let mut out = Array2::zeros((rows.len(), cols.len()));
        // One after the other: whoever asks for many tiles shares these out.
        let tasks = cut(rows).zip(out.axis_chunks_iter_mut(Axis(0), cut(rows).next().map_or(1, |first| first.len())));
        for (rows, mut out) in tasks {
            for keys in cut(cols) {
                let tile = self.rectangle(q, k, lse, at, &rows, &keys);
                out.slice_mut(s![.., keys.start - cols.start..keys.end - cols.start]).assign(&tile);
            }
        }
        out
    }

    /// A small rectangle of the weights.
    fn rectangle(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        lse: ArrayView3<f64>,
        (b, h): (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Array2<f32> {
        let mut tile = Array2::zeros((rows.len(), cols.len()));
        let keys = self.keys_at(b, cols);
        let k = keys.of(k.slice_move(s![b, h / self.shape.group(), .., ..]));
        let q = self.features.logs(self.isa, q.slice_move(s![b, h, rows.clone(), ..]));
        let k = self.features.logs(self.isa, k.view());
        let Some(levels) = k.levels() else { return tile };
        let (phi_q, phi_k) = (q.times(&levels), k.over(&levels));
        let mut products = times(phi_q.values.view(), phi_k.values.t());
        let factors: Vec<f32> = phi_k.shifts.iter().map(|shift| exp(*shift)).collect();
        for (n, i) in rows.clone().enumerate() {
            let lse = lse[[b, h, i]] - self.features.log_scale();
            if lse == f64::NEG_INFINITY {
                continue;
            }
            let (shift, seen) = (phi_q.shifts[n] - lse, self.seen(b, i, &keys));
            let mut weights = products.row_mut(n);
            let weights = &mut weights.as_slice_mut().expect("made in standard layout")[..seen];
            if shift <= COUNTS {
                let factor = exp(shift);
                weights.iter_mut().zip(&factors).for_each(|(weight, of_key)| *weight *= factor * of_key);
            } else {
                for (m, weight) in weights.iter_mut().enumerate() {
                    let shift = shift + phi_k.shifts[m];
                    let is_lost = *weight < LOST && shift > COUNTS;
                    *weight = if is_lost { exp(q.ln_product(n, &k, m) - lse) } else { *weight * exp(shift) };
                }
            }
            // An lse that is not this row's must not make more than a weight of it.
            weights.iter_mut().for_each(|weight| *weight = if *weight > 1.0 { 1.0 } else { *weight });
            match keys.range().filter(|range| !range.is_empty()) {
                Some(range) => {
                    let row = s![n, range.start - cols.start..range.start - cols.start + seen];
                    tile.slice_mut(row).assign(&ArrayView1::from(&*weights));
                }
                None => {
                    let positions = keys.positions().iter().zip(weights);
                    positions.for_each(|(key, weight)| tile[[n, key - cols.start]] = *weight);
                }
            }
        }
        tile
    }
}
