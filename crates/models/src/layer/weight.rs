//! The matrix of a linear layer or an embedding, kept as its file stores it.
//!
//! Generating text reads all weights once for every token, and waits for them to come from memory. Most checkpoints hold them
//! in 16 bits; kept so, they are half as much to read, and the engine computes the same from them, to the bit (see
//! [`Operand`]).
//!
//! ```
//! use foveal::bf16;
//! use foveal_models::layer::Weight;
//! use ndarray::array;
//!
//! let mut weight = Weight::from(array![[1.0, 0.5], [-2.0, 0.25]].mapv(bf16::from_f32));
//! assert_eq!(weight[[1, 0]], -2.0); // an Array2<f32> to those who look
//! assert!(weight.is_narrow());
//! weight[[1, 0]] = 0.1; // and to those who change it
//! assert!(!weight.is_narrow());
//! ```

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use foveal::{bf16, f16};
use foveal_compute::Operand;
use ndarray::{Array2, ArrayView2, ArrayViewMut1};

use super::sketch::Sketch;
use super::{Param, ParamMut, Parameters};
use crate::Error;

/// A matrix of weights: an `Array2<f32>`, except that its numbers may be kept in 16 bits until someone wants to have them in
/// 32. Changing it brings it back to 32 bits for good.
#[derive(Clone, Debug)]
pub struct Weight {
    narrow: Option<Narrow>,
    /// Always there, unless it is narrow and no one has asked yet.
    wide: OnceLock<Array2<f32>>,
    /// A coarse copy, once someone has asked for it.
    sketch: OnceLock<Sketch>,
}

#[derive(Clone, Debug)]
enum Narrow {
    Bf16(Array2<bf16>),
    F16(Array2<f16>),
}

impl Narrow {
    fn operand(&self) -> Operand<'_> {
        match self {
            Narrow::Bf16(array) => array.into(),
            Narrow::F16(array) => array.into(),
        }
    }
}

impl From<Array2<f32>> for Weight {
    fn from(array: Array2<f32>) -> Self {
        Weight { narrow: None, wide: array.into(), sketch: OnceLock::new() }
    }
}

impl From<Array2<bf16>> for Weight {
    fn from(array: Array2<bf16>) -> Self {
        Weight { narrow: Some(Narrow::Bf16(array)), wide: OnceLock::new(), sketch: OnceLock::new() }
    }
}

impl From<Array2<f16>> for Weight {
    fn from(array: Array2<f16>) -> Self {
        Weight { narrow: Some(Narrow::F16(array)), wide: OnceLock::new(), sketch: OnceLock::new() }
    }
}

impl Deref for Weight {
    type Target = Array2<f32>;

    fn deref(&self) -> &Array2<f32> {
        self.wide.get_or_init(|| self.operand().widened())
    }
}

impl DerefMut for Weight {
    fn deref_mut(&mut self) -> &mut Array2<f32> {
        self.sketch.take();
        if let Some(narrow) = self.narrow.take() {
            self.wide.get_or_init(|| narrow.operand().widened());
        }
        self.wide.get_mut().expect(WIDE)
    }
}

/// Whether the numbers are the same, however they are kept.
impl PartialEq for Weight {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Parameters for Weight {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        f(prefix, Param::Weight(self));
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        f(prefix, ParamMut::Weight(self));
    }
}

impl Weight {
    /// For products.
    pub fn operand(&self) -> Operand<'_> {
        match &self.narrow {
            Some(narrow) => narrow.operand(),
            None => self.wide.get().expect(WIDE).into(),
        }
    }

    /// Whether it is kept in 16 bits.
    pub fn is_narrow(&self) -> bool {
        self.narrow.is_some()
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        self.operand().dim().into()
    }

    /// The number of rows.
    pub fn nrows(&self) -> usize {
        self.shape()[0]
    }

    /// The number of columns.
    pub fn ncols(&self) -> usize {
        self.shape()[1]
    }

    /// The numbers of all rows whose product with x: [1, D] may be one of the k largest, ascending, without reading all of them;
    /// none where that does not pay. The first call makes a copy in 8 bits, which stays until the weight is changed.
    ///
    /// # Errors
    /// If x has another width.
    pub(super) fn candidates(&self, x: ArrayView2<f32>, k: usize) -> Result<Option<Vec<usize>>, Error> {
        let [rows, columns] = self.shape();
        if rows * columns < WORTH_COPYING {
            return Ok(None);
        }
        if self.sketch.get().is_none() {
            // Not within the lock: threads that wait for each other's pieces must not wait for it, too.
            let _ = self.sketch.set(Sketch::new(self.operand()));
        }
        let sketch = self.sketch.get().expect("just made");
        Ok(sketch.candidates(x, k)?.filter(|candidates| candidates.len() <= rows / FEW))
    }

    /// target ⟵ row i.
    pub(super) fn copy_row(&self, i: usize, mut target: ArrayViewMut1<f32>) {
        match self.operand() {
            Operand::F32(array) => target.assign(&array.row(i)),
            narrow => target.assign(&narrow.rows(i..i + 1).widened().row(0)),
        }
    }
}

/// Values above which reading fewer of them saves time: smaller matrices stay in caches.
const WORTH_COPYING: usize = 1 << 20;
/// One in so many rows is still worth picking out of all.
const FEW: usize = 16;
const WIDE: &str = "what is not narrow is wide";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_does_not_widen() {
        let weight = Weight::from(Array2::from_elem((3, 5), bf16::ONE));
        assert_eq!(weight.parameter_count(), 15);
        assert!(weight.wide.get().is_none(), "a copy in 32 bits was made to count it");
        weight.visit("", &mut |_, values| assert_eq!(values.sum(), 15.0));
    }
}
