//! The residual connection around a layer.
//!
//! $$ y = x + f(x), \qquad dx = dy + \frac{\partial f}{\partial x}^\top dy $$
//!
//! Both passes are the same sum.
//!
//! ```
//! use foveal_models::layer::add;
//! use ndarray::array;
//!
//! let (x, mut y) = (array![[1., 2.]], array![[10., 20.]]);
//! add(&mut y, &x)?;
//! assert_eq!(y, array![[11., 22.]]);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use super::parallel::{self, BLOCK, contiguous, standard, values};
use super::shape::expect;
use crate::Error;

/// y ⟵ y + x: [N, D].
///
/// # Errors
/// If the two are not shaped alike.
pub fn add<'a>(y: &mut Array2<f32>, x: impl Into<ArrayView2<'a, f32>>) -> Result<(), Error> {
    let x = standard(x);
    expect("the other summand", y.shape(), x.shape())?;
    let blocks = contiguous(y).par_chunks_mut(BLOCK).zip(values(&x).par_chunks(BLOCK));
    parallel::for_each(x.len(), blocks, |(y, x)| {
        foveal::vectorise(
            #[inline(always)]
            || y.iter_mut().zip(x).for_each(|(y, x)| *y += x),
        );
    });
    Ok(())
}
