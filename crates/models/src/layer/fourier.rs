//! FNet's mixing (Lee-Thorp 2021) as a layer: what a token says goes to all others by a Fourier transform, with nothing to
//! learn and no weights to look at.
//!
//! $$ y = \mathrm{Re}\, \mathcal{F}_{tokens}\, \mathcal{F}_{features}\, x $$
//!
//! Sequences of different lengths are each transformed by themselves, so that what a batch is filled up with says nothing.

use foveal::{Threads, fourier_mix};
use ndarray::{Array2, Array3, ArrayView2, s};

use super::shape::expect;
use crate::Error;

/// y: [B·T, D] for x: [B·T, D]. The matrix of the transform is symmetric, so this is also its backward pass.
///
/// # Errors
/// If x cannot be cut into `batch` sequences.
pub(crate) fn mix(x: ArrayView2<f32>, batch: usize, lengths: Option<&[usize]>) -> Result<Array2<f32>, Error> {
    let (rows, width) = x.dim();
    let tokens = rows / batch.max(1);
    expect("the tokens of all sequences", &[batch * tokens, width], &[rows, width])?;
    let x = x.to_shape((batch, tokens, width)).expect("whole sequences");
    let mut y = Array3::zeros(x.dim());
    let whole = vec![tokens; batch];
    let lengths = lengths.unwrap_or(&whole);
    if lengths.iter().all(|length| *length == tokens) {
        y = fourier_mix(&x, Threads::Rayon);
    } else {
        for (n, length) in lengths.iter().enumerate() {
            let part = s![n..n + 1, ..(*length).min(tokens), ..];
            y.slice_mut(part).assign(&fourier_mix(x.slice(part), Threads::Rayon));
        }
    }
    Ok(y.into_shape_with_order((rows, width)).expect("made in standard layout"))
}
