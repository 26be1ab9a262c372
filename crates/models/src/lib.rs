//! Transformer models whose every attention can be looked at.

#![deny(unsafe_code)]

pub mod checkpoint;
mod error;
pub mod layer;
pub mod tokenizer;

pub use checkpoint::{Architecture, Checkpoint, Config, Dtype, Tensor};
pub use error::Error;
pub use tokenizer::{Encoding, Tokenizer};

/// What the functions of this crate give back.
pub type Result<T, E = Error> = std::result::Result<T, E>;
