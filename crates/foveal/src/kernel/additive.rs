//! Additive scores: one row against many, a·tanh(one + other), and their gradient. Rows are whole vectors long, filled up with
//! zeros. The two sides are alike, so one kernel serves a query against its keys and a key against its queries.

use super::Kernel;
use super::options::tanh;
use super::simd::Simd;

/// score\[n\] ⟵ Σ weight·tanh(one + many\[seen\[n\]\])
pub struct Scores<'a> {
    pub one: &'a [f32],
    /// Rows as long as `one`.
    pub many: &'a [f32],
    pub weight: &'a [f32],
    pub seen: &'a [usize],
    pub scores: &'a mut [f32],
}

/// With t = tanh(one + other): done ⟵ done + Σₙ dscore\[n\]·weight∘(1 − t²) and dweight ⟵ dweight + Σₙ dscore\[n\]·t
pub struct Gradient<'a> {
    pub one: &'a [f32],
    pub many: &'a [f32],
    pub weight: &'a [f32],
    pub seen: &'a [usize],
    pub dscores: &'a [f32],
    pub done: &'a mut [f32],
    pub dweight: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.one.len();
        assert!(self.weight.len() == width && width.is_multiple_of(S::LANES));
        for (score, n) in self.scores.iter_mut().zip(self.seen) {
            let other = &self.many[n * width..(n + 1) * width];
            let mut sum = simd.splat(0.0);
            for at in (0..width).step_by(S::LANES) {
                // SAFETY: all three are `width` long, a multiple of LANES.
                unsafe {
                    let x = simd.add(simd.load(self.one.as_ptr().add(at)), simd.load(other.as_ptr().add(at)));
                    sum = simd.fma(simd.load(self.weight.as_ptr().add(at)), tanh(simd, x), sum);
                }
            }
            *score = simd.sum(sum);
        }
    }
}

impl Kernel for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.one.len();
        assert!(
            [self.weight.len(), self.done.len(), self.dweight.len()] == [width; 3] && width.is_multiple_of(S::LANES)
        );
        let one = simd.splat(1.0);
        for at in (0..width).step_by(S::LANES) {
            // SAFETY: all rows are `width` long, a multiple of LANES; `many` is sliced, and so checked, row by row.
            unsafe {
                let (x, weight) = (simd.load(self.one.as_ptr().add(at)), simd.load(self.weight.as_ptr().add(at)));
                let mut done = simd.load(self.done.as_ptr().add(at));
                let mut dweight = simd.load(self.dweight.as_ptr().add(at));
                for (dscore, n) in self.dscores.iter().zip(self.seen) {
                    let other = &self.many[n * width..(n + 1) * width];
                    let (t, ds) = (tanh(simd, simd.add(x, simd.load(other.as_ptr().add(at)))), simd.splat(*dscore));
                    dweight = simd.fma(ds, t, dweight);
                    done = simd.fma(simd.mul(ds, weight), simd.sub(one, simd.mul(t, t)), done);
                }
                simd.store(self.done.as_mut_ptr().add(at), done);
                simd.store(self.dweight.as_mut_ptr().add(at), dweight);
            }
        }
    }
}
