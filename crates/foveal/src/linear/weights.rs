//! The weights that linear attention amounts to: wᵢⱼ = φ(qᵢ)·φ(kⱼ) / Σ, from q, k and the logarithm of each row's sum.

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayView3, ArrayView4, Axis, s};

use super::Call;
use super::sums::{cut, times};
use crate::shape::expect;
use crate::weights::map_of_tiles;
use crate::{Error, Pool};

impl Call<'_> {
    pub fn weights(&self, q: ArrayView4<f32>, k: ArrayView4<f32>) -> Result<Array4<f32>, Error> {
        let shape = self.shape;
        let nothing = Array4::zeros((shape.batch, shape.kv_heads, shape.keys, 0));
        let lse = self.forward(q, k, nothing.view()).lse;
        let mut out = Array4::zeros((shape.batch, shape.heads, shape.queries, shape.keys));
        for (n, mut head) in out.outer_iter_mut().enumerate() {
            for (h, mut head) in head.outer_iter_mut().enumerate() {
                head.assign(&self.tile(q, k, lse.view(), (n, h), 0..shape.queries, 0..shape.keys)?);
            }
        }
        Ok(out)
    }

    pub fn tile(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        lse: ArrayView3<f32>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, Error> {
        self.shape.check_rectangle(at, &rows, &cols)?;
        expect("lse", &self.shape.lse(), lse.shape())?;
        let mut out = Array2::zeros((rows.len(), cols.len()));
        let tasks = cut(&rows).zip(out.axis_chunks_iter_mut(Axis(0), cut(&rows).next().map_or(1, |first| first.len())));
        self.each(tasks.collect(), |(rows, mut out)| {
            for keys in cut(&cols) {
                let tile = self.rectangle(q, k, lse, at, &rows, &keys);
                out.slice_mut(s![.., keys.start - cols.start..keys.end - cols.start]).assign(&tile);
            }
        });
        Ok(out)
    }

    #[expect(clippy::too_many_arguments, reason = "as LinearAttention::map")]
    pub fn map(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        lse: ArrayView3<f32>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, Error> {
        self.shape.check_rectangle(at, &rows, &cols)?;
        expect("lse", &self.shape.lse(), lse.shape())?;
        let one = self.threads.count((2 * rows.len() * cols.len() * self.width) as f64) == 1;
        map_of_tiles(&rows, &cols, pixels, pool, one, |rows, cols| self.rectangle(q, k, lse, at, rows, cols))
    }

    /// A small rectangle of the weights.
    fn rectangle(
        &self,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        lse: ArrayView3<f32>,
        (b, h): (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Array2<f32> {
        let mut tile = Array2::zeros((rows.len(), cols.len()));
        let keys = self.keys_at(b, cols);
        let (phi_q, shifts) = self.features.of_queries(self.isa, q.slice(s![b, h, rows.clone(), ..]));
        let k = k.slice(s![b, h / self.shape.group(), keys.clone(), ..]);
        let (phi_k, shift) = self.features.of_keys(self.isa, k, f32::NEG_INFINITY);
        tile.slice_mut(s![.., ..keys.len()]).assign(&times(phi_q.view(), phi_k.t()));
        for (n, (i, mut row)) in rows.clone().zip(tile.rows_mut()).enumerate() {
            let lse = lse[[b, h, i]];
            let factor = match lse == f32::NEG_INFINITY {
                true => 0.0,
                false => (shifts[n] + shift + self.features.log_scale() - lse).exp(),
            };
            let seen =
                if self.causal { (i as isize + self.offset() + 1 - cols.start as isize).max(0) } else { isize::MAX };
            let seen = (seen as usize).min(keys.len());
            row.slice_mut(s![..seen]).mapv_inplace(|x| x * factor);
            row.slice_mut(s![seen..]).fill(0.0);
        }
        tile
    }
}
