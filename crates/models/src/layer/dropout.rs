//! Dropout on rows: sets values to 0 with probability p and divides the others by 1 − p.
//!
//! $$ y_{bij} = x_{bij}\, m_{bij} / (1 - p), \qquad dx_{bij} = dy_{bij}\, m_{bij} / (1 - p) $$
//!
//! Whether m is 0 or 1 follows from the seed, the number of the example, that of its token i, and j alone. So nothing is
//! saved, the backward pass is the same call on the gradient, and an example drops the same however it is padded and
//! wherever a batch is cut.
//!
//! ```
//! use foveal_models::layer::{derive_seed, dropout};
//! use ndarray::Array2;
//!
//! let (step, layer) = (100, 3);
//! let options = dropout::Dropout::new(0.1, derive_seed(1, &[step, layer]));
//! let mut x = Array2::ones((4 * 16, 256)); // four sequences of 16 tokens
//! dropout::apply(options, 4, &mut x)?;
//! assert!((x.mean().unwrap() - 1.0f32).abs() < 0.02);
//! # Ok::<(), foveal_models::Error>(())
//! ```

pub use foveal::Dropout;
use ndarray::Array2;
use rayon::prelude::*;

use super::shape::expect;
use super::{derive_seed, parallel};
use crate::Error;

/// The same dropout with a seed of its own, for one of many places where a model drops.
pub fn at(dropout: Option<Dropout>, place: u64) -> Option<Dropout> {
    dropout.map(|dropout| Dropout { seed: derive_seed(dropout.seed, &[place]), ..dropout })
}

/// Forward on activations, backward on their gradient: [B·T, D], in place.
///
/// # Errors
/// If the probability is not from 0 to below 1, or the rows cannot be cut into `batch` sequences.
pub fn apply(dropout: Dropout, batch: usize, x: &mut Array2<f32>) -> Result<(), Error> {
    dropout.check()?;
    let tokens = x.nrows() / batch.max(1);
    expect("the rows of all sequences", &[batch * tokens], &[x.nrows()])?;
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
                    let n = i * block + n;
                    dropout.apply(n / tokens, n % tokens, row);
                }
            },
        );
    });
    Ok(())
}
