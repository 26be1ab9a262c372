use super::sums::Sums;
use crate::Error;
use crate::shape::room;

/// Σ φ(k)·v⁺ᵀ over all tokens so far, for generating one token after another: of the same size after a million tokens as after
/// one, where a [`KvCache`](crate::KvCache) grows. Made by [`LinearAttention::state`](crate::LinearAttention::state).
#[derive(Clone, Debug)]
pub struct LinearState {
    /// For each sequence and key head.
    pub(super) sums: Vec<Sums>,
    dim: [usize; 4],
    pub(super) len: usize,
}

impl LinearState {
    /// [B, key heads, m, Dv + 1]
    pub(super) fn new(dim: [usize; 4]) -> Result<Self, Error> {
        room::<f32>("a state of linear attention", &dim)?;
        Ok(LinearState { sums: vec![Sums::zero(dim[2], dim[3]); dim[0] * dim[1]], dim, len: 0 })
    }

    pub(super) fn dim(&self) -> [usize; 4] {
        self.dim
    }

    /// The number of tokens that have been summed up.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
