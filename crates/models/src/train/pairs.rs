//! Learning to translate: pairs of sequences.

use super::{Fingerprint, StepContext, Task};
use crate::layer::{CrossEntropy, Loss, Random};
use crate::model::transformer::Batch;
use crate::model::{Transformer, TransformerConfig};
use crate::translation::Languages;
use crate::{Error, Result};

/// A sequence to read and the one to write, in tokens, without those that begin and end them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// What is read.
    pub source: Vec<u32>,
    /// What is written.
    pub target: Vec<u32>,
}

/// Pairs to learn from, and pairs held out.
#[derive(Clone, Debug)]
pub struct Pairs {
    learned: Vec<Example>,
    held_out: Vec<Example>,
    batch: usize,
    begin: u32,
    end: u32,
    vocabularies: Option<Fingerprint>,
}

/// A target that does not count: no vocabulary is that large.
const IGNORED: u32 = u32::MAX;

/// Some examples, filled up to the longest.
struct Padded {
    source: Vec<u32>,
    lengths: Vec<usize>,
    inputs: Vec<u32>,
    targets: Vec<u32>,
}

impl Pairs {
    /// Learns from `batch` pairs at a time. `begin` and `end` are the tokens that begin and end a written sequence.
    ///
    /// # Errors
    /// [`Error::TooShort`] if there is nothing to learn from or to evaluate on, or a sequence is empty.
    pub fn new(learned: Vec<Example>, held_out: Vec<Example>, batch: usize, (begin, end): (u32, u32)) -> Result<Self> {
        let empty = |example: &Example| example.source.is_empty() || example.target.is_empty();
        if batch == 0 || learned.is_empty() || held_out.is_empty() || learned.iter().chain(&held_out).any(empty) {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        Ok(Pairs { learned, held_out, batch, begin, end, vocabularies: None })
    }

    /// Says which vocabularies the tokens are of: the same numbers may be other sentences.
    #[must_use]
    pub fn with_vocabularies(self, languages: &Languages) -> Self {
        let source = languages.source.fingerprint("vocabulary of the source");
        Pairs { vocabularies: Some(source.and(languages.target.fingerprint("vocabulary of the target"))), ..self }
    }

    fn pad(&self, examples: &[&Example]) -> Padded {
        let longest = |length: fn(&Example) -> usize| examples.iter().map(|example| length(example)).max().unwrap_or(0);
        let (read, written) = (longest(|example| example.source.len()), longest(|example| example.target.len()) + 1);
        let mut padded = Padded { source: vec![], lengths: vec![], inputs: vec![], targets: vec![] };
        for (n, Example { source, target }) in examples.iter().enumerate() {
            padded.source.extend_from_slice(source);
            padded.source.resize((n + 1) * read, 0);
            padded.lengths.push(source.len());
            padded.inputs.push(self.begin);
            padded.inputs.extend_from_slice(target);
            padded.inputs.resize((n + 1) * written, self.end);
            padded.targets.extend_from_slice(target);
            padded.targets.push(self.end);
            padded.targets.resize((n + 1) * written, IGNORED);
        }
        padded
    }
}

impl Task for Pairs {
    type Model = Transformer;
    /// Its number among the pairs that are learned from.
    type Example = usize;

    fn choose(&self, random: &mut Random) -> Vec<usize> {
        (0..self.batch).map(|_| random.below(self.learned.len())).collect()
    }

    fn counted(&self, &chosen: &usize) -> usize {
        self.learned[chosen].target.len() + 1
    }

    fn learn(
        &self,
        model: &Transformer,
        chosen: &[usize],
        context: &StepContext,
        grad: &mut Transformer,
    ) -> Result<Loss> {
        let padded = self.pad(&chosen.iter().map(|&chosen| &self.learned[chosen]).collect::<Vec<_>>());
        let source = Batch { tokens: &padded.source, lengths: &padded.lengths };
        let (mut logits, saved) = model.forward(source, &padded.inputs, context.dropout())?;
        let loss = context.cross_entropy(Some(IGNORED)).forward_backward(&mut logits, &padded.targets)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, model: &Transformer) -> Result<f32> {
        let (mut sum, mut tokens) = (0.0, 0);
        let examples: Vec<&Example> = self.held_out.iter().collect();
        for examples in examples.chunks(self.batch) {
            let padded = self.pad(examples);
            let source = Batch { tokens: &padded.source, lengths: &padded.lengths };
            let (logits, _) = model.forward(source, &padded.inputs, None)?;
            let loss =
                CrossEntropy { ignore: Some(IGNORED), ..CrossEntropy::new() }.forward(&logits, &padded.targets)?;
            sum += f64::from(loss.mean) * loss.counted as f64;
            tokens += loss.counted;
        }
        Ok((sum / tokens.max(1) as f64) as f32)
    }

    fn fingerprint(&self, model: &Transformer) -> Fingerprint {
        let values = |examples: &[Example]| -> Vec<u32> {
            // Lengths too, or tokens could move from one sentence to the next.
            let of = |tokens: &Vec<u32>| std::iter::once(tokens.len() as u32).chain(tokens.clone()).collect::<Vec<_>>();
            examples.iter().flat_map(|example| [of(&example.source), of(&example.target)].concat()).collect()
        };
        let sizes = TransformerConfig { alignment: None, ..*model.config() };
        (self.vocabularies.clone().unwrap_or_default())
            .data("learned pairs", values(&self.learned).into_iter())
            .data("held-out pairs", values(&self.held_out).into_iter())
            .fact("batch", self.batch)
            .fact("tokens that begin and end", format!("{} and {}", self.begin, self.end))
            .fact("model", format!("{sizes:?}"))
    }
}
