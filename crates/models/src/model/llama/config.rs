//! The sizes of a Llama, with presets, and how `config.json` says them.

use foveal::RopeScaling;

use super::positions::Positions;
use crate::Result;
use crate::checkpoint::Config;
use crate::layer::{Activation, Family};
use crate::model::names;

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
    /// By how much they make queries and keys longer: 1, or more with YaRN.
    pub rope_attention_factor: f64,
    /// Whether the layers of attention have biases.
    pub attention_bias: bool,
    /// Whether the layers of the MLP have biases.
    pub mlp_bias: bool,
    /// Whether it predicts tokens. Without that it is the body alone, which makes vectors.
    pub predicts: bool,
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
            rope_attention_factor: 1.0,
            attention_bias: false,
            mlp_bias: false,
            predicts: true,
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

    pub(super) fn read(config: &Config) -> Result<Self> {
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
        names::only(config, &[("is_causal", true)])?;
        let positions = Positions::read(config)?;
        Ok(LlamaConfig {
            vocabulary: config.size("vocab_size")?,
            context: positions.context,
            width,
            layers: config.size("num_hidden_layers")?,
            heads,
            key_heads,
            head_dim,
            hidden: config.size("intermediate_size")?,
            activation: names::activation(config, "hidden_act", "silu")?,
            epsilon: config.float_or("rms_norm_eps", 1e-6)? as f32,
            rope_base: positions.base,
            rope_scaling: positions.scaling,
            rope_attention_factor: positions.attention_factor,
            attention_bias: config.flag_or("attention_bias", false)?,
            mlp_bias: config.flag_or("mlp_bias", false)?,
            predicts: true,
            tied: config.flag_or("tie_word_embeddings", false)?,
            attention: names::family(config)?,
        })
    }

    pub(super) fn write(&self) -> serde_json::Value {
        let mut config = serde_json::json!({
            "model_type": "llama",
            "architectures": [if self.predicts { "LlamaForCausalLM" } else { "LlamaModel" }],
            "vocab_size": self.vocabulary,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.hidden,
            "hidden_act": names::of_activation(self.activation),
            "rms_norm_eps": names::decimal(self.epsilon),
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "tie_word_embeddings": self.tied,
        });
        self.positions().write(&mut config, self.head_dim);
        names::write_family(&mut config, self.attention);
        config
    }

    fn positions(&self) -> Positions {
        Positions {
            context: self.context,
            base: self.rope_base,
            scaling: self.rope_scaling,
            attention_factor: self.rope_attention_factor,
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
        let mlp = 3 * d * f + if self.mlp_bias { 2 * f + d } else { 0 };
        let head = if self.predicts && !self.tied { v * d } else { 0 };
        v * d + l * (attention + mlp + 2 * d) + d + head
    }
}
