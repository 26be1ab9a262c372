//! The weights that linear attention amounts to: wᵢⱼ = φ(qᵢ)·φ(kⱼ) / Σ, from q, k and the logarithm of each row's sum.

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayView3, ArrayView4, Axis, s};

use super::Call;
use super::sums::{cut, times};
use crate::kernel::matrix::Rows;
use crate::kernel::rows::KEYS;
use crate::kernel::weights::{Pooled, Sink, bounds};
use crate::shape::expect;
use crate::weights::{ROWS, as_head, check_pixels};
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
        (height, width): (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, Error> {
        self.shape.check_rectangle(at, &rows, &cols)?;
        expect("lse", &self.shape.lse(), lse.shape())?;
        check_pixels((height, width), &rows, &cols)?;
        let mut out = Array2::zeros((height, width));
        let target = Rows::new(as_head(&mut out));
        // A task is some rows of pixels, as in `crate::weights::map`.
        let lines = (ROWS * height / rows.len()).clamp(1, height);
        let tasks = (0..height).step_by(lines).map(|first| first..(first + lines).min(height)).collect();
        self.each(tasks, |pixels: Range<usize>| {
            let row = |p: usize| rows.start + bounds(rows.len(), height, p);
            let range = row(pixels.start)..row(pixels.end);
            let mut lines = vec![0.0; pixels.len() * KEYS];
            let mut sink =
                Pooled { out: target, pool, pixels, rows: rows.clone(), cols: cols.clone(), size: (height, width) };
            for start in cols.clone().step_by(KEYS) {
                let keys = start..(start + KEYS).min(cols.end);
                for rows in cut(&range) {
                    let tile = self.rectangle(q, k, lse, at, &rows, &keys);
                    for (i, row) in rows.clone().zip(tile.rows()) {
                        let row = row.to_slice().expect("made in standard layout");
                        sink.row(i, start, start, row, &mut lines);
                    }
                }
                sink.end(keys, &mut lines);
            }
        });
        Ok(out)
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
