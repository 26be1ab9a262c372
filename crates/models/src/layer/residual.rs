//! The residual connection around a layer, with its norm.
//!
//! $$ \text{norm first: } y = x + \mathrm{drop}(f(\mathrm{norm}(x))) \qquad\qquad
//!    \text{norm last: } y = \mathrm{norm}(x + \mathrm{drop}(f(x))) $$
//!
//! The first Transformer and BERT have the norm last, nearly all later models first. The gradient of the sum goes both ways:
//! past f as it is, and through f.
//!
//! ```
//! use foveal_models::layer::{Activation, LayerNorm, Mlp, NormOrder, Random, Residual};
//! use ndarray::Array2;
//!
//! let mlp = Mlp::new(8, 32, Activation::Relu, &mut Random::new(1));
//! let residual = Residual { norm: LayerNorm::new(8, 1e-5), layer: mlp, order: NormOrder::First };
//! let y = residual.infer(Array2::ones((3, 8)), |mlp, x| mlp.infer(x))?;
//! assert_eq!(y.dim(), (3, 8));
//! # Ok::<(), foveal_models::Error>(())
//! ```

use ndarray::{ArcArray2, Array2, ArrayView2, CowArray, Ix2, s};
use rayon::prelude::*;

use super::parallel::{self, BLOCK, contiguous, standard, values};
use super::shape::expect;
use super::{Dropout, Layer, Param, ParamMut, Parameters, dropout, parameters::join};
use crate::Error;

/// Where the norm stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormOrder {
    /// x + f(norm(x)): GPT-2, Llama, ViT.
    First,
    /// norm(x + f(x)): the first Transformer, BERT.
    Last,
}

/// A layer f with a way around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual<N, L> {
    /// The norm.
    pub norm: N,
    /// f.
    pub layer: L,
    /// Which of the two comes first.
    pub order: NormOrder,
}

/// What [`Residual::backward`] needs: what norm and layer saved, and what was dropped.
#[derive(Clone, Debug)]
pub struct Saved<N, L> {
    norm: N,
    /// What f saved.
    pub layer: L,
    dropout: Option<Dropout>,
    batch: usize,
}

/// Rows [N, D], and what the way back needs.
pub type With<S> = (ArcArray2<f32>, S);

impl<N: Layer, L: Parameters> Parameters for Residual<N, L> {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.norm.params(&join(prefix, "norm"), f);
        self.layer.params(prefix, f);
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.norm.params_mut(&join(prefix, "norm"), f);
        self.layer.params_mut(prefix, f);
    }
}

impl<N: Layer, L> Residual<N, L> {
    /// y: [N, D] for x: [N, D].
    ///
    /// # Errors
    /// Those of f; also if the norm has another width.
    pub fn infer(
        &self,
        mut x: Array2<f32>,
        f: impl FnOnce(&L, ArrayView2<f32>) -> Result<Array2<f32>, Error>,
    ) -> Result<Array2<f32>, Error> {
        match self.order {
            NormOrder::First => {
                let y = f(&self.layer, self.norm.infer(x.view())?.view())?;
                add(&mut x, &y)?;
                Ok(x)
            }
            NormOrder::Last => {
                let mut y = f(&self.layer, x.view())?;
                add(&mut y, &x)?;
                self.norm.infer(y.view())
            }
        }
    }

    /// y: [1, D], the last row alone, for x: [N, D]; and so is what f gives.
    ///
    /// # Errors
    /// As [`infer`](Residual::infer).
    pub fn infer_last(
        &self,
        x: &Array2<f32>,
        f: impl FnOnce(&L, ArrayView2<f32>) -> Result<Array2<f32>, Error>,
    ) -> Result<Array2<f32>, Error> {
        let last = x.slice(s![x.nrows().saturating_sub(1).., ..]);
        match self.order {
            NormOrder::First => {
                let mut y = f(&self.layer, self.norm.infer(x.view())?.view())?;
                add(&mut y, last)?;
                Ok(y)
            }
            NormOrder::Last => {
                let mut y = f(&self.layer, x.view())?;
                add(&mut y, last)?;
                self.norm.infer(y.view())
            }
        }
    }

    /// [`infer`](Residual::infer) of the tokens of `batch` sequences, with what [`backward`](Residual::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](Residual::infer).
    pub fn forward<S>(
        &self,
        x: &ArcArray2<f32>,
        batch: usize,
        dropout: Option<Dropout>,
        f: impl FnOnce(&L, &ArcArray2<f32>) -> Result<(Array2<f32>, S), Error>,
    ) -> Result<With<Saved<N::Saved, S>>, Error> {
        let sum = |mut y: Array2<f32>| {
            dropout.map_or(Ok(()), |dropout| dropout::apply(dropout, batch, &mut y))?;
            add(&mut y, x)?;
            Ok::<_, Error>(y.into_shared())
        };
        let (y, norm, layer) = match self.order {
            NormOrder::First => {
                let (normed, norm) = self.norm.forward(x)?;
                let (y, layer) = f(&self.layer, &normed.into_shared())?;
                (sum(y)?, norm, layer)
            }
            NormOrder::Last => {
                let (y, layer) = f(&self.layer, x)?;
                let (y, norm) = self.norm.forward(&sum(y)?)?;
                (y.into_shared(), norm, layer)
            }
        };
        Ok((y, Saved { norm, layer, dropout, batch }))
    }

    /// dx: [N, D]; `f` is the backward pass of the layer.
    ///
    /// # Errors
    /// Those of f; also if dy is not shaped like the output.
    pub fn backward<S>(
        &self,
        saved: &Saved<N::Saved, S>,
        dy: Array2<f32>,
        grad: &mut Self,
        f: impl FnOnce(&L, &S, ArrayView2<f32>, &mut L) -> Result<Array2<f32>, Error>,
    ) -> Result<Array2<f32>, Error> {
        match self.order {
            NormOrder::First => {
                let dnormed = f(&self.layer, &saved.layer, saved.dropped(&dy)?.view(), &mut grad.layer)?;
                let mut dx = self.norm.backward(&saved.norm, dnormed.into(), &mut grad.norm)?;
                add(&mut dx, &dy)?;
                Ok(dx)
            }
            NormOrder::Last => {
                let dsum = self.norm.backward(&saved.norm, dy.into(), &mut grad.norm)?;
                let mut dx = f(&self.layer, &saved.layer, saved.dropped(&dsum)?.view(), &mut grad.layer)?;
                add(&mut dx, &dsum)?;
                Ok(dx)
            }
        }
    }
}

impl<N, L> Saved<N, L> {
    /// The gradient of what was dropped out of, before it was.
    fn dropped<'a>(&self, dy: &'a Array2<f32>) -> Result<CowArray<'a, f32, Ix2>, Error> {
        let Some(dropout) = self.dropout else { return Ok(dy.into()) };
        let mut dx = dy.clone();
        dropout::apply(dropout, self.batch, &mut dx)?;
        Ok(dx.into())
    }
}

/// y ⟵ y + x: [N, D].
///
/// # Errors
/// If the two are not shaped alike.
pub fn add<'a>(y: &mut Array2<f32>, x: impl Into<ArrayView2<'a, f32>>) -> Result<(), Error> {
    let x = standard(x);
    expect("the other summand", y.shape(), x.shape())?;
    let blocks = contiguous(y).par_chunks_mut(BLOCK).zip(values(&x).par_chunks(BLOCK));
    parallel::for_each(x.len(), blocks, |(y, x)| {
        foveal_compute::vectorise(
            #[inline(always)]
            || y.iter_mut().zip(x).for_each(|(y, x)| *y += x),
        );
    });
    Ok(())
}
