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
mod attended;
pub mod cross_entropy;
pub mod dropout;
pub mod embedding;
pub mod layer_norm;
pub mod linear;
pub mod mlp;
pub mod multi_head;
mod parallel;
mod parameters;
mod projection;
mod random;
mod residual;
pub mod rms_norm;
mod shape;
mod vector;

pub use activation::Activation;
pub use attended::{Attended, Memory, Source};
pub use cross_entropy::{CrossEntropy, Loss};
pub use embedding::Embedding;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mlp::{GatedMlp, Mlp};
pub use multi_head::MultiHeadAttention;
pub use parameters::Parameters;
pub(crate) use parameters::parameters;
pub use projection::Projection;
pub use random::{Random, derive_seed};
pub use residual::add;
pub use rms_norm::RmsNorm;
