//! Learning to answer questions about passages.

use super::{Fingerprint, StepContext, Task};
use crate::layer::{CrossEntropy, Loss, Random};
use crate::model::Reader;
use crate::reading::{Input, Padded};
use crate::{Error, Result};

/// A question with its passages, as tokens, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The passages, each with the question.
    pub inputs: Vec<Input>,
    /// The answer, without tokens around it.
    pub answer: Vec<u32>,
}

/// Where questions to learn from come from: a batch at a time.
type Draw<'a> = dyn Fn(&mut Random) -> Vec<Asked> + Sync + 'a;

/// Questions, drawn anew for every step, and questions held out.
pub struct Questions<'a> {
    draw: Box<Draw<'a>>,
    held_out: Vec<Asked>,
    begin: u32,
    end: u32,
}

/// A target that does not count: no vocabulary is that large.
const IGNORED: u32 = u32::MAX;

/// Questions that are evaluated at once.
const AT_ONCE: usize = 8;

impl<'a> Questions<'a> {
    /// Learns from what `draw` gives. `begin` and `end` are the tokens that begin and end an answer.
    ///
    /// # Errors
    /// [`Error::TooShort`] if nothing is held out.
    pub fn new(
        draw: impl Fn(&mut Random) -> Vec<Asked> + Sync + 'a,
        held_out: Vec<Asked>,
        (begin, end): (u32, u32),
    ) -> Result<Self> {
        if held_out.is_empty() {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        Ok(Questions { draw: Box::new(draw), held_out, begin, end })
    }

    /// What is written before each token of the answers, and these tokens, filled up to the longest.
    fn written(&self, asked: &[Asked]) -> (Vec<u32>, Vec<u32>) {
        let longest = asked.iter().map(|asked| asked.answer.len()).max().unwrap_or(0) + 1;
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for (n, Asked { answer, .. }) in asked.iter().enumerate() {
            inputs.push(self.begin);
            inputs.extend_from_slice(answer);
            inputs.resize((n + 1) * longest, self.end);
            targets.extend_from_slice(answer);
            targets.push(self.end);
            targets.resize((n + 1) * longest, IGNORED);
        }
        (inputs, targets)
    }
}

impl Task for Questions<'_> {
    type Model = Reader;
    type Example = Asked;

    fn choose(&self, random: &mut Random) -> Vec<Asked> {
        (self.draw)(random)
    }

    fn counted(&self, asked: &Asked) -> usize {
        asked.answer.len() + 1
    }

    fn learn(&self, model: &Reader, asked: &[Asked], context: &StepContext, grad: &mut Reader) -> Result<Loss> {
        let padded = Padded::new(asked.iter().map(|asked| asked.inputs.as_slice()));
        let (inputs, targets) = self.written(asked);
        let saved = model.forward(padded.batch(), &inputs, context.dropout())?;
        model.backward(&saved, &context.cross_entropy(Some(IGNORED)), &targets, grad)
    }

    fn evaluate(&self, model: &Reader) -> Result<f32> {
        let (mut sum, mut tokens) = (0.0, 0);
        let options = CrossEntropy { ignore: Some(IGNORED), ..CrossEntropy::new() };
        for asked in self.held_out.chunks(AT_ONCE) {
            let padded = Padded::new(asked.iter().map(|asked| asked.inputs.as_slice()));
            let (inputs, targets) = self.written(asked);
            let saved = model.forward(padded.batch(), &inputs, None)?;
            let loss = options.forward(&model.mixture(&saved)?.log_probabilities(), &targets)?;
            sum += f64::from(loss.mean) * loss.counted as f64;
            tokens += loss.counted;
        }
        Ok((sum / tokens.max(1) as f64) as f32)
    }

    fn fingerprint(&self, model: &Reader) -> Fingerprint {
        // What is drawn cannot be told in advance; a first batch stands for all.
        let tokens = |asked: &[Asked]| -> Vec<u32> {
            let read = |asked: &Asked| asked.inputs.iter().flat_map(|input| input.tokens.clone()).collect::<Vec<_>>();
            asked.iter().flat_map(|asked| [read(asked), asked.answer.clone()].concat()).collect()
        };
        Fingerprint::default()
            .data("held-out questions", tokens(&self.held_out).into_iter())
            .data("first questions", tokens(&self.choose(&mut Random::new(0))).into_iter())
            .fact("model", format!("{:?}", model.config()))
    }
}
