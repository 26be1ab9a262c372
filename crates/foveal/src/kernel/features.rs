//! The features of linear attention, in vector passes over rows of any length.

use std::f32::consts::LOG2_E;

use super::Kernel;
use super::simd::Simd;

/// The least and the largest value; NaN counts as neither. (∞, −∞) of nothing.
pub struct Bounds<'a>(pub &'a [f32]);

/// to ⟵ elu(from) + 1, which is x + 1 above 0 and eˣ below.
pub struct EluPlusOne<'a> {
    pub from: &'a [f32],
    pub to: &'a mut [f32],
}

/// How a value stands for ln φ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// ln φ = x
    Exp,
    /// φ = elu(x) + 1, so ln φ = min(x, 0) + ln(max(x, 0) + 1)
    Elu,
}

/// Every row of `to` ⟵ e^(ln φ + level − shift), with a level for each column and a shift for each row, such that no value is
/// above 1 and the largest is about 1. The shift of a row that is 0 throughout is −∞, that of a row with NaN or ∞ is NaN, and
/// so is the row.
pub struct Normalise<'a> {
    pub form: Form,
    pub from: &'a [f32],
    pub to: &'a mut [f32],
    pub levels: &'a [f32],
    pub shifts: &'a mut [f32],
}

/// Fills the last vector of a row where only the largest value counts.
const LOWEST: f32 = f32::MIN;

impl Kernel for Bounds<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (f32, f32) {
        // The least is the largest of the negatives. `max` gives its second operand for NaN.
        let (mut negative, mut largest) = (simd.splat(f32::NEG_INFINITY), simd.splat(f32::NEG_INFINITY));
        let mut vectors = self.0.chunks_exact(S::LANES);
        for vector in &mut vectors {
            // SAFETY: there are LANES values.
            let x = unsafe { simd.load(vector.as_ptr()) };
            negative = simd.max(simd.sub(simd.splat(0.0), x), negative);
            largest = simd.max(x, largest);
        }
        let bounds = (-simd.largest(negative), simd.largest(largest));
        vectors.remainder().iter().fold(bounds, |(least, largest), x| (least.min(*x), largest.max(*x)))
    }
}

impl Kernel for EluPlusOne<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        assert_eq!(self.from.len(), self.to.len());
        for (from, to) in self.from.chunks(S::LANES).zip(self.to.chunks_mut(S::LANES)) {
            let x = load(simd, from, 0.0);
            let power = simd.exp2(simd.mul(below(simd, x), simd.splat(LOG2_E)));
            let phi = simd.pick(x, simd.splat(0.0), power, simd.add(x, simd.splat(1.0)));
            store(simd, phi, to);
        }
    }
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.levels.len();
        assert!(self.from.len() == self.shifts.len() * width && self.to.len() == self.from.len());
        if width == 0 {
            return;
        }
        let rows = self.from.chunks_exact(width).zip(self.to.chunks_exact_mut(width));
        for ((from, to), shift) in rows.zip(self.shifts) {
            *shift = match self.form {
                Form::Exp => row_shift::<S, false>(simd, from, self.levels),
                Form::Elu => row_shift::<S, true>(simd, from, self.levels),
            };
            if shift.is_nan() || *shift == f32::NEG_INFINITY {
                to.fill(if shift.is_nan() { f32::NAN } else { 0.0 });
                continue;
            }
            match self.form {
                Form::Exp => shifted::<S, false>(simd, from, self.levels, *shift, to),
                Form::Elu => shifted::<S, true>(simd, from, self.levels, *shift, to),
            }
        }
    }
}

/// The largest ln φ + level of a row; see [`Normalise`].
#[inline(always)]
fn row_shift<S: Simd, const ELU: bool>(simd: S, row: &[f32], levels: &[f32]) -> f32 {
    let zero = simd.splat(0.0);
    let (mut top, mut largest, mut spoilt) = (simd.splat(LOWEST), zero, zero);
    for (x, levels) in row.chunks(S::LANES).zip(levels.chunks(S::LANES)) {
        let (x, level) = (load(simd, x, LOWEST), load(simd, levels, 0.0));
        // −∞ is a feature of 0 under ELU + 1. `max` gives its second operand for NaN.
        let above = if ELU { simd.max(zero, x) } else { x };
        spoilt = simd.fma(above, zero, spoilt);
        largest = simd.max(above, largest);
        top = simd.max(simd.add(if ELU { below(simd, x) } else { x }, level), top);
    }
    let top = simd.largest(top);
    if simd.sum(spoilt) != 0.0 {
        f32::NAN
    } else if top <= LOWEST {
        f32::NEG_INFINITY
    } else if ELU {
        top + simd.largest(largest).ln_1p()
    } else {
        top
    }
}

/// to ⟵ e^(ln φ + level − shift)
#[inline(always)]
fn shifted<S: Simd, const ELU: bool>(simd: S, from: &[f32], levels: &[f32], shift: f32, to: &mut [f32]) {
    let (shift, one) = (simd.splat(shift), simd.splat(1.0));
    let vectors = from.chunks(S::LANES).zip(levels.chunks(S::LANES)).zip(to.chunks_mut(S::LANES));
    for ((from, levels), to) in vectors {
        let (x, level) = (load(simd, from, 0.0), load(simd, levels, 0.0));
        let log = simd.sub(simd.add(if ELU { below(simd, x) } else { x }, level), shift);
        let power = simd.exp2(simd.mul(log, simd.splat(LOG2_E)));
        store(simd, if ELU { simd.mul(power, simd.max(one, simd.add(x, one))) } else { power }, to);
    }
}

/// min(x, 0), and NaN for NaN: 2ˣ is defined up to 127. `max` gives its second operand for NaN.
#[inline(always)]
fn below<S: Simd>(simd: S, x: S::V) -> S::V {
    let zero = simd.splat(0.0);
    simd.sub(zero, simd.max(zero, simd.sub(zero, x)))
}

/// A vector of up to LANES values, the rest of which is `fill`.
#[inline(always)]
fn load<S: Simd>(simd: S, values: &[f32], fill: f32) -> S::V {
    const { assert!(S::LANES <= 16) };
    if values.len() == S::LANES {
        // SAFETY: there are LANES values.
        return unsafe { simd.load(values.as_ptr()) };
    }
    let mut whole = [fill; 16];
    whole[..values.len()].copy_from_slice(values);
    // SAFETY: no vector has more than 16 lanes.
    unsafe { simd.load(whole.as_ptr()) }
}

/// As many values of a vector as there is room for.
#[inline(always)]
fn store<S: Simd>(simd: S, vector: S::V, to: &mut [f32]) {
    const { assert!(S::LANES <= 16) };
    if to.len() == S::LANES {
        // SAFETY: there is room for LANES values.
        return unsafe { simd.store(to.as_mut_ptr(), vector) };
    }
    let mut whole = [0.0; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { simd.store(whole.as_mut_ptr(), vector) };
    to.copy_from_slice(&whole[..to.len()]);
}
