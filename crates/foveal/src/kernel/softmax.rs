//! Vector passes over one row of scores.
//!
//! Rows are whole vectors long: the caller has filled up the last one with −∞.
//!
//! The difference s − m is taken before anything else, so that the largest score of a row gives exactly 1, and the only
//! visible key of a row a weight of exactly 1. Folding the multiplication by log₂e into it would save one instruction in
//! fourteen and lose that.

use super::simd::Simd;

/// The largest value.
#[inline(always)]
pub fn largest<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let mut max = [simd.splat(f32::NEG_INFINITY); 4];
    let mut blocks = row.chunks_exact(4 * S::LANES);
    for block in &mut blocks {
        for (v, max) in max.iter_mut().enumerate() {
            // SAFETY: vector v of 4 lies within the block.
            *max = simd.max(*max, unsafe { simd.load(block.as_ptr().add(v * S::LANES)) });
        }
    }
    for vector in blocks.remainder().chunks_exact(S::LANES) {
        // SAFETY: the chunk has LANES values.
        max[0] = simd.max(max[0], unsafe { simd.load(vector.as_ptr()) });
    }
    simd.largest(simd.max(simd.max(max[0], max[1]), simd.max(max[2], max[3])))
}

/// What scores are counted in: a score is so many times what is stored of it.
///
/// Keys are multiplied with a power of two, which is exact, and not with the whole scale, which would round each of their values.
/// What is left of the scale, from 1 to 2, is the unit: it goes into the exponent, at no cost.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    size: f32,
    /// log₂e of these.
    exponent: f32,
    /// What rounding has left of that.
    tail: f32,
}

impl Unit {
    pub fn new(size: f32) -> Unit {
        let exact = f64::from(size) * std::f64::consts::LOG2_E;
        let exponent = exact as f32;
        Unit { size, exponent, tail: (exact - f64::from(exponent)) as f32 }
    }

    /// A score as it is.
    #[inline(always)]
    pub fn score(self, stored: f32) -> f64 {
        f64::from(self.size) * f64::from(stored)
    }
}

/// row ⟵ row·exp(log)
#[inline(always)]
pub fn scale<S: Simd>(simd: S, row: &mut [f32], log: f32, unit: Unit) {
    multiply_by(simd, row, simd.exp2(simd.splat(log * unit.exponent)));
}

/// row ⟵ row·factor
#[inline(always)]
pub fn multiply<S: Simd>(simd: S, row: &mut [f32], factor: f32) {
    multiply_by(simd, row, simd.splat(factor));
}

#[inline(always)]
fn multiply_by<S: Simd>(simd: S, row: &mut [f32], factor: S::V) {
    for vector in row.chunks_exact_mut(S::LANES) {
        // SAFETY: the chunk has LANES values.
        unsafe { simd.store(vector.as_mut_ptr(), simd.mul(simd.load(vector.as_ptr()), factor)) };
    }
}

/// row ⟵ exp(row − m), added lane by lane to the one vector `sum`.
#[inline(always)]
pub fn exp<S: Simd>(simd: S, row: &mut [f32], m: f32, sum: &mut [f32], unit: Unit) {
    assert_eq!(sum.len(), S::LANES);
    let m = (finite(simd, m), simd.splat(unit.exponent));
    // Two sums: one alone would wait for each addition.
    // SAFETY: `sum` has LANES values.
    let mut sums = [unsafe { simd.load(sum.as_ptr()) }, simd.splat(0.0)];
    let mut pairs = row.chunks_exact_mut(2 * S::LANES);
    for pair in &mut pairs {
        let (a, b) = pair.split_at_mut(S::LANES);
        sums[0] = simd.add(sums[0], exp_vector(simd, a, m));
        sums[1] = simd.add(sums[1], exp_vector(simd, b, m));
    }
    let last = pairs.into_remainder();
    if !last.is_empty() {
        sums[0] = simd.add(sums[0], exp_vector(simd, last, m));
    }
    // SAFETY: as above.
    unsafe { simd.store(sum.as_mut_ptr(), simd.add(sums[0], sums[1])) };
}

/// The log-sum-exp of a row as two f32: what rounding it to the first left over is the second. So s − lse keeps its digits where
/// both are large: where scores reach 1,000, the first alone is off by 3e-5.
#[derive(Clone, Copy, Debug)]
pub struct Lse {
    high: f32,
    low: f32,
    unit: Unit,
}

impl Lse {
    /// −∞ (nothing visible) counts as 0, so that exp(−∞ − it) is still 0.
    #[inline(always)]
    pub fn new(lse: f64, unit: Unit) -> Lse {
        if lse == f64::NEG_INFINITY {
            return Lse { high: 0.0, low: 0.0, unit };
        }
        let lse = lse / f64::from(unit.size);
        // Not −∞, however low: −∞ − (−∞) would be NaN, and what is hidden has weight 0 whatever the lse is. (NaN stays.)
        let high = if lse < f64::from(f32::MIN) { f32::MIN } else { lse as f32 };
        let low = (lse - f64::from(high)) as f32;
        // Beyond what f32 can hold, the difference means nothing.
        Lse { high, low: if low.is_finite() { low } else { 0.0 }, unit }
    }

    /// Of rows from which it has been subtracted already, in scores as they are.
    #[inline(always)]
    pub fn subtracted() -> Lse {
        Lse { high: 0.0, low: 0.0, unit: Unit::new(1.0) }
    }

    #[inline(always)]
    fn splat<S: Simd>(self, simd: S) -> [S::V; 4] {
        let Unit { exponent, tail, .. } = self.unit;
        [simd.splat(self.high), simd.splat(self.low), simd.splat(exponent), simd.splat(tail)]
    }
}

/// row ⟵ exp(row − lse), at most 1
#[inline(always)]
pub fn weights<S: Simd>(simd: S, row: &mut [f32], lse: Lse) {
    let lse = lse.splat(simd);
    for vector in row.chunks_exact_mut(S::LANES) {
        weigh_vector(simd, vector, lse);
    }
}

/// One vector of exp(· − lse). Rounding may take a difference above 0, and an lse that is not the row's own may take it anywhere:
/// no weight is above 1.
///
/// exp x is 2^(x·log₂e), and what rounding takes off that product, up to 2⁻²⁴ of x, is multiplied in afterwards: gradients are sums in
/// which weights cancel.
#[inline(always)]
fn weigh_vector<S: Simd>(simd: S, vector: &mut [f32], [high, low, exponent, tail]: [S::V; 4]) -> S::V {
    /// Below it weights are 0. Finite, so that what is hidden, at −∞, has no residue of NaN.
    const LEAST: f32 = -1000.0;
    assert_eq!(vector.len(), S::LANES);
    // SAFETY: there are LANES values.
    unsafe {
        let x = simd.sub(simd.sub(simd.load(vector.as_ptr()), high), low);
        // `min` and `max` give their second operand for NaN, which so stays NaN.
        let x = simd.min(simd.splat(0.0), simd.max(simd.splat(LEAST), x));
        let power = simd.mul(x, exponent);
        let residue = simd.fma(x, tail, simd.residue(x, exponent, power));
        let y = simd.exp2(power);
        let y = simd.fma(y, simd.mul(residue, simd.splat(std::f32::consts::LN_2)), y);
        simd.store(vector.as_mut_ptr(), y);
        y
    }
}

/// The sum of one vector.
#[inline(always)]
pub fn total<S: Simd>(simd: S, vector: &[f32]) -> f32 {
    assert_eq!(vector.len(), S::LANES);
    // SAFETY: there are LANES values.
    simd.sum(unsafe { simd.load(vector.as_ptr()) })
}

/// A maximum of −∞ (nothing visible) counts as 0, so that exp(−∞ − it) is still 0.
#[inline(always)]
fn finite<S: Simd>(simd: S, m: f32) -> S::V {
    simd.splat(if m == f32::NEG_INFINITY { 0.0 } else { m })
}

/// One vector of exp(· − m).
#[inline(always)]
fn exp_vector<S: Simd>(simd: S, vector: &mut [f32], (m, exponent): (S::V, S::V)) -> S::V {
    assert_eq!(vector.len(), S::LANES);
    // SAFETY: there are LANES values.
    unsafe {
        let y = simd.exp2(simd.mul(simd.sub(simd.load(vector.as_ptr()), m), exponent));
        simd.store(vector.as_mut_ptr(), y);
        y
    }
}

/// p ⟵ exp(p − lse) and ds ⟵ p∘(ds − delta)
#[inline(always)]
pub fn exp_and_gradient<S: Simd>(simd: S, p: &mut [f32], ds: &mut [f32], lse: Lse, delta: f32) {
    let (lse, delta) = (lse.splat(simd), simd.splat(delta));
    for at in (0..p.len()).step_by(S::LANES) {
        let weight = weigh_vector(simd, &mut p[at..at + S::LANES], lse);
        let ds = &mut ds[at..at + S::LANES];
        // SAFETY: there are LANES values.
        unsafe { simd.store(ds.as_mut_ptr(), simd.mul(weight, simd.sub(simd.load(ds.as_ptr()), delta))) };
    }
}
