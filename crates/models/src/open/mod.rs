//! A model with all that it takes to use it: its tokenizers, the tokens that end a text, and what is known about it.
//!
//! ```no_run
//! use foveal_models::OpenModel;
//!
//! let model = OpenModel::open("gpt2")?; // a folder, a .gguf file, or a name on the hub
//! println!("{}: {}", model.name, model.summary());
//! let seen = model.observe("The cat sat on the mat")?;
//! let (layer, head) = seen.salient_head(None)?;
//! let tile = seen.layer(layer)?.tile(0, head, 0..4, 0..4)?; // weights of the first four tokens on each other
//! # Ok::<(), foveal_models::Error>(())
//! ```

mod summary;

use std::fmt;
use std::path::{Path, PathBuf};

pub use self::summary::ModelSummary;
use crate::checkpoint::{Hub, resolve};
use crate::generate::beam::BosEos;
use crate::generate::{Session, stop_tokens};
use crate::model::{Reader, Transformer};
use crate::observe::{Observation, ReadOptions};
use crate::translation::Languages;
use crate::{Architecture, Checkpoint, Dtype, Error, Model, Result, Tokenizer};

/// A model that is ready to read and write.
pub struct OpenModel {
    /// What to call it: the last part of its path, its name on the hub, or its name inside the program.
    pub name: String,
    /// The weights and the run.
    pub model: Model,
    /// The tokens that end a text.
    pub stop: Vec<u32>,
    tokenizer: Option<Tokenizer>,
    target: Option<Tokenizer>,
    path: Option<PathBuf>,
    dtype: Option<Dtype>,
}

impl OpenModel {
    /// Opens a Hugging Face folder, a `.gguf` or `.safetensors` file, a name on the hub, or, with the feature `inside`, one of
    /// the models of `foveal-assets`. A path that is there wins over a name.
    ///
    /// # Errors
    /// If there is nothing of this name, or it is no sound checkpoint of a known architecture with its tokenizer.
    pub fn open(name: &str) -> Result<Self> {
        match OpenModel::inside(name) {
            // A folder of the same name is what the user sees, so it is what the user means.
            Some(model) if !Path::new(name).exists() => model,
            _ => OpenModel::at(name, resolve(name)?),
        }
    }

    /// As [`open`](Self::open), with the settings of this hub instead of those of the environment.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_from(hub: &Hub, name: &str) -> Result<Self> {
        match OpenModel::inside(name) {
            Some(model) if !Path::new(name).exists() => model,
            _ => OpenModel::at(name, hub.resolve(name)?),
        }
    }

    fn at(name: &str, path: PathBuf) -> Result<Self> {
        let mut model = OpenModel::of(&Checkpoint::open(path)?)?;
        // A path is where it is; its last part is what it is called. A name on the hub is the name.
        if !Path::new(name).exists() {
            name.clone_into(&mut model.name);
        }
        Ok(model)
    }

    /// The model of a checkpoint that is open already.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(checkpoint: &Checkpoint) -> Result<Self> {
        let path = checkpoint.path();
        let (tokenizer, target) = match checkpoint.architecture()? {
            Architecture::Vit => (None, None),
            Architecture::Transformer => {
                let Languages { source, target } = Languages::open(path)?;
                (Some(source), Some(target))
            }
            _ => (Some(Tokenizer::of(checkpoint)?), None),
        };
        let stop = tokenizer.as_ref().map_or(Ok(Vec::new()), |tokenizer| stop_tokens(checkpoint, tokenizer))?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(OpenModel {
            name,
            model: Model::load(checkpoint)?,
            stop,
            tokenizer,
            target,
            path: Some(path.to_path_buf()),
            dtype: summary::dtype(checkpoint),
        })
    }

    /// The model of this name that is part of the program; none if there is no such model, or the feature `inside` is off.
    pub fn inside(name: &str) -> Option<Result<Self>> {
        #[cfg(feature = "inside")]
        {
            foveal_assets::find(name).map(OpenModel::of_asset)
        }
        #[cfg(not(feature = "inside"))]
        {
            let _ = name;
            None
        }
    }

    #[cfg(feature = "inside")]
    fn of_asset(asset: &foveal_assets::Asset) -> Result<Self> {
        let checkpoint = Checkpoint::embedded(asset.name, asset.config, asset.weights)?;
        let tokenizer = |json: Option<&[u8]>| json.map(|json| Tokenizer::from_json(asset.name, json)).transpose();
        Ok(OpenModel {
            name: asset.name.into(),
            model: Model::load(&checkpoint)?,
            stop: Vec::new(),
            tokenizer: tokenizer(asset.tokenizer)?,
            target: tokenizer(asset.target)?,
            path: None,
            dtype: summary::dtype(&checkpoint),
        })
    }

    /// Where it is; none for a model inside the program.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What is known about it without running it.
    pub fn summary(&self) -> ModelSummary {
        ModelSummary::of(&self.model, self.dtype, self.tokenizer.as_ref())
    }

    /// The tokenizer of what it reads.
    ///
    /// # Errors
    /// [`Error::NoText`] if it reads images.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer.as_ref().ok_or_else(|| Error::NoText { name: self.name.clone() })
    }

    /// The tokenizer of what it writes: a translator's other language, else the one it reads with.
    ///
    /// # Errors
    /// As [`tokenizer`](Self::tokenizer).
    pub fn target_tokenizer(&self) -> Result<&Tokenizer> {
        self.target.as_ref().map_or_else(|| self.tokenizer(), Ok)
    }

    /// The tokens that begin and end what an encoder-decoder writes.
    ///
    /// # Errors
    /// If its vocabulary has none.
    pub fn bos_eos(&self) -> Result<BosEos> {
        BosEos::of(self.target_tokenizer()?)
    }

    /// The model as an encoder-decoder.
    ///
    /// # Errors
    /// [`Error::Unfit`] if it is none.
    pub fn translator(&self) -> Result<&Transformer> {
        match &self.model {
            Model::Transformer(model) => Ok(model),
            other => Err(Error::Unfit {
                architecture: other.architecture(),
                wanted: "translate",
                fit: "the encoder-decoders that `foveal train pairs` makes",
            }),
        }
    }

    /// The model as a reader of passages.
    ///
    /// # Errors
    /// [`Error::Unfit`] if it is none.
    pub fn reader(&self) -> Result<&Reader> {
        match &self.model {
            Model::Reader(model) => Ok(model),
            other => Err(Error::Unfit {
                architecture: other.architecture(),
                wanted: "answer from passages",
                fit: "the readers that `foveal train questions` makes, or a language model",
            }),
        }
    }

    /// An empty text, to read and to write on with a language model.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the model does not predict the next token.
    pub fn session(&self) -> Result<Session<'_>> {
        Ok(Session::new(self.model.as_language_model()?))
    }

    /// Lets the model read a text, and keeps all that it attends to.
    ///
    /// # Errors
    /// If it reads no text, or the text is longer than it can see.
    pub fn observe(&self, text: &str) -> Result<Observation> {
        Observation::of(self, text, &ReadOptions::default())
    }
}

/// The weights are left out: they are millions of numbers.
impl fmt::Debug for OpenModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("OpenModel");
        debug.field("name", &self.name).field("path", &self.path).field("summary", &self.summary());
        debug.field("stop", &self.stop).finish_non_exhaustive()
    }
}
