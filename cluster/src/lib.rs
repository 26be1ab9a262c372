//! Foveal over MPI: attention of sequences, and training of models, that outgrow one machine.
//!
//! Sequences are spread over ranks as [`Shards`]; [`ShardedAttention`] is [`foveal::Attention`] on them, with the same options
//! ([`Options`]) and the same results. A run is a [`World`]: its ranks check that they are about to do the same before they start,
//! and none of them outlives another by more than seconds.

mod attention;
mod cost;
mod error;
mod faults;
mod heads;
pub mod launch;
mod merge;
mod options;
mod plan;
mod ring;
mod shards;
mod traffic;
mod train;
mod wire;
mod world;

pub use attention::{Gradients, Inputs, ShardedAttention, Way};
pub use cost::{Cost, Size};
pub use error::{Error, Result};
pub use options::{BiasOptions, Options};
pub use shards::Shards;
pub use traffic::Timing;
pub use train::{Ranks, Saving, train};
pub use world::{Member, World};
