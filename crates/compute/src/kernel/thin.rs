//! A few rows times a large matrix: C\[m, n\] = A\[m, k\] · B\[k, n\] with a small m, as in generating text.
//!
//! Every value of B is used only m times, so the speed is that of reading B from memory. B is therefore read once, as it
//! lies, in the direction in which it lies, instead of being packed first:
//!
//! ```text
//! columns of B contiguous (a weight stored [out, in]):
//!   for each 4 columns j of B:             4·k values stay in L1
//!     for each 4 rows i of A:              C[i, j] = Σ A[i, ..]·B[.., j], in 16 vectors
//! rows of B contiguous (a weight stored [in, out]):
//!   for each 8 rows p of B:                8·n values stay in L1
//!     for each 4 rows i of A:              C[i, ..] += A[i, p]·B[p, ..]
//! ```
//! How the columns of C are shared out does not change any chain of additions, so results do not depend on it.

use std::ops::Range;

use super::Kernel;
use super::element::Element;
use super::gemm::Out;
use super::matrix::{Lying, Strided};
use super::simd::Simd;
use crate::scratch::LINE;

/// Rows of A that are taken together.
pub const GROUP: usize = 4;
/// Columns of B that are read side by side: as many streams as the prefetcher follows with ease.
const COLUMNS: usize = 4;
/// Rows of B that are read side by side: C is loaded and stored once for all of them.
pub const DEPTH: usize = 8;

/// Some columns of A·B, or of the sums that it is made of.
pub struct Thin<'a, E> {
    /// A: [m, k], contiguous.
    pub a: &'a [f32],
    pub k: usize,
    pub b: Lying<'a, E>,
    /// Which terms of each sum: all, where columns are contiguous.
    pub terms: Range<usize>,
    /// Which columns.
    pub columns: Range<usize>,
    /// [m, columns], contiguous.
    pub out: &'a mut [f32],
}

impl<E: Element> Kernel for Thin<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Thin { a, k, b, terms, columns, out } = self;
        let width = columns.len();
        let contiguous = "checked by the caller";
        match b {
            Lying::Columns(b) => {
                let column = |j: usize| b.row(columns.start + j).expect(contiguous);
                let whole = width - width % COLUMNS;
                for j in (0..whole).step_by(COLUMNS) {
                    let b: [&[E]; COLUMNS] = std::array::from_fn(|c| column(j + c));
                    for (a, out) in a.chunks(GROUP * k).zip(out.chunks_mut(GROUP * width)) {
                        match a.len() / k {
                            4 => dots::<S, E, 4, COLUMNS>(simd, a, b, (out, width), j),
                            3 => dots::<S, E, 3, COLUMNS>(simd, a, b, (out, width), j),
                            2 => dots::<S, E, 2, COLUMNS>(simd, a, b, (out, width), j),
                            _ => dots::<S, E, 1, COLUMNS>(simd, a, b, (out, width), j),
                        }
                    }
                }
                for j in whole..width {
                    for (a, out) in a.chunks(k).zip(out.chunks_mut(width)) {
                        dots::<S, E, 1, 1>(simd, a, [column(j)], (out, width), j);
                    }
                }
            }
            Lying::Rows(b) => {
                out.fill(0.0);
                let row = |p: usize| &b.row(p).expect(contiguous)[columns.clone()];
                let whole = terms.end - terms.len() % DEPTH;
                for p in (terms.start..whole).step_by(DEPTH) {
                    let b: [&[E]; DEPTH] = std::array::from_fn(|d| row(p + d));
                    for (a, out) in a.chunks(GROUP * k).zip(out.chunks_mut(GROUP * width)) {
                        match a.len() / k {
                            4 => add_rows::<S, E, 4, DEPTH>(simd, a, p, b, out),
                            3 => add_rows::<S, E, 3, DEPTH>(simd, a, p, b, out),
                            2 => add_rows::<S, E, 2, DEPTH>(simd, a, p, b, out),
                            _ => add_rows::<S, E, 1, DEPTH>(simd, a, p, b, out),
                        }
                    }
                }
                for p in whole..terms.end {
                    for (a, out) in a.chunks(k).zip(out.chunks_mut(width)) {
                        add_rows::<S, E, 1, 1>(simd, a, p, [row(p)], out);
                    }
                }
            }
        }
    }
}

/// How many bytes further on the rows lie that are read after these N. They are asked for while these are read: that each row
/// is a new place in memory the prefetcher of the processor finds out too late.
#[inline(always)]
fn ahead<E, const N: usize>(rows: [&[E]; N]) -> usize {
    let next = rows.get(1).map_or(0, |row| row.as_ptr().addr().wrapping_sub(rows[0].as_ptr().addr()));
    next.wrapping_mul(N * size_of::<f32>() / size_of::<E>())
}

/// C\[.., j..j + N\]: every one of M rows of A times every one of N columns of B.
#[inline(always)]
fn dots<S: Simd, E: Element, const M: usize, const N: usize>(
    simd: S,
    a: &[f32],
    b: [&[E]; N],
    (out, row): (&mut [f32], usize),
    j: usize,
) {
    let k = a.len() / M;
    assert!(a.len() == M * k && b.iter().all(|column| column.len() == k));
    let whole = k - k % S::LANES;
    let ahead = ahead(b);
    const { assert!(N <= COLUMNS) };
    // Of fewer columns the others are 0, so that a column is summed up alike wherever it stands.
    let mut sums = [[simd.splat(0.0); COLUMNS]; M];
    let mut p = 0;
    while p < whole {
        // SAFETY: p + LANES ≤ k, which is the length of every column of B and of every one of the M rows of A.
        unsafe {
            // A loop, as a closure would be compiled without the instruction set: a call for every vector.
            let mut values = [simd.splat(0.0); N];
            for c in 0..N {
                values[c] = E::load(simd, b[c].as_ptr().add(p));
            }
            if N > 1 && (p * size_of::<E>()).is_multiple_of(LINE * size_of::<f32>()) {
                b.iter().for_each(|column| simd.prefetch(column.as_ptr().wrapping_add(p).wrapping_byte_add(ahead)));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = simd.load(a.as_ptr().add(i * k + p));
                for c in 0..N {
                    sums[c] = simd.fma(x, values[c], sums[c]);
                }
            }
        }
        p += S::LANES;
    }
    for (i, sums) in sums.into_iter().enumerate() {
        let totals = simd.sums(sums);
        let out = &mut out[i * row + j..][..N];
        if whole == k {
            out.copy_from_slice(&totals[..N]);
            continue;
        }
        for (c, out) in out.iter_mut().enumerate() {
            let (a, b) = (&a[i * k + whole..(i + 1) * k], &b[c][whole..]);
            *out = totals[c] + a.iter().zip(b).map(|(x, y)| x * y.widen()).sum::<f32>();
        }
    }
}

/// C\[i, ..\] += Σ A\[i, p + d\]·B\[p + d, ..\] over D rows of B, for M rows of C.
#[inline(always)]
fn add_rows<S: Simd, E: Element, const M: usize, const D: usize>(
    simd: S,
    a: &[f32],
    p: usize,
    b: [&[E]; D],
    out: &mut [f32],
) {
    let (k, width) = (a.len() / M, out.len() / M);
    assert!(a.len() == M * k && p + D <= k);
    assert!(out.len() == M * width && b.iter().all(|row| row.len() == width));
    let whole = width - width % S::LANES;
    let ahead = ahead(b);
    let factors: [[f32; D]; M] = std::array::from_fn(|i| std::array::from_fn(|d| a[i * k + p + d]));
    let mut j = 0;
    while j < whole {
        // SAFETY: j + LANES ≤ width, which is the length of every row of B and of every one of the M rows of C.
        unsafe {
            let mut values = [simd.splat(0.0); D];
            for d in 0..D {
                values[d] = E::load(simd, b[d].as_ptr().add(j));
            }
            if D > 1 && (j * size_of::<E>()).is_multiple_of(LINE * size_of::<f32>()) {
                b.iter().for_each(|row| simd.prefetch(row.as_ptr().wrapping_add(j).wrapping_byte_add(ahead)));
            }
            for (i, factors) in factors.iter().enumerate() {
                let target = out.as_mut_ptr().add(i * width + j);
                let mut sum = simd.load(target);
                for (factor, value) in factors.iter().zip(values) {
                    sum = simd.fma(simd.splat(*factor), value, sum);
                }
                simd.store(target, sum);
            }
        }
        j += S::LANES;
    }
    for j in whole..width {
        for (i, factors) in factors.iter().enumerate() {
            out[i * width + j] += factors.iter().zip(b).map(|(x, row)| x * row[j].widen()).sum::<f32>();
        }
    }
}

/// C\[i, j\] ⟵ A\[i, ..\]·B\[j, ..\] for rows of A that lie next to each other, and rows of B that are read as they lie.
#[inline(always)]
pub fn dots_in_place<S: Simd, E: Element>(simd: S, a: &[f32], b: Strided<E>, c: Out) {
    let k = b.cols();
    let whole = b.rows() - b.rows() % COLUMNS;
    for j in (0..whole).step_by(COLUMNS) {
        let b: [&[E]; COLUMNS] = std::array::from_fn(|n| b.row(j + n));
        for (n, a) in a.chunks(GROUP * k).enumerate() {
            let c = (&mut c.data[n * GROUP * c.row..], c.row);
            match a.len() / k {
                4 => dots::<S, E, 4, COLUMNS>(simd, a, b, c, j),
                3 => dots::<S, E, 3, COLUMNS>(simd, a, b, c, j),
                2 => dots::<S, E, 2, COLUMNS>(simd, a, b, c, j),
                _ => dots::<S, E, 1, COLUMNS>(simd, a, b, c, j),
            }
        }
    }
    for j in whole..b.rows() {
        for (n, a) in a.chunks(k).enumerate() {
            dots::<S, E, 1, 1>(simd, a, [b.row(j)], (&mut c.data[n * c.row..], c.row), j);
        }
    }
}
