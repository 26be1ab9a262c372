//! The frequencies of rotary positions under each way to reach beyond the trained length.
//!
//! With θ the frequency of a pair, d the rotary dimensions and s the factor:
//!
//! ```text
//! linear    θ / s
//! NTK       base ⟵ base·s^(d/(d − 2))
//! dynamic   base ⟵ base·(s·n/trained − (s − 1))^(d/(d − 2))   for a text of n > trained tokens, else as it is
//! Llama 3   by the turns of a pair within the trained length: below `low` θ/s, above `high` θ, between them by degrees
//! YaRN      the same by the number of the pair: from pair(fast) on downwards θ, from pair(slow) on upwards θ/s,
//!           pair(turns) = d·ln(trained / (2π·turns)) / (2·ln base)
//! ```

use std::f64::consts::TAU;

use super::RopeScaling;
use crate::Error;

impl RopeScaling {
    /// θ of each of the `dim`/2 pairs, for a text of `length` tokens.
    pub(super) fn frequencies(&self, dim: usize, base: f64, length: usize) -> Vec<f64> {
        let d = dim as f64;
        let stretch = |by: f64| base * by.powf(d / (d - 2.0));
        let base = match *self {
            RopeScaling::Ntk(factor) => stretch(factor),
            RopeScaling::Dynamic { factor, trained } if length > trained => {
                stretch(factor * length as f64 / trained as f64 - (factor - 1.0))
            }
            _ => base,
        };
        let range = self.yarn_range(d, base);
        let scaled = |(pair, frequency): (usize, f64)| match *self {
            RopeScaling::None | RopeScaling::Ntk(_) | RopeScaling::Dynamic { .. } => frequency,
            RopeScaling::Linear(factor) => frequency / factor,
            RopeScaling::Llama3 { factor, low, high, trained } => {
                let turns = trained as f64 * frequency / TAU;
                let share = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 - share) * frequency / factor + share * frequency
            }
            RopeScaling::Yarn { factor, .. } => {
                let slowed = ((pair as f64 - range.0) / (range.1 - range.0)).clamp(0.0, 1.0);
                slowed * frequency / factor + (1.0 - slowed) * frequency
            }
        };
        (0..dim / 2).map(|m| (m, base.powf(-2.0 * m as f64 / d))).map(scaled).collect()
    }

    /// YaRN: the last pair that is left as it is, and the first that is slowed by all of the factor.
    fn yarn_range(&self, d: f64, base: f64) -> (f64, f64) {
        let RopeScaling::Yarn { fast, slow, trained, whole_pairs, .. } = *self else { return (0.0, 1.0) };
        let pair = |turns: f64| d * (trained as f64 / (TAU * turns)).ln() / (2.0 * base.ln());
        let (mut from, mut to) = (pair(fast), pair(slow));
        if whole_pairs {
            (from, to) = (from.floor(), to.ceil());
        }
        (from, to) = (from.max(0.0), to.min(d - 1.0));
        // A range of nothing would divide by 0; transformers widens it by as much.
        if from == to { (from, to + 0.001) } else { (from, to) }
    }

    /// Whether the numbers mean something.
    pub(super) fn check(&self) -> Result<(), Error> {
        let above = |what: &'static str, low: f64, high: f64| {
            let expected = "a finite number above the low one";
            if low.is_finite() && high.is_finite() && low < high {
                Ok(())
            } else {
                Err(Error::Value { what, expected, got: high })
            }
        };
        let (factor, trained) = match *self {
            RopeScaling::None => (1.0, 1),
            RopeScaling::Linear(factor) | RopeScaling::Ntk(factor) => (factor, 1),
            RopeScaling::Dynamic { factor, trained } => (factor, trained),
            RopeScaling::Llama3 { factor, low, high, .. } => {
                above("the high frequency factor", low, high)?;
                (factor, 1)
            }
            RopeScaling::Yarn { factor, fast, slow, trained, .. } => {
                above("YaRN's fast number of turns", slow.max(0.0), fast)?;
                (factor, trained)
            }
        };
        if !(factor.is_finite() && factor > 0.0) {
            let what = "the rotary scaling factor";
            return Err(Error::Value { what, expected: "a finite number above 0", got: factor });
        }
        if trained == 0 {
            return Err(Error::Value { what: "the trained length", expected: "at least 1", got: 0.0 });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rope, RopeTable};
    use super::*;
    use ndarray::Array4;

    /// Fast pairs are left as they are, slow ones slowed by all of the factor, and those between lie between.
    #[test]
    fn yarn_slows_the_slow_pairs() {
        let yarn = RopeScaling::Yarn { factor: 4.0, fast: 32.0, slow: 1.0, trained: 2048, whole_pairs: true };
        let (plain, scaled) =
            (Rope::new(64).unwrap().frequencies(), Rope::new(64).unwrap().scaling(yarn).frequencies());
        let ratios: Vec<f64> = plain.iter().zip(&scaled).map(|(p, s)| p / s).collect();
        assert_eq!((ratios[0], ratios[31]), (1.0, 4.0));
        assert!(ratios.is_sorted() && ratios.iter().any(|ratio| (1.5..3.5).contains(ratio)), "{ratios:?}");
    }

    /// Up to the trained length nothing changes; beyond it the angles of all positions depend on the length.
    #[test]
    fn dynamic_scaling_follows_the_length() {
        let scaling = RopeScaling::Dynamic { factor: 2.0, trained: 8 };
        assert_eq!(scaling.frequencies(16, 10_000.0, 8), RopeScaling::None.frequencies(16, 10_000.0, 8));
        let longer = scaling.frequencies(16, 10_000.0, 24);
        let base = 10_000.0 * (2.0 * 24.0 / 8.0 - 1.0f64).powf(16.0 / 14.0);
        assert!(longer.iter().enumerate().all(|(m, f)| (f / base.powf(-(m as f64) / 8.0) - 1.0).abs() < 1e-12));

        let (rope, x) = (Rope::new(16).unwrap().scaling(scaling), Array4::from_elem((1, 2, 5, 16), 1.0f32));
        let table = RopeTable::new(rope);
        for start in [0, 3, 4, 30, 4, 0] {
            let (mut by_rope, mut by_table) = (x.clone(), x.clone());
            rope.rotate(&mut by_rope, start).unwrap();
            table.rotate(&mut by_table, start).unwrap();
            assert_eq!(by_rope, by_table, "from {start}");
        }
    }

    #[test]
    fn numbers_that_mean_nothing() {
        let yarn = |factor, fast, slow, trained| RopeScaling::Yarn { factor, fast, slow, trained, whole_pairs: true };
        assert!(yarn(4.0, 32.0, 1.0, 64).check().is_ok());
        let bad =
            [yarn(0.0, 32.0, 1.0, 64), yarn(4.0, 1.0, 32.0, 64), yarn(4.0, f64::NAN, 1.0, 64), yarn(4.0, 32.0, 1.0, 0)];
        assert!(bad.iter().all(|scaling| scaling.check().is_err()));
        assert!(RopeScaling::Dynamic { factor: 2.0, trained: 0 }.check().is_err());
    }
}
