//! Root mean square normalisation (Zhang 2019), row by row: a layer norm without mean and shift.
//!
//! $$ y = \hat x \odot \gamma, \qquad \hat x = x\, r, \qquad r = \frac{1}{\sqrt{\overline{x^2} + \varepsilon}} $$
//! $$ dx = r \left( g - \hat x\, \overline{g \odot \hat x} \right) \text{ with } g = dy \odot \gamma, \qquad
//!    d\gamma = \textstyle\sum_n dy_n \odot \hat x_n $$
//!
//! ```
//! use foveal_models::layer::RmsNorm;
//! use ndarray::array;
//!
//! let y = RmsNorm::new(4, 1e-5).infer(&array![[1., 1., 7., 7.]])?;
//! assert!((y[[0, 0]] - 0.2).abs() < 1e-4 && (y[[0, 3]] - 1.4).abs() < 1e-4);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use ndarray::{ArcArray2, Array1, Array2, ArrayView2, CowArray, Ix2};
use rayon::prelude::*;

use super::parallel::{contiguous, standard, values, values_mut};
use super::shape::expect;
use super::{parallel, parameters, vector};
use crate::Error;

/// Rows with mean square 1, then scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNorm {
    /// γ: \[D\]
    pub weight: Array1<f32>,
    /// ε, what is added to the mean square.
    pub epsilon: f32,
}

parameters!(RmsNorm { weight: "weight" });

/// What [`RmsNorm::backward`] needs.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The input: [N, D].
    pub x: ArcArray2<f32>,
    /// r of every row: \[N\].
    pub scale: Array1<f32>,
}

impl RmsNorm {
    /// γ = 1, for rows of width `dim`.
    pub fn new(dim: usize, epsilon: f32) -> Self {
        RmsNorm { weight: Array1::ones(dim), epsilon }
    }

    /// y: [N, D] for x: [N, D].
    ///
    /// # Errors
    /// If x has another width than the weight.
    pub fn infer<'a>(&self, x: impl Into<ArrayView2<'a, f32>>) -> Result<Array2<f32>, Error> {
        Ok(self.run(x.into())?.0)
    }

    /// The same, with what [`backward`](RmsNorm::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](RmsNorm::infer).
    pub fn forward(&self, x: &ArcArray2<f32>) -> Result<(Array2<f32>, Saved), Error> {
        let (y, scale) = self.run(x.view())?;
        Ok((y, Saved { x: x.clone(), scale }))
    }

    fn run(&self, x: ArrayView2<f32>) -> Result<(Array2<f32>, Array1<f32>), Error> {
        let dim = self.weight.len();
        expect("the input of the RMS norm", &[x.nrows(), dim], x.shape())?;
        let (x, weight) = (standard(x), standard(&self.weight));
        let weight = values(&weight);
        let (mut scales, block) = (Array1::zeros(x.nrows()), parallel::block(dim));
        let blocks = values(&x).par_chunks((block * dim).max(1)).zip(values_mut(&mut scales).par_chunks_mut(block));
        let y = parallel::write_new(x.dim(), block * dim, blocks, |(x, scales), y| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    for (x, scale) in x.chunks_exact(dim).zip(scales) {
                        let r = 1.0 / (vector::sum(x, |x| x * x) / dim as f32 + self.epsilon).sqrt();
                        *scale = r;
                        y.write(x.iter().zip(weight).map(|(x, weight)| x * r * weight));
                    }
                },
            );
        });
        Ok((y, scales))
    }

    /// dx: [N, D], in the place of dy where that is given away.
    ///
    /// # Errors
    /// If dy is not shaped like the input.
    pub fn backward<'d>(
        &self,
        saved: &Saved,
        dy: impl Into<CowArray<'d, f32, Ix2>>,
        grad: &mut RmsNorm,
    ) -> Result<Array2<f32>, Error> {
        let (x, mut dx, dim) = (&saved.x, dy.into().into_owned(), self.weight.len());
        expect("the gradient of the RMS norm's output", &[x.nrows(), dim], dx.shape())?;
        let (x, weight) = (standard(x), standard(&self.weight));
        let weight = values(&weight);
        let block = parallel::sum_block(x.nrows(), dim);
        // dγ of every block of rows.
        let mut sums = Array2::<f32>::zeros((x.nrows().div_ceil(block), dim));
        let blocks = (values(&x).par_chunks(block * dim))
            .zip(contiguous(&mut dx).par_chunks_mut(block * dim))
            .zip(values(&saved.scale).par_chunks(block))
            .zip(values_mut(&mut sums).par_chunks_mut(dim));
        parallel::for_each(3 * x.len(), blocks, |(((x, dx), scales), dweight)| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    let rows = x.chunks_exact(dim).zip(dx.chunks_exact_mut(dim));
                    for ((x, dx), &scale) in rows.zip(scales) {
                        // dx is dy, then g until the mean is known.
                        for (((dx, x), weight), dweight) in dx.iter_mut().zip(x).zip(weight).zip(dweight.iter_mut()) {
                            *dweight += *dx * x * scale;
                            *dx *= weight;
                        }
                        let [sum] = vector::sums(dx, x, |g, x| [g * x * scale]);
                        let mean = sum / dim as f32;
                        for (dx, x) in dx.iter_mut().zip(x) {
                            *dx = scale * (*dx - x * scale * mean);
                        }
                    }
                },
            );
        });
        for sums in sums.outer_iter() {
            grad.weight += &sums;
        }
        Ok(dx)
    }
}
