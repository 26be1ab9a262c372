//! The layers that models are made of, each with its equation, its forward pass and, beside it, its backward pass.
//!
//! - Activations are rows: `[N, D]`, where N = B·T are the tokens of all sequences, one sequence after the other.
//! - A layer that is to be trained shares its inputs instead of copying them (`ArcArray2`; `array.into_shared()` makes
//!   one without copying) and returns what its backward pass needs in a struct `Saved`. `infer` saves nothing.
//! - The gradient of a layer is a value of the same type, made by [`Parameters::zeros_like`]; `backward` adds to it.
//! - Loops over rows go to the rayon pool of the caller if there is enough to do. Sums are cut as the shapes say, never as
//!   the threads do, so all results are the same to the bit for any number of threads.

#![allow(clippy::needless_pass_by_value, reason = "views are references already")]

pub mod activation;
pub mod copy;
pub mod cross_entropy;
pub mod dropout;
pub mod embedding;
mod family;
pub(crate) mod fourier;
mod guide;
pub mod layer_norm;
pub mod linear;
mod mechanism;
mod mixer;
pub mod mlp;
pub mod multi_head;
mod parallel;
mod parameters;
mod projection;
mod random;
mod record;
pub mod residual;
pub mod rms_norm;
mod shape;
mod sketch;
pub(crate) mod vector;
mod weight;
mod weight_loss;

pub use activation::Activation;
pub use copy::{CopyHead, Mixture, Pointed, PointerGradient};
pub use cross_entropy::{CrossEntropy, Loss, log_softmax};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use family::Family;
pub(crate) use family::Place;
pub use guide::Guide;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mechanism::{BoundAttention, Mechanism};
pub use mixer::Mixer;
pub use mlp::{GatedMlp, Mlp};
pub use multi_head::MultiHeadAttention;
pub use parameters::{Param, ParamMut, Parameters};
pub(crate) use parameters::{join, parameters};
pub use projection::Projection;
pub use random::{Random, derive_seed};
pub use record::{AttentionRecord, Memory, Source};
pub use residual::{NormOrder, Residual, add};
pub use rms_norm::RmsNorm;
pub(crate) use shape::expect;
pub use weight::Weight;
pub use weight_loss::WeightLoss;

use ndarray::{ArcArray2, Array2, ArrayView2, CowArray, Ix2};

use crate::Error;

/// A layer that keeps the shape of its rows: a norm or an MLP. What a model's block needs to know of it.
pub trait Layer: Parameters + Clone + Send + Sync {
    /// What [`backward`](Layer::backward) needs.
    type Saved: Send + Sync;

    /// y: [N, D] for x: [N, D].
    ///
    /// # Errors
    /// If x has another width than the layer.
    fn infer(&self, x: ArrayView2<f32>) -> Result<Array2<f32>, Error>;

    /// The same, with what [`backward`](Layer::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](Layer::infer).
    fn forward(&self, x: &ArcArray2<f32>) -> Result<(Array2<f32>, Self::Saved), Error>;

    /// dx: [N, D]. It may take the place of a dy that is given away.
    ///
    /// # Errors
    /// If dy is not shaped like the output.
    fn backward(&self, saved: &Self::Saved, dy: CowArray<'_, f32, Ix2>, grad: &mut Self) -> Result<Array2<f32>, Error>;
}

/// Implements [`Layer`] for a type that has these three functions already.
macro_rules! layer {
    ($layer:ty, $saved:ty) => {
        impl Layer for $layer {
            type Saved = $saved;

            fn infer(&self, x: ArrayView2<f32>) -> Result<Array2<f32>, Error> {
                self.infer(x)
            }

            fn forward(&self, x: &ArcArray2<f32>) -> Result<(Array2<f32>, $saved), Error> {
                self.forward(x)
            }

            fn backward(
                &self,
                saved: &$saved,
                dy: CowArray<'_, f32, Ix2>,
                grad: &mut Self,
            ) -> Result<Array2<f32>, Error> {
                self.backward(saved, dy, grad)
            }
        }
    };
}

layer!(LayerNorm, layer_norm::Saved);
layer!(RmsNorm, rms_norm::Saved);
layer!(Mlp, mlp::Saved);
layer!(GatedMlp, mlp::GatedSaved);
