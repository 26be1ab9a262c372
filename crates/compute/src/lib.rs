//! What the attention of `foveal` and the layers around it stand on: vectors, the register tile, matrix products, threads,
//! memory.
//!
//! **This crate promises no stability.** `foveal` depends on its exact version, and shows of it only [`Isa`], [`Threads`],
//! [`f16`] and [`bf16`]. Who wants attention, wants `foveal`.
//!
//! - [`matmul`], [`affine`], [`affine_side_by_side`]: products of matrices, the right one stored in 32, 16 or 8 bits ([`Operand`]).
//! - [`vectorise`]: plain loops, compiled for the machine's instruction set. [`write_new`]: new arrays, written once.
//! - [`Threads`], [`awake`], [`one_of`], [`join`]: who does the work. A pool that survives `fork`.
//! - [`keep_memory`], [`large_pages`]: settings of the whole process. Programs call them once at their start; libraries never do.
//! - [`CountingAllocator`], [`peak_allocation`]: what a piece of work takes in memory.

mod allocations;
mod error;
mod isa;
#[doc(hidden)]
pub mod kernel;
mod matmul;
mod memory;
mod operand;
#[doc(hidden)]
pub mod scratch;
#[doc(hidden)]
pub mod tasks;
mod threads;
mod unwritten;
mod vectorise;

pub use allocations::{CountingAllocator, peak_allocation};
pub use error::Error;
pub use half::{bf16, f16};
pub use isa::Isa;
#[doc(hidden)]
pub use isa::Supported;
pub use matmul::{affine, affine_side_by_side, matmul};
#[doc(hidden)]
pub use memory::{advise_large_pages, zeros};
pub use memory::{keep_memory, large_pages};
pub use operand::Operand;
pub use threads::{Share, Threads, awake, in_pool, join, one_of};
pub use unwritten::{Unwritten, write_new};
pub use vectorise::vectorise;
