//! The model of a command: from a path, a name, or the program itself.

use anyhow::{Context, Result, bail};
use foveal_models::checkpoint::{self, Checkpoint};
use foveal_models::generate::beam::Frame;
use foveal_models::generate::stop_tokens;
use foveal_models::{Architecture, Model, Tokenizer};

use crate::arguments::ModelChoice;

/// A model and what it needs to read and write.
pub struct Loaded {
    /// What the user called it.
    pub name: String,
    pub model: Model,
    /// For what it reads.
    pub tokenizer: Option<Tokenizer>,
    /// For what it writes, where that is another language.
    pub target: Option<Tokenizer>,
    /// The tokens that end a text.
    pub stop: Vec<u32>,
}

/// A model inside the program.
struct Embedded {
    name: &'static str,
    config: &'static [u8],
    weights: &'static [u8],
    tokenizer: Option<&'static [u8]>,
    target: Option<&'static [u8]>,
}

macro_rules! asset {
    ($path:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/models/", $path))
    };
}

const EMBEDDED: [Embedded; 3] = [
    Embedded {
        name: "shakespeare",
        config: asset!("shakespeare/config.json"),
        weights: asset!("shakespeare/model.safetensors"),
        tokenizer: Some(asset!("shakespeare/tokenizer.json")),
        target: None,
    },
    Embedded {
        name: "translate-en-ko",
        config: asset!("translate-en-ko/config.json"),
        weights: asset!("translate-en-ko/model.safetensors"),
        tokenizer: Some(asset!("translate-en-ko/source/tokenizer.json")),
        target: Some(asset!("translate-en-ko/target/tokenizer.json")),
    },
    Embedded {
        name: "digits",
        config: asset!("digits/config.json"),
        weights: asset!("digits/model.safetensors"),
        tokenizer: None,
        target: None,
    },
];

impl Loaded {
    /// The model asked for, or the one inside of this name.
    pub fn open(choice: &ModelChoice, default: &str) -> Result<Self> {
        let name = choice.model.as_deref().unwrap_or(default);
        match EMBEDDED.iter().find(|embedded| embedded.name == name) {
            // A folder of the same name is what the user sees, so it is what the user means.
            Some(embedded) if !std::path::Path::new(name).exists() => embedded.load(),
            _ => open(name),
        }
    }

    /// The tokenizer of what it reads.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        let wanted = || format!("{} reads no text; give it an image with --image", self.name);
        self.tokenizer.as_ref().with_context(wanted)
    }

    /// The tokenizer of what it writes.
    pub fn target(&self) -> Result<&Tokenizer> {
        self.target.as_ref().or(self.tokenizer.as_ref()).with_context(|| format!("{} writes no text", self.name))
    }

    /// The tokens around what an encoder-decoder writes.
    pub fn frame(&self) -> Result<Frame> {
        let special = self.target()?.special();
        match (special.bos, special.eos) {
            (Some(begin), Some(end)) => Ok(Frame { begin, end }),
            _ => bail!("the vocabulary of {} has no <s> and </s> to begin and end a sentence with", self.name),
        }
    }
}

impl Embedded {
    fn load(&self) -> Result<Loaded> {
        let checkpoint = Checkpoint::embedded(self.name, self.config, self.weights)?;
        let tokenizer = |json: Option<&[u8]>| json.map(|json| Tokenizer::from_json(self.name, json)).transpose();
        Ok(Loaded {
            name: self.name.into(),
            model: Model::load(&checkpoint)?,
            tokenizer: tokenizer(self.tokenizer)?,
            target: tokenizer(self.target)?,
            stop: Vec::new(),
        })
    }
}

fn open(name: &str) -> Result<Loaded> {
    let checkpoint = Checkpoint::open(checkpoint::resolve(name)?)?;
    let (tokenizer, target) = match checkpoint.architecture()? {
        Architecture::Vit => (None, None),
        Architecture::Transformer => {
            let of = |side: &str| Tokenizer::from_folder(&checkpoint.path().join(side));
            (Some(of("source")?), Some(of("target")?))
        }
        _ => (Some(Tokenizer::of(&checkpoint)?), None),
    };
    let stop = tokenizer.as_ref().map_or_else(Vec::new, |tokenizer| stop_tokens(&checkpoint, tokenizer));
    // A path is where it is; its last part is what it is called.
    let path = std::path::Path::new(name);
    let called = path.file_name().filter(|_| path.exists()).map_or(name.into(), |last| last.to_string_lossy());
    Ok(Loaded { name: called.into_owned(), model: Model::load(&checkpoint)?, tokenizer, target, stop })
}
