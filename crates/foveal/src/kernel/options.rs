//! Softcap, bias and mask as vector passes over one row of scores: row ⟵ f(row, something as long as the row).

use std::ops::Range;

use super::simd::Simd;

/// What a pass reads beside the row; `LANES` of it at a time.
macro_rules! pass {
    ($simd:ident, $row:ident, |$at:ident, $x:ident| $vector:expr, |$n:ident, $y:ident| $single:expr) => {{
        let whole = $row.len() - $row.len() % S::LANES;
        let mut $at = 0;
        while $at < whole {
            // SAFETY: $at + LANES does not exceed the row, nor what is asserted to be as long as the row.
            unsafe {
                let p = $row.as_mut_ptr().add($at);
                let $x = $simd.load(p);
                $simd.store(p, $vector);
            }
            $at += S::LANES;
        }
        for $n in whole..$row.len() {
            let $y = $row[$n];
            $row[$n] = $single;
        }
    }};
}

/// row ⟵ cap·tanh(row/cap). The row is whole vectors long.
#[inline(always)]
pub fn cap<S: Simd>(simd: S, row: &mut [f32], cap: f32) {
    let (cap, inverse) = (simd.splat(cap), simd.splat(1.0 / cap));
    for vector in row.chunks_exact_mut(S::LANES) {
        // SAFETY: the chunk has LANES values.
        unsafe {
            let x = simd.mul(simd.load(vector.as_ptr()), inverse);
            simd.store(vector.as_mut_ptr(), simd.mul(cap, tanh(simd, x)));
        }
    }
}

/// Sets to `value` what lies outside of `seen`. The row is whole vectors long, and is written in vectors alone: to load one
/// of which a part was just stored by itself takes long.
#[inline(always)]
pub fn hide_outside<S: Simd>(simd: S, row: &mut [f32], seen: Range<usize>, value: f32) {
    // From element 16 − n on, the first n are true.
    const FIRST: [bool; 32] = {
        let mut first = [false; 32];
        let mut n = 0;
        while n < 16 {
            first[n] = true;
            n += 1;
        }
        first
    };
    const { assert!(S::LANES <= 16) };
    let value = simd.splat(value);
    for (n, vector) in row.chunks_exact_mut(S::LANES).enumerate() {
        let lane = |key: usize| key.saturating_sub(n * S::LANES).min(S::LANES);
        let (start, end) = (lane(seen.start), lane(seen.end));
        if start == 0 && end == S::LANES {
            continue;
        }
        let first = |n: usize| FIRST[16 - n..].as_ptr();
        // SAFETY: the chunk has LANES values, and so has what is left of `FIRST`.
        unsafe {
            let x = simd.keep(first(end), simd.load(vector.as_ptr()), value);
            simd.store(vector.as_mut_ptr(), simd.keep(first(start), value, x));
        }
    }
}

/// tanh; relative error below 4e-7.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
    let minus = simd.sub(zero, x);
    let size = simd.max(minus, x);
    // Small: x + x³·P(x²), where 1 − 2/(e²ˣ + 1) would cancel.
    let y = simd.mul(x, x);
    let mut p = simd.splat(TANH[3]);
    for c in TANH[..3].iter().rev() {
        p = simd.fma(p, y, simd.splat(*c));
    }
    let small = simd.fma(simd.mul(x, y), p, x);
    // Large: the latter; beyond 15 it is 1. `max` gives its second operand for NaN, which so stays NaN.
    let bounded = simd.sub(zero, simd.max(simd.splat(-15.0), simd.sub(zero, size)));
    let power = simd.exp2(simd.mul(simd.splat(2.0 * std::f32::consts::LOG2_E), bounded));
    let large = simd.sub(one, simd.div(simd.splat(2.0), simd.add(power, one)));
    let large = simd.pick(x, zero, simd.sub(zero, large), large);
    simd.pick(size, simd.splat(0.55), small, large)
}

/// (tanh x − x)/x³ ≈ Σ cᵢ x²ⁱ for |x| ≤ 0.55, minimax in the relative error of tanh (3.7e-8).
const TANH: [f32; 4] = [-0.333_329_47, 0.133_207_25, -0.052_671_79, 0.016_437_535];

/// row ⟵ row + values
#[inline(always)]
pub fn add<S: Simd>(simd: S, row: &mut [f32], values: &[f32]) {
    assert!(values.len() >= row.len());
    pass!(simd, row, |at, x| simd.add(x, simd.load(values.as_ptr().add(at))), |n, y| y + values[n]);
}

/// row ⟵ row + value
#[inline(always)]
pub fn add_constant<S: Simd>(simd: S, row: &mut [f32], value: f32) {
    let all = simd.splat(value);
    pass!(simd, row, |at, x| simd.add(x, all), |n, y| y + value);
}

/// row ⟵ row − slope·|start + n|, for n = 0, 1, 2, … What is left of the last vector is rounded as the others are: how long a
/// row is depends on the rows that it is computed with, and its bits must not.
#[inline(always)]
pub fn subtract_distance<S: Simd>(simd: S, row: &mut [f32], slope: f32, start: f32) {
    let mut counts = [0.0f32; 16];
    counts.iter_mut().enumerate().for_each(|(n, x)| *x = start + n as f32);
    // SAFETY: no vector has more than 16 lanes.
    let line = unsafe { (simd.load(counts.as_ptr()), simd.splat(-slope)) };
    let whole = row.len() - row.len() % S::LANES;
    let (vectors, rest) = row.split_at_mut(whole);
    for (n, vector) in vectors.chunks_exact_mut(S::LANES).enumerate() {
        subtract_vector(simd, vector, line, n * S::LANES);
    }
    if !rest.is_empty() {
        let mut last = [0.0; 16];
        last[..rest.len()].copy_from_slice(rest);
        subtract_vector(simd, &mut last[..S::LANES], line, whole);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// One vector of [`subtract_distance`], `at` keys further on than `first`.
#[inline(always)]
fn subtract_vector<S: Simd>(simd: S, vector: &mut [f32], (first, minus_slope): (S::V, S::V), at: usize) {
    assert_eq!(vector.len(), S::LANES);
    // Whole numbers below 2²⁴: exact.
    let distance = simd.add(first, simd.splat(at as f32));
    let distance = simd.max(distance, simd.sub(simd.splat(0.0), distance));
    // SAFETY: there are LANES values.
    unsafe { simd.store(vector.as_mut_ptr(), simd.fma(minus_slope, distance, simd.load(vector.as_ptr()))) };
}

/// row ⟵ row where `keep` is true, `value` elsewhere
#[inline(always)]
pub fn hide<S: Simd>(simd: S, row: &mut [f32], keep: &[bool], value: f32) {
    assert!(keep.len() >= row.len());
    let hidden = simd.splat(value);
    pass!(simd, row, |at, x| simd.keep(keep.as_ptr().add(at), x, hidden), |n, y| if keep[n] { y } else { value });
}

/// row ⟵ `value` where the bias is −∞ or `f32::MIN`, row elsewhere
#[inline(always)]
pub fn hide_biased<S: Simd>(simd: S, row: &mut [f32], bias: &[f32], value: f32) {
    assert!(bias.len() >= row.len());
    let (hidden, lowest) = (simd.splat(value), simd.splat(f32::MIN));
    pass!(simd, row, |at, x| simd.pick(simd.load(bias.as_ptr().add(at)), lowest, hidden, x), |n, y| if bias[n]
        <= f32::MIN
    {
        value
    } else {
        y
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, dispatch};
    use foveal_compute::Isa;

    struct Cap<'a>(&'a mut [f32]);

    impl Kernel for Cap<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            cap(simd, self.0, 1.0);
        }
    }

    #[test]
    fn tanh_is_exact_to_a_few_ulp() {
        for isa in Isa::available() {
            let xs = (-320_000..320_000).map(|n| n as f32 * 1e-4).collect::<Vec<_>>();
            let mut ys = xs.clone();
            dispatch(Isa::resolve(Some(isa)).unwrap(), Cap(&mut ys));
            for (x, y) in xs.iter().zip(&ys) {
                let want = f64::from(*x).tanh();
                let error = (f64::from(*y) - want).abs();
                assert!(error <= 4e-7 * want.abs(), "{isa}: tanh({x}): error {error:e}");
            }
            let mut special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0].repeat(4);
            dispatch(Isa::resolve(Some(isa)).unwrap(), Cap(&mut special));
            assert_eq!(special[..2], [1.0, -1.0]);
            assert!(special[2].is_nan() && special[3] == 0.0);
        }
    }
}
