//! Arrays of 32 or 16 bits, to read and to write.

use std::fmt;
use std::marker::PhantomData;

use foveal_compute::kernel::matrix::{Matrix, Rows};
use foveal_compute::{bf16, f16};
use ndarray::{Array4, ArrayView4, ArrayViewMut4, Ix4, RawArrayView, s};

use crate::kernel::source::Source;

/// Queries, keys or values to read: [B, H, T, D] with any strides, in f32, f16 or bf16, which may differ between the arrays
/// of a call. Numbers of 16 bits are widened on their way into registers, which is exact.
///
/// Made from an `&Array4` or an `ArrayView4`, or by a [`KvCache`](crate::KvCache).
///
/// ```
/// use foveal::{Attention, bf16};
/// use ndarray::Array4;
///
/// let (q, kv) = (Array4::<f32>::ones((1, 8, 1, 64)), Array4::from_elem((1, 8, 100, 64), bf16::ONE));
/// assert_eq!(Attention::new().forward(&q, &kv, &kv)?.out, q);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    values: Values<'a>,
    pages: Option<Pages<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a> {
    F32(View<'a, f32>),
    F16(View<'a, f16>),
    Bf16(View<'a, bf16>),
}

/// An `ArrayView4` that can take the place of one that lives shorter, which those of ndarray cannot.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, E> {
    raw: RawArrayView<E, Ix4>,
    array: PhantomData<&'a E>,
}

// SAFETY: it is a shared borrow of its values.
unsafe impl<E: Sync> Send for View<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for View<'_, E> {}

impl<E: fmt::Debug> fmt::Debug for View<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<'a, E> View<'a, E> {
    fn new(view: &ArrayView4<'a, E>) -> Self {
        View { raw: view.raw_view(), array: PhantomData }
    }

    pub fn view(&self) -> ArrayView4<'a, E> {
        // SAFETY: it was made from a view that lives for 'a, and which may be copied.
        unsafe { self.raw.deref_into_view() }
    }
}

/// Tokens that lie in pages: values are [pages, H, size, D].
#[derive(Clone, Copy, Debug)]
struct Pages<'a> {
    /// The pages of each sequence.
    tables: &'a [Vec<usize>],
    /// Its number of tokens.
    lengths: &'a [usize],
}

/// `$work` with `$view` bound to the view inside, whatever its numbers are.
macro_rules! with_values {
    ($type:ident, $values:expr, $view:ident => $work:expr) => {
        match $values {
            $type::F32($view) => $work,
            $type::F16($view) => $work,
            $type::Bf16($view) => $work,
        }
    };
}

impl<'a> Tensor<'a> {
    /// The shape: [B, H, T, D]. Of pages, T is the length of the longest sequence.
    pub fn dim(&self) -> [usize; 4] {
        let (batch, heads, tokens, dim) = with_values!(Values, &self.values, view => view.raw.dim());
        match self.pages {
            None => [batch, heads, tokens, dim],
            Some(pages) => [pages.tables.len(), heads, pages.lengths.iter().copied().max().unwrap_or(0), dim],
        }
    }

    /// The view of f32 inside, if that is what it is.
    pub fn as_f32(&self) -> Option<ArrayView4<'a, f32>> {
        match self.values {
            Values::F32(view) if self.pages.is_none() => Some(view.view()),
            _ => None,
        }
    }

    /// A copy in f32.
    pub fn to_f32(&self) -> Array4<f32> {
        let [batch, heads, _, _] = self.dim();
        let mut copy = Array4::zeros(self.dim());
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            let source = self.head(b, h);
            for i in 0..source.rows() {
                for d in 0..source.cols() {
                    copy[[b, h, i, d]] = source.get(i, d);
                }
            }
        }
        copy
    }

    /// Some sequences and tokens of it. Pages are not cut.
    pub(crate) fn slice(&self, sequences: std::ops::Range<usize>, tokens: std::ops::Range<usize>) -> Tensor<'a> {
        with_values!(Values, &self.values, view => view.view().slice_move(s![sequences, .., tokens, ..]).into())
    }

    /// What is inside.
    pub(crate) fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// The same values as sequences of pages.
    pub(crate) fn in_pages(mut self, tables: &'a [Vec<usize>], lengths: &'a [usize]) -> Self {
        self.pages = Some(Pages { tables, lengths });
        self
    }

    /// Head h of sequence b.
    pub(crate) fn head(&self, b: usize, h: usize) -> Source<'a> {
        let Some(pages) = self.pages else {
            return with_values!(Values, &self.values, view => Matrix::new(&view.view(), b, h).into());
        };
        let (table, rows) = (&pages.tables[b], pages.lengths[b]);
        with_values!(Values, &self.values, view => Matrix::paged(&view.view(), h, table, rows).into())
    }

    /// The rows `range` of head h of sequence b. Pages are not cut.
    pub(crate) fn head_rows(&self, b: usize, h: usize, range: std::ops::Range<usize>) -> Source<'a> {
        with_values!(Values, &self.values, view => Matrix::of_rows(&view.view(), b, h, range).into())
    }

    /// The number of tokens of sequence b. Sequences in pages may have different ones.
    pub(crate) fn tokens(&self, b: usize) -> usize {
        self.pages.map_or_else(|| self.dim()[2], |pages| pages.lengths[b])
    }

    /// Whether the tokens lie in pages.
    pub(crate) fn is_paged(&self) -> bool {
        self.pages.is_some()
    }
}

/// Where outputs or gradients go: [B, H, T, D] with any strides, in f32, f16 or bf16. Made from an `ArrayViewMut4` or an
/// `&mut Array4`.
#[derive(Debug)]
pub struct TensorMut<'a>(pub(crate) ValuesMut<'a>);

#[derive(Debug)]
pub(crate) enum ValuesMut<'a> {
    F32(ArrayViewMut4<'a, f32>),
    F16(ArrayViewMut4<'a, f16>),
    Bf16(ArrayViewMut4<'a, bf16>),
}

impl TensorMut<'_> {
    /// The shape: [B, H, T, D].
    pub fn dim(&self) -> [usize; 4] {
        let (batch, heads, tokens, dim) = with_values!(ValuesMut, &self.0, view => view.dim());
        [batch, heads, tokens, dim]
    }

    /// The same array, for a shorter while.
    pub fn view_mut(&mut self) -> TensorMut<'_> {
        with_values!(ValuesMut, &mut self.0, view => view.view_mut().into())
    }

    /// Writes or adds values of the same shape.
    pub(crate) fn take(&mut self, values: &Array4<f32>, add: bool) {
        match &mut self.0 {
            ValuesMut::F32(view) => view.zip_mut_with(values, |x, y| *x = if add { *x + y } else { *y }),
            ValuesMut::F16(view) => {
                view.zip_mut_with(values, |x, y| *x = f16::from_f32(if add { x.to_f32() + y } else { *y }));
            }
            ValuesMut::Bf16(view) => {
                view.zip_mut_with(values, |x, y| *x = bf16::from_f32(if add { x.to_f32() + y } else { *y }));
            }
        }
    }
}

/// The rows of an output, written by many threads.
#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    F32(Rows<'a, f32>),
    F16(Rows<'a, f16>),
    Bf16(Rows<'a, bf16>),
}

impl<'a> Output<'a> {
    pub fn new(target: TensorMut<'a>) -> Self {
        match target.0 {
            ValuesMut::F32(view) => Output::F32(Rows::new(view)),
            ValuesMut::F16(view) => Output::F16(Rows::new(view)),
            ValuesMut::Bf16(view) => Output::Bf16(Rows::new(view)),
        }
    }

    /// Writes a row, rounded to what is stored.
    ///
    /// # Safety
    /// No other thread may access this row at the same time.
    #[inline(always)]
    pub unsafe fn write(&self, at: (usize, usize, usize), values: &[f32]) {
        // SAFETY: passed on.
        unsafe { with_values!(Output, self, rows => rows.write(at, 0, values)) }
    }
}

macro_rules! from_arrays {
    ($($number:ty => $variant:ident),+) => {
        $(
            impl<'a> From<ArrayView4<'a, $number>> for Tensor<'a> {
                fn from(view: ArrayView4<'a, $number>) -> Self {
                    Tensor { values: Values::$variant(View::new(&view)), pages: None }
                }
            }

            impl<'a, 'b: 'a> From<&'a ArrayView4<'b, $number>> for Tensor<'a> {
                fn from(view: &'a ArrayView4<'b, $number>) -> Self {
                    view.reborrow().into()
                }
            }

            impl<'a> From<&'a Array4<$number>> for Tensor<'a> {
                fn from(array: &'a Array4<$number>) -> Self {
                    array.view().into()
                }
            }

            impl<'a> From<&'a ndarray::ArcArray<$number, ndarray::Ix4>> for Tensor<'a> {
                fn from(array: &'a ndarray::ArcArray<$number, ndarray::Ix4>) -> Self {
                    array.view().into()
                }
            }

            impl<'a> From<ArrayViewMut4<'a, $number>> for TensorMut<'a> {
                fn from(view: ArrayViewMut4<'a, $number>) -> Self {
                    TensorMut(ValuesMut::$variant(view))
                }
            }

            impl<'a> From<&'a mut Array4<$number>> for TensorMut<'a> {
                fn from(array: &'a mut Array4<$number>) -> Self {
                    array.view_mut().into()
                }
            }
        )+
    };
}
from_arrays!(f32 => F32, f16 => F16, bf16 => Bf16);

/// Numbers that outputs and gradients can be asked for in: f32, f16, bf16.
pub trait Number: sealed::Sealed + Copy + 'static {
    /// 0.
    const ZERO: Self;
    /// As somewhere to write to.
    #[doc(hidden)]
    fn target(array: &mut Array4<Self>) -> TensorMut<'_>;
    /// As something to read.
    #[doc(hidden)]
    fn tensor(array: &Array4<Self>) -> Tensor<'_>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty: $zero:expr),+) => {
        $(
            impl sealed::Sealed for $number {}
            impl Number for $number {
                const ZERO: Self = $zero;
                fn target(array: &mut Array4<Self>) -> TensorMut<'_> {
                    array.into()
                }
                fn tensor(array: &Array4<Self>) -> Tensor<'_> {
                    array.into()
                }
            }
        )+
    };
}
numbers!(f32: 0.0, f16: f16::ZERO, bf16: bf16::ZERO);
