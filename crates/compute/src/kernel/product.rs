//! The product of large matrices: C\[m, n\] = A\[m, k\] · B\[k, n\].
//!
//! Both are copied into the order in which the registers take them: A in groups of 12 rows, B in panels of two vectors of
//! columns. What is used often lies where it is quickly had:
//!
//! ```text
//! for each DEPTH of k:
//!   for each HEIGHT rows:
//!     A[rows, k] in groups                                                       [`Grouped`]
//!     B[k, columns] in panels              stays in L2                           [`Panels`]
//!     for each STRIP rows:                 A[strip, k] is asked for while the strip before is at work, and read from L2
//!       for each panel of B:               k × 2 vectors stay in L1
//!         for each 12 rows:                C[12, panel] in registers  += A·B
//! ```
//! Where B has few columns, all of it is copied first, and A strip by strip: a thread then has no copy of A that leaves L2.
//!
//! Which rows and columns belong to a task does not change any chain of additions, so results do not depend on it.

use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, Ix2, RawArrayViewMut};

use super::element::Element;
use super::gemm::{End, Groups, MAX_ROWS, Out, PANEL, Place, Right};
use super::matrix::{Lying, Matrix};
use super::simd::Simd;
use super::{Kernel, pack};
use crate::scratch::LINE;

/// A block of k: with it a panel of two vectors of 16 takes two thirds of an L1 cache.
const DEPTH: usize = 256;
/// The most of k that is taken as one block: to go over C once is worth more than a panel in L1.
const WHOLE: usize = 384;
/// Rows that are multiplied by all panels of B before the next ones are: whole groups of every instruction set.
pub const STRIP: usize = 192;
/// Columns of a task at most.
pub const COLUMNS: usize = 384;
/// Rows for which A is copied at a time.
pub const HEIGHT: usize = 8 * STRIP;

/// A block of a long k: C is gone over half as often, which is then worth more.
const LONG: usize = 2048;
const LONG_DEPTH: usize = 512;

/// The block of k, of which there are so many.
pub fn depth(k: usize) -> usize {
    match k {
        ..=WHOLE => WHOLE,
        LONG.. => LONG_DEPTH,
        _ => DEPTH,
    }
}

/// Copies a strip of A into groups.
pub struct Grouped<'a> {
    pub a: ArrayView2<'a, f32>,
    /// As many values as [`Grouped::strip`] says.
    pub out: &'a mut [f32],
}

impl Grouped<'_> {
    /// The values of a strip with so many columns, on any instruction set: a vector for every 12 rows of AVX-512, and less
    /// for others.
    pub fn strip(depth: usize) -> usize {
        STRIP / MAX_ROWS * depth * LINE
    }
}

impl Kernel for Grouped<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match Lying::of(self.a) {
            Some(Lying::Columns(a)) => pack::groups_of_columns(simd, a, self.out),
            Some(Lying::Rows(a)) => pack::groups(simd, a, self.out),
            None => pack::groups(simd, Matrix::of(self.a), self.out),
        }
    }
}

/// C, of which every task writes a part of its own. It may hold nothing yet.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    ptr: *mut f32,
    dim: (usize, usize),
    strides: (isize, isize),
    array: PhantomData<&'a mut f32>,
}

// SAFETY: a `Target` is an exclusive borrow whose only access, `write`, leaves it to the caller that no value is accessed by
// two threads at once.
unsafe impl Send for Target<'_> {}
// SAFETY: as above.
unsafe impl Sync for Target<'_> {}

impl Target<'_> {
    /// # Safety
    /// The array is exclusively the caller's for as long as the target lives, and holds values unless it is first written with
    /// [`End::Set`] or [`End::Bias`].
    pub unsafe fn new(mut array: RawArrayViewMut<f32, Ix2>) -> Self {
        let strides = (array.strides()[0], array.strides()[1]);
        Target { ptr: array.as_mut_ptr(), dim: array.dim(), strides, array: PhantomData }
    }

    /// These rows and columns as a place for vectors, if their rows are contiguous.
    ///
    /// # Safety
    /// While the place is in use, no other thread accesses these values.
    unsafe fn place<'a>(&'a self, rows: Range<usize>, columns: Range<usize>, end: End<'a>) -> Option<Place<'a>> {
        assert!(rows.end <= self.dim.0 && columns.end <= self.dim.1);
        let (row, step) = self.strides;
        // SAFETY: the values lie within the array (asserted), and are ours alone.
        (step == 1).then(|| unsafe {
            let first = self.ptr.offset(rows.start as isize * row).add(columns.start);
            Place::new(first, row, (rows.len(), columns.len()), end)
        })
    }

    /// # Safety
    /// No other thread accesses these values at the same time.
    #[inline(always)]
    unsafe fn write(&self, i: usize, columns: Range<usize>, values: &[f32], end: End) {
        assert!(i < self.dim.0 && columns.end <= self.dim.1 && columns.len() == values.len());
        // SAFETY: the values lie within the array (asserted), and are ours alone.
        unsafe {
            let row = self.ptr.offset(i as isize * self.strides.0 + columns.start as isize * self.strides.1);
            // The strides of axes with at most one entry carry no meaning.
            if self.strides.1 == 1 || columns.len() == 1 {
                Self::write_row(row, |j| j, columns, values, end);
            } else {
                let step = self.strides.1;
                Self::write_row(row, |j| j * step, columns, values, end);
            }
        }
    }

    /// # Safety
    /// As for `write`; `place` says where the values lie.
    #[inline(always)]
    unsafe fn write_row(
        row: *mut f32,
        place: impl Fn(isize) -> isize,
        columns: Range<usize>,
        values: &[f32],
        end: End,
    ) {
        // SAFETY: passed on.
        unsafe {
            let at = |j: usize| row.offset(place(j as isize));
            match end {
                End::Set => values.iter().enumerate().for_each(|(j, new)| at(j).write(*new)),
                End::Old(beta) => values.iter().enumerate().for_each(|(j, new)| at(j).write(new + beta * *at(j))),
                End::Bias(bias) => {
                    let bias = &bias[columns];
                    values.iter().zip(bias).enumerate().for_each(|(j, (new, bias))| at(j).write(new + bias));
                }
            }
        }
    }
}

/// Copies alpha·B: [depth, columns] into panels.
pub struct Panels<'a, E> {
    pub alpha: f32,
    pub b: ArrayView2<'a, E>,
    /// As many values as [`memory`] says.
    pub out: &'a mut [f32],
}

impl<E: Element> Kernel for Panels<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Panels { alpha, b, out } = self;
        let (depth, columns) = b.dim();
        match Lying::of(b) {
            Some(Lying::Columns(b)) => pack::columns(simd, b, 0..columns, alpha, out),
            Some(Lying::Rows(b)) => pack::rows(simd, b, 0..depth, alpha, out),
            None => pack::rows(simd, Matrix::of(b), 0..depth, alpha, out),
        };
    }
}

/// Some columns of A·B, and what becomes of them.
pub struct Product<'a> {
    /// A in groups, strip by strip: [rows, depth].
    pub a: &'a [f32],
    /// B in panels: [depth, columns].
    pub b: &'a [f32],
    pub depth: usize,
    /// Of the target.
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    pub target: Target<'a>,
    pub end: End<'a>,
    /// As many values as [`memory`] says.
    pub out: &'a mut [f32],
}

/// What is kept of so many columns of B and of C, on any instruction set.
pub fn memory(depth: usize, columns: usize) -> [usize; 2] {
    let width = columns.next_multiple_of(PANEL * LINE);
    [depth * width, STRIP * width]
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Product { a, b, depth, rows, columns, target, end, out } = self;
        let vectors = columns.len().div_ceil(S::LANES);
        let width = vectors * S::LANES;
        let panels = Right { data: b, panel: PANEL * S::LANES * depth, step: PANEL * S::LANES };
        let whole = columns.len() % S::LANES == 0;
        let columns_of = |end| match end {
            End::Bias(bias) => End::Bias(&bias[columns.clone()]),
            end => end,
        };
        for first in (0..rows.len()).step_by(STRIP) {
            let strip = first..(first + STRIP).min(rows.len());
            let of_target = rows.start + strip.start..rows.start + strip.end;
            // SAFETY: these columns belong to this task alone.
            let place = unsafe { target.place(of_target.clone(), columns.clone(), columns_of(end)) };
            let place = place.filter(|_| whole && depth > 0);
            let strip_of_a = |first: usize| a.get(first / STRIP * Grouped::strip(depth)..).unwrap_or_default();
            if depth == 0 {
                out.fill(0.0);
            } else {
                let a = Groups { data: strip_of_a(first), group: depth * S::LANES };
                let next = (rows.len() - strip.end).min(STRIP).div_ceil(S::ROWS) * depth * S::LANES;
                let ahead = strip_of_a(first + STRIP).get(..next).unwrap_or_default();
                let c = Out { data: out, row: width };
                simd.gemm_groups((strip.len(), vectors, depth), (a, ahead), panels, c, place);
            }
            if place.is_none() {
                for (i, row) in of_target.zip(out.chunks_exact(width)) {
                    // SAFETY: these columns belong to this task alone.
                    unsafe { target.write(i, columns.clone(), &row[..columns.len()], end) };
                }
            }
        }
    }
}
