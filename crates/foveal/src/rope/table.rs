//! The sines and cosines of one rotation, computed once.

use std::ops::Range;
use std::sync::{Arc, RwLock};

use ndarray::ArrayViewMut4;

use super::{Angles, Rope, RopeScaling, consecutive};
use crate::Error;

/// Positions that a table reaches to. Those beyond are computed anew by each call: a table must not grow with whatever number
/// it is asked for.
const MAX_POSITIONS: usize = 1 << 18;

/// Rotary embedding that keeps its sines and cosines from call to call: for a model, whose layers all turn the same positions.
///
/// ```
/// use foveal::{Rope, RopeTable};
/// use ndarray::Array4;
///
/// let (rope, mut x) = (Rope::new(64)?, Array4::ones((1, 8, 10, 64)));
/// let table = RopeTable::new(rope);
/// table.rotate(&mut x, 5)?;
/// rope.rotate_back(&mut x, 5)?;
/// assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6));
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Debug)]
pub struct RopeTable {
    rope: Rope,
    /// Those of positions 0, 1, … as far as they were needed.
    angles: RwLock<Arc<Angles>>,
    /// Those of the last range of positions that ended beyond the trained length, where they depend on the length.
    long: RwLock<Option<(Range<usize>, Arc<Angles>)>>,
}

impl RopeTable {
    /// A table that is still empty.
    pub fn new(rope: Rope) -> Self {
        RopeTable { rope, angles: RwLock::default(), long: RwLock::default() }
    }

    /// The rotation that it is a table of.
    pub fn rope(&self) -> &Rope {
        &self.rope
    }

    /// As [`Rope::rotate`].
    ///
    /// # Errors
    /// As [`Rope::rotate`].
    pub fn rotate<'a>(&self, x: impl Into<ArrayViewMut4<'a, f32>>, start: usize) -> Result<(), Error> {
        self.turn(x.into(), start, 1.0)
    }

    /// As [`Rope::rotate_back`].
    ///
    /// # Errors
    /// As [`Rope::rotate`].
    pub fn rotate_back<'a>(&self, dx: impl Into<ArrayViewMut4<'a, f32>>, start: usize) -> Result<(), Error> {
        self.turn(dx.into(), start, -1.0)
    }

    fn turn(&self, x: ArrayViewMut4<f32>, start: usize, sign: f32) -> Result<(), Error> {
        match start.checked_add(x.dim().2).filter(|end| *end <= MAX_POSITIONS) {
            Some(end) => {
                self.rope.check(x.dim().3)?;
                match self.rope.scaling {
                    RopeScaling::Dynamic { trained, .. } if end > trained => {
                        self.rope.turn_by(x, &self.of_length(start..end), |_, t| t, sign);
                    }
                    _ => self.rope.turn_by(x, &self.up_to(end), |_, t| start + t, sign),
                }
                Ok(())
            }
            None => {
                let positions = consecutive(start, x.dim().2);
                self.rope.turn(x, &positions, sign)
            }
        }
    }

    /// The angles of a range of positions in a text that ends with it: all layers ask for the same.
    fn of_length(&self, positions: Range<usize>) -> Arc<Angles> {
        let known = self.long.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        match known {
            Some((range, angles)) if range == positions => angles,
            _ => {
                let angles = Arc::new(self.rope.angles(positions.clone().map(|p| p as f64), positions.end));
                let mut long = self.long.write().unwrap_or_else(|poisoned| poisoned.into_inner());
                *long = Some((positions, angles.clone()));
                angles
            }
        }
    }

    /// The angles of all positions before `end`, and perhaps of more.
    fn up_to(&self, end: usize) -> Arc<Angles> {
        let half = self.rope.dim / 2;
        let known = self.angles.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        if end * half <= known.cos.len() {
            return known;
        }
        // Twice as many as there were, so that generating token after token computes each about once.
        let end = end.max((2 * known.cos.len() / half).min(MAX_POSITIONS));
        let angles = Arc::new(self.rope.angles((0..end).map(|p| p as f64), 0));
        *self.angles.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = angles.clone();
        angles
    }
}

impl Clone for RopeTable {
    fn clone(&self) -> Self {
        let angles = self.angles.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        RopeTable { rope: self.rope, angles: RwLock::new(angles), long: RwLock::default() }
    }
}

/// Two tables are the same if they are of the same rotation, whatever they have computed of it.
impl PartialEq for RopeTable {
    fn eq(&self, other: &Self) -> bool {
        self.rope == other.rope
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    /// Within the table, across its end, beyond it, and at the last positions that can be counted: as without a table.
    #[test]
    fn any_start_equals_the_rotation_without_a_table() {
        let rope = Rope::new(4).unwrap();
        let table = RopeTable::new(rope);
        for start in [0, 7, 3, MAX_POSITIONS - 2, MAX_POSITIONS, 1 << 40, usize::MAX - 2, usize::MAX] {
            let x = Array4::from_shape_fn((1, 2, 4, 4), |(_, h, t, d)| ((5 * h + 3 * t + d) as f32).sin());
            let (mut by_table, mut alone) = (x.clone(), x);
            table.rotate(&mut by_table, start).unwrap();
            rope.rotate(&mut alone, start).unwrap();
            assert_eq!(by_table, alone, "from {start}");
            table.rotate_back(&mut by_table, start).unwrap();
            rope.rotate_back(&mut alone, start).unwrap();
            assert_eq!(by_table, alone, "back from {start}");
        }
    }
}
