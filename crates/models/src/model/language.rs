//! What all language models can do: GPT-2 and Llama are seen through this.

use std::collections::BTreeMap;

use foveal::{Dropout, KvCache};
use ndarray::{Array2, ArrayView1, ArrayView2};

use crate::layer::{CrossEntropy, Loss, MultiHeadAttention, Parameters};
use crate::trace::{Probe, Site};
use crate::{Error, Result};

/// The sizes of a language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// V, the number of tokens.
    pub vocabulary: usize,
    /// How many tokens it can see.
    pub context: usize,
    /// The number of blocks.
    pub layers: usize,
    /// H, the heads of the queries in each.
    pub heads: usize,
}

/// A model that predicts the next token.
pub trait LanguageModel: Send + Sync {
    /// Its sizes.
    fn shape(&self) -> Shape;

    /// The attention of a layer.
    fn attention(&self, layer: usize) -> Option<&MultiHeadAttention>;

    /// What the model makes of `batch` sequences, [B·T] tokens one sequence after the other, up to its last norm: [B·T, D].
    /// With a cache they follow the tokens that are in it, and are added to it.
    ///
    /// # Errors
    /// [`Error::TokenId`] for a token outside the vocabulary, [`Error::Context`] for more tokens than positions. The cache may
    /// then hold the tokens in some layers and not in others; [`rewind`] sets it right.
    fn infer(
        &self,
        tokens: &[u32],
        batch: usize,
        cache: Option<&mut [KvCache]>,
        probe: &mut Probe,
    ) -> Result<Array2<f32>>;

    /// The last row of [`infer`](LanguageModel::infer), [1, D], for one sequence of at least one token: all that it takes to go
    /// on writing. Of the other tokens, the last block needs no more than keys and values.
    ///
    /// # Errors
    /// As [`infer`](LanguageModel::infer); also [`Error::TooShort`].
    fn infer_last(&self, tokens: &[u32], cache: &mut [KvCache], probe: &mut Probe) -> Result<Array2<f32>>;

    /// The scores of all tokens to come next, [N, V], from rows of what [`infer`](LanguageModel::infer) gives: [N, D].
    ///
    /// # Errors
    /// If the rows have another width than the model.
    fn logits(&self, hidden: ArrayView2<f32>) -> Result<Array2<f32>>;

    /// Tokens to come next with their scores, ascending by token: the k likeliest are among them. The same numbers as in
    /// [`logits`](LanguageModel::logits), from a row of what [`infer`](LanguageModel::infer) gives, [D], but with less to read
    /// where there are many tokens: see [`Embedding::top_k_candidates`](crate::layer::Embedding::top_k_candidates).
    ///
    /// # Errors
    /// If the row has another width than the model.
    fn top_k_candidates(&self, hidden: ArrayView1<f32>, k: usize) -> Result<Vec<(u32, f32)>>;

    /// An empty cache of `batch` sequences with room for `capacity` tokens, for each layer.
    fn cache(&self, batch: usize, capacity: usize) -> Vec<KvCache> {
        let layers = (0..self.shape().layers).map_while(|layer| self.attention(layer));
        layers.map(|attention| attention.cache(batch, capacity)).collect()
    }

    /// How surprised the model is by a text: the mean of −ln p(next token), over all tokens but the first.
    ///
    /// # Errors
    /// As [`infer`](LanguageModel::infer); also if there are fewer than two tokens.
    fn loss(&self, tokens: &[u32], probe: &mut Probe) -> Result<Loss> {
        let [inputs @ .., _] = tokens else { return Err(Error::TooShort { tokens: 0, least: 2 }) };
        if inputs.is_empty() {
            return Err(Error::TooShort { tokens: 1, least: 2 });
        }
        let hidden = self.infer(inputs, 1, None, probe)?;
        CrossEntropy::new().forward(&self.logits(hidden.view())?, &tokens[1..])
    }
}

/// Makes all layers of a cache as long as the shortest: undoes a run that failed halfway.
pub fn rewind(cache: &mut [KvCache]) {
    let len = cache.iter().map(KvCache::len).min().unwrap_or(0);
    cache.iter_mut().for_each(|layer| layer.truncate(len));
}

/// The gradient of a factor on each head's output, [B, H] for each attention layer.
pub type HeadGradients = BTreeMap<Site, Array2<f32>>;

/// A language model with a backward pass.
pub trait Trained: LanguageModel + Parameters + Clone {
    /// What [`backward`](Trained::backward) needs.
    type Saved;

    /// logits: [B·T, V] for `batch` sequences of tokens: [B·T].
    ///
    /// # Errors
    /// As [`infer`](LanguageModel::infer).
    fn forward(&self, tokens: &[u32], batch: usize, dropout: Option<Dropout>) -> Result<(Array2<f32>, Self::Saved)>;

    /// Adds the gradients of all parameters to `grad`; returns those of the heads.
    ///
    /// # Errors
    /// If dlogits is not shaped like the logits.
    fn backward(&self, saved: &Self::Saved, dlogits: &Array2<f32>, grad: &mut Self) -> Result<HeadGradients>;
}
