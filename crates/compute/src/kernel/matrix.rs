//! One head's matrix inside a 4-D array, read (`Matrix`) or written row by row (`Rows`), with any strides.

use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView4, ArrayViewMut4, Axis};

use super::element::Element;
use super::simd::Simd;
use crate::scratch::LINE;

/// A matrix to read: `rows` × `cols` values at the strides `row` and `col`, in one piece or in pages.
#[derive(Clone, Copy)]
pub struct Matrix<'a, E = f32> {
    ptr: *const E,
    rows: usize,
    cols: usize,
    row: isize,
    col: isize,
    pages: Option<Pages<'a>>,
    array: PhantomData<&'a E>,
}

/// Rows i·size to (i + 1)·size lie in page `table[i]`, which starts that many times `stride` values further on.
#[derive(Clone, Copy)]
struct Pages<'a> {
    table: &'a [usize],
    size: usize,
    stride: isize,
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
        Matrix { ptr, rows, cols, row, col, pages: None, array: PhantomData }
    }

    /// The rows `range` of head `h` of sequence `b`.
    pub fn of_rows(array: &ArrayView4<'a, E>, b: usize, h: usize, range: Range<usize>) -> Self {
        let all = Matrix::new(array, b, h);
        assert!(range.start <= range.end && range.end <= all.rows);
        // SAFETY: the first of these rows lies within the array, or there is none and nothing is read.
        Matrix { ptr: unsafe { all.ptr.offset(range.start as isize * all.row) }, rows: range.len(), ..all }
    }

    /// The first `rows` rows of head `h` of the pages [pages, heads, size, cols] that `table` names, one after the other.
    ///
    /// # Panics
    /// If the table names a page that is not there, or too few of them.
    pub fn paged(array: &ArrayView4<'a, E>, h: usize, table: &'a [usize], rows: usize) -> Self {
        let (pages, heads, size, cols) = array.dim();
        let table = &table[..rows.div_ceil(size.max(1))];
        assert!(table.iter().all(|page| *page < pages) && h < heads && (rows == 0 || size > 0));
        if table.is_empty() {
            let row = cols as isize;
            return Matrix { ptr: array.as_ptr(), rows: 0, cols, row, col: 1, pages: None, array: PhantomData };
        }
        let first = Matrix::new(array, 0, h);
        // The strides of axes with at most one entry carry no meaning.
        let stride = if pages > 1 { array.strides()[0] } else { 0 };
        Matrix { rows, pages: Some(Pages { table, size, stride }), ..first }
    }

    /// How far row i lies from the first row of the first page, or from the first row.
    #[inline(always)]
    fn offset(&self, i: usize) -> isize {
        match self.pages {
            None => i as isize * self.row,
            Some(pages) => pages.table[i / pages.size] as isize * pages.stride + (i % pages.size) as isize * self.row,
        }
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
        (self.col == 1).then(|| unsafe { std::slice::from_raw_parts(self.ptr.offset(self.offset(i)), self.cols) })
    }

    /// The rows `range` for reading in vectors, if their values are contiguous and they lie in one page, in this order. (Rows
    /// of a flipped axis lie in the opposite one.)
    #[inline(always)]
    pub fn strided(&self, range: Range<usize>) -> Option<Strided<'a, E>> {
        assert!(range.start < range.end && range.end <= self.rows);
        let stride = usize::try_from(self.row).ok().filter(|_| self.col == 1)?;
        let same_page = self.pages.is_none_or(|pages| range.start / pages.size == (range.end - 1) / pages.size);
        same_page.then(|| Strided {
            // SAFETY: the first of these rows lies within the array (asserted), and the others after it.
            ptr: unsafe { self.ptr.offset(self.offset(range.start)) },
            stride,
            rows: range.len(),
            cols: self.cols,
            array: PhantomData,
        })
    }

    /// The end of the page that row i lies in, or of all rows.
    #[inline(always)]
    pub fn page_end(&self, i: usize) -> usize {
        self.pages.map_or(self.rows, |pages| ((i / pages.size + 1) * pages.size).min(self.rows))
    }

    /// Element (i, j).
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> f32 {
        assert!(i < self.rows && j < self.cols);
        // SAFETY: (i, j) lies within the array.
        unsafe { *self.ptr.offset(self.offset(i) + j as isize * self.col) }.widen()
    }
}

impl<E: Element> Matrix<'_, E> {
    /// Asks for the rows `range`, as far as there are any, to be brought near.
    #[inline(always)]
    pub fn prefetch<S: Simd>(&self, simd: S, range: Range<usize>) {
        let line = LINE * size_of::<f32>() / size_of::<E>();
        for i in range.start..range.end.min(self.rows) {
            for first in (0..self.cols).step_by(line) {
                simd.prefetch(self.ptr.wrapping_offset(self.offset(i) + first as isize * self.col));
            }
        }
    }

    /// Copies row i, times `scale`, to the start of `dst` and fills the rest with zeros.
    #[inline(always)]
    pub fn copy_row<S: Simd>(&self, simd: S, i: usize, scale: f32, dst: &mut [f32]) {
        let (values, rest) = dst.split_at_mut(self.cols);
        match self.row(i) {
            Some(row) => super::pack::scaled(simd, row, scale, values),
            None => values.iter_mut().enumerate().for_each(|(j, x)| *x = scale * self.get(i, j)),
        }
        rest.fill(0.0);
    }
}

impl<'a> Matrix<'a> {
    /// The rows `range`, if they lie next to each other without gaps.
    #[inline(always)]
    pub fn block(&self, range: Range<usize>) -> Option<&'a [f32]> {
        assert!(range.start <= range.end && range.end <= self.rows);
        let without_gaps = self.pages.is_none() && self.col == 1 && self.row == self.cols as isize;
        // SAFETY: the rows lie within the array (asserted) and follow each other without gaps, so that all of the slice
        // belongs to the array, which is borrowed for 'a.
        (without_gaps && range.start < self.rows).then(|| unsafe {
            std::slice::from_raw_parts(self.ptr.add(range.start * self.cols), range.len() * self.cols)
        })
    }
}

/// Rows of contiguous values, `stride` values apart.
#[derive(Clone, Copy)]
pub struct Strided<'a, E> {
    ptr: *const E,
    stride: usize,
    rows: usize,
    cols: usize,
    array: PhantomData<&'a E>,
}

impl<'a, E> Strided<'a, E> {
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn as_ptr(&self) -> *const E {
        self.ptr
    }

    #[inline(always)]
    pub fn row(&self, i: usize) -> &'a [E] {
        assert!(i < self.rows);
        // SAFETY: row i lies within the array (asserted), its values are contiguous, and the array is borrowed for 'a.
        unsafe { std::slice::from_raw_parts(self.ptr.add(i * self.stride), self.cols) }
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
pub struct Rows<'a, E = f32> {
    ptr: *mut E,
    dim: [usize; 4],
    strides: [isize; 4],
    array: PhantomData<&'a mut E>,
}

// SAFETY: a `Rows` is an exclusive borrow whose only access is by methods that leave it to the caller that no row is
// accessed by two threads at once.
unsafe impl<E: Send> Send for Rows<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Send> Sync for Rows<'_, E> {}

impl<'a, E: Copy> Rows<'a, E> {
    pub fn new(mut array: ArrayViewMut4<'a, E>) -> Self {
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

    /// Replaces values of row (b, h, i), from column `first` on, by a function of the old and the new.
    ///
    /// # Safety
    /// No other thread may access these values at the same time.
    #[inline(always)]
    pub unsafe fn update<X: Copy>(
        &self,
        at: (usize, usize, usize),
        first: usize,
        values: &[X],
        join: impl Fn(E, X) -> E,
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
    pub unsafe fn standard(&self, b: usize, h: usize, rows: Range<usize>) -> &'a mut [E] {
        // SAFETY: passed on.
        unsafe { self.block(b, h, rows) }.expect("an array made in standard layout")
    }

    /// The rows `rows` of head (b, h) as one slice, if they lie next to each other without gaps.
    ///
    /// # Safety
    /// No other thread may access these rows while the slice lives, and the caller may hold no other slice of them.
    #[inline(always)]
    pub unsafe fn block(&self, b: usize, h: usize, rows: Range<usize>) -> Option<&'a mut [E]> {
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

impl<E: Element> Rows<'_, E> {
    /// Writes values into row (b, h, i), from column `first` on, rounded to what is stored.
    ///
    /// # Safety
    /// No other thread may access these values at the same time.
    #[inline(always)]
    pub unsafe fn write(&self, at: (usize, usize, usize), first: usize, values: &[f32]) {
        // SAFETY: passed on.
        unsafe { self.update(at, first, values, |_, new| E::narrow(new)) }
    }
}

/// For [`Rows::update`].
#[inline(always)]
pub fn add(old: f32, new: f32) -> f32 {
    old + new
}
