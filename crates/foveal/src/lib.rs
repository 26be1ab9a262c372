//! Exact attention at hardware speed, and a way to look at all of it.

mod attention;
mod backward;
mod bias;
mod cache;
mod dropout;
mod error;
mod forward;
mod kernel;
mod mask;
pub mod reference;
mod rope;
mod scores;
mod scratch;
mod shape;
mod sinusoidal;
mod textbook;
mod threads;
mod weights;

pub use attention::{Attention, Forward, Gradients};
pub use bias::{Bias, Direction, alibi_slopes, t5_bucket};
pub use cache::KvCache;
pub use dropout::Dropout;
pub use error::Error;
pub use kernel::Isa;
pub use mask::{Align, Mask};
pub use rope::{Rope, RopeLayout, RopeScaling};
pub use scratch::Scratch;
pub use sinusoidal::{add_positional_encoding, positional_encoding};
pub use textbook::{Sequences, causal_mask, padding_mask, scaled_dot_product_attention};
pub use threads::Threads;
pub use weights::Pool;
