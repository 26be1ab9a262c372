//! Seeded random arrays and comparisons, shared by the integration tests.
#![allow(dead_code, reason = "each test file compiles its own copy and uses a part of it")]

pub mod calls;

use ndarray::{Array, Array4, ArrayD, ArrayView, ArrayViewD, Dimension, IntoDimension};

/// SplitMix64: small, seeded, the same on every machine.
pub struct Random(u64);

impl Random {
    /// The generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform in (0, 1): never 0, so its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Uniform in 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// Normal with mean 0 and variance 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let (u, angle) = (self.uniform(), std::f64::consts::TAU * self.uniform());
        (-2.0 * u.ln()).sqrt() * angle.cos()
    }
}

/// Normal random numbers in f64, in any shape.
pub fn randn<I: IntoDimension>(seed: u64, shape: I) -> Array<f64, I::Dim> {
    let mut random = Random::new(seed);
    Array::from_shape_simple_fn(shape, || random.normal())
}

/// Normal random numbers in f32: [B, H, T, D].
pub fn randn4(seed: u64, shape: [usize; 4]) -> Array4<f32> {
    narrow(&randn(seed, shape))
}

/// True with the given probability, in any shape.
pub fn chance<I: IntoDimension>(seed: u64, probability: f64, shape: I) -> Array<bool, I::Dim> {
    let mut random = Random::new(seed);
    Array::from_shape_simple_fn(shape, || random.uniform() < probability)
}

/// f64 to f32.
pub fn narrow<D: Dimension>(array: &Array<f64, D>) -> Array<f32, D> {
    array.mapv(|x| x as f32)
}

/// f32 to f64.
pub fn widen<A: Copy + Into<f64>, D: Dimension>(array: &Array<A, D>) -> Array<f64, D> {
    array.mapv(Into::into)
}

/// Every |got − want| ≤ abs + rel·|want|. Equal infinities are equal, and so are NaN and NaN. The message names the
/// element that is furthest outside.
#[track_caller]
pub fn assert_close<A: Copy + Into<f64>>(what: &str, got: ArrayViewD<A>, want: ArrayViewD<f64>, abs: f64, rel: f64) {
    assert_close_f64(what, got.mapv(Into::into).view(), want, abs, rel);
}

/// [`assert_close`] for f64.
#[track_caller]
pub fn assert_close_f64(what: &str, got: ArrayViewD<f64>, want: ArrayViewD<f64>, abs: f64, rel: f64) {
    assert_eq!(got.shape(), want.shape(), "{what}: shapes differ");
    let excess = |got: f64, want: f64| {
        if got == want || (got.is_nan() && want.is_nan()) {
            0.0
        } else if got.is_finite() && want.is_finite() {
            (got - want).abs() / (abs + rel * want.abs())
        } else {
            f64::INFINITY
        }
    };
    let excesses: ArrayD<f64> = ndarray::Zip::from(&got).and(&want).map_collect(|g, w| excess(*g, *w));
    let wrong = excesses.iter().filter(|e| **e > 1.0).count();
    let worst = excesses.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((at, e)) = worst.filter(|(_, e)| **e > 1.0) {
        let (g, w) = (got[at.clone()], want[at.clone()]);
        panic!(
            "{what}: {wrong} of {} elements differ; worst at {:?}: got {g:e}, want {w:e}, off by {:e} = {e:.1} times \
             the tolerance {abs:e} + {rel:e}·|want|",
            excesses.len(),
            at.slice(),
            (g - w).abs(),
        );
    }
}

/// The dynamic view of any array, as [`assert_close`] takes it.
pub fn dynamic<A, D: Dimension>(array: &Array<A, D>) -> ArrayView<'_, A, ndarray::IxDyn> {
    array.view().into_dyn()
}
