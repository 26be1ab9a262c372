//! One head's matrix inside a 4-D array, read (`Matrix`) or written row by row (`Rows`), with any strides.

use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView4, ArrayViewMut4, Axis};

use super::element::Element;
use super::simd::Simd;
use crate::scratch::LINE;

/// A matrix to read: `rows` × `cols` values at the strides `row` and `col`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, E = f32> {
    ptr: *const E,
    rows: usize,
    cols: usize,
    row: isize,
    col: isize,
    array: PhantomData<&'a E>,
}

// SAFETY: a `Matrix` is a shared borrow of its values, which are Sync.
unsafe impl<E: Element> Send for Matrix<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Element> Sync for Matrix<'_, E> {}

impl<'a, E: Element> Matrix<'a, E> {
    /// All of it.
    pub fn of(array: ArrayView2<'a, E>) -> Self {
        Matrix::new(&array.insert_axis(Axis(0)).insert_axis(Axis(0)), 0, 0)
    }

    /// Head `h` of sequence `b`.
    pub fn new(array: &ArrayView4<'a, E>, b: usize, h: usize) -> Self {
        let (batch, heads, rows, cols) = array.dim();
        assert!(b < batch && h < heads);
        let strides = array.strides();
        // SAFETY: (b, h) lies within the first two axes, so this is the address of that head's first value, or, if the head
        // is empty, an address that `row` and `get` never read from. The view's borrow, 'a, goes on in `self`.
        let ptr = unsafe { array.as_ptr().offset(b as isize * strides[0] + h as isize * strides[1]) };
        // The strides of axes with at most one entry carry no meaning.
        let row = if rows > 1 { strides[2] } else { cols as isize };
        let col = if cols > 1 { strides[3] } else { 1 };
        Matrix { ptr, rows, cols, row, col, array: PhantomData }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row i, if its values lie next to each other.
    #[inline(always)]
    pub fn row(&self, i: usize) -> Option<&'a [E]> {
        assert!(i < self.rows);
        // SAFETY: row i lies within the array (asserted), its `cols` values are contiguous, and the array is borrowed for 'a.
        (self.col == 1)
            .then(|| unsafe { std::slice::from_raw_parts(self.ptr.offset(i as isize * self.row), self.cols) })
    }

    /// Element (i, j).
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> f32 {
        assert!(i < self.rows && j < self.cols);
        // SAFETY: (i, j) lies within the array.
        unsafe { *self.ptr.offset(i as isize * self.row + j as isize * self.col) }.widen()
    }
}

impl<'a> Matrix<'a> {
    /// The rows `range`, if they lie next to each other without gaps.
    #[inline(always)]
    pub fn block(&self, range: Range<usize>) -> Option<&'a [f32]> {
        assert!(range.start <= range.end && range.end <= self.rows);
        // SAFETY: the rows lie within the array (asserted) and follow each other without gaps, so that all of the slice
        // belongs to the array, which is borrowed for 'a.
        (self.col == 1 && self.row == self.cols as isize && range.start < self.rows).then(|| unsafe {
            std::slice::from_raw_parts(self.ptr.add(range.start * self.cols), range.len() * self.cols)
        })
    }

    /// Asks for the rows `range`, as far as there are any, to be brought near.
    #[inline(always)]
    pub fn prefetch<S: Simd>(&self, simd: S, range: Range<usize>) {
        for i in range.start..range.end.min(self.rows) {
            for first in (0..self.cols).step_by(LINE) {
                simd.prefetch(self.ptr.wrapping_offset(i as isize * self.row + first as isize * self.col));
            }
        }
    }

    /// Copies row i to the start of `dst` and fills the rest with zeros.
    #[inline(always)]
    pub fn copy_row(&self, i: usize, dst: &mut [f32]) {
        let (values, rest) = dst.split_at_mut(self.cols);
        match self.row(i) {
            Some(row) => values.copy_from_slice(row),
            None => values.iter_mut().enumerate().for_each(|(j, x)| *x = self.get(i, j)),
        }
        rest.fill(0.0);
    }
}

/// A matrix whose values lie next to each other in one of the two directions.
#[derive(Clone, Copy)]
pub enum Lying<'a, E> {
    /// Its rows do.
    Rows(Matrix<'a, E>),
    /// Its columns do: the rows of the transposed matrix, which this is.
    Columns(Matrix<'a, E>),
}

impl<'a, E: Element> Lying<'a, E> {
    /// None if it lies in neither direction, or there is nothing of it.
    pub fn of(array: ArrayView2<'a, E>) -> Option<Self> {
        if array.is_empty() {
            return None;
        }
        let (rows, columns) = (Matrix::of(array), Matrix::of(array.reversed_axes()));
        match (rows.row(0), columns.row(0)) {
            (Some(_), _) => Some(Lying::Rows(rows)),
            (None, Some(_)) => Some(Lying::Columns(columns)),
            (None, None) => None,
        }
    }
}

/// A 4-D array to write, shared by threads that write different rows of it.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    ptr: *mut f32,
    dim: [usize; 4],
    strides: [isize; 4],
    array: PhantomData<&'a mut f32>,
}

// SAFETY: a `Rows` is an exclusive borrow whose only access is by methods that leave it to the caller that no row is
// accessed by two threads at once.
unsafe impl Send for Rows<'_> {}
// SAFETY: as above.
unsafe impl Sync for Rows<'_> {}

impl<'a> Rows<'a> {
    pub fn new(mut array: ArrayViewMut4<'a, f32>) -> Self {
        let (b, h, t, d) = array.dim();
        let mut strides = [0; 4];
        strides.copy_from_slice(array.strides());
        Rows { ptr: array.as_mut_ptr(), dim: [b, h, t, d], strides, array: PhantomData }
    }

    /// Where an element lies.
    #[inline(always)]
    fn offset(&self, [b, h, i, j]: [usize; 4]) -> isize {
        let [to_b, to_h, to_i, to_j] = self.strides;
        b as isize * to_b + h as isize * to_h + i as isize * to_i + j as isize * to_j
    }

    /// Writes values into row (b, h, i), from column `first` on.
    ///
    /// # Safety
    /// No other thread may access these values at the same time.
    #[inline(always)]
    pub unsafe fn write(&self, at: (usize, usize, usize), first: usize, values: &[f32]) {
        // SAFETY: passed on.
        unsafe { self.update(at, first, values, |_, new| new) }
    }

    /// Replaces values of row (b, h, i), from column `first` on, by a function of the old and the new.
    ///
    /// # Safety
    /// No other thread may access these values at the same time.
    #[inline(always)]
    pub unsafe fn update(
        &self,
        at: (usize, usize, usize),
        first: usize,
        values: &[f32],
        join: impl Fn(f32, f32) -> f32,
    ) {
        let (b, h, i) = at;
        assert!(b < self.dim[0] && h < self.dim[1] && i < self.dim[2] && first + values.len() <= self.dim[3]);
        if values.is_empty() {
            return;
        }
        let at = self.offset([b, h, i, first]);
        // SAFETY: the values lie within the array (asserted), which is borrowed for 'a; nobody else accesses them.
        unsafe {
            let row = self.ptr.offset(at);
            if self.strides[3] == 1 {
                let row = std::slice::from_raw_parts_mut(row, values.len());
                row.iter_mut().zip(values).for_each(|(x, value)| *x = join(*x, *value));
            } else {
                for (j, value) in values.iter().enumerate() {
                    let x = row.offset(j as isize * self.strides[3]);
                    *x = join(*x, *value);
                }
            }
        }
    }

    /// The rows `rows` of head (b, h) of an array in standard layout.
    ///
    /// # Safety
    /// As for [`block`](Rows::block).
    #[inline(always)]
    pub unsafe fn standard(&self, b: usize, h: usize, rows: Range<usize>) -> &'a mut [f32] {
        // SAFETY: passed on.
        unsafe { self.block(b, h, rows) }.expect("an array made in standard layout")
    }

    /// The rows `rows` of head (b, h) as one slice, if they lie next to each other without gaps.
    ///
    /// # Safety
    /// No other thread may access these rows while the slice lives, and the caller may hold no other slice of them.
    #[inline(always)]
    pub unsafe fn block(&self, b: usize, h: usize, rows: Range<usize>) -> Option<&'a mut [f32]> {
        let [batch, heads, tokens, dim] = self.dim;
        assert!(b < batch && h < heads && rows.start <= rows.end && rows.end <= tokens);
        let len = rows.len() * dim;
        if len == 0 {
            return Some(&mut []);
        }
        let without_gaps = (dim == 1 || self.strides[3] == 1) && (tokens == 1 || self.strides[2] == dim as isize);
        // SAFETY: the rows lie within the array (asserted) and next to each other, and the array is borrowed for 'a; nobody
        // else accesses them.
        without_gaps.then(|| unsafe {
            std::slice::from_raw_parts_mut(self.ptr.offset(self.offset([b, h, rows.start, 0])), len)
        })
    }
}

/// For [`Rows::update`].
#[inline(always)]
pub fn add(old: f32, new: f32) -> f32 {
    old + new
}
