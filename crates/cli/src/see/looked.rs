//! A text that a model has read, and all that it attended to.

use anyhow::{Result, bail};
use foveal_models::analysis::words::{Group, groups};
use foveal_models::generate::Session;
use foveal_models::generate::beam::{Search, search, watch};
use foveal_models::model::{Bert, Sentences, Transformer};
use foveal_models::trace::{Capture, Kind, LayerTrace, Probe, Trace};
use foveal_models::{Encoding, Model};

use crate::arguments::{KindChoice, Unit};
use crate::model::Loaded;

/// The tokens along one side of the matrices.
#[derive(Clone)]
pub struct Side {
    pub labels: Vec<String>,
    pub groups: Vec<Group>,
    pub special: Vec<bool>,
}

impl Side {
    pub fn new(encoding: &Encoding) -> Self {
        let special = encoding.spans().iter().map(Option::is_none).collect();
        Side { labels: encoding.labels().to_vec(), groups: groups(encoding), special }
    }

    /// What a written sequence looks like from the queries that predict it: each is named by the token it predicts, the last
    /// by the end.
    pub fn predicting(encoding: &Encoding, end: &str) -> Self {
        let mut side = Side::new(encoding);
        let n = side.labels.len();
        side.labels.push(end.to_owned());
        side.groups.push(Group { label: end.to_owned(), tokens: n..n + 1 });
        side.special.push(true);
        side
    }

    /// Tokens, or words.
    pub fn of(&self, unit: Unit) -> Side {
        match unit {
            Unit::Tokens => self.clone(),
            Unit::Words => {
                let special = self.groups.iter().map(|group| self.special[group.tokens.start]).collect();
                Side {
                    labels: self.groups.iter().map(|group| group.label.clone()).collect(),
                    special,
                    groups: self.groups.clone(),
                }
            }
        }
    }
}

/// What was seen.
pub struct Looked {
    pub trace: Trace,
    pub kind: Kind,
    pub queries: Side,
    pub keys: Side,
    /// The likeliest tokens to come next, of a language model.
    pub predictions: Option<Vec<(String, f32)>>,
    /// What an encoder-decoder has written.
    pub written: Option<String>,
    text: String,
}

impl Looked {
    /// Lets the model read a text.
    pub fn at(loaded: &Loaded, text: &str, kind: Option<KindChoice>) -> Result<Self> {
        let wanted = kind.map(|kind| match kind {
            KindChoice::Encoder => Kind::Encoder,
            KindChoice::Decoder => Kind::Decoder,
            KindChoice::Cross => Kind::Cross,
        });
        let looked = match &loaded.model {
            Model::Bert(model) => Looked::encoder(loaded, model, text)?,
            Model::Transformer(model) => {
                return Looked::translation(loaded, model, text, wanted.unwrap_or(Kind::Cross));
            }
            _ => Looked::language(loaded, text)?,
        };
        match wanted {
            Some(wanted) if wanted != looked.kind => {
                bail!("{} has {} attention and no {wanted} attention", loaded.name, looked.kind)
            }
            _ => Ok(looked),
        }
    }

    fn language(loaded: &Loaded, text: &str) -> Result<Self> {
        let tokenizer = loaded.tokenizer()?;
        let model = loaded.model.as_language_model()?;
        let encoding = tokenizer.encode(text)?;
        let mut session = Session::new(model).watched_by(Probe::new(Capture::All));
        let logits = session.feed(encoding.ids())?;
        let predictions = likeliest(&logits, 5).into_iter().map(|(token, p)| {
            let label = tokenizer.describe(&[token]).map(|encoding| encoding.labels()[0].clone());
            (label.unwrap_or_else(|_| token.to_string()), p)
        });
        let (side, predictions) = (Side::new(&encoding), Some(predictions.collect()));
        let (trace, text) = (session.trace(), text.to_owned());
        Ok(Looked { trace, kind: Kind::Decoder, queries: side.clone(), keys: side, predictions, written: None, text })
    }

    fn encoder(loaded: &Loaded, model: &Bert, text: &str) -> Result<Self> {
        let encoding = loaded.tokenizer()?.encode(text)?;
        let mut probe = Probe::new(Capture::All);
        model.infer(&Sentences::new(&[encoding.ids()]), &mut probe)?;
        let (side, trace, text) = (Side::new(&encoding), probe.into_trace(), text.to_owned());
        Ok(Looked {
            trace,
            kind: Kind::Encoder,
            queries: side.clone(),
            keys: side,
            predictions: None,
            written: None,
            text,
        })
    }

    fn translation(loaded: &Loaded, model: &Transformer, text: &str, kind: Kind) -> Result<Self> {
        let (source, frame) = (loaded.tokenizer()?.encode_bare(text)?, loaded.frame()?);
        let found = search(model, source.ids(), frame, Search::default())?;
        let target = loaded.target()?.describe(&found[0].tokens)?;
        let trace = watch(model, source.ids(), &found[0].tokens, frame, Capture::All)?;
        let (read, written) = (Side::new(&source), Side::predicting(&target, "</s>"));
        let (queries, keys) = match kind {
            Kind::Encoder => (read.clone(), read),
            Kind::Decoder => (written.clone(), written),
            Kind::Cross => (written, read),
        };
        let (written, text) = (Some(target.text().to_owned()), text.to_owned());
        Ok(Looked { trace, kind, queries, keys, predictions: None, written, text })
    }

    pub fn is_cross(&self) -> bool {
        self.kind == Kind::Cross
    }

    /// What stands over a picture: the text, or its beginning.
    pub fn title(&self) -> String {
        let line = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(72) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        }
    }

    /// The numbers of the layers.
    pub fn layers(&self) -> Vec<usize> {
        self.trace.of_kind(self.kind).map(|(layer, _)| layer).collect()
    }

    pub fn heads(&self) -> usize {
        self.trace.of_kind(self.kind).map(|(_, layer)| layer.heads()).next().unwrap_or(0)
    }

    pub fn layer(&self, layer: usize) -> Result<&LayerTrace> {
        Ok(self.trace.layer(self.kind, layer)?)
    }

    /// The layer and head that attend most to other tokens than themselves and the first, where attention is left when there is
    /// nothing to look at. Of cross-attention, those that are surest.
    pub fn liveliest(&self, layer: Option<usize>) -> Result<(usize, usize)> {
        let mut best = (0, 0, -1.0);
        for l in self.layers().into_iter().filter(|l| layer.is_none_or(|layer| layer == *l)) {
            for head in 0..self.heads() {
                let weights = self.layer(l)?.weights(0, head)?;
                let strongest = |(i, row): (usize, ndarray::ArrayView1<f32>)| {
                    let other = |j: usize| self.is_cross() || (j != i && j != 0);
                    row.iter().enumerate().filter(|(j, _)| other(*j)).fold(0.0, |max: f32, (_, w)| max.max(*w))
                };
                let score: f32 = weights.outer_iter().enumerate().map(strongest).sum();
                if score > best.2 {
                    best = (l, head, score);
                }
            }
        }
        Ok((best.0, best.1))
    }
}

/// The likeliest tokens and their probabilities.
fn likeliest(logits: &ndarray::Array1<f32>, count: usize) -> Vec<(u32, f32)> {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, x| max.max(*x));
    let sum: f32 = logits.iter().map(|x| (x - max).exp()).sum();
    let mut tokens: Vec<usize> = (0..logits.len()).collect();
    tokens.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    tokens.into_iter().take(count).map(|token| (token as u32, (logits[token] - max).exp() / sum)).collect()
}
