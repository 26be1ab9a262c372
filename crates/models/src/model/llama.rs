//! Llama (Touvron 2023): a decoder with RMS norms, rotary positions, grouped heads and a gated MLP. SmolLM2 and TinyLlama are
//! instances.
//!
//! $$ x = E_t, \qquad x \leftarrow \mathrm{block}_l(x), \qquad \mathrm{logits} = \mathrm{norm}(x)\, W^\top $$

mod factors;

use std::sync::Arc;

use foveal::{Dropout, KvCache, Rope, RopeScaling, RopeTable};
use ndarray::{Array2, ArrayView1, ArrayView2};

use super::block::Block;
use super::language::{HeadGradients, LanguageModel, Shape, Trained};
use super::names::{self, Names};
use super::stack;
use crate::checkpoint::{Checkpoint, Config, Dtype};
use crate::layer::{
    Activation, Embedding, Family, GatedMlp, Layer, Linear, MultiHeadAttention, NormOrder, Place, Projection, Random,
    Residual, RmsNorm, parameters, rms_norm,
};
use crate::trace::{Kind, Probe};
use crate::{Error, Result};

/// The sizes of a Llama.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlamaConfig {
    /// V, the number of tokens.
    pub vocabulary: usize,
    /// How many tokens it was made to see.
    pub context: usize,
    /// D.
    pub width: usize,
    /// The number of blocks.
    pub layers: usize,
    /// H, the heads of the queries.
    pub heads: usize,
    /// G, the heads of keys and values.
    pub key_heads: usize,
    /// Dh, the dimension of a head.
    pub head_dim: usize,
    /// The width of the MLP.
    pub hidden: usize,
    /// The activation of its gate.
    pub activation: Activation,
    /// ε of the norms.
    pub epsilon: f32,
    /// The base of the rotary positions.
    pub rope_base: f64,
    /// How they reach beyond the trained length.
    pub rope_scaling: RopeScaling,
    /// Whether the layers of attention have biases.
    pub attention_bias: bool,
    /// Whether the embedding also makes the predictions.
    pub tied: bool,
    /// How tokens attend to those before them.
    pub attention: Family,
}

impl LlamaConfig {
    fn of(layers: usize, width: usize, heads: usize, key_heads: usize, hidden: usize) -> Self {
        LlamaConfig {
            vocabulary: 32_000,
            context: 2048,
            width,
            layers,
            heads,
            key_heads,
            head_dim: width / heads,
            hidden,
            activation: Activation::Silu,
            epsilon: 1e-5,
            rope_base: 10_000.0,
            rope_scaling: RopeScaling::None,
            attention_bias: false,
            tied: false,
            attention: Family::Softmax,
        }
    }

    /// SmolLM2, 135 million parameters.
    pub fn smollm2_135m() -> Self {
        let base = LlamaConfig::of(30, 576, 9, 3, 1536);
        LlamaConfig { vocabulary: 49_152, context: 8192, rope_base: 100_000.0, tied: true, ..base }
    }

    /// TinyLlama, 1.1 billion.
    pub fn tinyllama() -> Self {
        LlamaConfig::of(22, 2048, 32, 4, 5632)
    }

    /// The first Llama, 7 billion.
    pub fn llama_7b() -> Self {
        LlamaConfig { epsilon: 1e-6, ..LlamaConfig::of(32, 4096, 32, 32, 11_008) }
    }

    /// As small as nanoGPT's configuration for a CPU, for training here.
    pub fn nano() -> Self {
        LlamaConfig { vocabulary: 65, context: 64, tied: true, ..LlamaConfig::of(4, 128, 4, 2, 352) }
    }

    fn read(config: &Config) -> Result<Self> {
        let width = config.size("hidden_size")?;
        let heads = config.size("num_attention_heads")?;
        let key_heads = match config.get("num_key_value_heads") {
            Some(_) => config.divisor("num_key_value_heads", "num_attention_heads")?,
            None => heads,
        };
        let head_dim = match config.get("head_dim") {
            Some(_) => config.size("head_dim")?,
            None => width / config.divisor("num_attention_heads", "hidden_size")?,
        };
        if config.size_or("rotary_dim", head_dim)? != head_dim {
            let expected = format!("{head_dim}, all of a head");
            return Err(config.error("rotary_dim", expected, config.size("rotary_dim")?));
        }
        // transformers 5 keeps what belongs to the rotary positions in a section of its own.
        let rope = config.section("rope_parameters")?;
        let base = rope.as_ref().filter(|rope| rope.get("rope_theta").is_some()).unwrap_or(config);
        let scaling = if rope.is_some() { rope.clone() } else { config.section("rope_scaling")? };
        for config in rope.iter().chain([config]) {
            let share = config.float_or("partial_rotary_factor", 1.0)?;
            if share != 1.0 {
                return Err(config.error("partial_rotary_factor", "1, all of a head", share));
            }
        }
        if config.flag_or("mlp_bias", false)? {
            return Err(config.error("mlp_bias", "false", true));
        }
        Ok(LlamaConfig {
            vocabulary: config.size("vocab_size")?,
            context: config.size_or("max_position_embeddings", 2048)?,
            width,
            layers: config.size("num_hidden_layers")?,
            heads,
            key_heads,
            head_dim,
            hidden: config.size("intermediate_size")?,
            activation: names::activation(config, "hidden_act", "silu")?,
            epsilon: config.float_or("rms_norm_eps", 1e-6)? as f32,
            rope_base: base.float_or("rope_theta", 10_000.0)?,
            rope_scaling: scaling.as_ref().map_or(Ok(RopeScaling::None), read_scaling)?,
            attention_bias: config.flag_or("attention_bias", false)?,
            tied: config.flag_or("tie_word_embeddings", false)?,
            attention: names::family(config)?,
        })
    }

    fn write(&self) -> serde_json::Value {
        let mut config = serde_json::json!({
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.hidden,
            "hidden_act": names::of_activation(self.activation),
            "rms_norm_eps": names::decimal(self.epsilon),
            "rope_theta": self.saved_base(),
            "attention_bias": self.attention_bias,
            "tie_word_embeddings": self.tied,
        });
        names::write_family(&mut config, self.attention);
        let scaling = match self.rope_scaling {
            RopeScaling::Linear(factor) => serde_json::json!({ "rope_type": "linear", "factor": factor }),
            RopeScaling::Llama3 { factor, low, high, trained } => serde_json::json!({
                "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                "original_max_position_embeddings": trained,
            }),
            _ => return config,
        };
        config["rope_scaling"] = scaling;
        config
    }

    /// The base of the rotary positions, with the scaling in it that is nothing but another base and has no name of its own.
    fn saved_base(&self) -> f64 {
        let dim = self.head_dim as f64;
        match self.rope_scaling {
            RopeScaling::Ntk(factor) => self.rope_base * factor.powf(dim / (dim - 2.0)),
            _ => self.rope_base,
        }
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let [v, d, l, h, g, dim, f] =
            [self.vocabulary, self.width, self.layers, self.heads, self.key_heads, self.head_dim, self.hidden]
                .map(|x| x as u128);
        let bias = if self.attention_bias { (h + 2 * g) * dim + d } else { 0 };
        let attention = d * (h + 2 * g) * dim + h * dim * d + bias;
        let attention = self.attention.parameters(attention, self.heads, self.head_dim);
        v * d * if self.tied { 1 } else { 2 } + l * (attention + 3 * d * f + 2 * d) + d
    }
}

/// `rope_scaling`, whose kind older files call `type`.
fn read_scaling(section: &Config) -> Result<RopeScaling> {
    let key = if section.get("rope_type").is_some() { "rope_type" } else { "type" };
    Ok(match section.text_or(key, "default")? {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear(section.float("factor")?),
        "llama3" => RopeScaling::Llama3 {
            factor: section.float("factor")?,
            low: section.float("low_freq_factor")?,
            high: section.float("high_freq_factor")?,
            trained: section.size("original_max_position_embeddings")?,
        },
        other => return Err(section.error(key, "default, linear or llama3", other)),
    })
}

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
        let rope = Rope::new(head_dim).base(config.rope_base).scaling(config.rope_scaling);
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
                    layer: GatedMlp::new(width, hidden, activation, random),
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
            head: (!config.tied).then(|| Embedding::new(vocabulary, width, random)),
        })
    }

    /// The model of a checkpoint.
    ///
    /// # Errors
    /// If its configuration makes no sense, a tensor is absent or has another shape than that calls for, or the rotary
    /// positions are scaled by a rule that is not known here.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let config = LlamaConfig::read(checkpoint.config())?;
        let config = LlamaConfig { rope_scaling: factors::scaling(checkpoint, &config)?, ..config };
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Llama::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Llama::load) and Hugging Face's `LlamaForCausalLM` read, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        NAMES.save(folder, &self.config.write(), self, dtype)
    }

    /// Its sizes.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
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
        self.head.as_ref().unwrap_or(&self.tokens).logits(hidden)
    }

    fn likeliest(&self, hidden: ArrayView1<f32>, k: usize) -> Result<Vec<(u32, f32)>> {
        self.head.as_ref().unwrap_or(&self.tokens).likeliest(hidden, k)
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
