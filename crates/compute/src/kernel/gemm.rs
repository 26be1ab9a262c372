//! The matrix product that all kernels are made of: C ⟵ A·B or C ⟵ C + A·B, on blocks that fit the caches.
//!
//! A is read one value at a time and spread over a vector, B and C are read in vectors. So A may lie in any layout
//! (`Left` has two strides: that is how Pᵀ·dO reads P as it lies), while rows of B must be contiguous: either rows of a
//! matrix as it lies, or panels made by [`super::pack`].
//!
//! ```text
//! for each panel of B, 2 vectors wide          (B: streams from L2, 2 loads per 24 fused multiply-adds)
//!   for each group of up to ROWS rows of A     (A: stays in L1)
//!     C's 12 × 2 vectors live in registers
//!     for each k: load 2 vectors of B; for each row: spread A[row, k], multiply-add twice
//! ```
//! Every element of A·B is one chain of additions in the order of k, whatever the sizes around it: that is why results
//! do not depend on how rows and columns are shared out.

use std::marker::PhantomData;

use super::element::Element;
use super::matrix::Strided;
use super::simd::Simd;
use crate::scratch::LINE;

/// The largest register tile of any instruction set.
pub const MAX_ROWS: usize = 12;
/// Vectors per panel.
pub const PANEL: usize = 2;
/// How many rows of B ahead to ask for: 8 rows are about a hundred cycles, some L2 latencies. Worth 2 %.
const AHEAD: usize = 8;
/// The same where B comes from memory.
const AHEAD_IN_MEMORY: usize = 32;

/// How many steps of A ahead to ask for where it comes from L2.
const A_AHEAD: usize = 40;

/// The left operand: element (i, k) is `data[i·row + k·step]`.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    pub data: &'a [f32],
    pub row: usize,
    pub step: usize,
}

/// The left operand in groups of `S::ROWS` rows: element (i, k) is `data[i/ROWS·group + k·LANES + i%ROWS]`.
#[derive(Clone, Copy)]
pub struct Groups<'a> {
    pub data: &'a [f32],
    pub group: usize,
}

/// The right operand: row k of panel p starts at `data[p·panel + k·step]`.
#[derive(Clone, Copy)]
pub struct Right<'a> {
    pub data: &'a [f32],
    pub panel: usize,
    pub step: usize,
}

/// The result: row i starts at `data[i·row]`.
pub struct Out<'a> {
    pub data: &'a mut [f32],
    pub row: usize,
}

/// Where a finished product goes instead: rows in memory that the holder alone writes. They may hold nothing yet.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    ptr: *mut f32,
    row: isize,
    size: (usize, usize),
    end: End<'a>,
    array: PhantomData<&'a mut f32>,
}

impl<'a> Place<'a> {
    /// `size` rows and columns, the rows contiguous and `row` values apart.
    ///
    /// # Safety
    /// All of them lie in an array that is borrowed for 'a, and no one else accesses them meanwhile. They hold values if
    /// `end` is [`End::Old`].
    pub unsafe fn new(ptr: *mut f32, row: isize, size: (usize, usize), end: End<'a>) -> Self {
        Place { ptr, row, size, end, array: PhantomData }
    }
}

/// What becomes of a product.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// It takes the place of what was there.
    Set,
    /// As many times the old content are added.
    Old(f32),
    /// This row is added to each.
    Bias(&'a [f32]),
}

/// What becomes of the result's old content.
#[derive(Clone, Copy, PartialEq)]
pub enum Store {
    /// It is overwritten.
    Set,
    /// The product is added to it.
    Add,
    /// The sums go on from it, term by term: the same to the bit as one product of all terms so far.
    Continue,
}

/// C\[m, vectors·LANES\] ⟵ (C +) A\[m, k\] · B\[k, vectors·LANES\]
#[inline(always)]
pub fn gemm<S: Simd>(simd: S, (m, vectors, k): (usize, usize, usize), a: Left, b: Right, c: Out, store: Store) {
    if m == 0 || vectors == 0 {
        return;
    }
    if k == 0 {
        if store == Store::Set {
            (0..m).for_each(|i| c.data[i * c.row..][..vectors * S::LANES].fill(0.0));
        }
        return;
    }
    let last = k - 1;
    let panels = vectors.div_ceil(PANEL);
    let tail = vectors - (panels - 1) * PANEL;
    assert!((m - 1) * a.row + last * a.step < a.data.len());
    assert!((panels - 1) * b.panel + last * b.step + tail * S::LANES <= b.data.len());
    assert!(panels == 1 || (panels - 2) * b.panel + last * b.step + PANEL * S::LANES <= b.data.len());
    assert!((m - 1) * c.row + vectors * S::LANES <= c.data.len());

    for p in 0..panels {
        let width = PANEL.min(vectors - p * PANEL);
        let mut i = 0;
        while i < m {
            let rows = (m - i).min(S::ROWS);
            // SAFETY: the asserts above bound the last element that any row and panel reads or writes; all strides
            // are unsigned, so no earlier one lies outside.
            unsafe {
                let (a0, b0) = (a.data.as_ptr().add(i * a.row), b.data.as_ptr().add(p * b.panel));
                let c0 = c.data.as_mut_ptr().add(i * c.row + p * PANEL * S::LANES);
                let t = Tile {
                    k,
                    a: a0,
                    a_row: a.row,
                    a_step: a.step,
                    b: b0,
                    b_step: b.step,
                    c: c0,
                    c_row: c.row,
                    ahead: AHEAD,
                    a_ahead: 0,
                };
                match width {
                    2 => t.rows::<S, 2>(simd, rows, store, None),
                    _ => t.rows::<S, 1>(simd, rows, store, None),
                }
            }
            i += rows;
        }
    }
}

/// C = A·B with a left operand in the order in which it is taken, for k > 0: A comes from L2, the panel of B that is in use
/// lies in L1. If there is a `place`, the result goes there and not to C. Meanwhile the values `ahead` are asked for, which
/// are needed next.
#[inline(always)]
pub fn gemm_groups<S: Simd>(
    simd: S,
    (m, vectors, k): (usize, usize, usize),
    (a, ahead): (Groups, &[f32]),
    b: Right,
    c: Out,
    place: Option<Place>,
) {
    let (groups, panels) = (m.div_ceil(S::ROWS), vectors.div_ceil(PANEL));
    let tail = vectors - (panels - 1) * PANEL;
    assert!(m > 0 && vectors > 0 && k > 0);
    assert!((groups - 1) * a.group + k * S::LANES <= a.data.len());
    assert!((panels - 1) * b.panel + (k - 1) * b.step + tail * S::LANES <= b.data.len());
    assert!(panels == 1 || (panels - 2) * b.panel + (k - 1) * b.step + PANEL * S::LANES <= b.data.len());
    assert!((m - 1) * c.row + vectors * S::LANES <= c.data.len());
    if let Some(place) = &place {
        assert!(m <= place.size.0 && vectors * S::LANES <= place.size.1);
        assert!(!matches!(place.end, End::Bias(bias) if bias.len() < vectors * S::LANES));
    }
    let mut ahead = ahead.chunks(ahead.len().div_ceil(groups * panels).next_multiple_of(LINE).max(1));
    for p in 0..panels {
        let width = PANEL.min(vectors - p * PANEL);
        for group in 0..groups {
            let rows = (m - group * S::ROWS).min(S::ROWS);
            for line in ahead.next().unwrap_or_default().chunks(LINE) {
                simd.prefetch_l2(line.as_ptr());
            }
            // SAFETY: the asserts above bound the last element that any group and panel reads or writes; all strides
            // are unsigned, so no earlier one lies outside.
            unsafe {
                let (a, b) = (a.data.as_ptr().add(group * a.group), b.data.as_ptr().add(p * b.panel));
                let c0 = c.data.as_mut_ptr().add(group * S::ROWS * c.row + p * PANEL * S::LANES);
                let b_step = PANEL * S::LANES;
                let last = place.map(|place| {
                    let first = (group * S::ROWS) as isize * place.row;
                    let columns = p * PANEL * S::LANES;
                    let end = match place.end {
                        End::Bias(bias) => End::Bias(&bias[columns..]),
                        end => end,
                    };
                    Place { ptr: place.ptr.offset(first).add(columns), end, ..place }
                });
                let t = Tile {
                    k,
                    a,
                    a_row: 1,
                    a_step: S::LANES,
                    b,
                    b_step,
                    c: c0,
                    c_row: c.row,
                    ahead: 0,
                    a_ahead: A_AHEAD,
                };
                match width {
                    2 => t.rows::<S, 2>(simd, rows, Store::Set, last),
                    _ => t.rows::<S, 1>(simd, rows, Store::Set, last),
                }
            }
        }
    }
}

/// C\[m, ..\] ⟵ C + A\[m, k\]·B\[k, ..\] for a few rows, with a B that is read as it lies, and widened on the way: its rows are
/// read four vectors in one go, as memory likes it. What is left of the last vector of a row goes value by value.
#[inline(always)]
pub fn gemm_in_place<S: Simd, E: Element>(simd: S, m: usize, a: Left, b: Strided<E>, c: Out) {
    /// Vectors of C in a row of the register tile.
    const WIDE: usize = 4;
    let (k, columns) = (b.rows(), b.cols());
    if m == 0 || k == 0 || columns == 0 {
        return;
    }
    assert!((m - 1) * a.row + (k - 1) * a.step < a.data.len());
    assert!((m - 1) * c.row + columns <= c.data.len());
    let whole = columns - columns % S::LANES;
    // As many rows at a time as leave registers for the rest.
    let most = (S::ROWS / 3).max(1);
    for i in (0..m).step_by(most) {
        let rows = (m - i).min(most);
        let mut v = 0;
        while v < whole {
            // SAFETY: the asserts above bound what these rows read of A and of C; rows of B have `columns` values.
            unsafe {
                let t = Tile {
                    k,
                    a: a.data.as_ptr().add(i * a.row),
                    a_row: a.row,
                    a_step: a.step,
                    b: b.as_ptr().add(v),
                    b_step: b.stride(),
                    c: c.data.as_mut_ptr().add(i * c.row + v),
                    c_row: c.row,
                    // Only the first rows find B in memory: the others find it where these have put it.
                    ahead: if i == 0 { AHEAD_IN_MEMORY } else { 0 },
                    a_ahead: 0,
                };
                if whole - v >= WIDE * S::LANES {
                    t.few_rows::<S, WIDE>(simd, rows);
                    v += WIDE * S::LANES;
                } else {
                    t.few_rows::<S, 1>(simd, rows);
                    v += S::LANES;
                }
            }
        }
        for r in i..i + rows {
            for j in whole..columns {
                let sum = &mut c.data[r * c.row + j];
                (0..k).for_each(|p| *sum += a.data[r * a.row + p * a.step] * b.row(p)[j].widen());
            }
        }
    }
}

struct Tile<E> {
    k: usize,
    a: *const f32,
    a_row: usize,
    a_step: usize,
    b: *const E,
    b_step: usize,
    c: *mut f32,
    c_row: usize,
    /// How many rows of B ahead to ask for.
    ahead: usize,
    /// How many steps of A ahead to ask for.
    a_ahead: usize,
}

impl<E: Element> Tile<E> {
    /// # Safety
    /// As for `run`, with `rows` rows; `rows` is at most 4.
    #[inline(always)]
    unsafe fn few_rows<S: Simd, const NV: usize>(self, simd: S, rows: usize) {
        // SAFETY: passed on.
        unsafe {
            match rows {
                4 if S::ROWS >= 12 => self.run::<S, 4, NV>(simd, Store::Continue, None),
                3 if S::ROWS >= 9 => self.run::<S, 3, NV>(simd, Store::Continue, None),
                2 if S::ROWS >= 6 => self.run::<S, 2, NV>(simd, Store::Continue, None),
                _ => self.run::<S, 1, NV>(simd, Store::Continue, None),
            }
        }
    }

    /// # Safety
    /// As for `run`, with `rows` rows; `rows` is at most `S::ROWS`.
    #[inline(always)]
    unsafe fn rows<S: Simd, const NV: usize>(self, simd: S, rows: usize, store: Store, place: Option<Place>) {
        // SAFETY: passed on.
        unsafe {
            match rows {
                12 if S::ROWS >= 12 => self.run::<S, 12, NV>(simd, store, place),
                11 if S::ROWS >= 11 => self.run::<S, 11, NV>(simd, store, place),
                10 if S::ROWS >= 10 => self.run::<S, 10, NV>(simd, store, place),
                9 if S::ROWS >= 9 => self.run::<S, 9, NV>(simd, store, place),
                8 if S::ROWS >= 8 => self.run::<S, 8, NV>(simd, store, place),
                7 if S::ROWS >= 7 => self.run::<S, 7, NV>(simd, store, place),
                6 if S::ROWS >= 6 => self.run::<S, 6, NV>(simd, store, place),
                5 if S::ROWS >= 5 => self.run::<S, 5, NV>(simd, store, place),
                4 => self.run::<S, 4, NV>(simd, store, place),
                3 => self.run::<S, 3, NV>(simd, store, place),
                2 => self.run::<S, 2, NV>(simd, store, place),
                _ => self.run::<S, 1, NV>(simd, store, place),
            }
        }
    }

    /// # Safety
    /// A must be readable at i·a_row + k·a_step, B at k·b_step for NV vectors, C readable and writable at i·c_row for
    /// NV vectors, for all i < M and all k < self.k; a place likewise, and its bias for NV vectors.
    #[inline(always)]
    unsafe fn run<S: Simd, const M: usize, const NV: usize>(self, simd: S, store: Store, place: Option<Place>) {
        // SAFETY: the caller vouches for every address formed here.
        unsafe {
            let mut acc = [[simd.splat(0.0); NV]; M];
            if store == Store::Continue {
                for i in 0..M {
                    for v in 0..NV {
                        acc[i][v] = simd.load(self.c.add(i * self.c_row + v * S::LANES));
                    }
                }
            }
            // Four steps at a time: a short loop's exit is foreseen by the branch predictor, a long one's is not.
            let (mut a, mut b) = (self.a, self.b);
            let fours = self.k / 4;
            for n in 0..fours {
                // Where the result goes comes from far away: it is asked for one row at a time, not long before.
                if let (Some(place), row) = (place, (n + 2 * M).wrapping_sub(fours))
                    && row < M
                {
                    for v in 0..NV {
                        simd.prefetch(place.ptr.wrapping_offset(row as isize * place.row).wrapping_add(v * S::LANES));
                    }
                }
                for _ in 0..4 {
                    self.step(simd, a, b, &mut acc);
                    (a, b) = (a.wrapping_add(self.a_step), b.wrapping_add(self.b_step));
                }
            }
            for _ in 0..self.k % 4 {
                self.step(simd, a, b, &mut acc);
                (a, b) = (a.wrapping_add(self.a_step), b.wrapping_add(self.b_step));
            }
            let Some(place) = place else {
                for i in 0..M {
                    for v in 0..NV {
                        let c = self.c.add(i * self.c_row + v * S::LANES);
                        // Added at the end, not at the start: a sum of short sums is rounded less than one long sum.
                        let sum = if store == Store::Add { simd.add(simd.load(c), acc[i][v]) } else { acc[i][v] };
                        simd.store(c, sum);
                    }
                }
                return;
            };
            let at = |i: usize, v: usize| place.ptr.offset(i as isize * place.row).add(v * S::LANES);
            match place.end {
                End::Set => {
                    for i in 0..M {
                        for v in 0..NV {
                            simd.store(at(i, v), acc[i][v]);
                        }
                    }
                }
                End::Old(beta) => {
                    for i in 0..M {
                        for v in 0..NV {
                            let old = simd.mul(simd.splat(beta), simd.load(at(i, v)));
                            simd.store(at(i, v), simd.add(acc[i][v], old));
                        }
                    }
                }
                End::Bias(bias) => {
                    for v in 0..NV {
                        let bias = simd.load(bias.as_ptr().add(v * S::LANES));
                        for i in 0..M {
                            simd.store(at(i, v), simd.add(acc[i][v], bias));
                        }
                    }
                }
            }
        }
    }

    /// One k.
    ///
    /// # Safety
    /// As for `run`, with `a` and `b` at that k.
    #[inline(always)]
    unsafe fn step<S: Simd, const M: usize, const NV: usize>(
        &self,
        simd: S,
        a: *const f32,
        b: *const E,
        acc: &mut [[S::V; NV]; M],
    ) {
        // SAFETY: the caller vouches for every address formed here.
        unsafe {
            let mut row = [simd.splat(0.0); NV];
            for v in 0..NV {
                row[v] = E::load(simd, b.add(v * S::LANES));
                if self.ahead > 0 {
                    simd.prefetch(b.wrapping_add(self.ahead * self.b_step + v * S::LANES));
                }
            }
            if self.a_ahead > 0 {
                simd.prefetch(a.wrapping_add(self.a_ahead * self.a_step));
            }
            for i in 0..M {
                let x = simd.splat(*a.add(i * self.a_row));
                for v in 0..NV {
                    acc[i][v] = simd.fma(x, row[v], acc[i][v]);
                }
            }
        }
    }
}
