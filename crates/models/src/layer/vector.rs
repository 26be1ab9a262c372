//! Arithmetic on slices that the compiler turns into vector code inside [`foveal_compute::vectorise`].
//!
//! Multiplications and additions are separate on purpose: a fused one would be a function call where the processor lacks
//! it, and so the results are the same on all instruction sets.

use std::hint::black_box;

/// Partial sums side by side: the widest vector there is.
const LANES: usize = 16;

/// Σ f(aᵢ, bᵢ), for several functions at once.
#[inline(always)]
pub fn sums<const N: usize>(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> [f32; N]) -> [f32; N] {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [[0.0; LANES]; N];
    for (a, b) in a.iter().zip(b) {
        let values: [[f32; N]; LANES] = std::array::from_fn(|lane| f(a[lane], b[lane]));
        for n in 0..N {
            for lane in 0..LANES {
                sums[n][lane] += values[lane][n];
            }
        }
    }
    let mut rest = [0.0; N];
    for (a, b) in a_rest.iter().zip(b_rest) {
        let values = f(*a, *b);
        for n in 0..N {
            rest[n] += values[n];
        }
    }
    // Seen together with the loop above, the folding makes the compiler cut the vectors into pairs.
    let mut sums = black_box(sums);
    std::array::from_fn(|n| fold(&mut sums[n]) + rest[n])
}

/// The sum of all lanes.
#[inline(always)]
fn fold(sums: &mut [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// Σ f(aᵢ).
#[inline(always)]
pub fn sum(a: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    sums(a, a, |a, _| [f(a)])[0]
}

/// Σ aᵢ², in double precision.
#[inline(always)]
pub fn squares(a: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += square(chunk[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|x| square(*x)).sum::<f64>()
}

/// The largest |aᵢ|, NaN apart.
#[inline(always)]
pub fn max_abs(a: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut largest = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            let x = chunk[lane].abs();
            largest[lane] = if x > largest[lane] { x } else { largest[lane] };
        }
    }
    largest.iter().chain(rest).fold(0.0, |largest, x| if x.abs() > largest { x.abs() } else { largest })
}

/// The largest; −∞ of nothing; NaN if there is one.
#[inline(always)]
pub fn max(a: &[f32]) -> f32 {
    // The second operand where either is NaN: a NaN, once taken, could be lost, so they are looked for by themselves.
    let larger = |x: f32, y: f32| if x > y { x } else { y };
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut largest = [f32::NEG_INFINITY; LANES];
    let mut nan = [0u32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            largest[lane] = larger(chunk[lane], largest[lane]);
            nan[lane] |= u32::from(chunk[lane].is_nan());
        }
    }
    let (mut all, mut any_nan) = (f32::NEG_INFINITY, 0);
    for lane in 0..LANES {
        all = larger(largest[lane], all);
        any_nan |= nan[lane];
    }
    for x in rest {
        all = larger(*x, all);
        any_nan |= u32::from(x.is_nan());
    }
    if any_nan > 0 { f32::NAN } else { all }
}

/// Adding 1.5·2²³ leaves the integer nearest to the argument in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// The nearest integer, where |x| ≤ 2²².
#[inline(always)]
pub fn nearest(x: f32) -> i32 {
    (x + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i32
}

/// eˣ with a relative error below 2e-7; 0 below −87.3, ∞ from 88.4 on, NaN for NaN.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; 2ⁿ by its exponent bits, eʳ by a polynomial (Cephes' `expf`).
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "as published")]
pub fn exp(x: f32) -> f32 {
    let clamped = if x < -87.33 { -87.33 } else { x };
    // From here on n = 128, and 2ⁿ is ∞.
    let clamped = if clamped > 88.8 { 88.8 } else { clamped };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with so few bits that n times it is exact.
    let r = (clamped - n * 0.693_359_375) - n * -2.121_944_4e-4;
    let mut p = 1.987_569_15e-4;
    for c in [1.398_199_950_7e-3, 8.333_451_907_3e-3, 4.166_579_589_4e-2, 1.666_666_545_9e-1, 5.000_000_120_1e-1] {
        p = p * r + c;
    }
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    let value = (p * r * r + r + 1.0) * power;
    if x < -87.33 { 0.0 } else { value }
}

/// 2ˣ with a relative error below 2e-7; 2⁻¹²⁶ below −126, ∞ from 127.5 on, NaN for NaN. Cheaper than [`exp`], and as good where
/// a factor of ln 2 can be had for nothing.
///
/// x = n + r with |r| ≤ ½; 2ⁿ by its exponent bits, 2ʳ by a polynomial (Cephes' `exp2f`).
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "as published")]
pub fn exp2(x: f32) -> f32 {
    let clamped = if x < -126.0 { -126.0 } else { x };
    let clamped = if clamped > 128.0 { 128.0 } else { clamped };
    let shifted = clamped + ROUND;
    let r = clamped - (shifted - ROUND);
    let mut p = 1.535_336_188_319_5e-4;
    for c in [
        1.339_887_440_266_574e-3,
        9.618_437_357_674_64e-3,
        5.550_332_471_162_809e-2,
        2.402_264_791_363_012e-1,
        6.931_472_028_550_421e-1,
    ] {
        p = p * r + c;
    }
    (p * r + 1.0) * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// 1 / (1 + e⁻ˣ).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp2(-std::f32::consts::LOG2_E * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate() {
        for i in -87_300..88_000 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 2e-7, "exp({x}) = {} instead of {exact}", exp(x));
        }
        assert_eq!((exp(f32::NEG_INFINITY), exp(-1e4)), (0.0, 0.0));
        assert!(exp(f32::NAN).is_nan() && exp(88.8).is_infinite() && exp(f32::INFINITY).is_infinite());
    }

    #[test]
    fn exp2_is_accurate() {
        for i in -125_999..127_499 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).exp2();
            assert!((f64::from(exp2(x)) / exact - 1.0).abs() < 2e-7, "exp2({x}) = {} instead of {exact}", exp2(x));
        }
        assert_eq!((exp2(f32::NEG_INFINITY), exp2(-1e4)), (f32::MIN_POSITIVE, f32::MIN_POSITIVE));
        assert!(exp2(f32::NAN).is_nan() && exp2(128.0).is_infinite() && exp2(f32::INFINITY).is_infinite());
        assert_eq!((sigmoid(0.0), sigmoid(-100.0), sigmoid(100.0)), (0.5, 0.0, 1.0));
        assert!(sigmoid(f32::NAN).is_nan());
    }

    #[test]
    fn sums_and_maxima() {
        for n in [0, 1, 31, 32, 33, 100] {
            let x: Vec<f32> = (0..n).map(|i| ((i * 37) % 101) as f32).collect();
            assert_eq!(sum(&x, |x| x), x.iter().sum::<f32>());
            let both = [x.iter().map(|x| x * x).sum::<f32>(), x.iter().map(|x| 2.0 * x).sum::<f32>()];
            assert_eq!(sums(&x, &x, |x, y| [x * y, x + y]), both);
            assert_eq!(squares(&x), x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>());
            assert_eq!(max(&x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            for i in 0..n {
                let mut x = x.clone();
                x[i] = f32::NAN;
                assert!(max(&x).is_nan(), "{i} of {n}");
            }
        }
    }
}
