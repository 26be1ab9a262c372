//! Llama (Touvron 2023): a decoder with RMS norms, rotary positions, grouped heads and a gated MLP. SmolLM2 and TinyLlama are
//! instances.
//!
//! $$ x = E_t, \qquad x \leftarrow \mathrm{block}_l(x), \qquad \mathrm{logits} = \mathrm{norm}(x)\, W^\top $$

mod config;
mod factors;
mod positions;

use std::sync::Arc;

use foveal::{Dropout, KvCache, Rope, RopeTable};
use ndarray::{Array2, ArrayView1, ArrayView2};

pub use self::config::LlamaConfig;
use super::block::Block;
use super::language::{HeadGradients, LanguageModel, Shape, Trained};
use super::names::{Names, OutputHead};
use super::stack;
use crate::checkpoint::{Checkpoint, Dtype};
use crate::layer::{
    Embedding, GatedMlp, Layer, Linear, MultiHeadAttention, NormOrder, Place, Projection, Random, Residual, RmsNorm,
    parameters, rms_norm,
};
use crate::trace::{Kind, Probe};
use crate::{Error, Result};

/// Hugging Face's names.
const NAMES: Names = Names {
    parts: &[
        ("tokens.", "model.embed_tokens."),
        ("layers.", "model.layers."),
        (".attention.norm.", ".input_layernorm."),
        (".attention.", ".self_attn."),
        (".mlp.norm.", ".post_attention_layernorm."),
        ("norm.", "model.norm."),
    ],
    transposed: &[],
};

/// The model.
#[derive(Clone, Debug, PartialEq)]
pub struct Llama {
    config: LlamaConfig,
    /// E: [V, D]
    pub tokens: Embedding,
    /// The blocks.
    pub layers: Vec<Block<RmsNorm, GatedMlp>>,
    /// The norm before the predictions.
    pub norm: RmsNorm,
    /// What makes the predictions where E does not: [V, D].
    pub head: Option<Embedding>,
}

parameters!(Llama { tokens: "tokens", layers: "layers", norm: "norm", head: "lm_head" });

/// What [`Llama::backward`](Trained::backward) needs.
#[derive(Debug)]
pub struct Saved {
    tokens: Vec<u32>,
    layers: stack::Saved<RmsNorm, GatedMlp>,
    norm: rms_norm::Saved,
    hidden: Array2<f32>,
}

impl Llama {
    /// A model that has learned nothing yet: weights of deviation 0.02.
    ///
    /// # Errors
    /// If the key heads do not divide the heads, or a size is 0.
    pub fn new(config: &LlamaConfig, random: &mut Random) -> Result<Self> {
        let &LlamaConfig { vocabulary, width, layers, heads, key_heads, head_dim, hidden, activation, epsilon, .. } =
            config;
        let rope = Rope::new(head_dim)?.base(config.rope_base).scaling(config.rope_scaling);
        let rope = rope.attention_factor(config.rope_attention_factor);
        let (rope, order) = (Arc::new(RopeTable::new(rope)), NormOrder::First);
        let block = |layer| -> Result<_> {
            let mut linear = |inputs, outputs| {
                let linear = Linear::new(inputs, outputs, random);
                if config.attention_bias { linear } else { linear.without_bias() }
            };
            let mut inputs = |heads: usize| linear(width, heads * head_dim);
            let projection = Projection::Separate { q: inputs(heads), k: inputs(key_heads), v: inputs(key_heads) };
            let output = linear(heads * head_dim, width);
            let attention = MultiHeadAttention::from_parts(projection, output, heads, key_heads)?.with_rope(&rope);
            let place = Place { layer, causal: true, tokens: config.context, grid: None };
            let mixer = config.attention.mixer(attention, place, random)?;
            Ok(Block {
                attention: Residual { norm: RmsNorm::new(width, epsilon), layer: mixer, order },
                cross: None,
                mlp: Residual {
                    norm: RmsNorm::new(width, epsilon),
                    layer: if config.mlp_bias {
                        GatedMlp::biased(width, hidden, activation, random)
                    } else {
                        GatedMlp::new(width, hidden, activation, random)
                    },
                    order,
                },
            })
        };
        let layers = (0..layers).map(block).collect::<Result<_>>()?;
        Ok(Llama {
            config: *config,
            tokens: Embedding::new(vocabulary, width, random),
            layers,
            norm: RmsNorm::new(width, epsilon),
            head: (config.predicts && !config.tied).then(|| Embedding::new(vocabulary, width, random)),
        })
    }

    /// The model of a checkpoint, with what makes its predictions if it has that.
    ///
    /// # Errors
    /// If its configuration makes no sense, a tensor is absent or has another shape than that calls for, or the rotary
    /// positions are scaled by a rule that is not known here.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let config = LlamaConfig::read(checkpoint.config())?;
        let head = OutputHead::of(checkpoint, config.tied, "lm_head.weight", "model.embed_tokens.weight");
        let config = LlamaConfig {
            rope_scaling: factors::scaling(checkpoint, &config)?,
            predicts: head != OutputHead::None,
            tied: head == OutputHead::Tied,
            ..config
        };
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Llama::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Llama::load) and Hugging Face read, as a `LlamaForCausalLM` if it predicts tokens and
    /// as a `LlamaModel` if not, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        let prefix = if self.config.predicts { "" } else { "model." };
        NAMES.save_without(prefix, folder, &self.config.write(), self, dtype)
    }

    /// Its sizes.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// See [`Model::raise_context`](super::Model::raise_context).
    pub(super) fn raise_context(&mut self, tokens: usize) {
        self.config.context = self.config.context.max(tokens);
    }
}

impl Llama {
    /// Tokens, of which there is a limit together with those in the cache: [B·T, D].
    fn embed(&self, tokens: &[u32], batch: usize, cache: Option<&KvCache>) -> Result<Array2<f32>> {
        let end = cache.map_or(0, KvCache::len) + tokens.len() / batch.max(1);
        if end > self.config.context {
            return Err(Error::Context { tokens: end, limit: self.config.context });
        }
        self.tokens.forward(tokens)
    }

    /// What makes the predictions.
    fn predictor(&self) -> Result<&Embedding> {
        match &self.head {
            Some(head) => Ok(head),
            None if self.config.predicts => Ok(&self.tokens),
            None => Err(Error::MissingPart { part: "the head that predicts tokens", fit: "a LlamaForCausalLM" }),
        }
    }
}

impl LanguageModel for Llama {
    fn shape(&self) -> Shape {
        let LlamaConfig { vocabulary, context, layers, heads, .. } = self.config;
        Shape { vocabulary, context, layers, heads }
    }

    fn attention(&self, layer: usize) -> Option<&MultiHeadAttention> {
        self.layers.get(layer).and_then(|block| block.attention.layer.attention())
    }

    fn infer(
        &self,
        tokens: &[u32],
        batch: usize,
        cache: Option<&mut [KvCache]>,
        probe: &mut Probe,
    ) -> Result<Array2<f32>> {
        let x = self.embed(tokens, batch, cache.as_deref().and_then(|cache| cache.first()))?;
        let x = stack::infer(&self.layers, x, batch, (Kind::Decoder, &stack::causal()), cache, probe)?;
        self.norm.infer(&x)
    }

    fn infer_last(&self, tokens: &[u32], cache: &mut [KvCache], probe: &mut Probe) -> Result<Array2<f32>> {
        let x = self.embed(tokens, 1, cache.first())?;
        let x = stack::infer_last(&self.layers, x, (Kind::Decoder, &stack::causal()), cache, probe)?;
        self.norm.infer(&x)
    }

    fn logits(&self, hidden: ArrayView2<f32>) -> Result<Array2<f32>> {
        self.predictor()?.logits(hidden)
    }

    fn top_k_candidates(&self, hidden: ArrayView1<f32>, k: usize) -> Result<Vec<(u32, f32)>> {
        self.predictor()?.top_k_candidates(hidden, k)
    }
}

impl Trained for Llama {
    type Saved = Saved;

    fn forward(&self, tokens: &[u32], batch: usize, dropout: Option<Dropout>) -> Result<(Array2<f32>, Saved)> {
        let x = self.tokens.forward(tokens)?.into_shared();
        let (x, layers) = stack::forward(&self.layers, x, batch, &stack::causal(), dropout)?;
        let (hidden, norm) = Layer::forward(&self.norm, &x)?;
        let logits = self.logits(hidden.view())?;
        Ok((logits, Saved { tokens: tokens.to_vec(), layers, norm, hidden }))
    }

    fn backward(&self, saved: &Saved, dlogits: &Array2<f32>, grad: &mut Self) -> Result<HeadGradients> {
        let dhidden = match (&self.head, &mut grad.head) {
            (Some(head), Some(dhead)) => head.logits_backward(&saved.hidden, dlogits, dhead)?,
            _ => self.tokens.logits_backward(&saved.hidden, dlogits, &mut grad.tokens)?,
        };
        let dx = self.norm.backward(&saved.norm, dhidden, &mut grad.norm)?;
        let mut dgates = HeadGradients::default();
        let dx = stack::backward(&self.layers, &saved.layers, dx, &mut grad.layers, (Kind::Decoder, &mut dgates))?;
        self.tokens.backward(&saved.tokens, &dx, &mut grad.tokens)?;
        Ok(dgates)
    }
}
