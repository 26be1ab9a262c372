//! Pictures in another size, to the bit as Pillow makes them: the pictures that vision models were trained on came from there.
//!
//! ```text
//! for each axis, first across and then down, if its size changes:
//!   stretch = max(size / new size, 1)                           a smaller picture averages, a larger one interpolates
//!   weight(i, x) ∝ filter((x + ½ − (i + ½)·size/new size) / stretch)
//!   new[i] = round(Σ_x weight(i, x)·old[x]), from 0 to 255      in whole numbers of 22 bits after the point
//! ```

use ndarray::{Array3, ArrayView3, Axis};

/// How the pixels of a resized picture come from the old ones, by Pillow's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// The pixel that lies there.
    Nearest,
    /// Sinc in a window of three lobes.
    Lanczos,
    /// A triangle.
    Bilinear,
    /// Keys' cubic with a = −½.
    Bicubic,
    /// The mean of those that are covered.
    Box,
    /// Sinc in a Hamming window of one lobe.
    Hamming,
}

impl Filter {
    /// By the numbers that Pillow, and so `preprocessor_config.json`, gives them.
    pub(super) fn of(number: u64) -> Option<Self> {
        use Filter::*;
        [Nearest, Lanczos, Bilinear, Bicubic, Box, Hamming].get(usize::try_from(number).ok()?).copied()
    }

    pub(super) fn number(self) -> u64 {
        self as u64
    }

    /// How far from its middle it reaches.
    fn support(self) -> f64 {
        match self {
            Filter::Nearest => 0.0,
            Filter::Box => 0.5,
            Filter::Bilinear | Filter::Hamming => 1.0,
            Filter::Bicubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        use std::f64::consts::PI;
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
        let far = x.abs();
        match self {
            Filter::Nearest => 0.0,
            Filter::Box => f64::from(x > -0.5 && x <= 0.5),
            Filter::Bilinear => (1.0 - far).max(0.0),
            Filter::Hamming if far >= 1.0 => 0.0,
            Filter::Hamming => sinc(far) * (0.54 + 0.46 * (PI * far).cos()),
            Filter::Bicubic if far < 1.0 => (1.5 * far - 2.5) * far * far + 1.0,
            Filter::Bicubic if far < 2.0 => -0.5 * (((far - 5.0) * far + 8.0) * far - 4.0),
            Filter::Bicubic => 0.0,
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

/// Bits after the point of the weights.
const BITS: u32 = 22;

/// What one pixel is made of: the first old one, and the weights of it and its neighbours.
struct Mix {
    first: usize,
    weights: Vec<i64>,
}

/// A picture [height, width, channels] in a new size.
pub(super) fn resize(picture: ArrayView3<u8>, [height, width]: [usize; 2], filter: Filter) -> Array3<u8> {
    let across = along(picture, Axis(1), width, filter);
    along(across.view(), Axis(0), height, filter)
}

fn along(picture: ArrayView3<u8>, axis: Axis, size: usize, filter: Filter) -> Array3<u8> {
    let old = picture.len_of(axis);
    if old == size {
        return picture.to_owned();
    }
    if filter == Filter::Nearest {
        // Pillow adds up the step, and so do its rounding errors.
        let step = old as f64 / size as f64;
        let places = std::iter::successors(Some(0.5 * step), |at| Some(at + step)).take(size);
        let places: Vec<usize> = places.map(|at| (at as usize).min(old.saturating_sub(1))).collect();
        return picture.select(axis, &places);
    }
    let mixes = mixes(old, size, filter);
    let mut shape = picture.raw_dim();
    shape[axis.0] = size;
    let mut resized = Array3::zeros(shape);
    for (mix, mut target) in mixes.iter().zip(resized.axis_iter_mut(axis)) {
        let mut sums = target.mapv(|_: u8| 1i64 << (BITS - 1));
        for (at, weight) in (mix.first..).zip(&mix.weights) {
            sums.zip_mut_with(&picture.index_axis(axis, at), |sum, old| *sum += weight * i64::from(*old));
        }
        target.zip_mut_with(&sums, |new, sum| *new = (sum >> BITS).clamp(0, 255) as u8);
    }
    resized
}

fn mixes(old: usize, size: usize, filter: Filter) -> Vec<Mix> {
    let scale = old as f64 / size as f64;
    let stretch = scale.max(1.0);
    let support = filter.support() * stretch;
    let mix = |i: usize| {
        let middle = (i as f64 + 0.5) * scale;
        // Cut towards 0 as in C, so that a place just before the picture is its first.
        let first = ((middle - support + 0.5) as i64).max(0) as usize;
        let end = ((middle + support + 0.5) as i64).min(old as i64).max(0) as usize;
        let weight = |x: usize| filter.weight((x as f64 - middle + 0.5) * (1.0 / stretch));
        let weights: Vec<f64> = (first..end).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        let whole = |weight: f64| {
            let weight = if sum == 0.0 { weight } else { weight / sum } * f64::from(1u32 << BITS);
            (weight + 0.5f64.copysign(weight)) as i64
        };
        Mix { first, weights: weights.into_iter().map(whole).collect() }
    };
    (0..size).map(mix).collect()
}
