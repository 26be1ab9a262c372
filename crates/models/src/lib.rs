//! Transformer models whose every attention can be looked at.

#![deny(unsafe_code)]

pub mod analysis;
pub mod checkpoint;
mod error;
pub mod generate;
pub mod layer;
pub mod model;
mod observe;
mod open;
pub mod reading;
pub mod retrieval;
pub mod tokenizer;
pub mod trace;
pub mod train;
pub mod translation;

pub use checkpoint::{Architecture, Checkpoint, Config, Dtype, Tensor};
pub use error::Error;
pub use model::Model;
pub use observe::{MaskedToken, Observation, Prediction, ReadOptions, TokenAxis, Written};
pub use open::{ModelSummary, OpenModel};
pub use tokenizer::{Encoding, Tokenizer};
pub use trace::Trace;

/// What the functions of this crate give back.
pub type Result<T, E = Error> = std::result::Result<T, E>;
