//! The halves of a batch, learned from side by side.
//!
//! A thread that does all of a half, forward and backward, finds what the layer before made in its own caches, and waits for
//! no one: threads that share every layer meet some hundred times in a step. There are as many gradients as halves, added
//! up in the end.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Peers, Plan, StepContext, Task, adamw, peers};
use crate::layer::{Dropout, Loss, Parameters, Random, derive_seed, vector};
use crate::{Error, Result};

/// Halves of a batch. It is not the number of threads, which the sums of gradients must not depend on: where there are more
/// threads, they share the layers of each half.
const HALVES: usize = 2;
/// Numbers per task of a sum of gradients.
const TASK: usize = 1 << 14;

/// The gradients of each half. After [`BatchHalves::learn`] the first holds the sum of all, and the second is 0 again.
pub struct BatchHalves<M> {
    grads: [M; HALVES],
    /// Whether all of them are 0.
    zero: bool,
}

impl<M: Parameters + Clone + Send + Sync> BatchHalves<M> {
    pub fn new(model: &M) -> Self {
        BatchHalves { grads: [model.zeros_like(), model.zeros_like()], zero: true }
    }

    /// The loss on the batches of a step, and the norm of its gradients times their number.
    pub fn learn<T: Task<Model = M>>(
        &mut self,
        task: &T,
        model: &M,
        (plan, step): (&Plan, usize),
        peers: Option<&Arc<dyn Peers>>,
    ) -> Result<(Loss, f64)> {
        let mut all = Loss { mean: 0.0, counted: 0 };
        if !std::mem::take(&mut self.zero) {
            // The last step failed, and nobody has spent what it had learned.
            self.grads.iter_mut().flat_map(adamw::slices_mut).for_each(|numbers| numbers.fill(0.0));
        }
        if let Some(peers) = peers.filter(|peers| peers.count() > 1) {
            return self.learn_with(task, model, (plan, step), peers);
        }
        for batch in 0..plan.accumulate {
            let seed = derive_seed(plan.seed, &[step as u64, batch as u64]);
            for loss in self.batch(task, model, plan, seed)? {
                all.mean += loss.mean / plan.accumulate as f32;
                all.counted += loss.counted;
            }
        }
        Ok((all, self.add()))
    }

    /// Gives the gradients to an optimiser, which leaves zeros.
    pub fn spend(&mut self, optimise: impl FnOnce(&mut M)) {
        optimise(&mut self.grads[0]);
        self.zero = true;
    }

    fn batch<T: Task<Model = M>>(&mut self, task: &T, model: &M, plan: &Plan, seed: u64) -> Result<Vec<Loss>> {
        let examples = task.choose(&mut Random::new(derive_seed(seed, &[0])));
        let counted = examples.iter().map(|example| task.counted(example)).sum();
        let size = examples.len().div_ceil(HALVES).max(1);
        let halves: Vec<_> = examples.chunks(size).collect();
        let whole = Dropout::new(plan.dropout, derive_seed(seed, &[1]));
        let learn = |(half, (grad, examples)): (usize, (&mut M, &[T::Example]))| {
            let dropout = Dropout { first: half * size, ..whole };
            let context = StepContext { dropout, label_smoothing: plan.label_smoothing, counted, last: false };
            foveal_compute::one_of(HALVES, || task.learn(model, examples, &context, grad))
        };
        let losses = self.grads.par_iter_mut().zip(halves).enumerate().with_max_len(1).map(learn);
        losses.collect::<Vec<_>>().into_iter().collect::<Result<_, Error>>()
    }

    /// The same for this process's share of the batches, with the gradients of all.
    fn learn_with<T: Task<Model = M>>(
        &mut self,
        task: &T,
        model: &M,
        (plan, step): (&Plan, usize),
        peers: &Arc<dyn Peers>,
    ) -> Result<(Loss, f64)> {
        let mut all = Loss { mean: 0.0, counted: 0 };
        let [grad, _] = &mut self.grads;
        peers::learn_together(peers, grad, |grad| -> Result<()> {
            for batch in 0..plan.accumulate {
                let seed = derive_seed(plan.seed, &[step as u64, batch as u64]);
                let examples = task.choose(&mut Random::new(derive_seed(seed, &[0])));
                let counts: Vec<usize> = examples.iter().map(|example| task.counted(example)).collect();
                let shares = shares(&counts, peers.count());
                let own = shares[peers.rank()].clone();
                if own.is_empty() {
                    continue;
                }
                let dropout = Dropout { first: own.start, ..Dropout::new(plan.dropout, derive_seed(seed, &[1])) };
                // Gradients are announced by all or by none: all sums are started in the same order.
                let last = batch + 1 == plan.accumulate && shares.iter().all(|share| !share.is_empty());
                let counted = counts.iter().sum();
                let context = StepContext { dropout, label_smoothing: plan.label_smoothing, counted, last };
                let loss = task.learn(model, &examples[own], &context, grad)?;
                all.mean += loss.mean / plan.accumulate as f32;
                all.counted += loss.counted;
            }
            Ok(())
        })?;
        let mut sums = [f64::from(all.mean), all.counted as f64];
        peers.sum(&mut sums);
        Ok((Loss { mean: sums[0] as f32, counted: sums[1] as usize }, self.add()))
    }

    /// Adds the second gradient to the first, and gives ‖g‖ over all parameters together. Summed in blocks that follow from
    /// the shapes, so that threads do not matter.
    fn add(&mut self) -> f64 {
        let [first, second] = &mut self.grads;
        let tensors = adamw::slices_mut(first).into_iter().zip(adamw::slices_mut(second));
        let tasks: Vec<_> = tensors.flat_map(|(x, y)| x.chunks_mut(TASK).zip(y.chunks_mut(TASK))).collect();
        let add = |(x, y): (&mut [f32], &mut [f32])| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    x.iter_mut().zip(y).for_each(|(x, y)| {
                        *x += *y;
                        *y = 0.0;
                    });
                    vector::squares(x)
                },
            )
        };
        let squares: Vec<f64> = tasks.into_par_iter().map(add).collect();
        squares.iter().sum::<f64>().sqrt()
    }
}

/// The share of each of `count` processes in examples of so many tokens each: successive ones, of about as many tokens. Of an even
/// number of processes, each half of the batch is for half of them: so two have just the halves that one process takes side by
/// side, and their gradients are the same to the bit.
fn shares(tokens: &[usize], count: usize) -> Vec<Range<usize>> {
    let middle = tokens.len().div_ceil(HALVES);
    if count.is_multiple_of(HALVES) {
        let halves = [0..middle, middle..tokens.len()];
        return halves.into_iter().flat_map(|half| cut(tokens, half, count / HALVES)).collect();
    }
    cut(tokens, 0..tokens.len(), count)
}

/// Cuts some examples into parts of about as many tokens.
fn cut(tokens: &[usize], range: Range<usize>, parts: usize) -> Vec<Range<usize>> {
    let all: usize = tokens[range.clone()].iter().sum();
    let (mut end, mut before) = (range.start, 0);
    let part = |n: usize| {
        let start = end;
        // As long as the middle of the next example lies before the end of this part.
        while end < range.end && (n == parts || (2 * before + tokens[end]) * parts <= 2 * all * n) {
            before += tokens[end];
            end += 1;
        }
        start..end
    };
    (1..=parts).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_in_one_share() {
        let tokens = [5, 1, 9, 2, 2, 7, 30, 1, 1, 4, 4];
        for count in 1..=13 {
            for tokens in [&tokens[..], &[3; 8], &[], &[1]] {
                let shares = shares(tokens, count);
                assert_eq!(shares.len(), count);
                let all: Vec<usize> = shares.into_iter().flatten().collect();
                assert_eq!(all, (0..tokens.len()).collect::<Vec<_>>(), "{count}");
            }
        }
    }

    #[test]
    fn shares_have_about_as_many_tokens() {
        assert_eq!(shares(&[4; 12], 4), [0..3, 3..6, 6..9, 9..12]);
        assert_eq!(shares(&[4; 12], 3), [0..4, 4..8, 8..12]);
        // From short to long in each half, as pairs come.
        assert_eq!(shares(&[1, 2, 3, 6, 1, 2, 3, 6], 4), [0..3, 3..4, 4..7, 7..8]);
    }

    #[test]
    fn two_have_the_halves() {
        assert_eq!(shares(&[1, 50, 1, 1, 1], 2), [0..3, 3..5]);
    }
}
