//! Dropout by a counter-based generator.
//!
//! Whether weight (b, h, i, j) is dropped is a function of the seed and of these four numbers alone. So nothing has to
//! be stored for the backward pass, and the result does not depend on tiles or threads:
//!
//! $$ u = f(f(j + r_0) \oplus r_1), \qquad (r_0, r_1) = g(\text{seed}, b, h, i) $$
//!
//! with the weight kept where u ≥ p·2³². g is SplitMix64's finaliser, f a 32-bit finaliser of the same kind with the
//! multipliers that Wellons found by search to have the lowest bias; both are bijections, and the second compiles to vector code.

use crate::Error;

/// Dropout of attention weights, for training. Kept weights are divided by 1 − p, so that the mean does not change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The probability with which a weight is set to 0; at least 0 and under 1.
    pub probability: f32,
    /// Take another one for every layer and step.
    pub seed: u64,
}

impl Dropout {
    /// Whether the probability can be used.
    ///
    /// # Errors
    /// If it is not from 0 to below 1.
    pub fn check(&self) -> Result<(), Error> {
        if (0.0..1.0).contains(&self.probability) {
            Ok(())
        } else {
            Err(Error::Value {
                what: "dropout",
                expected: "a probability from 0 to below 1",
                got: self.probability.into(),
            })
        }
    }

    /// Drops values of any other array, for the layers around attention: multiplies `values`, which are row `i`, with 0 or
    /// 1 / (1 − p). The same call on the gradient is the backward pass.
    ///
    /// ```
    /// let dropout = foveal::Dropout { probability: 0.5, seed: 1 };
    /// let mut row = [1.0; 8];
    /// dropout.apply(0, &mut row);
    /// assert!(row.iter().all(|x| *x == 0.0 || *x == 2.0));
    /// ```
    #[inline(always)]
    pub fn apply(&self, i: usize, values: &mut [f32]) {
        self.row(0, 0, i).apply(0, values);
    }

    /// The generator of one row of weights.
    #[inline]
    pub(crate) fn row(&self, b: usize, h: usize, i: usize) -> Row {
        let mut key = self.seed;
        for index in [b, h, i] {
            key = mix64(key.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (index as u64));
        }
        Row {
            keys: [key as u32, (key >> 32) as u32],
            // p = 0.999… may round up to 2³²: `as` saturates.
            threshold: (f64::from(self.probability) * 4_294_967_296.0) as u32,
            scale: 1.0 / (1.0 - self.probability),
        }
    }
}

/// The generator of one row of weights.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    keys: [u32; 2],
    threshold: u32,
    scale: f32,
}

impl Row {
    /// What weight j is multiplied with: 0, or 1 / (1 − p).
    #[inline(always)]
    pub fn factor(&self, j: usize) -> f32 {
        let u = mix32(mix32((j as u32).wrapping_add(self.keys[0])) ^ self.keys[1]);
        if u >= self.threshold { self.scale } else { 0.0 }
    }

    /// Multiplies the weights of the keys from `first` on.
    #[inline(always)]
    pub fn apply(&self, first: usize, weights: &mut [f32]) {
        for (j, w) in weights.iter_mut().enumerate() {
            *w *= self.factor(first + j);
        }
    }
}

#[inline(always)]
fn mix32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[inline(always)]
pub(crate) fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_share_it_should() {
        for p in [0.0, 0.1, 0.5, 0.9] {
            let dropout = Dropout { probability: p, seed: 7 };
            let n = 200_000;
            let kept = (0..200)
                .map(|i| dropout.row(1, 2, i))
                .map(|row| (0..1000).filter(|j| row.factor(*j) > 0.0).count())
                .sum::<usize>();
            let sigma = (f64::from(p) * (1.0 - f64::from(p)) / f64::from(n)).sqrt();
            let share = kept as f64 / f64::from(n);
            assert!((share - (1.0 - f64::from(p))).abs() <= 4.0 * sigma + 1e-6, "p = {p}: kept {share}");
        }
    }

    #[test]
    fn neighbours_are_independent() {
        // Keys, rows, heads, sequences and seeds next to each other agree half of the time at p = 0.5.
        let at = |seed, b, h, i, j| Dropout { probability: 0.5, seed }.row(b, h, i).factor(j) > 0.0;
        let n = 20_000;
        for (ds, db, dh, di, dj) in
            [(1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 1, 0), (0, 0, 0, 0, 1)]
        {
            let same = (0..n)
                .filter(|&j| at(3, 0, 0, j / 100, j % 100) == at(3 + ds, db, dh, j / 100 + di, j % 100 + dj))
                .count();
            let share = same as f64 / n as f64;
            assert!((share - 0.5).abs() < 0.02, "agreement {share}");
        }
    }
}
