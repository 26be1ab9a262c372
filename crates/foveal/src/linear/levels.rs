//! Features that span hundreds of orders of magnitude, in f32.
//!
//! What is computed of rows of features is φ̂ = φ·e^(±level − shift), with a level for each feature and a shift for each row,
//! and no value above 1. The levels belong to a sum over rows: e^level is about the largest φ that it holds of the feature, so
//! that the sum, divided by it, is neither too large nor too small. A query, multiplied by it, then weighs each feature
//! by what there is of it, and the largest of its products is one that counts.

use ndarray::{Array2, CowArray, Ix2, Zip};

use super::features::{FeatureMap, elu, normalise};
use foveal_compute::Supported;

/// ln φ of some rows.
pub(super) struct Logs<'a> {
    map: &'a FeatureMap,
    isa: Supported,
    /// What stands for ln φ, see [`FeatureMap::form`]: [rows, m].
    values: CowArray<'a, f32, Ix2>,
    /// What is to be added to all of a row's; −∞ for a row without features. NaN spreads.
    pub rows: Vec<f64>,
    /// Whether φ itself can be computed with: none too small, none too large.
    moderate: bool,
}

/// About the largest ln φ of each feature among some rows.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    base: f64,
    /// Of each feature against the base; none where all are alike.
    spread: Option<Vec<f32>>,
}

/// φ·e^(±level) = values·e^shift, with a shift for each row.
pub(super) struct Scaled {
    pub values: Array2<f32>,
    pub shifts: Vec<f64>,
}

/// The level of a feature that no row has; far below all others, and finite.
const NOWHERE: f32 = -1e30;

impl<'a> Logs<'a> {
    pub fn new(
        map: &'a FeatureMap,
        isa: Supported,
        values: CowArray<'a, f32, Ix2>,
        rows: Vec<f64>,
        moderate: bool,
    ) -> Self {
        Logs { map, isa, values, rows, moderate }
    }

    /// The largest ln φ of each feature. None if no row has any.
    pub fn levels(&self) -> Option<Levels> {
        let base = self.rows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if base == f64::NEG_INFINITY {
            // NaN spoils the sum, whatever the level.
            return self.rows.iter().any(|row| row.is_nan()).then_some(Levels { base: 0.0, spread: None });
        }
        if self.moderate {
            return Some(Levels { base, spread: None });
        }
        let mut spread = vec![NOWHERE; self.values.dim().1];
        for (values, row) in self.values.rows().into_iter().zip(&self.rows) {
            let more = (row - base) as f32;
            // Rows with NaN or ∞ spoil the sum whatever the level.
            if more.is_finite() && self.map.is_sound(values) {
                for (level, x) in spread.iter_mut().zip(values) {
                    let log = self.map.exponent(*x) + more;
                    *level = if log > *level { log } else { *level };
                }
            }
        }
        Some(Levels { base, spread: Some(spread) })
    }

    /// φ·e^level: queries, against a sum over keys.
    pub fn times(&self, levels: &Levels) -> Scaled {
        self.scaled(levels, 1.0)
    }

    /// φ·e^(−level): what is added to a sum.
    pub fn over(&self, levels: &Levels) -> Scaled {
        self.scaled(levels, -1.0)
    }

    fn scaled(&self, levels: &Levels, sign: f32) -> Scaled {
        let base = f64::from(sign) * levels.base;
        if self.moderate && levels.spread.is_none() {
            let shifts = self.rows.iter().map(|row| row + base).collect();
            return Scaled { values: elu(self.isa, &self.values), shifts };
        }
        let spread = match &levels.spread {
            Some(spread) => spread.iter().map(|level| sign * level).collect(),
            None => vec![0.0; self.values.dim().1],
        };
        let (values, tops) = normalise(self.isa, self.map.form(), &self.values, &spread);
        // A spoilt row is NaN; its shift is then of no account.
        let shift = |(top, row): (&f32, &f64)| if top.is_nan() { 0.0 } else { f64::from(*top) + row + base };
        Scaled { values, shifts: tops.iter().zip(&self.rows).map(shift).collect() }
    }

    /// ln φ(xᵢ)·φ(yⱼ) of row i here and row j there, by itself and in f64; −∞ for 0.
    pub fn ln_product(&self, i: usize, other: &Logs, j: usize) -> f64 {
        let logs: Vec<f64> = self.pair(i, other, j).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY { top } else { top + logs.iter().map(|log| (log - top).exp()).sum::<f64>().ln() }
    }

    /// ln φ(xᵢ)·φ(yⱼ) of each feature by itself.
    pub fn pair(&self, i: usize, other: &Logs, j: usize) -> impl Iterator<Item = f64> {
        let (one, two) = (self.values.row(i).to_vec(), other.values.row(j).to_vec());
        let (map, rows) = (self.map, self.rows[i] + other.rows[j]);
        one.into_iter().zip(two).map(move |(x, y)| map.log(x) + map.log(y) + rows)
    }
}

impl Levels {
    /// The larger of each.
    pub fn max(&self, other: &Levels) -> Levels {
        let base = self.base.max(other.base);
        if self.spread.is_none() && other.spread.is_none() {
            return Levels { base, spread: None };
        }
        let width = self.spread.as_ref().or(other.spread.as_ref()).map_or(0, Vec::len);
        let level = |levels: &Levels, f: usize| (levels.of(f) - base) as f32;
        let spread = (0..width).map(|f| level(self, f).max(level(other, f)));
        Levels { base, spread: Some(spread.collect()) }
    }

    /// The level of feature f.
    pub fn of(&self, f: usize) -> f64 {
        self.base + self.spread.as_ref().map_or(0.0, |spread| f64::from(spread[f]))
    }
}

impl Scaled {
    /// The largest shift.
    pub fn top(&self) -> f64 {
        self.shifts.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Rows of `values` times e^(shift − unit).
    pub fn weigh(&self, mut values: Array2<f32>, unit: f64) -> Array2<f32> {
        Zip::from(values.rows_mut()).and(&self.shifts[..]).for_each(|mut row, shift| {
            let factor = exp(shift - unit);
            if factor != 1.0 {
                row.mapv_inplace(|x| x * factor);
            }
        });
        values
    }
}

/// eˣ, no larger than f32 can hold.
pub(super) fn exp(x: f64) -> f32 {
    let power = x.exp();
    if power > f64::from(f32::MAX) { f32::MAX } else { power as f32 }
}
