use foveal::Threads;
use foveal_compute::matmul;
use ndarray::Array2;

use crate::layer::expect;
use crate::trace::{Kind, Trace};
use crate::{Error, Result};

/// Attention rollout (Abnar 2020): where the information at each token has come from after layer `layer`, if a block takes
/// half of it from attention and half from the token itself.
///
/// $$ \bar A_l = \tfrac12\, \overline{A_l} + \tfrac12\, I, \qquad R_0 = \bar A_0, \qquad R_l = \bar A_l\, R_{l-1} $$
///
/// with the mean over the heads. O(n²) memory, O(n³) work a layer.
///
/// # Errors
/// If a layer up to this one was not captured, there is no such sequence, or it is attention between two sequences.
pub fn rollout(trace: &Trace, kind: Kind, sequence: usize, layer: usize) -> Result<Array2<f32>> {
    if kind == Kind::Cross {
        return Err(Error::CrossRollout);
    }
    let mut rollout: Option<Array2<f32>> = None;
    for l in 0..=layer {
        let layer = trace.layer(kind, l)?;
        let n = layer.queries();
        expect("the keys of a rollout, as many as queries,", &[n], &[layer.keys()])?;
        let mut mixed = Array2::zeros((n, n));
        for head in 0..layer.heads() {
            mixed.scaled_add(0.5 / layer.heads() as f32, &layer.weights(sequence, head)?);
        }
        mixed.diag_mut().mapv_inplace(|x| x + 0.5);
        rollout = Some(match rollout {
            None => mixed,
            Some(before) => {
                let mut product = Array2::zeros((n, n));
                matmul(1.0, &mixed, &before, 0.0, &mut product, Threads::Rayon)?;
                product
            }
        });
    }
    Ok(rollout.expect("at least layer 0"))
}
