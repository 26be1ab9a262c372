//! The matrix of a linear layer or an embedding, kept in 16 bits where its numbers fit into them.
//!
//! Generating text reads all weights once for every token, and waits for them to come from memory. Most checkpoints hold them
//! in 16 bits; kept so, they are half as much to read, and the engine computes the same from them, to the bit (see
//! [`Operand`]).
//!
//! ```
//! use foveal_models::layer::{Parameters, Weight};
//! use ndarray::array;
//!
//! let mut weight = Weight::from(array![[1.0, 0.5], [-2.0, 0.25]]);
//! weight.narrow(); // as after loading
//! assert!(weight.is_narrow());
//! assert_eq!(weight[[1, 0]], -2.0); // an Array2<f32> to those who look
//! weight[[1, 0]] = 0.1; // and to those who change it
//! assert!(!weight.is_narrow());
//! ```

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use foveal::{Operand, bf16, f16};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::vec::HalfBitsVecExt;
use ndarray::{Array2, ArrayViewD, ArrayViewMut1, ArrayViewMutD, ShapeBuilder};
use rayon::prelude::*;

use super::Parameters;
use super::parallel::BLOCK;

/// A matrix of weights: an `Array2<f32>`, except that its numbers may be kept in 16 bits until someone wants to have them in
/// 32. Changing it brings it back to 32 bits for good.
#[derive(Clone, Debug)]
pub struct Weight {
    narrow: Option<Narrow>,
    /// Always there, unless it is narrow and no one has asked yet.
    wide: OnceLock<Array2<f32>>,
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
        Weight { narrow: None, wide: array.into() }
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
    fn visit<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, ArrayViewD<'a, f32>)) {
        (**self).visit(prefix, f);
    }

    fn visit_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ArrayViewMutD<'a, f32>)) {
        (**self).visit_mut(prefix, f);
    }

    fn narrow(&mut self) {
        if let Some(narrow) = self.wide.get().and_then(narrowed) {
            *self = Weight { narrow: Some(narrow), wide: OnceLock::new() };
        }
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

    /// target ⟵ row i.
    pub(super) fn copy_row(&self, i: usize, mut target: ArrayViewMut1<f32>) {
        match self.operand() {
            Operand::F32(array) => target.assign(&array.row(i)),
            narrow => target.assign(&narrow.rows(i..i + 1).widened().row(0)),
        }
    }
}

const WIDE: &str = "what is not narrow is wide";

/// The same numbers in 16 bits, if all of them fit.
fn narrowed(wide: &Array2<f32>) -> Option<Narrow> {
    let (rows, columns) = (wide.as_slice(), wide.t().to_slice());
    let (shape, values) = (wide.raw_dim().set_f(rows.is_none()), rows.or(columns)?);
    let numbers = "as many numbers as before";
    if let Some(bits) = convert(values, to_bf16) {
        return Some(Narrow::Bf16(Array2::from_shape_vec(shape, bits.reinterpret_into()).expect(numbers)));
    }
    let bits = convert(values, to_f16)?;
    Some(Narrow::F16(Array2::from_shape_vec(shape, bits.reinterpret_into()).expect(numbers)))
}

/// The bits of all numbers, unless `convert` says of some that they do not fit. Ends soon where the first do not.
fn convert(values: &[f32], convert: impl Fn(&[f32], &mut [u16]) -> bool + Sync) -> Option<Vec<u16>> {
    let first = values.len().min(BLOCK);
    if !convert(&values[..first], &mut [0; BLOCK][..first]) {
        return None;
    }
    let mut bits = vec![0; values.len()];
    foveal::large_pages(&bits);
    let fits = values.par_chunks(BLOCK).zip(bits.par_chunks_mut(BLOCK)).all(|(values, bits)| {
        foveal::vectorise(
            #[inline(always)]
            || convert(values, bits),
        )
    });
    fits.then_some(bits)
}

/// Whether the lower halves were zeros, to the last one.
#[inline(always)]
fn to_bf16(values: &[f32], bits: &mut [u16]) -> bool {
    bits.iter_mut().zip(values).for_each(|(bits, x)| *bits = (x.to_bits() >> 16) as u16);
    values.iter().fold(0, |lower, x| lower | (x.to_bits() & 0xffff)) == 0
}

/// Whether all came back as they were.
fn to_f16(values: &[f32], bits: &mut [u16]) -> bool {
    let (numbers, back) = (bits.reinterpret_cast_mut::<f16>(), &mut [0.0; BLOCK][..values.len()]);
    numbers.convert_from_f32_slice(values);
    numbers.convert_to_f32_slice(back);
    back.iter().zip(values).all(|(back, x)| back.to_bits() == x.to_bits())
}
