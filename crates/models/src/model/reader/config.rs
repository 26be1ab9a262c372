//! The sizes of a reader.

use crate::Result;
use crate::checkpoint::Config;
use crate::model::names;

/// The sizes of a Fusion-in-Decoder model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReaderConfig {
    /// V.
    pub vocabulary: usize,
    /// The number of marks.
    pub marks: usize,
    /// The longest passage with its question, in tokens.
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
    /// ε of the norms.
    pub epsilon: f32,
}

impl ReaderConfig {
    /// Three layers that read and two that write, of width 128: what a laptop trains in some minutes.
    pub fn small(vocabulary: usize) -> Self {
        ReaderConfig {
            vocabulary,
            marks: crate::reading::MARKS,
            context: 224,
            width: 128,
            heads: 4,
            hidden: 384,
            encoder_layers: 3,
            decoder_layers: 2,
            epsilon: 1e-5,
        }
    }

    pub(super) fn read(config: &Config) -> Result<Self> {
        Ok(ReaderConfig {
            vocabulary: config.size("vocab_size")?,
            marks: config.size("marks")?,
            context: config.size("max_position_embeddings")?,
            width: config.size("d_model")?,
            heads: config.divisor("num_heads", "d_model")?,
            hidden: config.size("ffn_dim")?,
            encoder_layers: config.size("encoder_layers")?,
            decoder_layers: config.size("decoder_layers")?,
            epsilon: config.float_or("layer_norm_eps", 1e-5)? as f32,
        })
    }

    pub(super) fn write(&self) -> serde_json::Value {
        serde_json::json!({
            "model_type": "fusion-in-decoder",
            "vocab_size": self.vocabulary,
            "marks": self.marks,
            "max_position_embeddings": self.context,
            "d_model": self.width,
            "num_heads": self.heads,
            "ffn_dim": self.hidden,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "layer_norm_eps": names::decimal(self.epsilon),
        })
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let [v, m, d, f, e, n] =
            [self.vocabulary, self.marks, self.width, self.hidden, self.encoder_layers, self.decoder_layers]
                .map(|x| x as u128);
        let attention = 4 * d * d + 4 * d + 2 * d;
        let mlp = 2 * d * f + d + f + 2 * d;
        (v + m) * d + e * (attention + mlp) + n * (2 * attention + mlp) + 4 * d + d + 1
    }
}
