//! FNet's mixing (Lee-Thorp 2021): no attention at all, but a Fourier transform along the tokens and the features, of which the
//! real part is kept.
//!
//! $$ y_{tf} = \mathrm{Re} \sum_{n,d} x_{nd} \, e^{-2\pi i (tn/T + fd/D)}
//!           = \sum_{n,d} \cos\Bigl( 2\pi \bigl( \tfrac{tn}{T} + \tfrac{fd}{D} \bigr) \Bigr) x_{nd} $$
//!
//! The cosine does not change if (t, f) and (n, d) change places: as a matrix the transform is symmetric, and so the gradient is
//! the transform itself, dx = mix(dy).
//!
//! ```text
//! for each token:              z ⟵ FFT of its D features, real
//! for each feature f ≤ D/2:    z ⟵ FFT along the tokens
//! y[t, f] ⟵ Re z[f, t],  y[t, D − f] ⟵ Re z[f, T − t]
//! ```
//!
//! Half of the features are enough, because the first transform is of real numbers: z[D − f] is the conjugate of z[f], and the
//! transform of a conjugate is the conjugate of the transform, read backwards.

use ndarray::{Array3, ArrayView3, Axis};
use rayon::prelude::*;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use foveal_compute::Threads;

/// FNet's mixing of every sequence: [B, T, D]. O(T·D·log(T·D)) in time.
///
/// ```
/// use foveal::{Threads, fourier_mix};
/// use ndarray::array;
///
/// // y[0, 0] is the sum of all.
/// let y = fourier_mix(&array![[[1f32, 2.], [3., 4.]]], Threads::Rayon);
/// assert_eq!(y, array![[[10., -2.], [-4., 0.]]]);
/// ```
pub fn fourier_mix<'a>(x: impl Into<ArrayView3<'a, f32>>, threads: Threads) -> Array3<f32> {
    let x = x.into();
    let (_, tokens, dim) = x.dim();
    let mut y = Array3::zeros(x.dim());
    if x.is_empty() {
        return y;
    }
    let mut planner = FftPlanner::new();
    let (along_features, along_tokens) = (planner.plan_fft_forward(dim), planner.plan_fft_forward(tokens));
    let half = dim / 2 + 1;
    // About 5·n·log₂n operations for a transform of n numbers.
    let values = tokens as f64 * dim as f64;
    let flops = 5.0 * 2.0 * values * values.log2();
    let one = threads.count(flops) == 1;
    let mut by_token = vec![Complex::default(); tokens * half];
    let mut by_feature = vec![Complex::default(); half * tokens];
    for (x, mut y) in x.outer_iter().zip(y.outer_iter_mut()) {
        rows(&*along_features, one, &mut by_token, half, |t, row| {
            row.iter_mut().zip(x.index_axis(Axis(0), t)).for_each(|(z, x)| *z = Complex::new(*x, 0.0));
        });
        rows(&*along_tokens, one, &mut by_feature, tokens, |f, row| {
            row.iter_mut().enumerate().for_each(|(t, z)| *z = by_token[t * half + f]);
        });
        let out = y.as_slice_mut().expect("made in standard layout");
        let write = |(t, row): (usize, &mut [f32])| {
            for (f, y) in row.iter_mut().enumerate() {
                let (f, t) = if f < half { (f, t) } else { (dim - f, (tokens - t) % tokens) };
                *y = by_feature[f * tokens + t].re;
            }
        };
        if one {
            out.chunks_exact_mut(dim).enumerate().for_each(write);
        } else {
            out.par_chunks_exact_mut(dim).enumerate().for_each(write);
        }
    }
    y
}

/// The gradient in x of a loss whose gradient in [`fourier_mix`] of x is `dy`: the transform itself.
pub fn fourier_mix_backward<'a>(dy: impl Into<ArrayView3<'a, f32>>, threads: Threads) -> Array3<f32> {
    fourier_mix(dy, threads)
}

/// Transforms rows that `read` fills, and keeps the first `kept` values of each.
fn rows(
    fft: &dyn Fft<f32>,
    one: bool,
    out: &mut [Complex<f32>],
    kept: usize,
    read: impl Fn(usize, &mut [Complex<f32>]) + Send + Sync,
) {
    let memory = || (vec![Complex::default(); fft.len()], vec![Complex::default(); fft.get_inplace_scratch_len()]);
    let work = |(row, scratch): &mut (Vec<_>, Vec<_>), (n, out): (usize, &mut [Complex<f32>])| {
        read(n, row);
        fft.process_with_scratch(row, scratch);
        out.copy_from_slice(&row[..kept]);
    };
    if one {
        let mut memory = memory();
        out.chunks_exact_mut(kept).enumerate().for_each(|row| work(&mut memory, row));
    } else {
        out.par_chunks_exact_mut(kept).enumerate().for_each_init(memory, work);
    }
}
