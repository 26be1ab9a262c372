//! What every head of a model does on a text, for language models and encoders alike: scores and class.

use std::ops::Range;

use crate::analysis::classes::{ClassCounts, HeadClasses};
use crate::analysis::report::{Repeated, scores_on_repeated};
use crate::analysis::scores::{HeadScores, head_scores};
use crate::model::Sentences;
use crate::model::transformer::Batch;
use crate::open::OpenModel;
use crate::trace::{Capture, Kind, Probe, Trace};
use crate::{Encoding, Error, Model, Result, Tokenizer};

/// A text to survey heads on where there is no other: some 2,000 tokens of The Tempest, from the part that the model `shakespeare`
/// has not read.
pub const HELD_OUT: &str = include_str!("held_out.txt");

/// Tokens that are read together at most. Longer pieces would give early tokens, which see little, less to say.
const PIECE: usize = 512;
/// Tokens left free in a piece: those around a text, and what cutting it changes.
const SPARE: usize = 8;

/// One head.
#[derive(Clone, Debug, PartialEq)]
pub struct SurveyedHead {
    /// On the first piece of the text; of language models, duplicate and induction on random tokens that repeat.
    pub scores: HeadScores,
    /// On all of the text.
    pub classes: HeadClasses,
}

/// All heads.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadSurvey {
    /// Whose heads they are: a decoder's or an encoder's.
    pub kind: Kind,
    /// In the order of layers.
    pub heads: Vec<SurveyedHead>,
    /// The tokens of the text.
    pub tokens: usize,
}

/// Looks at every head of a language model or an encoder while it reads a text, in pieces if it is long.
///
/// # Errors
/// If the model reads no text, or the text has fewer than two tokens.
pub fn survey(open: &OpenModel, text: &str, repeated: Repeated) -> Result<HeadSurvey> {
    let tokenizer = open.tokenizer()?;
    let context = match &open.model {
        Model::Bert(model) => model.config().context,
        Model::Transformer(model) => model.config().context,
        model => model.as_language_model()?.shape().context,
    };
    let mut counts = ClassCounts::default();
    let (mut kind, mut scores) = (Kind::Decoder, Vec::new());
    for piece in pieces(tokenizer, text, context.min(PIECE))? {
        let (own, trace) = read(open, piece.ids())?;
        if scores.is_empty() {
            (kind, scores) = (own, head_scores(&trace, own, 0, piece.ids(), None)?);
        }
        counts.add(&trace, own, 0, &piece)?;
    }
    if let (Kind::Decoder, Ok(model)) = (kind, open.model.as_language_model()) {
        for (scores, random) in scores.iter_mut().zip(scores_on_repeated(model, repeated)?) {
            (scores.duplicate, scores.induction) = (random.duplicate, random.induction);
        }
    }
    let heads = scores.into_iter().zip(counts.heads());
    let heads = heads.map(|(scores, classes)| SurveyedHead { scores, classes }).collect();
    Ok(HeadSurvey { kind, heads, tokens: counts.tokens() })
}

/// What a model attends to while it reads some tokens.
fn read(open: &OpenModel, tokens: &[u32]) -> Result<(Kind, Trace)> {
    let mut probe = Probe::new(Capture::All);
    let kind = match &open.model {
        Model::Bert(model) => {
            model.infer(&Sentences::new(&[tokens]), &mut probe)?;
            Kind::Encoder
        }
        Model::Transformer(model) => {
            model.encode(Batch { tokens, lengths: &[tokens.len()] }, &mut probe)?;
            Kind::Encoder
        }
        model => {
            model.as_language_model()?.infer(tokens, 1, None, &mut probe)?;
            Kind::Decoder
        }
    };
    Ok((kind, probe.into_trace()))
}

/// The text in pieces of at most `most` tokens, each with what belongs around a text.
fn pieces(tokenizer: &Tokenizer, text: &str, most: usize) -> Result<Vec<Encoding>> {
    let whole = tokenizer.encode(text)?;
    if whole.len() < 2 {
        return Err(Error::TooShort { tokens: whole.len(), least: 2 });
    }
    if whole.len() <= most {
        return Ok(vec![whole]);
    }
    let bare = tokenizer.encode_bare(text)?;
    let spans: Vec<Range<usize>> = bare.spans().iter().flatten().cloned().collect();
    let cut = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let pieces = spans.chunks(most.saturating_sub(SPARE).max(2)).map(|chunk| {
        let (start, end) = (cut(chunk[0].start), cut(chunk[chunk.len() - 1].end));
        tokenizer.encode(&text[start..end.max(start)])
    });
    // The last one may be a token or two.
    let long_enough = |piece: &Result<Encoding>| piece.as_ref().map_or(true, |piece| piece.len() > SPARE);
    pieces.filter(long_enough).collect()
}
