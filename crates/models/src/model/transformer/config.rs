//! The sizes of an encoder-decoder, as its configuration file has them.

use crate::Result;
use crate::checkpoint::Config;
use crate::layer::{Activation, Family, NormOrder};
use crate::model::names;

/// The sizes of an encoder-decoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerConfig {
    /// The number of tokens of the sequence that is read.
    pub source_vocabulary: usize,
    /// The number of tokens of the one that is written.
    pub target_vocabulary: usize,
    /// The longest sequence, of either.
    pub context: usize,
    /// D.
    pub width: usize,
    /// H.
    pub heads: usize,
    /// The width of the MLPs.
    pub hidden: usize,
    /// The blocks of the encoder.
    pub encoder_layers: usize,
    /// The blocks of the decoder.
    pub decoder_layers: usize,
    /// The activation of the MLPs.
    pub activation: Activation,
    /// Where the norms stand.
    pub order: NormOrder,
    /// ε of the norms.
    pub epsilon: f32,
    /// Whether F also makes the predictions.
    pub tied: bool,
    /// How tokens attend to each other: in the encoder, in the decoder to those before, and from one to the other, each as
    /// far as the mathematics allows. Where it does not, it is softmax attention.
    pub attention: Family,
    /// Where its cross-attention tells best what each token was made from, if that was measured.
    pub alignment: Option<Alignment>,
}

/// A layer of cross-attention, and one of its heads or the mean of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The layer.
    pub layer: usize,
    /// The head; the mean of all if none.
    pub head: Option<usize>,
    /// Whether it was taught with gold alignments.
    pub guided: bool,
}

impl TransformerConfig {
    /// The base model of the paper, with a table of tokens for each language: 82 million parameters.
    pub fn base() -> Self {
        TransformerConfig {
            source_vocabulary: 37_000,
            target_vocabulary: 37_000,
            context: 512,
            width: 512,
            heads: 8,
            hidden: 2048,
            encoder_layers: 6,
            decoder_layers: 6,
            activation: Activation::Relu,
            order: NormOrder::Last,
            epsilon: 1e-5,
            tied: true,
            attention: Family::Softmax,
            alignment: None,
        }
    }

    /// The big model of the paper.
    pub fn big() -> Self {
        TransformerConfig { width: 1024, heads: 16, hidden: 4096, ..TransformerConfig::base() }
    }

    /// Two layers each of width 128, with the norms first: what a laptop trains in minutes.
    pub fn small() -> Self {
        let base = TransformerConfig { context: 64, width: 128, heads: 4, hidden: 512, ..TransformerConfig::base() };
        TransformerConfig { encoder_layers: 2, decoder_layers: 2, order: NormOrder::First, ..base }
    }

    pub(super) fn read(config: &Config) -> Result<Self> {
        let order = match config.text_or("norm_order", "last")? {
            "first" => NormOrder::First,
            "last" => NormOrder::Last,
            other => return Err(config.error("norm_order", "first or last", other)),
        };
        Ok(TransformerConfig {
            source_vocabulary: config.size("source_vocab_size")?,
            target_vocabulary: config.size("target_vocab_size")?,
            context: config.size("max_position_embeddings")?,
            width: config.size("d_model")?,
            heads: config.divisor("num_heads", "d_model")?,
            hidden: config.size("ffn_dim")?,
            encoder_layers: config.size("encoder_layers")?,
            decoder_layers: config.size("decoder_layers")?,
            activation: names::activation(config, "activation_function", "relu")?,
            order,
            epsilon: config.float_or("layer_norm_eps", 1e-5)? as f32,
            tied: config.flag_or("tie_word_embeddings", true)?,
            attention: names::family(config)?,
            alignment: match config.index("alignment_layer")? {
                Some(layer) => Some(Alignment {
                    layer,
                    head: config.index("alignment_head")?,
                    guided: config.flag_or("alignment_guided", false)?,
                }),
                None => None,
            },
        })
    }

    pub(super) fn write(&self) -> serde_json::Value {
        let mut config = serde_json::json!({
            "model_type": "transformer",
            "source_vocab_size": self.source_vocabulary,
            "target_vocab_size": self.target_vocabulary,
            "max_position_embeddings": self.context,
            "d_model": self.width,
            "num_heads": self.heads,
            "ffn_dim": self.hidden,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "activation_function": names::of_activation(self.activation),
            "norm_order": match self.order { NormOrder::First => "first", NormOrder::Last => "last" },
            "layer_norm_eps": names::decimal(self.epsilon),
            "tie_word_embeddings": self.tied,
            "alignment_layer": self.alignment.map(|alignment| alignment.layer),
            "alignment_head": self.alignment.and_then(|alignment| alignment.head),
            "alignment_guided": self.alignment.is_some_and(|alignment| alignment.guided),
        });
        names::write_family(&mut config, self.attention);
        config
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let TransformerConfig { source_vocabulary, target_vocabulary, encoder_layers, decoder_layers, .. } = *self;
        let [s, t, d, f, e, n] =
            [source_vocabulary, target_vocabulary, self.width, self.hidden, encoder_layers, decoder_layers]
                .map(|x| x as u128);
        let head_dim = self.width / self.heads.max(1);
        let attention = |family: Family| family.parameters(4 * d * d + 4 * d, self.heads, head_dim) + 2 * d;
        let [encoder, decoder, cross] =
            [self.attention, self.attention.of_decoder(), self.attention.across()].map(attention);
        let mlp = 2 * d * f + d + f + 2 * d;
        let embeddings = (s + t * if self.tied { 1 } else { 2 }) * d;
        embeddings + e * (encoder + mlp) + n * (decoder + cross + mlp) + 4 * d
    }
}
