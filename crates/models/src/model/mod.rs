//! The models, one file each: configuration with presets, the model, its run and the way back.
//!
//! Every model is a stack of [`Block`]s. [`Model`] is any of them, by what a checkpoint says it is.

mod bert;
mod block;
mod gpt2;
pub mod language;
mod llama;
mod names;
pub mod reader;
mod stack;
pub mod transformer;
mod vit;

pub use self::bert::{Bert, BertConfig, Masked, MaskedHead, Sentences};
pub use self::block::Block;
pub use self::gpt2::{Gpt2, Gpt2Config};
pub use self::language::{HeadGradients, LanguageModel, Trained};
pub use self::llama::{Llama, LlamaConfig};
pub use self::reader::{Reader, ReaderConfig};
pub use self::transformer::{Transformer, TransformerConfig};
pub use self::vit::{Filter, Preprocessor, Size, Vit, VitConfig};
use crate::checkpoint::{Architecture, Checkpoint};
use crate::layer::Family;
use crate::{Error, Result};

/// Any of the models.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a program has one or two, and their layers lie elsewhere")]
pub enum Model {
    /// GPT-2.
    Gpt2(Gpt2),
    /// BERT.
    Bert(Bert),
    /// Llama.
    Llama(Llama),
    /// ViT.
    Vit(Vit),
    /// The encoder-decoder.
    Transformer(Transformer),
    /// Fusion-in-Decoder.
    Reader(Reader),
}

impl Model {
    /// The model of a checkpoint, whatever it is.
    ///
    /// # Errors
    /// If there is no model of its architecture, its configuration makes no sense, or a tensor is absent or has another
    /// shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        Ok(match checkpoint.architecture()? {
            Architecture::Gpt2 => Model::Gpt2(Gpt2::load(checkpoint)?),
            Architecture::Bert => Model::Bert(Bert::load(checkpoint)?),
            Architecture::Llama => Model::Llama(Llama::load(checkpoint)?),
            Architecture::Vit => Model::Vit(Vit::load(checkpoint)?),
            Architecture::Transformer => Model::Transformer(Transformer::load(checkpoint)?),
            Architecture::Reader => Model::Reader(Reader::load(checkpoint)?),
        })
    }

    /// The kind of model.
    pub fn architecture(&self) -> Architecture {
        match self {
            Model::Gpt2(_) => Architecture::Gpt2,
            Model::Bert(_) => Architecture::Bert,
            Model::Llama(_) => Architecture::Llama,
            Model::Vit(_) => Architecture::Vit,
            Model::Transformer(_) => Architecture::Transformer,
            Model::Reader(_) => Architecture::Reader,
        }
    }

    /// Lets the model see more tokens than it was made for, where its positions are computed and not learned: Llama's rotary
    /// and the encoder-decoder's sinusoidal ones. It computes as before; how well it reads beyond what it was trained on
    /// is another matter.
    ///
    /// # Errors
    /// [`Error::Unfit`] if its positions are learned, or its attention was built for its context.
    pub fn raise_context(&mut self, tokens: usize) -> Result<()> {
        // BigBird's random blocks are drawn for the context.
        let free = |family| !matches!(family, Family::BigBird { .. });
        match self {
            Model::Llama(model) if free(model.config().attention) => {
                model.raise_context(tokens);
                return Ok(());
            }
            Model::Transformer(model) if free(model.config().attention) => {
                model.raise_context(tokens);
                return Ok(());
            }
            _ => {}
        }
        let wanted =
            "see more tokens than it was made for: its positions are learned, or its attention is made for them";
        Err(Error::Unfit { architecture: self.architecture(), wanted, fit: "llama, whose positions are computed" })
    }

    /// The model as one that predicts the next token.
    ///
    /// # Errors
    /// [`Error::Unfit`] if it is none.
    pub fn as_language_model(&self) -> Result<&dyn LanguageModel> {
        match self {
            Model::Gpt2(model) => Ok(model),
            Model::Llama(model) => Ok(model),
            _ => Err(Error::Unfit {
                architecture: self.architecture(),
                wanted: "predict the next token",
                fit: "gpt2 or llama",
            }),
        }
    }
}
