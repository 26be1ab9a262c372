//! Cross-entropy of softmax, with label smoothing.
//!
//! $$ \ell_n = \mathrm{lse}(x_n) - (1 - \epsilon)\, x_{n,t_n} - \epsilon\, \overline{x_n}, \qquad
//!    \mathrm{lse}(x) = \ln \textstyle\sum_v e^{x_v}, \qquad L = \frac{1}{C} \sum_n \ell_n $$
//! $$ dx_{nv} = \tfrac{1}{C} \left( e^{x_{nv} - \mathrm{lse}(x_n)} - (1 - \epsilon)\, [v = t_n] - \epsilon / V \right) $$
//!
//! The mean goes over the C tokens that count; the others have no loss and no gradient. The gradient takes the place of the
//! logits, so there is never a second array of [N, V].
//!
//! ```
//! use foveal_models::layer::CrossEntropy;
//! use ndarray::array;
//!
//! let mut logits = array![[2.0, 0.0], [0.0, 0.0]];
//! let loss = CrossEntropy::new().forward_backward(&mut logits, &[0, 1])?;
//! assert!((loss.mean - (0.126_928 + 0.693_147) / 2.0).abs() < 1e-6);
//! assert!((logits[[1, 1]] - (0.5 - 1.0) / 2.0).abs() < 1e-6); // the gradient
//! # Ok::<(), foveal_models::Error>(())
//! ```

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rayon::prelude::*;

use super::parallel::{self, contiguous, standard, values};
use super::shape::expect;
use super::vector;
use crate::Error;

/// The loss and its options.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossEntropy {
    /// ε, the share of the target that is spread evenly over all tokens; from 0 to 1.
    pub label_smoothing: f32,
    /// Positions with this target do not count: padding, or words that were not masked.
    pub ignore: Option<u32>,
    /// C, where the rows are a part of a larger batch: the means of all parts add up to that of the batch.
    pub of: Option<usize>,
}

/// The loss of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// L, the mean over the tokens that count; 0 if none does.
    pub mean: f32,
    /// How many of these count.
    pub counted: usize,
}

impl CrossEntropy {
    /// No smoothing, every position counts.
    pub fn new() -> Self {
        CrossEntropy::default()
    }

    /// The loss of logits: [N, V].
    ///
    /// # Errors
    /// If there are not as many targets as rows, a target is no token, or the smoothing is not from 0 to 1.
    pub fn forward<'a>(&self, logits: impl Into<ArrayView2<'a, f32>>, targets: &[u32]) -> Result<Loss, Error> {
        let logits = logits.into();
        let counted = self.check(logits.shape(), targets)?;
        let (vocabulary, logits) = (logits.ncols(), standard(logits));
        let mut losses = vec![0.0; targets.len()];
        let rows = values(&logits).par_chunks(vocabulary.max(1)).zip(targets).zip(&mut losses);
        parallel::for_each(logits.len(), rows, |((logits, target), loss)| {
            if self.ignore != Some(*target) {
                *loss = foveal_compute::vectorise(
                    #[inline(always)]
                    || {
                        let max = vector::max(logits);
                        self.loss(logits, *target, max) + vector::sum(logits, |x| vector::exp(x - max)).ln()
                    },
                );
            }
        });
        Ok(self.mean(&losses, counted))
    }

    /// The same; logits become their gradient.
    ///
    /// # Errors
    /// As [`forward`](CrossEntropy::forward). The logits are then unchanged.
    pub fn forward_backward(&self, logits: &mut Array2<f32>, targets: &[u32]) -> Result<Loss, Error> {
        let counted = self.check(logits.shape(), targets)?;
        let (vocabulary, size) = (logits.ncols(), logits.len());
        let scale = 1.0 / self.of.unwrap_or(counted).max(1) as f32;
        let smoothing = self.label_smoothing / vocabulary as f32;
        let mut losses = vec![0.0; targets.len()];
        let rows = contiguous(logits).par_chunks_mut(vocabulary.max(1)).zip(targets).zip(&mut losses);
        parallel::for_each(2 * size, rows, |((logits, target), loss)| {
            if self.ignore == Some(*target) {
                return logits.fill(0.0);
            }
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    let max = vector::max(logits);
                    *loss = self.loss(logits, *target, max);
                    logits.iter_mut().for_each(|x| *x = vector::exp(*x - max));
                    let sum = vector::sum(logits, |x| x);
                    *loss += sum.ln();
                    let (factor, shift) = (scale / sum, smoothing * scale);
                    logits.iter_mut().for_each(|x| *x = *x * factor - shift);
                },
            );
            logits[*target as usize] -= (1.0 - self.label_smoothing) * scale;
        });
        Ok(self.mean(&losses, counted))
    }

    /// ℓ of one row, but for lse − max. Both differences are small where the model is sure, so they are taken first.
    #[inline(always)]
    fn loss(&self, logits: &[f32], target: u32, max: f32) -> f32 {
        let of_target = (1.0 - self.label_smoothing) * (max - logits[target as usize]);
        if self.label_smoothing == 0.0 {
            return of_target;
        }
        of_target + self.label_smoothing * vector::sum(logits, |x| max - x) / logits.len() as f32
    }

    /// Summed in f64 and in order, so that the threads do not matter.
    fn mean(&self, losses: &[f32], counted: usize) -> Loss {
        let sum: f64 = losses.iter().map(|loss| f64::from(*loss)).sum();
        Loss { mean: (sum / self.of.unwrap_or(counted).max(1) as f64) as f32, counted }
    }

    /// How many positions count.
    fn check(&self, shape: &[usize], targets: &[u32]) -> Result<usize, Error> {
        expect("the list of targets", &shape[..1], &[targets.len()])?;
        if !(0.0..=1.0).contains(&self.label_smoothing) {
            let (what, got) = ("label smoothing", self.label_smoothing.into());
            return Err(foveal::Error::Value { what, expected: "a share from 0 to 1", got }.into());
        }
        let counting = || targets.iter().filter(|target| self.ignore != Some(**target));
        match counting().find(|target| **target as usize >= shape[1]) {
            Some(&id) => Err(Error::TokenId { id, vocabulary: shape[1] }),
            None => Ok(counting().count()),
        }
    }
}

/// ln p of every token, from its scores: x − lse(x).
pub fn log_softmax(logits: ArrayView1<f32>) -> Array1<f32> {
    let logits = logits.to_owned();
    let lse = log_sum_exp(values(&logits));
    logits - lse
}

/// ln Σ eˣ.
#[inline(always)]
fn log_sum_exp(x: &[f32]) -> f32 {
    let max = vector::max(x);
    max + vector::sum(x, |x| vector::exp(x - max)).ln()
}
