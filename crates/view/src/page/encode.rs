//! Matrices as a page stores them: bytes, compressed, in base64.
//!
//! Each row has a step of its own, its largest value / 254, and each value is a number of steps; 255 is NaN. The error
//! is at most half a step. Where a run has so many weights that these bytes would not fit, a floor under the steps makes
//! more of them equal, which compresses: no one reads the difference of 0.0010 and 0.0012 in a map of 512 tokens.
//!
//! ```text
//! chunk = base64(deflate(for each head: step[T] as f32 LE, value[T][S] as u8))
//! ```

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use ndarray::Array2;

use crate::Error;
use crate::pool::pool;

/// Sides of the small pictures of heads.
pub(super) const THUMB: usize = 40;

/// Level 6 and above take four times as long for 4 % less.
const LEVEL: u32 = 5;

/// The heads of a layer as one chunk. `floor`: the least step, for weights; for norms a part of their largest.
pub(super) fn chunk(heads: &[Array2<f32>], floor: impl Fn(&Array2<f32>) -> f32) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(heads.iter().map(|h| h.len() + 4 * h.nrows()).sum());
    for head in heads {
        quantise(head, floor(head), &mut bytes);
    }
    Ok(STANDARD.encode(deflate(&bytes)?))
}

fn quantise(head: &Array2<f32>, floor: f32, bytes: &mut Vec<u8>) {
    let steps: Vec<f32> = head
        .outer_iter()
        .map(|row| {
            let max = row.iter().filter(|v| v.is_finite()).fold(0.0f32, |max, v| max.max(*v));
            (max / 254.0).max(floor)
        })
        .collect();
    steps.iter().for_each(|step| bytes.extend_from_slice(&step.to_le_bytes()));
    for (row, step) in head.outer_iter().zip(&steps) {
        bytes.extend(row.iter().map(|&value| match value {
            v if !v.is_finite() => 255,
            v if *step > 0.0 => (v / step).round().clamp(0.0, 254.0) as u8,
            _ => 0,
        }));
    }
}

fn deflate(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |e: std::io::Error| Error::Internal { doing: "compressing the page", problem: e.to_string() };
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// Small pictures of all heads, one after another, each from 0 to its own largest value.
pub(super) fn thumbs<'a>(heads: impl Iterator<Item = &'a Array2<f32>>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    for head in heads {
        let small = pool(head.view(), THUMB, THUMB);
        let max = crate::scale::maximum(&small) as f32;
        bytes.extend(small.iter().map(|&v| match v {
            v if v.is_nan() => 255,
            v if max > 0.0 => (v / max * 254.0).round().clamp(0.0, 254.0) as u8,
            _ => 0,
        }));
    }
    Ok(STANDARD.encode(deflate(&bytes)?))
}

/// The least floor with which all matrices, judged by some of them, fit into `budget` bytes.
pub(super) fn fitting_floor(heads: &[&Array2<f32>], budget: usize) -> Result<f32, Error> {
    let total: usize = heads.iter().map(|head| head.len()).sum();
    // Small pages always fit: even raw bytes in base64 do.
    if total / 3 * 4 <= budget {
        return Ok(0.0);
    }
    // Steps of the golden ratio: a fixed stride would meet the same head of every layer.
    let golden = |k: usize| (k as f64 * 0.618_034).fract();
    let sample: Vec<&Array2<f32>> = (0..10).map(|k| heads[(golden(k) * heads.len() as f64) as usize]).collect();
    let sampled: usize = sample.iter().map(|head| head.len()).sum();
    let fits = |floor: f32| -> Result<bool, Error> {
        let mut bytes = Vec::new();
        sample.iter().for_each(|head| quantise(head, floor, &mut bytes));
        // 3 % for what the sample does not show.
        let estimate = deflate(&bytes)?.len() as f64 * 4.0 / 3.0 * total as f64 / sampled as f64 * 1.03;
        Ok(estimate <= budget as f64)
    };
    if fits(0.0)? {
        return Ok(0.0);
    }
    // From 2⁻¹⁴ to 2⁻⁷ in steps of √2; the larger the floor, the smaller the page.
    let floor = |k: i32| 0.5f32.powf((28 - k) as f32 / 2.0);
    let (mut low, mut high) = (0, 14);
    while low < high {
        let middle = (low + high) / 2;
        if fits(floor(middle))? { high = middle } else { low = middle + 1 }
    }
    Ok(floor(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_own_scale_and_nan_stays_nan() {
        let head = ndarray::array![[0.001f32, 0.0005, 0.0], [f32::NAN, 0.7, 0.3], [0.0, 0.0, 0.0]];
        let mut bytes = Vec::new();
        quantise(&head, 0.0, &mut bytes);
        let (steps, values) = bytes.split_at(12);
        let step = |i: usize| f32::from_le_bytes(steps[4 * i..4 * i + 4].try_into().unwrap());
        assert_eq!(values, [254, 127, 0, 255, 254, 109, 0, 0, 0]);
        assert!((254.0 * step(0) - 0.001).abs() < 1e-8 && (109.0 * step(1) - 0.3).abs() < 0.7 / 254.0 / 2.0);
    }

    #[test]
    fn what_is_large_gets_a_floor_and_what_is_small_none() {
        let mut state = 1u32;
        let noisy = Array2::from_shape_simple_fn((256, 256), || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 2f32.powi(31)
        });
        let heads = vec![&noisy; 8];
        assert_eq!(fitting_floor(&heads, 1_000_000).unwrap(), 0.0);
        assert!(fitting_floor(&heads, 200_000).unwrap() > 0.0);
    }
}
