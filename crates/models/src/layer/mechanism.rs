//! What stands between queries, keys and values and the outputs of the heads, in one layer.
//!
//! A [`Mechanism`] is what a layer *is*: made once, with what it has learned. [`BoundAttention`] is what a call *does*: the
//! mechanism with the masks and options of that call, and enough, with queries, keys and the log-sum-exp of each row, to give
//! back any weight.

use std::ops::Range;

use foveal::{
    AdditiveAttention, Attention, Bias, FeatureMap, Forward, GradientsMut, LinearAttention, Mask, Pattern, Pool,
    Scratch, Tensor,
};
use ndarray::{Array2, Array4, ArrayD, ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, CowArray, Ix4};

use super::{Family, Param, ParamMut, Parameters};
use crate::Error;

/// How the heads of one layer attend. See [`Family`] for the kinds there are.
#[derive(Clone, Debug, Default)]
pub struct Mechanism {
    pub(super) family: Family,
    /// The number of the layer, which some kinds draw their random parts from.
    pub(super) layer: usize,
    /// What it learns: a of additive attention, [H, Dh], or the table of Swin's biases, [distances, H].
    pub learned: Option<Array2<f32>>,
    pub(super) built: Built,
}

/// What follows from the family and the place of the layer.
#[derive(Clone, Debug)]
pub(super) enum Built {
    Softmax { scale: Option<f32>, pattern: Option<Pattern> },
    Swin { pattern: Pattern, window: (usize, usize), grid: (usize, usize) },
    Linear(FeatureMap),
    Additive,
}

impl Default for Built {
    fn default() -> Self {
        Built::Softmax { scale: None, pattern: None }
    }
}

impl Built {
    pub fn pattern(pattern: Pattern) -> Self {
        Built::Softmax { scale: None, pattern: Some(pattern) }
    }
}

/// Two of the same family at the same place are made alike.
impl PartialEq for Mechanism {
    fn eq(&self, other: &Self) -> bool {
        (self.family, self.layer, &self.learned) == (other.family, other.layer, &other.learned)
    }
}

impl Parameters for Mechanism {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.learned.params(prefix, f);
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.learned.params_mut(prefix, f);
    }
}

impl Mechanism {
    /// The kind.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The mechanism with the masks and options of a call.
    ///
    /// # Errors
    /// [`foveal::Error::Unfit`] if an option has no meaning for it.
    pub fn with(&self, call: &Attention) -> Result<BoundAttention, Error> {
        let call = call.clone();
        let learned = || self.learned.clone().unwrap_or_default();
        Ok(match &self.built {
            Built::Softmax { scale, pattern } => {
                let call = scale.iter().fold(call, |call, scale| call.scale(*scale));
                let patterns = pattern.iter().map(|pattern| Mask::pattern(pattern.clone()));
                BoundAttention::Softmax(patterns.fold(call, Attention::and_mask))
            }
            Built::Swin { pattern, window, grid } => {
                let call = call.and_mask(Mask::pattern(pattern.clone()));
                BoundAttention::Softmax(call.bias(Bias::swin(learned(), *window, *grid)?))
            }
            Built::Linear(features) => BoundAttention::Linear(LinearAttention::with_options(features.clone(), &call)?),
            Built::Additive => BoundAttention::Additive(AdditiveAttention::with_options(learned(), &call)?),
        })
    }
}

/// A mechanism with the options of a call. All kinds are asked for the same things.
#[derive(Clone, Debug)]
pub enum BoundAttention {
    /// Softmax attention, sparse or not.
    Softmax(Attention),
    /// Features in place of the softmax.
    Linear(LinearAttention),
    /// a·tanh(q + k).
    Additive(AdditiveAttention),
}

impl From<Attention> for BoundAttention {
    fn from(attention: Attention) -> Self {
        BoundAttention::Softmax(attention)
    }
}

impl From<LinearAttention> for BoundAttention {
    fn from(attention: LinearAttention) -> Self {
        BoundAttention::Linear(attention)
    }
}

impl From<AdditiveAttention> for BoundAttention {
    fn from(attention: AdditiveAttention) -> Self {
        BoundAttention::Additive(attention)
    }
}

impl BoundAttention {
    /// The outputs of the heads, [B, H, T, Dv], and the log-sum-exp of each row, [B, H, T].
    ///
    /// # Errors
    /// If shapes or options do not fit; see [`foveal::Error`].
    pub fn forward_into(
        &self,
        (q, k, v): (Tensor, Tensor, Tensor),
        mut out: ArrayViewMut4<f32>,
        mut lse: ArrayViewMut3<f64>,
    ) -> Result<(), foveal::Error> {
        let forward = match self {
            BoundAttention::Softmax(attention) => {
                return Scratch::lend(|scratch| attention.forward_into(q, k, v, out, lse, scratch));
            }
            BoundAttention::Linear(attention) => attention.forward(&f32s(&q), &f32s(&k), &f32s(&v))?,
            BoundAttention::Additive(attention) => attention.forward(&f32s(&q), &f32s(&k), &f32s(&v))?,
        };
        out.assign(&forward.out);
        lse.assign(&forward.lse);
        Ok(())
    }

    /// The gradients of queries, keys and values, which overwrite dq, dk and dv; returns that of what is learned beside them.
    ///
    /// # Errors
    /// As [`forward_into`](BoundAttention::forward_into).
    pub fn backward_into(
        &self,
        (q, k, v): (ArrayView4<f32>, ArrayView4<f32>, ArrayView4<f32>),
        forward: &Forward,
        dout: ArrayView4<f32>,
        (mut dq, mut dk, mut dv): (ArrayViewMut4<f32>, ArrayViewMut4<f32>, ArrayViewMut4<f32>),
    ) -> Result<Option<ArrayD<f32>>, foveal::Error> {
        let (gradients, dbias) = match self {
            BoundAttention::Softmax(attention) => {
                let targets = GradientsMut::set(dq, dk, dv);
                let learned =
                    Scratch::lend(|scratch| attention.backward_into(q, k, v, forward, dout, targets, scratch))?;
                return Ok(learned.dbias);
            }
            BoundAttention::Linear(attention) => {
                let gradients = attention.backward(q, k, v, forward, dout)?;
                ([gradients.dq, gradients.dk, gradients.dv], None)
            }
            BoundAttention::Additive(attention) => {
                let gradients = attention.backward(q, k, v, forward, dout)?;
                ([gradients.dq, gradients.dk, gradients.dv], Some(gradients.dweight.into_dyn()))
            }
        };
        for (target, gradient) in [&mut dq, &mut dk, &mut dv].into_iter().zip(gradients) {
            target.assign(&gradient);
        }
        Ok(dbias)
    }

    /// All weights: [B, H, T, S].
    ///
    /// # Errors
    /// As [`forward_into`](BoundAttention::forward_into).
    pub fn weights(&self, q: Tensor, k: Tensor) -> Result<Array4<f32>, foveal::Error> {
        match self {
            BoundAttention::Softmax(attention) => attention.weights(q, k),
            BoundAttention::Linear(attention) => attention.weights(&f32s(&q), &f32s(&k)),
            BoundAttention::Additive(attention) => attention.weights(&f32s(&q), &f32s(&k)),
        }
    }

    /// The weights of queries `rows` on keys `cols`, in sequence and head `at`.
    ///
    /// # Errors
    /// As [`forward_into`](BoundAttention::forward_into); also if the rectangle does not lie within the matrix.
    pub fn tile(
        &self,
        (q, k, lse): (Tensor, Tensor, ArrayView3<f64>),
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, foveal::Error> {
        match self {
            BoundAttention::Softmax(attention) => attention.head(q, k, lse, at)?.tile(rows, cols),
            BoundAttention::Linear(attention) => attention.head(&f32s(&q), &f32s(&k), lse, at)?.tile(rows, cols),
            BoundAttention::Additive(attention) => attention.head(&f32s(&q), &f32s(&k), lse, at)?.tile(rows, cols),
        }
    }

    /// The same, pooled to a picture.
    ///
    /// # Errors
    /// As [`tile`](BoundAttention::tile); also if there are more pixels than cells in either direction.
    pub fn map(
        &self,
        (q, k, lse): (Tensor, Tensor, ArrayView3<f64>),
        at: (usize, usize),
        (rows, cols): (Range<usize>, Range<usize>),
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, foveal::Error> {
        match self {
            BoundAttention::Softmax(attention) => attention.head(q, k, lse, at)?.map(rows, cols, pixels, pool),
            BoundAttention::Linear(attention) => {
                attention.head(&f32s(&q), &f32s(&k), lse, at)?.map(rows, cols, pixels, pool)
            }
            BoundAttention::Additive(attention) => {
                attention.head(&f32s(&q), &f32s(&k), lse, at)?.map(rows, cols, pixels, pool)
            }
        }
    }
}

/// For the kinds that compute with f32 alone: as it is, or widened.
fn f32s<'a>(tensor: &Tensor<'a>) -> CowArray<'a, f32, Ix4> {
    tensor.as_f32().map_or_else(|| tensor.to_f32().into(), Into::into)
}
