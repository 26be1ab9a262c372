//! The sizes of a ViT, with presets, and how `config.json` says them.

use crate::Result;
use crate::checkpoint::Config;
use crate::layer::{Activation, Family};
use crate::model::names;

/// The sizes of a ViT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VitConfig {
    /// Height and width of an image.
    pub image: usize,
    /// Height and width of a patch.
    pub patch: usize,
    /// The colours: 3, or 1 for grey.
    pub channels: usize,
    /// D.
    pub width: usize,
    /// The number of blocks.
    pub layers: usize,
    /// H.
    pub heads: usize,
    /// The width of the MLP.
    pub hidden: usize,
    /// Its activation.
    pub activation: Activation,
    /// ε of the norms.
    pub epsilon: f32,
    /// The classes it tells apart; 0 for a model without them.
    pub classes: usize,
    /// Whether a token of its own collects what the classes are told by. Otherwise it is the mean of all patches.
    pub class_token: bool,
    /// How patches attend to each other.
    pub attention: Family,
}

impl VitConfig {
    /// ViT base with patches of 16, 86 million parameters.
    pub fn base16() -> Self {
        VitConfig {
            image: 224,
            patch: 16,
            channels: 3,
            width: 768,
            layers: 12,
            heads: 12,
            hidden: 3072,
            activation: Activation::Gelu,
            epsilon: 1e-12,
            classes: 1000,
            class_token: true,
            attention: Family::Softmax,
        }
    }

    /// For handwritten digits of 28 × 28 in 49 patches of 4 × 4, to be trained here.
    pub fn digits() -> Self {
        let base = VitConfig { image: 28, patch: 4, channels: 1, classes: 10, ..VitConfig::base16() };
        VitConfig { width: 64, layers: 4, heads: 4, hidden: 128, ..base }
    }

    pub(super) fn read(config: &Config, classes: usize) -> Result<Self> {
        if !config.flag_or("qkv_bias", true)? {
            return Err(config.error("qkv_bias", "true", false));
        }
        Ok(VitConfig {
            image: config.size_or("image_size", 224)?,
            patch: match config.get("patch_size") {
                Some(_) => config.divisor("patch_size", "image_size")?,
                None => 16,
            },
            channels: config.size_or("num_channels", 3)?,
            width: config.size("hidden_size")?,
            layers: config.size("num_hidden_layers")?,
            heads: config.divisor("num_attention_heads", "hidden_size")?,
            hidden: config.size("intermediate_size")?,
            activation: names::activation(config, "hidden_act", "gelu")?,
            epsilon: config.float_or("layer_norm_eps", 1e-12)? as f32,
            classes,
            class_token: config.flag_or("class_token", true)?,
            attention: names::family(config)?,
        })
    }

    pub(super) fn write(&self, labels: &[String]) -> serde_json::Value {
        let labels: serde_json::Map<_, _> =
            labels.iter().enumerate().map(|(i, label)| (i.to_string(), label.clone().into())).collect();
        let mut config = serde_json::json!({
            "model_type": "vit",
            "architectures": ["ViTForImageClassification"],
            "image_size": self.image,
            "patch_size": self.patch,
            "num_channels": self.channels,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.hidden,
            "hidden_act": names::of_activation(self.activation),
            "layer_norm_eps": names::decimal(self.epsilon),
            "id2label": labels,
        });
        if !self.class_token {
            config["class_token"] = false.into();
        }
        names::write_family(&mut config, self.attention);
        config
    }

    /// The patches of a row, or of a column, of an image.
    pub fn grid(&self) -> usize {
        self.image / self.patch.max(1)
    }

    /// The number of tokens: all patches, and one for the class if there is one.
    pub fn tokens(&self) -> usize {
        self.first_patch() + self.grid() * self.grid()
    }

    /// The number of the token that is the first patch.
    pub fn first_patch(&self) -> usize {
        usize::from(self.class_token)
    }

    /// The number of parameters, without making them.
    pub fn parameters(&self) -> u128 {
        let [p, c, d, l, f, t, k] =
            [self.patch, self.channels, self.width, self.layers, self.hidden, self.tokens(), self.classes]
                .map(|x| x as u128);
        let attention = self.attention.parameters(4 * d * d + 4 * d, self.heads, self.width / self.heads.max(1));
        let block = attention + 2 * d * f + d + f + 4 * d;
        let classes = if k > 0 { k * d + k } else { 0 };
        d * c * p * p + d + self.first_patch() as u128 * d + t * d + l * block + 2 * d + classes
    }
}
