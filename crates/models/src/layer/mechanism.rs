//! What stands between queries, keys and values and the outputs of the heads, in one layer.
//!
//! A [`Mechanism`] is what a layer *is*: made once, with what it has learned. [`Attending`] is what a call *does*: the
//! mechanism with the masks and options of that call, and enough, with queries, keys and the log-sum-exp of each row, to give
//! back any weight.

use std::ops::Range;

use foveal::{
    AdditiveAttention, Attention, Bias, FeatureMap, Forward, Gradients, LinearAttention, Mask, Pattern, Pool, Scratch,
};
use ndarray::{Array2, Array4, ArrayD, ArrayView3, ArrayView4, ArrayViewD, ArrayViewMut3, ArrayViewMut4};

use super::{Family, Parameters, Room};
use crate::Error;

/// How the heads of one layer attend. See [`Family`] for the kinds there are.
#[derive(Clone, Debug, Default)]
pub struct Mechanism {
    pub(super) family: Family,
    /// The number of the layer, which some kinds draw their random parts from.
    pub(super) layer: usize,
    /// What it learns: a of additive attention, [H, Dh], or the table of Swin's biases, [distances, H].
    pub learned: Option<Array2<f32>>,
    pub(super) made: Made,
}

/// What follows from the family and the place of the layer.
#[derive(Clone, Debug)]
pub(super) enum Made {
    Softmax { scale: Option<f32>, pattern: Option<Pattern> },
    Swin { pattern: Pattern, window: (usize, usize), grid: (usize, usize) },
    Linear(FeatureMap),
    Additive,
}

impl Default for Made {
    fn default() -> Self {
        Made::Softmax { scale: None, pattern: None }
    }
}

impl Made {
    pub fn pattern(pattern: Pattern) -> Self {
        Made::Softmax { scale: None, pattern: Some(pattern) }
    }
}

/// Two of the same family at the same place are made alike.
impl PartialEq for Mechanism {
    fn eq(&self, other: &Self) -> bool {
        (self.family, self.layer, &self.learned) == (other.family, other.layer, &other.learned)
    }
}

impl Parameters for Mechanism {
    fn visit<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, ArrayViewD<'a, f32>)) {
        self.learned.visit(prefix, f);
    }

    fn rooms<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, Room<'a>)) {
        self.learned.rooms(prefix, f);
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
    pub fn with(&self, call: &Attention) -> Result<Attending, Error> {
        let call = call.clone();
        let learned = || self.learned.clone().unwrap_or_default();
        Ok(match &self.made {
            Made::Softmax { scale, pattern } => {
                let call = scale.iter().fold(call, |call, scale| call.scale(*scale));
                let patterns = pattern.iter().map(|pattern| Mask::pattern(pattern.clone()));
                Attending::Softmax(patterns.fold(call, Attention::and_mask))
            }
            Made::Swin { pattern, window, grid } => {
                let call = call.and_mask(Mask::pattern(pattern.clone()));
                Attending::Softmax(call.bias(Bias::swin(learned(), *window, *grid)?))
            }
            Made::Linear(features) => Attending::Linear(LinearAttention::with_options(features.clone(), &call)?),
            Made::Additive => Attending::Additive(AdditiveAttention::with_options(learned(), &call)?),
        })
    }
}

/// A mechanism with the options of a call. All kinds are asked for the same things.
#[derive(Clone, Debug)]
pub enum Attending {
    /// Softmax attention, sparse or not.
    Softmax(Attention),
    /// Features in place of the softmax.
    Linear(LinearAttention),
    /// a·tanh(q + k).
    Additive(AdditiveAttention),
}

impl From<Attention> for Attending {
    fn from(attention: Attention) -> Self {
        Attending::Softmax(attention)
    }
}

impl Attending {
    /// The outputs of the heads, [B, H, T, Dv], and the log-sum-exp of each row, [B, H, T].
    ///
    /// # Errors
    /// If shapes or options do not fit; see [`foveal::Error`].
    pub fn forward_into(
        &self,
        (q, k, v): (ArrayView4<f32>, ArrayView4<f32>, ArrayView4<f32>),
        mut out: ArrayViewMut4<f32>,
        mut lse: ArrayViewMut3<f32>,
    ) -> Result<(), foveal::Error> {
        let forward = match self {
            Attending::Softmax(attention) => {
                return Scratch::lend(|scratch| attention.forward_into(q, k, v, out, lse, scratch));
            }
            Attending::Linear(attention) => attention.forward(q, k, v)?,
            Attending::Additive(attention) => attention.forward(q, k, v)?,
        };
        out.assign(&forward.out);
        lse.assign(&forward.lse);
        Ok(())
    }

    /// The gradients of queries, keys and values, which overwrite dq, dk and dv; returns that of what is learned beside them.
    ///
    /// # Errors
    /// As [`forward_into`](Attending::forward_into).
    pub fn backward_into(
        &self,
        (q, k, v): (ArrayView4<f32>, ArrayView4<f32>, ArrayView4<f32>),
        forward: &Forward,
        dout: ArrayView4<f32>,
        (mut dq, mut dk, mut dv): (ArrayViewMut4<f32>, ArrayViewMut4<f32>, ArrayViewMut4<f32>),
    ) -> Result<Option<ArrayD<f32>>, foveal::Error> {
        let gradients = match self {
            Attending::Softmax(attention) => {
                return Scratch::lend(|scratch| {
                    attention.backward_into((q, k, v), forward, dout, (dq, dk, dv), scratch)
                });
            }
            Attending::Linear(attention) => attention.backward(q, k, v, forward, dout)?,
            Attending::Additive(attention) => {
                let gradients = attention.backward(q, k, v, forward, dout)?;
                let dbias = Some(gradients.dweight.into_dyn());
                Gradients { dq: gradients.dq, dk: gradients.dk, dv: gradients.dv, dbias }
            }
        };
        dq.assign(&gradients.dq);
        dk.assign(&gradients.dk);
        dv.assign(&gradients.dv);
        Ok(gradients.dbias)
    }

    /// All weights: [B, H, T, S].
    ///
    /// # Errors
    /// As [`forward_into`](Attending::forward_into).
    pub fn weights(&self, q: ArrayView4<f32>, k: ArrayView4<f32>) -> Result<Array4<f32>, foveal::Error> {
        match self {
            Attending::Softmax(attention) => attention.weights(q, k),
            Attending::Linear(attention) => attention.weights(q, k),
            Attending::Additive(attention) => attention.weights(q, k),
        }
    }

    /// The weights of queries `rows` on keys `cols`, in sequence and head `at`.
    ///
    /// # Errors
    /// As [`forward_into`](Attending::forward_into); also if the rectangle does not lie within the matrix.
    pub fn tile(
        &self,
        (q, k, lse): (ArrayView4<f32>, ArrayView4<f32>, ArrayView3<f32>),
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, foveal::Error> {
        match self {
            Attending::Softmax(attention) => attention.tile(q, k, lse, at, rows, cols),
            Attending::Linear(attention) => attention.tile(q, k, lse, at, rows, cols),
            Attending::Additive(attention) => attention.tile(q, k, lse, at, rows, cols),
        }
    }

    /// The same, pooled to a picture.
    ///
    /// # Errors
    /// As [`tile`](Attending::tile); also if there are more pixels than cells in either direction.
    pub fn map(
        &self,
        (q, k, lse): (ArrayView4<f32>, ArrayView4<f32>, ArrayView3<f32>),
        at: (usize, usize),
        (rows, cols): (Range<usize>, Range<usize>),
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, foveal::Error> {
        match self {
            Attending::Softmax(attention) => attention.map(q, k, lse, at, rows, cols, pixels, pool),
            Attending::Linear(attention) => attention.map(q, k, lse, at, rows, cols, pixels, pool),
            Attending::Additive(attention) => attention.map(q, k, lse, at, rows, cols, pixels, pool),
        }
    }
}
