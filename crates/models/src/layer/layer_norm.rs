//! Layer normalisation (Ba 2016), row by row.
//!
//! $$ y = \hat x \odot \gamma + \beta, \qquad \hat x = (x - \mu)\, r, \qquad
//!    \mu = \overline{x}, \qquad r = \frac{1}{\sqrt{\overline{(x - \mu)^2} + \varepsilon}} $$
//! $$ dx = r \left( g - \overline{g} - \hat x\, \overline{g \odot \hat x} \right) \text{ with } g = dy \odot \gamma, \qquad
//!    d\gamma = \textstyle\sum_n dy_n \odot \hat x_n, \qquad d\beta = \sum_n dy_n $$
//!
//! ```
//! use foveal_models::layer::LayerNorm;
//! use ndarray::array;
//!
//! let y = LayerNorm::new(4, 1e-5).infer(&array![[1., 2., 3., 4.]])?;
//! assert!((y[[0, 0]] + 1.3416).abs() < 1e-4 && (y[[0, 3]] - 1.3416).abs() < 1e-4);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use ndarray::{ArcArray2, Array1, Array2, ArrayView2, Axis, CowArray, Ix2};
use rayon::prelude::*;

use super::parallel::{contiguous, standard, values, values_mut};
use super::shape::expect;
use super::{parallel, parameters, vector};
use crate::Error;

/// Rows with mean 0 and variance 1, then scaled and shifted.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    /// γ: \[D\]
    pub weight: Array1<f32>,
    /// β: \[D\]
    pub bias: Option<Array1<f32>>,
    /// ε, what is added to the variance.
    pub epsilon: f32,
}

parameters!(LayerNorm { weight: "weight", bias: "bias" });

/// What [`LayerNorm::backward`] needs.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The input: [N, D].
    pub x: ArcArray2<f32>,
    /// Mean μ and inverse deviation r of every row: [N, 2].
    pub statistics: Array2<f32>,
}

impl LayerNorm {
    /// γ = 1 and β = 0, for rows of width `dim`.
    pub fn new(dim: usize, epsilon: f32) -> Self {
        LayerNorm { weight: Array1::ones(dim), bias: Some(Array1::zeros(dim)), epsilon }
    }

    /// y: [N, D] for x: [N, D].
    ///
    /// # Errors
    /// If x has another width than the weight.
    pub fn infer<'a>(&self, x: impl Into<ArrayView2<'a, f32>>) -> Result<Array2<f32>, Error> {
        Ok(self.run(x.into())?.0)
    }

    /// The same, with what [`backward`](LayerNorm::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](LayerNorm::infer).
    pub fn forward(&self, x: &ArcArray2<f32>) -> Result<(Array2<f32>, Saved), Error> {
        let (y, statistics) = self.run(x.view())?;
        Ok((y, Saved { x: x.clone(), statistics }))
    }

    fn run(&self, x: ArrayView2<f32>) -> Result<(Array2<f32>, Array2<f32>), Error> {
        let dim = self.weight.len();
        expect("the input of the layer norm", &[x.nrows(), dim], x.shape())?;
        let bias = self.bias.clone().unwrap_or_else(|| Array1::zeros(dim));
        let (x, weight, bias) = (standard(x), standard(&self.weight), standard(&bias));
        let (weight, bias) = (values(&weight), values(&bias));
        let (mut statistics, block) = (Array2::zeros((x.nrows(), 2)), parallel::block(dim));
        let blocks =
            (values(&x).par_chunks((block * dim).max(1))).zip(values_mut(&mut statistics).par_chunks_mut(block * 2));
        let y = parallel::write_new(x.dim(), block * dim, blocks, |(x, statistics), y| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    for (x, statistics) in x.chunks_exact(dim).zip(statistics.as_chunks_mut().0) {
                        let mean = vector::sum(x, |x| x) / dim as f32;
                        let variance = vector::sum(x, |x| (x - mean) * (x - mean)) / dim as f32;
                        let scale = 1.0 / (variance + self.epsilon).sqrt();
                        *statistics = [mean, scale];
                        y.write(
                            x.iter()
                                .zip(weight)
                                .zip(bias)
                                .map(|((x, weight), bias)| (x - mean) * scale * weight + bias),
                        );
                    }
                },
            );
        });
        Ok((y, statistics))
    }

    /// dx: [N, D], in the place of dy where that is given away.
    ///
    /// # Errors
    /// If dy is not shaped like the input.
    pub fn backward<'d>(
        &self,
        saved: &Saved,
        dy: impl Into<CowArray<'d, f32, Ix2>>,
        grad: &mut LayerNorm,
    ) -> Result<Array2<f32>, Error> {
        let (x, mut dx, dim) = (&saved.x, dy.into().into_owned(), self.weight.len());
        expect("the gradient of the layer norm's output", &[x.nrows(), dim], dx.shape())?;
        let (x, weight) = (standard(x), standard(&self.weight));
        let weight = values(&weight);
        let block = parallel::sum_block(x.nrows(), dim);
        // dγ and dβ of every block of rows.
        let mut sums = Array2::<f32>::zeros((x.nrows().div_ceil(block), 2 * dim));
        let blocks = (values(&x).par_chunks(block * dim))
            .zip(contiguous(&mut dx).par_chunks_mut(block * dim))
            .zip(values(&saved.statistics).par_chunks(block * 2))
            .zip(values_mut(&mut sums).par_chunks_mut(2 * dim));
        parallel::for_each(3 * x.len(), blocks, |(((x, dx), statistics), sums)| {
            let (dweight, dbias) = sums.split_at_mut(dim);
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    let rows = x.chunks_exact(dim).zip(dx.chunks_exact_mut(dim));
                    for ((x, dx), &[mean, scale]) in rows.zip(statistics.as_chunks().0) {
                        // dx is dy, then g until both means are known.
                        let columns = dx.iter_mut().zip(x).zip(weight).zip(dweight.iter_mut()).zip(dbias.iter_mut());
                        for ((((dx, x), weight), dweight), dbias) in columns {
                            *dweight += *dx * (x - mean) * scale;
                            *dbias += *dx;
                            *dx *= weight;
                        }
                        let [sum_g, sum_gx] = vector::sums(dx, x, |g, x| [g, g * (x - mean) * scale]);
                        let (mean_g, mean_gx) = (sum_g / dim as f32, sum_gx / dim as f32);
                        for (dx, x) in dx.iter_mut().zip(x) {
                            *dx = scale * (*dx - mean_g - (x - mean) * scale * mean_gx);
                        }
                    }
                },
            );
        });
        for sums in sums.outer_iter() {
            let (dweight, dbias) = sums.split_at(Axis(0), dim);
            grad.weight += &dweight;
            grad.bias.iter_mut().for_each(|bias| *bias += &dbias);
        }
        Ok(dx)
    }
}
