//! What an attention layer attends to, and what it leaves for those who look and for the backward pass.
//!
//! Any weight can be computed again from queries, keys and the log-sum-exp of its row,
//!
//! $$ w_{ij} = e^{s_{ij} - \mathrm{lse}_i}, \qquad s_{ij} = \tfrac{1}{\sqrt{D_h}}\, q_i \cdot k_j + \text{mask and bias}, $$
//!
//! so these are kept and the weights are not. See [`MultiHeadAttention`](super::MultiHeadAttention) for an example.

use foveal::{Forward, KvCache};
use ndarray::{ArcArray, ArcArray2, Array2, Array4, ArrayD, ArrayView2, Ix4};

use super::BoundAttention;
use super::shape::expect;
use crate::Error;

/// Where keys and values come from.
#[derive(Debug)]
pub enum Source<'a> {
    /// Self-attention: from the tokens themselves.
    Own,
    /// Self-attention, token after token: from all tokens in the cache, after those of this call have been added to it.
    Cache(&'a mut KvCache),
    /// Cross-attention: from another sequence, [B·S, Dm].
    Memory(ArrayView2<'a, f32>),
    /// Cross-attention: keys and values that [`project_memory`](super::MultiHeadAttention::project_memory) has made once for many calls.
    Projected(&'a Memory),
}

/// Keys and values of a sequence to attend to, [B, G, S, Dh] each.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The keys.
    pub k: ArcArray<f32, Ix4>,
    /// The values.
    pub v: ArcArray<f32, Ix4>,
}

/// What was attended to in one call: enough to compute any weight of it again, exactly. The arrays are shared, not copied.
#[derive(Clone, Debug)]
pub struct AttentionRecord {
    /// Queries, turned if there is RoPE: [B, H, T, Dh].
    pub q: ArcArray<f32, Ix4>,
    /// Keys, turned if there is RoPE: [B, G, S, Dh]. With a cache, those of the new tokens alone.
    pub k: ArcArray<f32, Ix4>,
    /// Values: [B, G, S, Dh]. With a cache, those of the new tokens alone.
    pub v: ArcArray<f32, Ix4>,
    /// The heads' outputs, [B, H, T, Dh], before W_o, and the log-sum-exp of every row of scores, [B, H, T].
    pub forward: Forward,
    /// The mechanism and the options used.
    pub attention: BoundAttention,
    /// How many keys were in the cache before those of `k`.
    pub start: usize,
}

/// What [`MultiHeadAttention::backward`](super::MultiHeadAttention::backward) needs.
#[derive(Clone, Debug)]
pub struct Saved {
    /// x: [B·T, D]
    pub input: ArcArray2<f32>,
    /// The other sequence, if this was cross-attention: [B·S, Dm].
    pub memory: Option<ArcArray2<f32>>,
    /// q, k, v, output and log-sum-exp, and the options.
    pub record: AttentionRecord,
}

/// What [`MultiHeadAttention::backward`](super::MultiHeadAttention::backward) gives back.
#[derive(Clone, Debug)]
pub struct Gradients {
    /// dx: [B·T, D]
    pub dx: Array2<f32>,
    /// The gradient of the other sequence: [B·S, Dm].
    pub dmemory: Option<Array2<f32>>,
    /// The gradient of the attention's bias, if it has one; see [`foveal::Gradients::dbias`].
    pub dbias: Option<ArrayD<f32>>,
    /// The gradient of a factor on each head's output: [B, H]. It tells how much the head matters (Michel 2019).
    pub dgates: Array2<f32>,
}

impl AttentionRecord {
    /// All weights: [B, H, T, S]. For small inputs; otherwise see [`BoundAttention::tile`] and [`BoundAttention::map`].
    ///
    /// # Errors
    /// After a call with a cache that held keys already: they are not here, only in the cache.
    pub fn weights(&self) -> Result<Array4<f32>, Error> {
        let (b, g, new, dim) = self.k.dim();
        expect(
            "the keys of this call alone, without those in the cache,",
            &[b, g, self.start + new, dim],
            self.k.shape(),
        )?;
        Ok(self.attention.weights((&self.q).into(), (&self.k).into())?)
    }
}
