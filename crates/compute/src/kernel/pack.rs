//! Copying tiles into the layouts that [`super::gemm`] reads fastest. Each copy is used by hundreds of rows.

use std::ops::Range;

use super::element::Element;
use super::gemm::{PANEL, Right};
use super::matrix::Matrix;
use super::simd::Simd;
use crate::scratch::LINE;

/// How many rows ahead to ask for.
const AHEAD: usize = 4;

/// Rows `range` of `m`, scaled, as the columns of a right operand: panels of 2 vectors of columns. Columns up to the next
/// multiple of `LANES` are zero.
#[inline(always)]
pub fn columns<'a, S: Simd, E: Element>(
    simd: S,
    m: Matrix<E>,
    range: Range<usize>,
    scale: f32,
    dst: &'a mut [f32],
) -> Right<'a> {
    let (k, width) = (m.cols(), PANEL * S::LANES);
    let panel = width * k;
    let mut first = 0;
    while k > 0 && first < range.len() {
        let dst = &mut dst[first / width * panel + first % width..];
        let rows = (range.len() - first).min(S::LANES);
        // Whole vectors of columns go through registers, the ragged rest value by value.
        let whole = k - k % S::LANES;
        let transposed = if let Some(src) = m.strided(range.start + first..range.start + first + rows) {
            for d in (0..whole).step_by(S::LANES) {
                assert!((d + S::LANES - 1) * width + S::LANES <= dst.len());
                let to = dst[d * width..].as_mut_ptr();
                // SAFETY: there are so many rows, of at least `whole` values; the assert covers the writes.
                unsafe { simd.transpose((src.as_ptr().add(d), src.stride()), rows, scale, (to, width)) };
            }
            whole
        } else {
            0
        };
        for d in transposed..k {
            for i in 0..S::LANES {
                dst[d * width + i] = if i < rows { m.get(range.start + first + i, d) * scale } else { 0.0 };
            }
        }
        first += S::LANES;
    }
    Right { data: dst, panel, step: width }
}

/// Rows `range` of `m`, scaled, as the rows of a right operand: panels of 2 vectors, each n × 2 vectors without gaps, which uses all
/// sets of the L1 cache where rows read in place would use half of them. Values past the last column are zero.
#[inline(always)]
pub fn rows<'a, S: Simd, E: Element>(
    simd: S,
    m: Matrix<E>,
    range: Range<usize>,
    scale: f32,
    dst: &'a mut [f32],
) -> Right<'a> {
    let width = PANEL * S::LANES;
    let panel = width * range.len();
    let cols = m.cols();
    let (whole, factor) = (cols / width, simd.splat(scale));
    for (n, i) in range.enumerate() {
        let row = m.row(i);
        ask_for(simd, m, i + AHEAD);
        if let Some(row) = row {
            assert!(whole == 0 || (whole - 1) * panel + (n + 1) * width <= dst.len());
            for p in 0..whole {
                // SAFETY: the assert bounds what is written, the length of the row what is read.
                unsafe {
                    let (from, to) = (row.as_ptr().add(p * width), dst.as_mut_ptr().add(p * panel + n * width));
                    for first in (0..width).step_by(S::LANES) {
                        simd.store(to.add(first), simd.mul(factor, E::load(simd, from.add(first))));
                    }
                }
            }
        }
        let done = if row.is_some() { whole * width } else { 0 };
        for first in (done..cols).step_by(width) {
            let dst = &mut dst[first / width * panel + n * width..][..width];
            let count = (cols - first).min(width);
            match row {
                Some(row) => scaled(simd, &row[first..], scale, &mut dst[..count]),
                None => dst[..count].iter_mut().enumerate().for_each(|(j, x)| *x = scale * m.get(i, first + j)),
            }
            dst[count..].fill(0.0);
        }
    }
    Right { data: &dst[..cols.div_ceil(width) * panel], panel, step: width }
}

/// dst ⟵ scale·values.
#[inline(always)]
pub fn scaled<S: Simd, E: Element>(simd: S, values: &[E], scale: f32, dst: &mut [f32]) {
    let (values, whole) = (&values[..dst.len()], dst.len() - dst.len() % S::LANES);
    for first in (0..whole).step_by(S::LANES) {
        // SAFETY: both have LANES values from `first` on.
        unsafe {
            let v = E::load(simd, values.as_ptr().add(first));
            simd.store(dst.as_mut_ptr().add(first), simd.mul(simd.splat(scale), v));
        }
    }
    dst[whole..].iter_mut().zip(&values[whole..]).for_each(|(x, value)| *x = scale * value.widen());
}

/// Whether no value is NaN or infinite.
#[inline(always)]
pub fn all_finite(values: &[f32]) -> bool {
    let mut zeros = [0.0; LINE];
    add_zeros(&mut zeros, values);
    zeros.iter().all(|x| x.is_finite())
}

/// Whether no value of these rows is NaN or infinite.
#[inline(always)]
pub fn rows_finite<E: Element>(m: Matrix<E>, range: Range<usize>) -> bool {
    let (mut zeros, mut others) = ([0.0; LINE], 0.0);
    for i in range {
        match m.row(i) {
            Some(row) => add_zeros(&mut zeros, row),
            None => (0..m.cols()).for_each(|j| others += m.get(i, j) * 0.0),
        }
    }
    zeros.iter().all(|x| x.is_finite()) && others.is_finite()
}

/// Adds 0·x for all values: 0 or −0 if x is finite and NaN otherwise. Looked at once in the end, it is vector code.
#[inline(always)]
fn add_zeros<E: Element>(zeros: &mut [f32; LINE], values: &[E]) {
    let (lines, rest) = values.as_chunks::<LINE>();
    for line in lines {
        zeros.iter_mut().zip(line).for_each(|(zero, x)| *zero += x.widen() * 0.0);
    }
    zeros.iter_mut().zip(rest).for_each(|(zero, x)| *zero += x.widen() * 0.0);
}

/// All of `m` as a left operand in groups of `S::ROWS` rows, each of them [columns of m, LANES]: a vector has room for the
/// rows of a group, and lines of the cache are then written whole. What is left of a vector means nothing.
#[inline(always)]
pub fn groups<S: Simd>(simd: S, m: Matrix, dst: &mut [f32]) {
    const { assert!(S::ROWS <= S::LANES) };
    let (rows, columns) = (m.rows(), m.cols());
    for (first, dst) in (0..rows).step_by(S::ROWS).zip(dst.chunks_exact_mut((columns * S::LANES).max(1))) {
        let (count, whole) = ((rows - first).min(S::LANES), columns - columns % S::LANES);
        let direct = m.strided(first..first + count);
        let done = if direct.is_some() { whole } else { 0 };
        if let Some(src) = direct {
            for k in (0..whole).step_by(S::LANES) {
                let to = dst[k * S::LANES..].as_mut_ptr();
                // SAFETY: there are so many rows, of at least `whole` values; `dst` has a vector for each column.
                unsafe { simd.transpose((src.as_ptr().add(k), src.stride()), count, 1.0, (to, S::LANES)) };
            }
        }
        for k in done..columns {
            for i in first..rows.min(first + S::ROWS) {
                dst[k * S::LANES + i - first] = m.get(i, k);
            }
        }
    }
}

/// The same of the transposed of `m`, whose rows are contiguous.
#[inline(always)]
pub fn groups_of_columns<S: Simd>(simd: S, m: Matrix, dst: &mut [f32]) {
    const { assert!(S::ROWS <= S::LANES) };
    let (depth, rows) = (m.rows(), m.cols());
    for k in 0..depth {
        let row = m.row(k).expect("contiguous");
        ask_for(simd, m, k + 2 * AHEAD);
        for first in (0..rows).step_by(S::ROWS) {
            let to = &mut dst[(first / S::ROWS * depth + k) * S::LANES..][..S::LANES];
            let values = &row[first..];
            if values.len() >= S::LANES {
                // SAFETY: both have LANES values.
                unsafe { simd.store(to.as_mut_ptr(), simd.load(values.as_ptr())) };
            } else {
                to[..values.len()].copy_from_slice(values);
            }
        }
    }
}

/// Asks for a row, if there is such a row: a part of each row of a matrix is a new place in memory, which the prefetcher of the
/// processor finds too late.
#[inline(always)]
fn ask_for<S: Simd, E: Element>(simd: S, m: Matrix<E>, i: usize) {
    if i < m.rows()
        && let Some(row) = m.row(i)
    {
        row.iter().step_by(LINE * size_of::<f32>() / size_of::<E>()).for_each(|value| simd.prefetch(value));
    }
}
