use std::fmt;

use super::Config;
use crate::{Error, Result};

/// The kinds of models there are, by the names that checkpoints give themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Architecture {
    /// GPT-2: a decoder with learned positions and fused Q, K, V.
    Gpt2,
    /// BERT: an encoder with learned positions.
    Bert,
    /// Llama: a decoder with RMS norm, rotary positions, grouped heads and a gated MLP.
    Llama,
    /// ViT: an encoder over the patches of an image.
    Vit,
    /// The encoder-decoder of Vaswani and others (2017), in the form that this crate trains and saves.
    Transformer,
    /// Fusion-in-Decoder (Izacard and Grave 2020) with a copy head, in the form that this crate trains and saves.
    Reader,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Architecture; 6] = [
        Architecture::Gpt2,
        Architecture::Bert,
        Architecture::Llama,
        Architecture::Vit,
        Architecture::Transformer,
        Architecture::Reader,
    ];

    /// The name that stands as `model_type` in a `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Gpt2 => "gpt2",
            Architecture::Bert => "bert",
            Architecture::Llama => "llama",
            Architecture::Vit => "vit",
            Architecture::Transformer => "transformer",
            Architecture::Reader => "fusion-in-decoder",
        }
    }

    /// What the names of the body's tensors begin with when a checkpoint also holds a head.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Architecture::Gpt2 => "transformer.",
            Architecture::Bert => "bert.",
            Architecture::Llama => "model.",
            Architecture::Vit => "vit.",
            Architecture::Transformer | Architecture::Reader => "",
        }
    }

    /// The architecture a configuration names: `model_type`, or where that is absent the class in `architectures`.
    pub(crate) fn of(config: &Config) -> Result<Self> {
        let got = match config.get("model_type") {
            Some(_) => config.text("model_type")?.to_owned(),
            None => match config.get("architectures").and_then(|list| list.get(0)).and_then(|name| name.as_str()) {
                Some(class) => class.to_owned(),
                None => return Err(config.error("model_type", expected(), "absent")),
            },
        };
        let lower = got.to_lowercase();
        let exact = Architecture::ALL.into_iter().find(|known| known.name() == got);
        let class = || {
            // "GPT2LMHeadModel", "BertForMaskedLM": the name and then a capital word.
            let class = Architecture::ALL.into_iter().find(|known| {
                lower
                    .strip_prefix(known.name())
                    .is_some_and(|rest| ["model", "lmhead", "for"].iter().any(|w| rest.starts_with(w)))
            });
            class.filter(|_| config.get("model_type").is_none())
        };
        exact.or_else(class).ok_or_else(|| Error::Architecture {
            path: config.path().to_path_buf(),
            got,
            known: Architecture::ALL.map(Architecture::name).to_vec(),
        })
    }
}

fn expected() -> String {
    format!("one of {}", Architecture::ALL.map(Architecture::name).join(", "))
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Architecture> {
        Architecture::of(&Config::from_json("config.json", json.as_bytes()).unwrap())
    }

    #[test]
    fn by_type_or_by_class() {
        assert_eq!(of(r#"{"model_type": "llama"}"#).unwrap(), Architecture::Llama);
        assert_eq!(of(r#"{"architectures": ["GPT2LMHeadModel"]}"#).unwrap(), Architecture::Gpt2);
        assert_eq!(of(r#"{"architectures": ["BertForMaskedLM"]}"#).unwrap(), Architecture::Bert);
        assert!(matches!(of(r#"{"architectures": ["BertGenerationEncoder"]}"#), Err(Error::Architecture { .. })));
        assert!(matches!(of("{}"), Err(Error::Config { .. })));
        assert!(matches!(of(r#"{"model_type": 3}"#), Err(Error::Config { .. })));
        let error = of(r#"{"model_type": "mamba"}"#).unwrap_err().to_string();
        assert!(error.contains("mamba") && error.contains("gpt2, bert, llama, vit, transformer"), "{error}");
    }
}
