//! Random numbers for initial weights, the same for a seed on every machine.
//!
//! SplitMix64 (Steele 2014): the state is a counter, and each number is a hash of it,
//!
//! $$ s_n = s_0 + n \cdot \gamma, \qquad u_n = \mathrm{mix}_{64}(s_n). $$

use ndarray::{Array, Dimension, ShapeBuilder};

/// SplitMix64's γ, 2⁶⁴ divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
///
/// ```
/// use foveal_models::layer::Random;
///
/// let weights = Random::new(7).normal((256, 256), 0.02);
/// assert_eq!(weights, Random::new(7).normal((256, 256), 0.02));
/// assert!(weights.mean().unwrap().abs() < 1e-3 && (weights.std(0.0) - 0.02).abs() < 1e-3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
    /// Whether the distributions of weights have a width.
    wide: bool,
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed, wide: true }
    }

    /// No randomness in the weights: all are 0. For a model that gets them from a file.
    pub fn zeros() -> Self {
        Random { state: 0, wide: false }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number from 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from 0 to below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The bias of this (Lemire 2019, without its rejection) is below end/2⁶⁴.
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Normally distributed numbers with mean 0, by Box and Muller.
    pub fn normal<S: ShapeBuilder<Dim = D>, D: Dimension>(&mut self, shape: S, deviation: f32) -> Array<f32, D> {
        if !self.wide {
            return to_be_filled(shape);
        }
        let mut next = None;
        Array::from_shape_simple_fn(shape, || {
            let z = next.take().unwrap_or_else(|| {
                // 1 − u lies above 0, so the logarithm is finite.
                let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
                let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
                next = Some(radius * sin);
                radius * cos
            });
            deviation * z as f32
        })
    }

    /// Xavier's (Glorot 2010) uniform distribution on ±√(6 / (inputs + outputs)), for a weight \[outputs, inputs\].
    pub fn xavier(&mut self, outputs: usize, inputs: usize) -> ndarray::Array2<f32> {
        if !self.wide {
            return to_be_filled((outputs, inputs));
        }
        let limit = (6.0 / (inputs + outputs).max(1) as f64).sqrt();
        Array::from_shape_simple_fn((outputs, inputs), || (limit * (2.0 * self.uniform() - 1.0)) as f32)
    }
}

/// Zeros, where a file's weights will be, to be read over and over.
fn to_be_filled<S: ShapeBuilder<Dim = D>, D: Dimension>(shape: S) -> Array<f32, D> {
    let weights = Array::zeros(shape);
    weights.as_slice_memory_order().into_iter().for_each(foveal_compute::advise_large_pages);
    weights
}

/// A seed of its own for every step, layer and use, from the one seed of a run.
///
/// ```
/// use foveal_models::layer::derive_seed;
/// assert_ne!(derive_seed(1, &[100, 3]), derive_seed(1, &[100, 4]));
/// ```
pub fn derive_seed(seed: u64, path: &[u64]) -> u64 {
    path.iter().fold(mix(seed.wrapping_add(GAMMA)), |seed, part| mix(seed.wrapping_add(GAMMA) ^ part))
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
