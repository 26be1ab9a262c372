//! What was observed while a model read a text: its trace, and the tokens that rows and columns belong to.

use ndarray::{Array1, ArrayView1};

use crate::analysis::by_rows;
use crate::analysis::words::{Group, groups};
use crate::generate::Session;
use crate::generate::beam::{Search, search, watch};
use crate::model::{Bert, Sentences, Transformer};
use crate::open::OpenModel;
use crate::trace::{Capture, Kind, LayerTrace, Probe, Trace};
use crate::{Encoding, Error, Model, Result};

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

/// What an encoder-decoder has written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// As text, without spaces around it.
    pub text: String,
    /// As tokens, without those that begin and end it.
    pub tokens: Vec<u32>,
    /// ln p of all of them together.
    pub log_probability: f32,
}

/// Predictions that an observation keeps.
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
    /// What was written; of encoder-decoders alone.
    pub written: Option<Written>,
}

impl Observation {
    /// Lets a model read a text. `kind` chooses among the kinds of attention of an encoder-decoder, cross-attention if none.
    ///
    /// # Errors
    /// If the model reads no text, the text is longer than it can see, or it has no such attention.
    pub fn of(open: &OpenModel, text: &str, kind: Option<Kind>) -> Result<Self> {
        let observation = match &open.model {
            Model::Bert(model) => Observation::of_encoder(open, model, text)?,
            Model::Transformer(model) => {
                return Observation::of_translation(open, model, text, kind.unwrap_or(Kind::Cross), Search::default());
            }
            Model::Gpt2(_) | Model::Llama(_) | Model::Vit(_) => Observation::of_language(open, text)?,
        };
        match kind.filter(|wanted| *wanted != observation.kind) {
            Some(wanted) => Err(Error::NoAttention { name: open.name.clone(), wanted, has: observation.kind }),
            None => Ok(observation),
        }
    }

    /// Lets an encoder-decoder translate a text.
    ///
    /// # Errors
    /// As [`of`](Self::of); also if it is no encoder-decoder.
    pub fn translating(open: &OpenModel, text: &str, kind: Kind, limits: Search) -> Result<Self> {
        Observation::of_translation(open, open.translator()?, text, kind, limits)
    }

    fn of_language(open: &OpenModel, text: &str) -> Result<Self> {
        let tokenizer = open.tokenizer()?;
        let encoding = tokenizer.encode(text)?;
        let mut session = Session::new(open.model.as_language_model()?).watched_by(Probe::new(Capture::All));
        let named = |(token, probability): (u32, f32)| {
            let label = tokenizer.describe_after(encoding.ids(), &[token]).map(|encoding| encoding.labels()[0].clone());
            // A model may have more rows than its tokenizer has tokens.
            Prediction { token, label: label.unwrap_or_else(|_| token.to_string()), probability }
        };
        let predictions = match session.feed(encoding.ids()) {
            Ok(logits) => most_probable(&logits, PREDICTIONS).into_iter().map(named).collect(),
            // A body without a head attends as any other, and predicts nothing.
            Err(Error::MissingPart { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let axis = TokenAxis::of(&encoding);
        Ok(Observation {
            text: text.to_owned(),
            trace: session.trace(),
            kind: Kind::Decoder,
            queries: axis.clone(),
            keys: axis,
            predictions,
            written: None,
        })
    }

    fn of_encoder(open: &OpenModel, model: &Bert, text: &str) -> Result<Self> {
        let encoding = open.tokenizer()?.encode(text)?;
        let mut probe = Probe::new(Capture::All);
        model.infer(&Sentences::new(&[encoding.ids()]), &mut probe)?;
        let axis = TokenAxis::of(&encoding);
        Ok(Observation {
            text: text.to_owned(),
            trace: probe.into_trace(),
            kind: Kind::Encoder,
            queries: axis.clone(),
            keys: axis,
            predictions: Vec::new(),
            written: None,
        })
    }

    fn of_translation(open: &OpenModel, model: &Transformer, text: &str, kind: Kind, limits: Search) -> Result<Self> {
        let (source, bos_eos) = (open.tokenizer()?.encode_bare(text)?, open.bos_eos()?);
        let best = search(model, source.ids(), bos_eos, limits)?.swap_remove(0);
        let target = open.target_tokenizer()?.describe(&best.tokens)?;
        let trace = watch(model, source.ids(), &best.tokens, bos_eos, Capture::All)?;
        let end = open.target_tokenizer()?.token(bos_eos.end)?;
        let (read, written) = (TokenAxis::of(&source), TokenAxis::predicting(&target, &end));
        let (queries, keys) = match kind {
            Kind::Encoder => (read.clone(), read),
            Kind::Decoder => (written.clone(), written),
            Kind::Cross => (written, read),
        };
        let written = Written {
            text: target.text().trim().to_owned(),
            tokens: best.tokens,
            log_probability: best.log_probability,
        };
        Ok(Observation {
            text: text.to_owned(),
            trace,
            kind,
            queries,
            keys,
            predictions: Vec::new(),
            written: Some(written),
        })
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
                let score = self.salience(layer, head)?;
                if score > best.2 {
                    best = (number, head, score);
                }
            }
        }
        Ok((best.0, best.1))
    }

    /// The sum over the queries of the largest weight on another token.
    fn salience(&self, layer: &LayerTrace, head: usize) -> Result<f32> {
        let other = |i: usize, j: usize| self.is_cross() || (j != i && j != 0);
        let strongest = |i: usize, row: ArrayView1<f32>| {
            row.iter().enumerate().filter(|(j, _)| other(i, *j)).fold(0.0, |max: f32, (_, w)| max.max(*w))
        };
        let mut sum = 0.0;
        by_rows(layer, (0, head), |rows, weights| {
            sum += rows.zip(weights.outer_iter()).map(|(i, row)| strongest(i, row)).sum::<f32>();
        })?;
        Ok(sum)
    }
}

/// The most probable tokens and their probabilities, most probable first.
fn most_probable(logits: &Array1<f32>, count: usize) -> Vec<(u32, f32)> {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, x| max.max(*x));
    let sum: f32 = logits.iter().map(|x| (x - max).exp()).sum();
    let mut tokens: Vec<usize> = (0..logits.len()).collect();
    tokens.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    tokens.into_iter().take(count).map(|token| (token as u32, (logits[token] - max).exp() / sum)).collect()
}
