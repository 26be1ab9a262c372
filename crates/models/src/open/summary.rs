//! What is known about a model without running it.

use std::fmt;

use crate::tokenizer::TokenizerKind;
use crate::trace::Kind;
use crate::{Architecture, Checkpoint, Dtype, Model, Tokenizer};

/// Kind and sizes of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelSummary {
    /// The kind of model.
    pub architecture: Architecture,
    /// How most of its numbers are stored; none if nothing is.
    pub dtype: Option<Dtype>,
    /// The number of parameters.
    pub parameters: u128,
    /// The layers of each kind of attention.
    pub layers: Vec<(Kind, usize)>,
    /// H, the heads of the queries in each layer.
    pub heads: usize,
    /// G, the heads of the keys and values: fewer where heads of queries share them.
    pub key_heads: usize,
    /// D, the width of its rows.
    pub width: usize,
    /// The tokens that it can see.
    pub context: usize,
    /// The tokens that it knows; none for images.
    pub vocabulary: Option<usize>,
    /// How its tokenizer cuts text; none for images.
    pub tokenizer: Option<TokenizerKind>,
    /// Whether it brings a chat template.
    pub chat: bool,
}

impl ModelSummary {
    pub(super) fn of(model: &Model, dtype: Option<Dtype>, tokenizer: Option<&Tokenizer>) -> Self {
        let architecture = model.architecture();
        let decoder = |layers| vec![(Kind::Decoder, layers)];
        let encoder = |layers| vec![(Kind::Encoder, layers)];
        let (parameters, layers, heads, width, context, vocabulary) = match model {
            Model::Gpt2(model) => {
                let c = model.config();
                (c.parameters(), decoder(c.layers), c.heads, c.width, c.context, Some(c.vocabulary))
            }
            Model::Llama(model) => {
                let c = model.config();
                (c.parameters(), decoder(c.layers), c.heads, c.width, c.context, Some(c.vocabulary))
            }
            Model::Bert(model) => {
                let c = model.config();
                (c.parameters(), encoder(c.layers), c.heads, c.width, c.context, Some(c.vocabulary))
            }
            Model::Vit(model) => {
                let c = model.config();
                (c.parameters(), encoder(c.layers), c.heads, c.width, c.tokens(), None)
            }
            Model::Transformer(model) => {
                let c = model.config();
                let (read, written) = (c.encoder_layers, c.decoder_layers);
                let layers = vec![(Kind::Encoder, read), (Kind::Decoder, written), (Kind::Cross, written)];
                (c.parameters(), layers, c.heads, c.width, c.context, Some(c.source_vocabulary))
            }
            Model::Reader(model) => {
                let c = model.config();
                let (read, written) = (c.encoder_layers, c.decoder_layers);
                let layers = vec![(Kind::Encoder, read), (Kind::Decoder, written), (Kind::Cross, written)];
                (c.parameters(), layers, c.heads, c.width, c.context, Some(c.vocabulary))
            }
        };
        let key_heads = if let Model::Llama(model) = model { model.config().key_heads } else { heads };
        ModelSummary {
            architecture,
            dtype,
            parameters,
            layers,
            heads,
            key_heads,
            width,
            context,
            vocabulary,
            tokenizer: tokenizer.map(Tokenizer::kind),
            chat: tokenizer.is_some_and(|tokenizer| tokenizer.chat_template().is_some()),
        }
    }
}

/// The type that most numbers of a checkpoint have.
pub(super) fn dtype(checkpoint: &Checkpoint) -> Option<Dtype> {
    let mut counts: Vec<(Dtype, usize)> = Vec::new();
    for tensor in checkpoint.names().filter_map(|name| checkpoint.get(name)) {
        let count = tensor.shape().iter().product();
        match counts.iter_mut().find(|(dtype, _)| *dtype == tensor.dtype()) {
            Some((_, sum)) => *sum += count,
            None => counts.push((tensor.dtype(), count)),
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(dtype, _)| dtype)
}

impl fmt::Display for ModelSummary {
    /// As "gpt2, 12 decoder layers of 12 heads, width 768, 124439808 parameters in F32, context 1024, vocabulary 50257".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.architecture)?;
        for (n, (kind, layers)) in self.layers.iter().enumerate() {
            write!(f, "{}{layers} {kind}", if n == 0 { ", " } else { " + " })?;
        }
        write!(f, " layers of {} heads, width {}, {} parameters", self.heads, self.width, self.parameters)?;
        if let Some(dtype) = self.dtype {
            write!(f, " in {dtype}")?;
        }
        write!(f, ", context {}", self.context)?;
        self.vocabulary.map_or(Ok(()), |vocabulary| write!(f, ", vocabulary {vocabulary}"))
    }
}
