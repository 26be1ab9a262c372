//! The right operand of a product, as it is stored.

use std::ops::Range;

use half::{bf16, f16};
use ndarray::{Array2, ArrayView2, s};

use crate::kernel::element::Element;

/// The matrix of a linear layer as it is stored: in 32 bits, in 16, as most checkpoints are, or in 8.
///
/// Numbers are widened on their way into registers, which is exact: the result is that of the f32 matrix, to the bit. But half
/// as much is read from memory, which is what a product with a few rows waits for.
///
/// ```
/// use foveal_compute::{Operand, Threads, affine, bf16};
/// use ndarray::array;
///
/// let weight = array![[1f32, 0.5], [0.0, 2.0], [1.0, 0.0]]; // [in, out]
/// let stored = weight.mapv(bf16::from_f32);
/// let x = array![[1.0, 2.0, 3.0]];
/// assert_eq!(affine(&x, &stored, None, Threads::Rayon)?, affine(&x, &weight, None, Threads::Rayon)?);
/// assert_eq!(Operand::from(&stored).widened(), weight);
/// # Ok::<(), foveal_compute::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// 32 bits.
    F32(ArrayView2<'a, f32>),
    /// The upper half of an f32.
    Bf16(ArrayView2<'a, bf16>),
    /// IEEE's half precision.
    F16(ArrayView2<'a, f16>),
    /// Integers of 8 bits, such as the codes of a quantised matrix.
    I8(ArrayView2<'a, i8>),
}

/// `$work` with `$view` bound to the view inside, whatever its numbers are.
macro_rules! with_view {
    ($operand:expr, $view:ident => $work:expr) => {
        match $operand {
            $crate::Operand::F32($view) => $work,
            $crate::Operand::Bf16($view) => $work,
            $crate::Operand::F16($view) => $work,
            $crate::Operand::I8($view) => $work,
        }
    };
}
pub(crate) use with_view;

impl<'a> Operand<'a> {
    /// Rows and columns.
    pub fn dim(&self) -> (usize, usize) {
        with_view!(self, view => view.dim())
    }

    /// The transposed matrix.
    #[must_use]
    pub fn t(self) -> Self {
        match self {
            Operand::F32(view) => view.reversed_axes().into(),
            Operand::Bf16(view) => view.reversed_axes().into(),
            Operand::F16(view) => view.reversed_axes().into(),
            Operand::I8(view) => view.reversed_axes().into(),
        }
    }

    /// Some of its rows.
    ///
    /// # Panics
    /// If there are no such rows.
    #[must_use]
    pub fn rows(self, rows: Range<usize>) -> Self {
        with_view!(self, view => view.slice_move(s![rows, ..]).into())
    }

    /// A copy in 32 bits.
    pub fn widened(&self) -> Array2<f32> {
        with_view!(self, view => view.mapv(Element::widen))
    }
}

/// From a view, or from an array by reference.
macro_rules! from_arrays {
    ($($number:ty => $operand:ident),+) => {
        $(
            impl<'a> From<ArrayView2<'a, $number>> for Operand<'a> {
                fn from(view: ArrayView2<'a, $number>) -> Self {
                    Operand::$operand(view)
                }
            }

            impl<'a> From<&'a Array2<$number>> for Operand<'a> {
                fn from(array: &'a Array2<$number>) -> Self {
                    Operand::$operand(array.view())
                }
            }
        )+
    };
}
from_arrays!(f32 => F32, bf16 => Bf16, f16 => F16, i8 => I8);
