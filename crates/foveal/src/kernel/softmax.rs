//! Vector passes over one row of scores.
//!
//! Rows are whole vectors long: the caller has filled up the last one with −∞.
//!
//! The difference s − m is taken before anything else, so that the largest score of a row gives exactly 1, and the only
//! visible key of a row a weight of exactly 1. Folding the multiplication by log₂e into it would save one instruction in
//! fourteen and lose that.

use std::f32::consts::LOG2_E;

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

/// row ⟵ row·exp(log)
#[inline(always)]
pub fn scale<S: Simd>(simd: S, row: &mut [f32], log: f32) {
    multiply_by(simd, row, simd.exp2(simd.splat(log * LOG2_E)));
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
pub fn exp<S: Simd>(simd: S, row: &mut [f32], m: f32, sum: &mut [f32]) {
    assert_eq!(sum.len(), S::LANES);
    let m = finite(simd, m);
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

/// row ⟵ exp(row − lse)
#[inline(always)]
pub fn weights<S: Simd>(simd: S, row: &mut [f32], lse: f32) {
    let lse = finite(simd, lse);
    for vector in row.chunks_exact_mut(S::LANES) {
        exp_vector(simd, vector, lse);
    }
}

/// The sum of one vector.
#[inline(always)]
pub fn total<S: Simd>(simd: S, vector: &[f32]) -> f32 {
    assert_eq!(vector.len(), S::LANES);
    // SAFETY: there are LANES values.
    simd.sum(unsafe { simd.load(vector.as_ptr()) })
}

/// A maximum or log-sum-exp of −∞ (nothing visible) counts as 0, so that exp(−∞ − it) is still 0.
#[inline(always)]
fn finite<S: Simd>(simd: S, m: f32) -> S::V {
    simd.splat(if m == f32::NEG_INFINITY { 0.0 } else { m })
}

/// One vector of exp(· − m).
#[inline(always)]
fn exp_vector<S: Simd>(simd: S, vector: &mut [f32], m: S::V) -> S::V {
    assert_eq!(vector.len(), S::LANES);
    // SAFETY: there are LANES values.
    unsafe {
        let y = simd.exp2(simd.mul(simd.sub(simd.load(vector.as_ptr()), m), simd.splat(LOG2_E)));
        simd.store(vector.as_mut_ptr(), y);
        y
    }
}

/// p ⟵ exp(p − lse) and ds ⟵ p∘(ds − delta)
#[inline(always)]
pub fn exp_and_gradient<S: Simd>(simd: S, p: &mut [f32], ds: &mut [f32], lse: f32, delta: f32) {
    let (lse, delta) = (finite(simd, lse), simd.splat(delta));
    for at in (0..p.len()).step_by(S::LANES) {
        let weight = exp_vector(simd, &mut p[at..at + S::LANES], lse);
        let ds = &mut ds[at..at + S::LANES];
        // SAFETY: there are LANES values.
        unsafe { simd.store(ds.as_mut_ptr(), simd.mul(weight, simd.sub(simd.load(ds.as_ptr()), delta))) };
    }
}

/// a·b, for vectors of equal length.
#[inline(always)]
pub fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let mut sum = [simd.splat(0.0); 4];
    let mut at = 0;
    while at + 4 * S::LANES <= a.len() {
        for v in 0..4 {
            sum[v] = dot_vector(simd, &a[at + v * S::LANES..], &b[at + v * S::LANES..], sum[v]);
        }
        at += 4 * S::LANES;
    }
    while at + S::LANES <= a.len() {
        sum[0] = dot_vector(simd, &a[at..], &b[at..], sum[0]);
        at += S::LANES;
    }
    let tail = a[at..].iter().zip(&b[at..]).map(|(x, y)| x * y).sum::<f32>();
    simd.sum(simd.add(simd.add(sum[0], sum[1]), simd.add(sum[2], sum[3]))) + tail
}

/// One vector of [`dot`].
#[inline(always)]
fn dot_vector<S: Simd>(simd: S, a: &[f32], b: &[f32], sum: S::V) -> S::V {
    assert!(a.len() >= S::LANES && b.len() >= S::LANES);
    // SAFETY: both have LANES values.
    unsafe { simd.fma(simd.load(a.as_ptr()), simd.load(b.as_ptr()), sum) }
}
