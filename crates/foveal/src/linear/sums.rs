//! Sums over rows: S = Σ φ(k)·v⁺ᵀ over the keys, and its mirror image in backward, R = Σ φ(q)·gᵀ over the queries.

use ndarray::{Array2, Axis};

use super::features::product;
use super::levels::{Levels, Logs, Scaled, exp};

/// Σ φ·valuesᵀ [m, columns], its row f times e^(−level of f).
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub values: Array2<f32>,
    /// None if there is nothing in it.
    pub levels: Option<Levels>,
}

/// How far a row's features may rise above the levels before these are raised. e³⁰ times as many values as there are tokens are
/// still far from the largest f32, and what is lost of the others, e⁻⁶⁹ at most, is nothing beside what was there.
pub(super) const RISE: f64 = 30.0;

impl Sums {
    pub fn zero(width: usize, columns: usize) -> Sums {
        Sums { values: Array2::zeros((width, columns)), levels: None }
    }

    /// Goes over to other levels.
    fn move_to(&mut self, levels: Levels) {
        if let Some(old) = &self.levels {
            for (f, mut row) in self.values.axis_iter_mut(Axis(0)).enumerate() {
                let factor = exp(old.of(f) - levels.of(f));
                row.mapv_inplace(|x| x * factor);
            }
        }
        self.levels = Some(levels);
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Sums) {
        let Some(levels) = &other.levels else { return };
        let levels = self.levels.as_ref().map_or_else(|| levels.clone(), |own| own.max(levels));
        let mut other = other.clone();
        self.move_to(levels.clone());
        other.move_to(levels);
        self.values += &other.values;
    }

    /// Adds rows: φ and `values` of each.
    pub fn take_in(&mut self, logs: &Logs, values: Array2<f32>) {
        if let Some(levels) = self.levels.clone().or_else(|| logs.levels()) {
            let scaled = logs.over(&levels);
            self.levels = Some(levels);
            self.include(logs, &scaled, values);
        }
    }

    /// Adds rows that are `scaled` by these levels already.
    pub fn include(&mut self, logs: &Logs, scaled: &Scaled, values: Array2<f32>) {
        let higher = if scaled.top() > RISE { logs.levels() } else { None };
        let Some((levels, higher)) = self.levels.as_ref().zip(higher) else {
            return self.add_product(scaled, values);
        };
        let levels = levels.max(&higher);
        let scaled = logs.over(&levels);
        self.move_to(levels);
        self.add_product(&scaled, values);
    }

    fn add_product(&mut self, scaled: &Scaled, values: Array2<f32>) {
        let values = scaled.weigh(values, 0.0);
        product(1.0, scaled.values.t(), values.view(), 1.0, self.values.view_mut());
    }
}
