//! Seeded random arrays.

use ndarray::{Array, IntoDimension};

/// Normal random numbers (SplitMix64, Box and Muller) in f64, in any shape.
pub fn randn<I: IntoDimension>(seed: u64, shape: I) -> Array<f64, I::Dim> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        ((x >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    };
    Array::from_shape_simple_fn(shape, || {
        let (u, angle) = (uniform(), std::f64::consts::TAU * uniform());
        (-2.0 * u.ln()).sqrt() * angle.cos()
    })
}
