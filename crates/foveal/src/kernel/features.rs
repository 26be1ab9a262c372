//! The features of linear attention, in vector passes over rows of any length.

use std::f32::consts::LOG2_E;

use super::Kernel;
use super::simd::Simd;

/// x ⟵ elu(x) + 1, which is x + 1 above 0 and eˣ below.
pub struct EluPlusOne<'a>(pub &'a mut [f32]);

/// Rows ⟵ exp(row − shift): a shift for each row of `width` values.
pub struct ExpRows<'a> {
    pub values: &'a mut [f32],
    pub width: usize,
    pub shifts: &'a [f32],
}

impl Kernel for EluPlusOne<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut vectors = self.0.chunks_exact_mut(S::LANES);
        for vector in &mut vectors {
            elu(simd, vector);
        }
        let rest = vectors.into_remainder();
        let mut last = [0.0f32; 16];
        last[..rest.len()].copy_from_slice(rest);
        elu(simd, &mut last[..S::LANES]);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

impl Kernel for ExpRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (row, shift) in self.values.chunks_exact_mut(self.width.max(1)).zip(self.shifts) {
            let mut vectors = row.chunks_exact_mut(S::LANES);
            for vector in &mut vectors {
                exp(simd, vector, *shift);
            }
            let rest = vectors.into_remainder();
            let mut last = [0.0f32; 16];
            last[..rest.len()].copy_from_slice(rest);
            exp(simd, &mut last[..S::LANES], *shift);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

#[inline(always)]
fn elu<S: Simd>(simd: S, vector: &mut [f32]) {
    assert_eq!(vector.len(), S::LANES);
    let zero = simd.splat(0.0);
    // SAFETY: there are LANES values.
    unsafe {
        let x = simd.load(vector.as_ptr());
        // Below 0 only: 2ˣ is defined up to 127. `max` gives its second operand for NaN, which so stays NaN.
        let below = simd.sub(zero, simd.max(zero, simd.sub(zero, x)));
        let power = simd.exp2(simd.mul(below, simd.splat(LOG2_E)));
        simd.store(vector.as_mut_ptr(), simd.pick(x, zero, power, simd.add(x, simd.splat(1.0))));
    }
}

#[inline(always)]
fn exp<S: Simd>(simd: S, vector: &mut [f32], shift: f32) {
    assert_eq!(vector.len(), S::LANES);
    // SAFETY: there are LANES values.
    unsafe {
        let x = simd.sub(simd.load(vector.as_ptr()), simd.splat(shift));
        simd.store(vector.as_mut_ptr(), simd.exp2(simd.mul(x, simd.splat(LOG2_E))));
    }
}
