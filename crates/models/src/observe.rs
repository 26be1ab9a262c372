//! What was observed while a model read a text: its trace, and the tokens that rows and columns belong to.

use ndarray::{ArrayView1, Axis};

use crate::analysis::words::{Group, groups};
use crate::analysis::{row_blocks, salience};
use crate::generate::Session;
use crate::generate::beam::{Search, search, watch};
use crate::model::{Bert, Sentences, Transformer};
use crate::open::OpenModel;
use crate::tokenizer::Message;
use crate::trace::{Capture, Kind, LayerTrace, Probe, Trace};
use crate::translation::{Sentence, Unknown};
use crate::{Encoding, Error, Model, Result, Tokenizer};

/// The tokens along one side of the matrices: the queries or the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenAxis {
    /// What each is called.
    pub labels: Vec<String>,
    /// The words that they make.
    pub groups: Vec<Group>,
    /// Whether each stands for something other than text, as `[CLS]` does.
    pub special: Vec<bool>,
}

impl TokenAxis {
    /// Tokens with these labels, each a word of its own, none special.
    pub fn plain<S: Into<String>>(labels: impl IntoIterator<Item = S>) -> Self {
        let labels: Vec<String> = labels.into_iter().map(Into::into).collect();
        let group = |(n, label): (usize, &String)| Group { label: label.clone(), tokens: n..n + 1 };
        TokenAxis { groups: labels.iter().enumerate().map(group).collect(), special: vec![false; labels.len()], labels }
    }

    /// The tokens of a text.
    pub fn of(encoding: &Encoding) -> Self {
        let special = encoding.spans().iter().map(Option::is_none).collect();
        TokenAxis { labels: encoding.labels().to_vec(), groups: groups(encoding), special }
    }

    /// The queries that predict a written sequence: each is named by the token that it predicts, the last by the end.
    pub fn predicting(encoding: &Encoding, end: &str) -> Self {
        let mut axis = TokenAxis::of(encoding);
        let n = axis.labels.len();
        axis.labels.push(end.to_owned());
        axis.groups.push(Group { label: end.to_owned(), tokens: n..n + 1 });
        axis.special.push(true);
        axis
    }

    /// The same with the unknown words of a sentence in their slots.
    fn filled(mut self, sentence: &Sentence) -> Self {
        let labels = self.labels.iter_mut().chain(self.groups.iter_mut().map(|group| &mut group.label));
        labels.for_each(|label| *label = sentence.fill(label));
        self
    }

    /// The same in whole words.
    #[must_use]
    pub fn words(&self) -> Self {
        TokenAxis {
            labels: self.groups.iter().map(|group| group.label.clone()).collect(),
            groups: self.groups.clone(),
            special: self.groups.iter().map(|group| self.special[group.tokens.start]).collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// A token that may come next.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The token.
    pub token: u32,
    /// What it is called.
    pub label: String,
    /// Its probability.
    pub probability: f32,
}

/// A token that a text leaves to be guessed, BERT's `[MASK]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedToken {
    /// Its place among the tokens.
    pub at: usize,
    /// The most probable tokens in its place, most probable first.
    pub predictions: Vec<Prediction>,
}

/// What an encoder-decoder has written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// As text, without spaces around it.
    pub text: String,
    /// As tokens, without those that begin and end it.
    pub tokens: Vec<u32>,
    /// ln p of all of them together.
    pub log_probability: f32,
    /// How sure the model is of it, from 0 to 1; see [`Sentence::confidence`]. None if it has not learned to be unsure: then it
    /// is sure of anything.
    pub confidence: Option<f32>,
    /// The words that it does not know.
    pub unknown: Vec<Unknown>,
}

/// How a model is to read a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Which attention of an encoder-decoder; cross-attention if none.
    pub kind: Option<Kind>,
    /// The tokens that are read at most, from the beginning; all if none.
    pub most: Option<usize>,
    /// Whether the text is what a user says to a model that was trained to answer: it is then put into the model's own chat
    /// template, up to where the answer begins.
    pub chat: bool,
    /// How an encoder-decoder searches for what it writes.
    pub search: Search,
}

impl ReadOptions {
    /// The tokens of a text for a model.
    ///
    /// # Errors
    /// If the model reads no text, or has no chat template where one is asked for.
    pub fn encode(&self, open: &OpenModel, text: &str) -> Result<Encoding> {
        let tokenizer = open.tokenizer()?;
        let encoding = match (self.chat, &open.model) {
            (true, _) => tokenizer.encode_chat(&[Message::user(text)])?,
            // What an encoder-decoder reads begins and ends without a token of its own.
            (false, Model::Transformer(_)) => tokenizer.encode_bare(text)?,
            (false, _) => tokenizer.encode(text)?,
        };
        Ok(match self.most {
            Some(most) => encoding.truncated(most),
            None => encoding,
        })
    }
}

/// Predictions that an observation keeps of one place.
const PREDICTIONS: usize = 5;

/// A text that a model has read, and all that it attended to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation {
    /// What was read.
    pub text: String,
    /// What was attended to.
    pub trace: Trace,
    /// The kind of attention that queries and keys belong to.
    pub kind: Kind,
    /// The rows of its matrices.
    pub queries: TokenAxis,
    /// The columns of its matrices.
    pub keys: TokenAxis,
    /// The most probable tokens to come next, most probable first; of language models alone.
    pub predictions: Vec<Prediction>,
    /// The words that the text leaves to be guessed; of encoders with a head that guesses them alone.
    pub masked: Vec<MaskedToken>,
    /// What was written; of encoder-decoders alone.
    pub written: Option<Written>,
}

impl Observation {
    /// Lets a model read a text.
    ///
    /// # Errors
    /// If the model reads no text, the text is longer than it can see, or it has no such attention.
    pub fn of(open: &OpenModel, text: &str, options: &ReadOptions) -> Result<Self> {
        let encoding = options.encode(open, text)?;
        let observation = match &open.model {
            Model::Bert(model) => Observation::of_encoder(open, model, encoding)?,
            Model::Transformer(model) => Observation::of_translation(open, model, encoding, options)?,
            Model::Gpt2(_) | Model::Llama(_) | Model::Vit(_) | Model::Reader(_) => {
                Observation::of_language(open, encoding)?
            }
        };
        match options.kind.filter(|wanted| *wanted != observation.kind) {
            Some(wanted) => Err(Error::NoAttention { name: open.name.clone(), wanted, has: observation.kind }),
            None => Ok(observation),
        }
    }

    /// Of a sequence that attends to itself.
    fn of_self(encoding: &Encoding, kind: Kind, trace: Trace) -> Self {
        let axis = TokenAxis::of(encoding);
        Observation {
            text: encoding.text().to_owned(),
            trace,
            kind,
            queries: axis.clone(),
            keys: axis,
            predictions: Vec::new(),
            masked: Vec::new(),
            written: None,
        }
    }

    fn of_language(open: &OpenModel, encoding: Encoding) -> Result<Self> {
        let mut session = Session::new(open.model.as_language_model()?).watched_by(Probe::new(Capture::All));
        let predictions = match session.feed(encoding.ids()) {
            Ok(logits) => predictions(open.tokenizer()?, encoding.ids(), logits.view()),
            // A body without a head attends as any other, and predicts nothing.
            Err(Error::MissingPart { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Observation { predictions, ..Observation::of_self(&encoding, Kind::Decoder, session.trace()) })
    }

    fn of_encoder(open: &OpenModel, model: &Bert, encoding: Encoding) -> Result<Self> {
        let (tokenizer, ids) = (open.tokenizer()?, encoding.ids());
        let mut probe = Probe::new(Capture::All);
        let hidden = model.infer(&Sentences::new(&[ids]), &mut probe)?;
        let mask = tokenizer.special().mask;
        let places: Vec<usize> = (0..ids.len()).filter(|&at| Some(ids[at]) == mask).collect();
        let masked = match model.guess(hidden.select(Axis(0), &places).view()) {
            Ok(logits) => {
                let guessed =
                    |(&at, logits)| MaskedToken { at, predictions: predictions(tokenizer, &ids[..at], logits) };
                places.iter().zip(logits.outer_iter()).map(guessed).collect()
            }
            Err(Error::MissingPart { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Observation { masked, ..Observation::of_self(&encoding, Kind::Encoder, probe.into_trace()) })
    }

    fn of_translation(
        open: &OpenModel,
        model: &Transformer,
        encoding: Encoding,
        options: &ReadOptions,
    ) -> Result<Self> {
        let (kind, bos_eos) = (options.kind.unwrap_or(Kind::Cross), open.bos_eos()?);
        let source = Sentence::of(open.tokenizer()?, encoding);
        let best = search(model, &source.ids, bos_eos, options.search)?.swap_remove(0);
        let target = open.target_tokenizer()?.describe(&best.tokens)?;
        let trace = watch(model, &source.ids, &best.tokens, bos_eos, Capture::All)?;
        let end = open.target_tokenizer()?.token(bos_eos.end)?;
        let (read, written) = (TokenAxis::of(&source.encoding), TokenAxis::predicting(&target, &end).filled(&source));
        let (queries, keys) = match kind {
            Kind::Encoder => (read.clone(), read),
            Kind::Decoder => (written.clone(), written),
            Kind::Cross => (written, read),
        };
        let written = Written {
            text: source.fill(target.text().trim()),
            tokens: best.tokens,
            log_probability: best.log_probability,
            confidence: bos_eos.unsure.map(|_| source.confidence(best.log_probability)),
            unknown: source.unknown.clone(),
        };
        let seen = Observation::of_self(&source.encoding, kind, trace);
        Ok(Observation { queries, keys, written: Some(written), ..seen })
    }

    /// Whether it is attention from one sequence to another.
    pub fn is_cross(&self) -> bool {
        self.kind == Kind::Cross
    }

    /// The numbers of the layers that were kept.
    pub fn layers(&self) -> Vec<usize> {
        self.trace.of_kind(self.kind).map(|(layer, _)| layer).collect()
    }

    /// The heads of each layer.
    pub fn heads(&self) -> usize {
        self.trace.of_kind(self.kind).map(|(_, layer)| layer.heads()).next().unwrap_or(0)
    }

    /// One layer of this kind of attention.
    ///
    /// # Errors
    /// If it was not kept.
    pub fn layer(&self, layer: usize) -> Result<&LayerTrace> {
        self.trace.layer(self.kind, layer)
    }

    /// The layer and head that attend most to other tokens than themselves and the first, where attention is left when there is
    /// nothing to look at. Of cross-attention, those that are surest. Among all layers, or within one.
    ///
    /// # Errors
    /// If the layer was not kept.
    pub fn salient_head(&self, layer: Option<usize>) -> Result<(usize, usize)> {
        let layers = layer.map_or_else(|| self.layers(), |layer| vec![layer]);
        let mut best = (layers.first().copied().unwrap_or(0), 0, -1.0);
        for number in layers {
            let layer = self.layer(number)?;
            for head in 0..layer.heads() {
                let score = salience(layer, head, self.is_cross(), row_blocks(layer))?;
                if score > best.2 {
                    best = (number, head, score);
                }
            }
        }
        Ok((best.0, best.1))
    }
}

/// The most probable tokens after `before`, most probable first, from their scores: [V].
fn predictions(tokenizer: &Tokenizer, before: &[u32], logits: ArrayView1<f32>) -> Vec<Prediction> {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, x| max.max(*x));
    let sum: f32 = logits.iter().map(|x| (x - max).exp()).sum();
    let mut tokens: Vec<usize> = (0..logits.len()).collect();
    tokens.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    let named = |index: usize| {
        let token = index as u32;
        let label = tokenizer.describe_after(before, &[token]).map(|encoding| encoding.labels()[0].clone());
        // A model may have more rows than its tokenizer has tokens.
        let label = label.unwrap_or_else(|_| token.to_string());
        Prediction { token, label, probability: (logits[index] - max).exp() / sum }
    };
    tokens.into_iter().take(PREDICTIONS).map(named).collect()
}
