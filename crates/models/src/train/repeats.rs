//! Learning to go on with what came before: random tokens that repeat.
//!
//! Nothing but the repetition can be known, so a model has to find where the last token stood before and what came after it.
//! That takes two layers: a head of the first tells each token which one it follows, and a head of the second looks for the
//! token that follows this one's like (Olsson 2022, induction heads).

use std::marker::PhantomData;

use super::{Fingerprint, StepContext, Task};
use crate::layer::{CrossEntropy, Loss, Random};
use crate::model::Trained;
use crate::trace::Probe;
use crate::{Error, Result};

/// Sequences of random tokens, each over and over from some place on. No two steps see the same.
#[derive(Clone, Debug)]
pub struct Repeats<M> {
    vocabulary: usize,
    window: usize,
    batch: usize,
    model: PhantomData<fn() -> M>,
}

/// Sequences of an evaluation.
const EVALUATED: u64 = 64;
/// The fewest tokens before they come again.
const SHORTEST: usize = 4;
/// A target that does not count, because it cannot be known.
const UNKNOWABLE: u32 = u32::MAX;

/// One sequence: inputs, and what comes after each where that can be known.
struct Sequence {
    inputs: Vec<u32>,
    targets: Vec<u32>,
}

impl<M: Trained> Repeats<M> {
    /// Learns from `batch` sequences of `window` of the first `vocabulary` tokens at a time.
    ///
    /// # Errors
    /// [`Error::TooShort`] if nothing comes twice in a window, or there are not two tokens to tell apart.
    pub fn new(vocabulary: usize, window: usize, batch: usize) -> Result<Self> {
        if vocabulary < 2 || batch == 0 || window < 4 * SHORTEST {
            return Err(Error::TooShort { tokens: window.min(vocabulary), least: 4 * SHORTEST });
        }
        Ok(Repeats { vocabulary, window, batch, model: PhantomData })
    }

    /// The sequence of a seed: up to a quarter of the window that comes once, then at most half of it, over and over.
    fn sequence(&self, seed: u64) -> Sequence {
        let mut random = Random::new(seed);
        let before = random.below(self.window / 4);
        let period = SHORTEST + random.below(self.window / 2 - SHORTEST + 1);
        let mut tokens: Vec<u32> = (0..before + period).map(|_| random.below(self.vocabulary) as u32).collect();
        while tokens.len() <= self.window {
            tokens.push(tokens[tokens.len() - period]);
        }
        let known = |i: usize| if i < before + period { UNKNOWABLE } else { tokens[i] };
        let targets = (1..=self.window).map(known).collect();
        tokens.truncate(self.window);
        Sequence { inputs: tokens, targets }
    }

    fn batch_of(&self, seeds: &[u64]) -> Sequence {
        let mut all = Sequence { inputs: Vec::new(), targets: Vec::new() };
        for Sequence { inputs, targets } in seeds.iter().map(|seed| self.sequence(*seed)) {
            all.inputs.extend(inputs);
            all.targets.extend(targets);
        }
        all
    }
}

impl<M: Trained> Task for Repeats<M> {
    type Model = M;
    /// What a sequence follows from.
    type Example = u64;

    fn choose(&self, random: &mut Random) -> Vec<u64> {
        (0..self.batch).map(|_| random.bits()).collect()
    }

    fn counted(&self, seed: &u64) -> usize {
        self.sequence(*seed).targets.iter().filter(|target| **target != UNKNOWABLE).count()
    }

    fn learn(&self, model: &M, seeds: &[u64], context: &StepContext, grad: &mut M) -> Result<Loss> {
        let Sequence { inputs, targets } = self.batch_of(seeds);
        let (mut logits, saved) = model.forward(&inputs, seeds.len(), context.dropout())?;
        let loss = context.cross_entropy(Some(UNKNOWABLE)).forward_backward(&mut logits, &targets)?;
        context.backward(|| model.backward(&saved, &logits, grad))?;
        Ok(loss)
    }

    /// On sequences that no step draws, but for a chance of 2⁻⁶⁴ each.
    fn evaluate(&self, model: &M) -> Result<f32> {
        let seeds: Vec<u64> = (0..EVALUATED).collect();
        let (mut sum, mut tokens) = (0.0, 0);
        for seeds in seeds.chunks(self.batch) {
            let Sequence { inputs, targets } = self.batch_of(seeds);
            let hidden = model.infer(&inputs, seeds.len(), None, &mut Probe::default())?;
            let loss = CrossEntropy { ignore: Some(UNKNOWABLE), ..CrossEntropy::new() };
            let loss = loss.forward(&model.logits(hidden.view())?, &targets)?;
            sum += f64::from(loss.mean) * loss.counted as f64;
            tokens += loss.counted;
        }
        Ok((sum / tokens.max(1) as f64) as f32)
    }

    fn fingerprint(&self, model: &M) -> Fingerprint {
        Fingerprint::default()
            .fact("vocabulary", self.vocabulary)
            .fact("tokens of a window", self.window)
            .fact("batch", self.batch)
            .fact("model", format!("{:?}", model.shape()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Gpt2;

    #[test]
    fn what_counts_stood_there_a_period_ago() {
        let task = Repeats::<Gpt2>::new(50, 64, 4).unwrap();
        for seed in 0..200 {
            let Sequence { inputs, targets } = task.sequence(seed);
            assert_eq!((inputs.len(), targets.len()), (64, 64));
            let first = targets.iter().position(|target| *target != UNKNOWABLE).unwrap();
            // The whole rest is known, and repeats with one period.
            assert!(targets[first..].iter().all(|target| *target != UNKNOWABLE));
            assert_eq!(&targets[first..63], &inputs[first + 1..]);
            let repeats = |period: &usize| (first + 1..64).all(|i| inputs[i] == inputs[i - period]);
            assert!((SHORTEST..=32).any(|period| repeats(&period)), "{inputs:?}");
            assert_eq!(task.counted(&seed), 64 - first);
        }
        assert!(Repeats::<Gpt2>::new(50, 8, 4).is_err() && Repeats::<Gpt2>::new(1, 64, 4).is_err());
    }
}
