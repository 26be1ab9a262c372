//! The halves of a batch, learned from side by side.
//!
//! A thread that does all of a half, forward and backward, finds what the layer before made in its own caches, and waits for
//! no one: threads that share every layer meet some hundred times in a step. There are as many gradients as halves, added
//! up in the end.

use rayon::prelude::*;

use super::{Plan, StepContext, Task, adamw};
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
    pub fn learn<T: Task<Model = M>>(&mut self, task: &T, model: &M, plan: &Plan, step: usize) -> Result<(Loss, f64)> {
        let mut all = Loss { mean: 0.0, counted: 0 };
        if !std::mem::take(&mut self.zero) {
            // The last step failed, and nobody has spent what it had learned.
            self.grads.iter_mut().flat_map(adamw::slices_mut).for_each(|numbers| numbers.fill(0.0));
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
            let context = StepContext { dropout, label_smoothing: plan.label_smoothing, counted };
            foveal_compute::one_of(HALVES, || task.learn(model, examples, &context, grad))
        };
        let losses = self.grads.par_iter_mut().zip(halves).enumerate().with_max_len(1).map(learn);
        losses.collect::<Vec<_>>().into_iter().collect::<Result<_, Error>>()
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
