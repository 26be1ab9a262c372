//! Attention rollout (Abnar 2020): where the information at each token has come from, if a block takes half of it from
//! attention and half from the token itself.
//!
//! $$ \bar A_l = \tfrac12\, \overline{A_l} + \tfrac12\, I, \qquad R_0 = \bar A_0, \qquad R_l = \bar A_l\, R_{l-1} $$
//!
//! with the mean over the heads. O(n²) memory, O(n³) work a layer.

use foveal::Threads;
use foveal_compute::matmul;
use ndarray::{Array2, s};

use super::by_rows;
use crate::layer::expect;
use crate::trace::{Kind, LayerTrace, Trace};
use crate::{Error, Result};

/// The rollout after layer `layer`: [T, T].
///
/// # Errors
/// If a layer up to this one was not captured, there is no such sequence, or it is attention between two sequences.
pub fn rollout(trace: &Trace, kind: Kind, sequence: usize, layer: usize) -> Result<Array2<f32>> {
    let mut rollouts = rollouts(trace, kind, sequence)?;
    for _ in 0..layer {
        rollouts.next_layer()?;
    }
    rollouts.next_layer()
}

/// The rollouts after layer 0, 1, …, each from the one before it.
///
/// # Errors
/// If it is attention between two sequences. What else [`rollout`] refuses is an error of the layer it concerns.
pub fn rollouts(trace: &Trace, kind: Kind, sequence: usize) -> Result<Rollouts<'_>> {
    if kind == Kind::Cross {
        return Err(Error::CrossRollout);
    }
    let layers = trace.of_kind(kind).map(|(layer, _)| layer + 1).max().unwrap_or(0);
    Ok(Rollouts { trace, kind, sequence, next: 0, layers, before: None })
}

/// The rollouts of a run, layer by layer: an iterator that ends after the last layer of the trace.
#[derive(Clone, Debug)]
pub struct Rollouts<'a> {
    trace: &'a Trace,
    kind: Kind,
    sequence: usize,
    next: usize,
    layers: usize,
    before: Option<Array2<f32>>,
}

impl Rollouts<'_> {
    fn next_layer(&mut self) -> Result<Array2<f32>> {
        let mixed = mixed(self.trace.layer(self.kind, self.next)?, self.sequence)?;
        let after = match &self.before {
            None => mixed,
            Some(before) => {
                let mut product = Array2::zeros(mixed.dim());
                matmul(1.0, &mixed, before, 0.0, &mut product, Threads::Rayon)?;
                product
            }
        };
        self.next += 1;
        Ok(self.before.insert(after).clone())
    }
}

impl Iterator for Rollouts<'_> {
    type Item = Result<Array2<f32>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.layers {
            return None;
        }
        let after = self.next_layer();
        if after.is_err() {
            self.next = self.layers;
        }
        Some(after)
    }
}

/// Half the mean over the heads, half the identity: [T, T].
fn mixed(layer: &LayerTrace, sequence: usize) -> Result<Array2<f32>> {
    let n = layer.queries();
    expect("the keys of a rollout, as many as queries,", &[n], &[layer.keys()])?;
    let mut mixed = Array2::zeros((n, n));
    for head in 0..layer.heads() {
        by_rows(layer, (sequence, head), |rows, weights| {
            mixed.slice_mut(s![rows, ..]).scaled_add(0.5 / layer.heads() as f32, &weights);
        })?;
    }
    mixed.diag_mut().mapv_inplace(|x| x + 0.5);
    Ok(mixed)
}
