//! The heads of a checkpoint: what each does on a text, and on random tokens that come twice.

use crate::analysis::scores::{HeadScores, head_scores};
use crate::layer::Random;
use crate::model::LanguageModel;
use crate::trace::{Capture, Kind, Probe};
use crate::{Error, Result};

/// The tokens that induction is measured on: `period` random ones, twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// How many come before they come again.
    pub period: usize,
    /// Which.
    pub seed: u64,
}

impl Default for Repeated {
    fn default() -> Self {
        Repeated { period: 64, seed: 1 }
    }
}

impl Repeated {
    /// The tokens.
    pub fn tokens(&self, vocabulary: usize) -> Vec<u32> {
        let mut random = Random::new(self.seed);
        let once: Vec<u32> = (0..self.period).map(|_| random.below(vocabulary) as u32).collect();
        [&once[..], &once[..]].concat()
    }
}

/// The scores of every head: entropy, confidence, previous token and sink on the text; duplicate and induction on random
/// tokens that repeat, where nothing but the repetition can be known.
///
/// # Errors
/// If the text has fewer than two tokens, or more than the model can see. (Of random tokens, as many come twice as fit.)
pub fn report(model: &dyn LanguageModel, text: &[u32], repeated: Repeated) -> Result<Vec<HeadScores>> {
    if text.len() < 2 {
        return Err(Error::TooShort { tokens: text.len(), least: 2 });
    }
    let (on_text, on_random) = (watch(model, text, None)?, scores_on_repeated(model, repeated)?);
    let join = |(text, random): (HeadScores, HeadScores)| HeadScores {
        duplicate: random.duplicate,
        induction: random.induction,
        ..text
    };
    Ok(on_text.into_iter().zip(on_random).map(join).collect())
}

/// The scores of every head on random tokens that repeat.
pub(super) fn scores_on_repeated(model: &dyn LanguageModel, repeated: Repeated) -> Result<Vec<HeadScores>> {
    // Twice as many must fit.
    let repeated = Repeated { period: repeated.period.min(model.shape().context / 2), ..repeated };
    watch(model, &repeated.tokens(model.shape().vocabulary), Some(repeated.period))
}

fn watch(model: &dyn LanguageModel, tokens: &[u32], period: Option<usize>) -> Result<Vec<HeadScores>> {
    let mut probe = Probe::new(Capture::All);
    model.infer(tokens, 1, None, &mut probe)?;
    head_scores(&probe.into_trace(), Kind::Decoder, 0, tokens, period)
}
