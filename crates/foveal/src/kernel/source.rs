//! One head of an input, as it is stored: the kernels read it through here, and get f32.

use std::ops::Range;

use foveal_compute::{bf16, f16};

use super::gemm::{Left, Out, Right};
use super::matrix::Matrix;
use super::simd::Simd;
use super::{pack, thin};

/// Rows of f32, f16 or bf16.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    F32(Matrix<'a, f32>),
    F16(Matrix<'a, f16>),
    Bf16(Matrix<'a, bf16>),
}

impl<'a> From<Matrix<'a, f32>> for Source<'a> {
    fn from(matrix: Matrix<'a, f32>) -> Self {
        Source::F32(matrix)
    }
}

impl<'a> From<Matrix<'a, f16>> for Source<'a> {
    fn from(matrix: Matrix<'a, f16>) -> Self {
        Source::F16(matrix)
    }
}

impl<'a> From<Matrix<'a, bf16>> for Source<'a> {
    fn from(matrix: Matrix<'a, bf16>) -> Self {
        Source::Bf16(matrix)
    }
}

macro_rules! typed {
    ($source:expr, $matrix:ident => $work:expr) => {
        match $source {
            Source::F32($matrix) => $work,
            Source::F16($matrix) => $work,
            Source::Bf16($matrix) => $work,
        }
    };
}

impl<'a> Source<'a> {
    #[inline(always)]
    pub fn rows(&self) -> usize {
        typed!(self, m => m.rows())
    }

    #[inline(always)]
    pub fn cols(&self) -> usize {
        typed!(self, m => m.cols())
    }

    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> f32 {
        typed!(self, m => m.get(i, j))
    }

    /// [`pack::columns`].
    #[inline(always)]
    pub fn columns<'d, S: Simd>(self, simd: S, range: Range<usize>, scale: f32, dst: &'d mut [f32]) -> Right<'d> {
        typed!(self, m => pack::columns(simd, m, range, scale, dst))
    }

    /// [`pack::rows`].
    #[inline(always)]
    pub fn packed_rows<'d, S: Simd>(self, simd: S, range: Range<usize>, scale: f32, dst: &'d mut [f32]) -> Right<'d> {
        typed!(self, m => pack::rows(simd, m, range, scale, dst))
    }

    /// Copies row i, times `scale`, to the start of `dst` and fills the rest with zeros.
    #[inline(always)]
    pub fn copy_row<S: Simd>(&self, simd: S, i: usize, scale: f32, dst: &mut [f32]) {
        typed!(self, m => m.copy_row(simd, i, scale, dst));
    }

    /// The rows `range` as they lie, if they are f32 next to each other without gaps.
    #[inline(always)]
    pub fn block(&self, range: Range<usize>) -> Option<&'a [f32]> {
        match self {
            Source::F32(m) => m.block(range),
            _ => None,
        }
    }

    /// Whether no value of these rows is NaN or infinite.
    #[inline(always)]
    pub fn is_finite(&self, range: Range<usize>) -> bool {
        typed!(*self, m => pack::rows_finite(m, range))
    }

    /// Asks for the rows `range`, as far as there are any, to be brought near.
    #[inline(always)]
    pub fn prefetch<S: Simd>(&self, simd: S, range: Range<usize>) {
        typed!(self, m => m.prefetch(simd, range));
    }

    /// Whether these rows can be read in vectors as they lie, page by page.
    #[inline(always)]
    pub fn lies_well(&self, range: Range<usize>) -> bool {
        !range.is_empty() && typed!(self, m => m.strided(range.start..range.start + 1).is_some())
    }

    /// C\[r, j\] ⟵ A\[r, ..\]·row j of `range`, read as it lies (see [`lies_well`](Source::lies_well)).
    #[inline(always)]
    pub fn dots<S: Simd>(&self, simd: S, a: &[f32], range: Range<usize>, c: Out) {
        typed!(self, m => {
            for part in pages(range.clone(), |i| m.page_end(i)) {
                let c = Out { data: &mut c.data[part.start - range.start..], row: c.row };
                if let Some(rows) = m.strided(part) {
                    thin::dots_in_place(simd, a, rows, c);
                }
            }
        });
    }

    /// C ⟵ C + A·rows `range`, read as they lie, for `n` rows of A.
    #[inline(always)]
    pub fn add_product<S: Simd>(&self, simd: S, n: usize, a: Left, range: Range<usize>, c: Out) {
        typed!(self, m => {
            for part in pages(range.clone(), |i| m.page_end(i)) {
                let a = Left { data: &a.data[(part.start - range.start) * a.step..], ..a };
                if let Some(rows) = m.strided(part) {
                    simd.gemm_in_place(n, a, rows, Out { data: &mut *c.data, row: c.row });
                }
            }
        });
    }
}

/// A range cut where pages end.
#[inline(always)]
fn pages(range: Range<usize>, page_end: impl Fn(usize) -> usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        (start < range.end).then(|| {
            let part = start..page_end(start).min(range.end);
            start = part.end;
            part
        })
    })
}
