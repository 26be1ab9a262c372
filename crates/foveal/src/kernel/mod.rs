//! The kernels of attention, over the vectors and the register tile of `foveal-compute`. Each is written once, compiled for each
//! instruction set, and chosen at run time by [`dispatch`]. Threads are outside: every task dispatches for itself.
//!
//! | word | what it means here |
//! |---|---|
//! | block | query rows of one head (or of the heads that share a key head) that a task works on at a time |
//! | group | up to 12 rows of a block: the height of the register tile |
//! | tile | keys that are packed together: 256 forward, 192 backward |
//! | span | what a group sees of a tile: a range of its keys |
//! | panel | two vectors of columns of a packed right operand |
//! | chunk | tiles of keys that one task of the way back goes over, with a dQ of its own |
//! | slot | what one thread works with: memory, and the plan of its block |

pub mod additive;
pub mod backward;
pub mod delta;
pub mod features;
pub mod forward;
mod gradient;
mod nonfinite;
pub mod options;
pub mod plan;
pub mod precise;
pub mod rows;
pub mod small;
pub mod softmax;
pub mod source;
pub mod weights;

pub use foveal_compute::kernel::{Kernel, dispatch, gemm, matrix, pack, simd, thin};
