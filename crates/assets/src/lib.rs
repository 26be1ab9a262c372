//! The models inside `foveal`, as the bytes of their files.
//!
//! They are small, trained by `make models` from nothing, and described by the card beside each. This crate holds bytes and
//! no code: `foveal-models` opens them (feature `inside`).
//!
//! ```
//! let model = foveal_assets::find("shakespeare").expect("a model inside");
//! assert!(model.config.starts_with(b"{") && model.tokenizer.is_some());
//! ```

#![forbid(unsafe_code)]

/// A model, as the bytes of its files.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Asset {
    /// What it is called.
    pub name: &'static str,
    /// Its `config.json`.
    pub config: &'static [u8],
    /// Its `model.safetensors`.
    pub weights: &'static [u8],
    /// The `tokenizer.json` of what it reads; none for images.
    pub tokenizer: Option<&'static [u8]>,
    /// The `tokenizer.json` of what it writes, where that is another language.
    pub target: Option<&'static [u8]>,
}

macro_rules! file {
    ($path:literal) => {
        include_bytes!(concat!("../models/", $path))
    };
}

/// All models inside.
pub const MODELS: [Asset; 4] = [
    Asset {
        name: "shakespeare",
        config: file!("shakespeare/config.json"),
        weights: file!("shakespeare/model.safetensors"),
        tokenizer: Some(file!("shakespeare/tokenizer.json")),
        target: None,
    },
    Asset {
        name: "translate-en-ko",
        config: file!("translate-en-ko/config.json"),
        weights: file!("translate-en-ko/model.safetensors"),
        tokenizer: Some(file!("translate-en-ko/source/tokenizer.json")),
        target: Some(file!("translate-en-ko/target/tokenizer.json")),
    },
    Asset {
        name: "digits",
        config: file!("digits/config.json"),
        weights: file!("digits/model.safetensors"),
        tokenizer: None,
        target: None,
    },
    Asset {
        name: "reader",
        config: file!("reader/config.json"),
        weights: file!("reader/model.safetensors"),
        tokenizer: Some(file!("reader/tokenizer.json")),
        target: None,
    },
];

/// The model of this name.
pub fn find(name: &str) -> Option<&'static Asset> {
    const ALL: &[Asset] = &MODELS;
    ALL.iter().find(|model| model.name == name)
}

impl std::fmt::Debug for Asset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asset").field("name", &self.name).field("weights", &self.weights.len()).finish_non_exhaustive()
    }
}
