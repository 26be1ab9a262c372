//! Dropout on rows: sets values to 0 with probability p and divides the others by 1 − p.
//!
//! $$ y_{nj} = x_{nj}\, m_{nj} / (1 - p), \qquad dx_{nj} = dy_{nj}\, m_{nj} / (1 - p) $$
//!
//! Whether m is 0 or 1 follows from the seed, n and j alone. So nothing is saved, and the backward pass is the same call on
//! the gradient.
//!
//! ```
//! use foveal_models::layer::{derive_seed, dropout};
//! use ndarray::Array2;
//!
//! let (step, layer) = (100, 3);
//! let options = dropout::Dropout { probability: 0.1, seed: derive_seed(1, &[step, layer]) };
//! let mut x = Array2::ones((64, 256));
//! dropout::apply(options, &mut x)?;
//! assert!((x.mean().unwrap() - 1.0f32).abs() < 0.02);
//! # Ok::<(), foveal_models::Error>(())
//! ```

pub use foveal::Dropout;
use ndarray::Array2;
use rayon::prelude::*;

use super::{derive_seed, parallel};
use crate::Error;

/// The same dropout with a seed of its own, for one of many places where a model drops.
pub fn at(dropout: Option<Dropout>, place: u64) -> Option<Dropout> {
    dropout.map(|Dropout { probability, seed }| Dropout { probability, seed: derive_seed(seed, &[place]) })
}

/// Forward on activations, backward on their gradient: [N, D], in place.
///
/// # Errors
/// If the probability is not from 0 to below 1.
pub fn apply(dropout: Dropout, x: &mut Array2<f32>) -> Result<(), Error> {
    dropout.check()?;
    if dropout.probability == 0.0 || x.is_empty() {
        return Ok(());
    }
    let (dim, block) = (x.ncols(), parallel::block(x.ncols()));
    let blocks = parallel::contiguous(x).par_chunks_mut(block * dim).enumerate();
    parallel::for_each(blocks.len() * block * dim, blocks, |(i, rows)| {
        foveal_compute::vectorise(
            #[inline(always)]
            || {
                for (n, row) in rows.chunks_exact_mut(dim).enumerate() {
                    dropout.apply(i * block + n, row);
                }
            },
        );
    });
    Ok(())
}
