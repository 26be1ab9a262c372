//! Dropout by a counter-based generator.
//!
//! Whether weight (b, h, i, j) is dropped is a function of the seed and of these four numbers alone. So nothing has to
//! be stored for the backward pass, and the result does not depend on tiles or threads:
//!
//! $$ u = f(f(j + r_0) \oplus r_1), \qquad
//!    (r_0, r_1) = \kappa_3, \qquad
//!    \kappa_{n + 1} = g\bigl((\kappa_n + c) \oplus x_n\bigr), \qquad
//!    \kappa_0 = g(\text{seed} + c), \qquad x = (b, h, i) $$
//!
//! with the weight kept where u ≥ p·2³². g is SplitMix64's finaliser, f a 32-bit finaliser of the same kind with the
//! multipliers that Wellons found by search to have the lowest bias; both are bijections, and the second compiles to
//! vector code. The seed goes through g before the first index is combined with it: seeds are often small numbers, and
//! so are indices, and without it seed ⊕ b would be all that a mask depends on.
//!
//! b counts from [`Dropout::first`], so that a batch may be cut into calls anywhere: a sequence keeps its number, and with
//! it what is dropped of it, however long the others are that it is padded to.

use crate::Error;

/// Dropout of attention weights, for training. Kept weights are divided by 1 − p, so that the mean does not change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The probability with which a weight is set to 0; at least 0 and under 1.
    pub probability: f32,
    /// Take another one for every layer and step.
    pub seed: u64,
    /// The number of the call's first sequence in the batch that the call is a part of; 0 where it is all of it.
    pub first: usize,
}

impl Dropout {
    /// For a call of a whole batch.
    pub fn new(probability: f32, seed: u64) -> Self {
        Dropout { probability, seed, first: 0 }
    }

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

    /// Whether the weight of query i on key j is dropped, in head h of sequence b.
    ///
    /// ```
    /// use foveal::{Attention, Dropout};
    /// use ndarray::{Array4, array};
    ///
    /// let dropout = Dropout::new(0.5, 1);
    /// // Two equal keys: each has weight ½, and counts in full if it is kept.
    /// let (q, k) = (Array4::<f32>::zeros((1, 1, 1, 2)), Array4::<f32>::zeros((1, 1, 2, 2)));
    /// let v = array![[[[1f32, 0.], [0., 1.]]]];
    /// let out = Attention::new().dropout(0.5, 1).forward(&q, &k, &v)?.out;
    /// for j in 0..2 {
    ///     assert_eq!(out[[0, 0, 0, j]] == 0.0, dropout.drops(0, 0, 0, j));
    /// }
    /// # Ok::<(), foveal::Error>(())
    /// ```
    pub fn drops(&self, b: usize, h: usize, i: usize, j: usize) -> bool {
        self.row(b, h, i).factor(j) == 0.0
    }

    /// Drops values of any other array, for the layers around attention: multiplies `values`, which are those of token i of
    /// sequence b, by 0 or 1 / (1 − p). The same call on the gradient is the backward pass.
    ///
    /// ```
    /// let dropout = foveal::Dropout::new(0.5, 1);
    /// let mut row = [1.0; 8];
    /// dropout.apply(0, 0, &mut row);
    /// assert!(row.iter().all(|x| *x == 0.0 || *x == 2.0));
    /// ```
    #[inline(always)]
    pub fn apply(&self, b: usize, i: usize, values: &mut [f32]) {
        self.row(b, 0, i).apply(0, values);
    }

    /// The generator of one row of weights.
    #[inline]
    pub(crate) fn row(&self, b: usize, h: usize, i: usize) -> Row {
        let mut key = mix64(self.seed.wrapping_add(GOLDEN));
        for index in [b.wrapping_add(self.first), h, i] {
            key = mix64(key.wrapping_add(GOLDEN) ^ (index as u64));
        }
        Row {
            keys: [key as u32, (key >> 32) as u32],
            // p = 0.999… may round up to 2³²: `as` saturates.
            threshold: (f64::from(self.probability) * 4_294_967_296.0) as u32,
            scale: 1.0 / (1.0 - self.probability),
        }
    }
}

/// SplitMix64's increment, 2⁶⁴ divided by the golden ratio. It keeps zeros from being mixed into zeros.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator of one row of weights.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    keys: [u32; 2],
    threshold: u32,
    scale: f32,
}

impl Row {
    /// What weight j is multiplied by: 0, or 1 / (1 − p).
    #[inline(always)]
    pub fn factor(&self, j: usize) -> f32 {
        let u = mix32(mix32((j as u32).wrapping_add(self.keys[0])) ^ self.keys[1]);
        if u >= self.threshold { self.scale } else { 0.0 }
    }

    /// Multiplies the weights of the keys from `first` on. (Keys before the first of a whole are the last numbers there are.)
    #[inline(always)]
    pub fn apply(&self, first: usize, weights: &mut [f32]) {
        for (j, w) in weights.iter_mut().enumerate() {
            *w *= self.factor(first.wrapping_add(j));
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
            let dropout = Dropout::new(p, 7);
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
        let at = |seed, b, h, i, j| Dropout::new(0.5, seed).row(b, h, i).factor(j) > 0.0;
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

    /// A part of a batch drops what the whole batch drops there.
    #[test]
    fn a_sequence_keeps_its_number() {
        let (whole, part) = (Dropout::new(0.5, 7), Dropout { first: 3, ..Dropout::new(0.5, 7) });
        let mask = |dropout: Dropout, b| (0..128).map(|j| dropout.drops(b, 1, 2, j)).collect::<Vec<bool>>();
        assert_eq!(mask(part, 2), mask(whole, 5));
        assert_ne!(mask(part, 2), mask(whole, 2));
    }

    /// Every sequence of every batch under every seed has a mask of its own.
    #[test]
    fn seeds_and_sequences_have_distinct_masks() {
        let mut masks = std::collections::HashSet::new();
        for seed in 0..64 {
            for b in 0..8 {
                let dropout = Dropout::new(0.5, seed);
                masks.insert((0..128).map(|j| dropout.drops(b, 0, 0, j)).collect::<Vec<bool>>());
            }
        }
        assert_eq!(masks.len(), 64 * 8);
    }

    /// No two of the four numbers and the seed can change places, nor can a change of one make up for a change of another.
    #[test]
    fn every_pair_of_words_is_mixed() {
        let mask = |[seed, b, h, i]: [usize; 4]| {
            let row = Dropout::new(0.5, seed as u64).row(b, h, i);
            (0..128).fold(0u128, |mask, j| mask << 1 | u128::from(row.factor(j) == 0.0))
        };
        for one in 0..4 {
            for other in 0..one {
                let mut masks = std::collections::HashSet::new();
                for (x, y) in (0..32).flat_map(|x| (0..32).map(move |y| (x, y))) {
                    let mut words = [5; 4];
                    (words[one], words[other]) = (x, y);
                    masks.insert(mask(words));
                }
                assert_eq!(masks.len(), 32 * 32, "words {one} and {other}");
            }
        }
    }
}
