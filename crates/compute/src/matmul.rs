//! The matrix product of the layers around attention.
//!
//! Large products copy A and B into the order in which the registers take them, `kernel::product`. Products of
//! a few rows, as in generating text, are bound by reading the matrix from memory, which would make that a waste: they have
//! a kernel of their own, `kernel::thin`.

#![allow(clippy::needless_pass_by_value, reason = "views are references already")]

use std::mem::MaybeUninit;
use std::ops::Range;

use ndarray::{Array2, ArrayBase, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Ix2, RawArrayViewMut, RawData, s};
use rayon::prelude::*;

use crate::error::expect;
use crate::isa::{Isa, Supported};
use crate::kernel::dispatch;
use crate::kernel::element::Element;
use crate::kernel::gemm::{End, MAX_ROWS};
use crate::kernel::matrix::{Lying, Rows};
use crate::kernel::product::{self, Grouped, Panels, Product, STRIP, Target};
use crate::kernel::thin::{self, Thin};
use crate::operand::with_view;
use crate::scratch::{PRODUCTS, Parts, Scratch, Slot};
use crate::tasks::{for_each_after, for_each_task};
use crate::threads::{Threads, in_pool};
use crate::vectorise::vectorise;
use crate::{Error, Operand};

/// Rows of A up to which B is read as it lies. With more, packing it pays for itself.
const THIN: usize = 32;
/// Terms of a sum from which adding up the lanes of a vector at its end does not matter; for more than a few rows.
const LONG: usize = 256;
/// Columns of a task of a thin product come in multiples of these: whole vectors of every instruction set, so that the
/// same columns fall into the last, partial vector however the columns are shared out.
const COLUMNS: usize = 64;
/// Columns of a task at least, if there are enough for all threads, where the rows of B are contiguous: shorter pieces of a
/// row are read from memory at two thirds of the speed.
const PIECE: usize = 512;
/// Values of the result up to which a matrix is read in stretches of whole rows: the sums of each stretch stay small.
const STREAMED: usize = 1 << 16;
/// Values of such a stretch: half a MiB.
const STRETCH: usize = 1 << 17;
/// Tasks per thread of a thin product: a thread that is held up leaves the rest to the others.
const TASKS: usize = 4;
/// Values from which several threads write a bias into the rows of a product.
const SHARED_BIAS: usize = 1 << 16;

/// C ⟵ alpha·A·B + beta·C for A \[m, k\], B \[k, n\] and C \[m, n\].
///
/// All may have any strides, so a transposed operand is just `.t()`. With beta = 0 the old content of C does not
/// matter, not even a NaN. Results are the same to the bit for any number of threads.
///
/// ```
/// use foveal_compute::{Threads, matmul};
/// use ndarray::{Array2, array};
///
/// let x = array![[1., 2., 3.]]; // one token of dimension 3
/// let weight = array![[1., 0., 1.], [0., 2., 0.]]; // [out, in], as PyTorch's Linear stores it
/// let mut y = Array2::zeros((1, 2));
/// matmul(1.0, &x, weight.t(), 0.0, &mut y, Threads::Rayon)?;
/// assert_eq!(y, array![[4., 4.]]);
/// # Ok::<(), foveal_compute::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit; C is then unchanged.
pub fn matmul<'a, 'b, 'c>(
    alpha: f32,
    a: impl Into<ArrayView2<'a, f32>>,
    b: impl Into<ArrayView2<'b, f32>>,
    beta: f32,
    c: impl Into<ArrayViewMut2<'c, f32>>,
    threads: Threads,
) -> Result<(), Error> {
    let (a, b, c) = (a.into(), b.into(), c.into());
    let ((m, k), n) = (a.dim(), b.dim().1);
    expect("the right operand of the product", &[k, n], b.shape())?;
    expect("the result of the product", &[m, n], c.shape())?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    // Cᵀ = Bᵀ·Aᵀ: only the smaller side needs to be looked at.
    if m <= n {
        product(alpha, a, b, beta, c, threads)
    } else {
        product(alpha, b.reversed_axes(), a.reversed_axes(), beta, c.reversed_axes(), threads)
    }
}

/// A·B + b for A \[m, k\], B \[k, n\] and b \[n\], which is added to every row: a linear layer. The result is memory that
/// nothing was written to before, so this is faster than [`matmul`] onto zeros. B may be stored in 16 bits, see [`Operand`].
///
/// ```
/// use foveal_compute::{Threads, affine};
/// use ndarray::array;
///
/// let (x, weight, bias) = (array![[1., 2., 3.]], array![[1f32, 0., 1.], [0., 2., 0.]], array![10., 20.]);
/// assert_eq!(affine(&x, weight.t(), Some(bias.view()), Threads::Rayon)?, array![[14., 24.]]);
/// # Ok::<(), foveal_compute::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit.
pub fn affine<'a, 'b>(
    a: impl Into<ArrayView2<'a, f32>>,
    b: impl Into<Operand<'b>>,
    bias: Option<ArrayView1<f32>>,
    threads: Threads,
) -> Result<Array2<f32>, Error> {
    affine_side_by_side(a, &[(b.into(), bias)], threads)
}

/// \[A·B₁ + b₁ | A·B₂ + b₂ | …\], side by side: linear layers of the same input, such as those that make queries, keys and
/// values. What is made ready of A is made ready once for all of them.
///
/// ```
/// use foveal_compute::{Threads, affine_side_by_side};
/// use ndarray::array;
///
/// let (x, q, k) = (array![[1., 2.]], array![[1f32, 0.], [0., 1.]], array![[3f32], [4.]]);
/// let bias = array![10., 20.];
/// let layers = [((&q).into(), Some(bias.view())), ((&k).into(), None)];
/// assert_eq!(affine_side_by_side(&x, &layers, Threads::Rayon)?, array![[11., 22., 11.]]);
/// # Ok::<(), foveal_compute::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit.
pub fn affine_side_by_side<'a>(
    a: impl Into<ArrayView2<'a, f32>>,
    layers: &[(Operand, Option<ArrayView1<f32>>)],
    threads: Threads,
) -> Result<Array2<f32>, Error> {
    let a = a.into();
    let (m, k) = a.dim();
    for (b, bias) in layers {
        let (rows, columns) = b.dim();
        expect("the right operand of the product", &[k, columns], &[rows, columns])?;
        bias.map_or(Ok(()), |bias| expect("the bias", &[columns], bias.shape()))?;
    }
    let n = layers.iter().map(|(b, _)| b.dim().1).sum();
    let some_bias = layers.iter().any(|(_, bias)| bias.is_some());
    let mut bias = vec![0.0; if some_bias { n } else { 0 }];
    let mut first = 0;
    for (b, of_layer) in layers {
        if let Some(of_layer) = of_layer {
            of_layer.assign_to(&mut bias[first..first + of_layer.len()]);
        }
        first += b.dim().1;
    }
    if m.min(n) <= THIN {
        let mut c = if some_bias { repeated(&bias, m) } else { Array2::zeros((m, n)) };
        let mut first = 0;
        for (b, _) in layers {
            let columns = b.dim().1;
            let (beta, c) = (f32::from(some_bias), c.slice_mut(s![.., first..first + columns]));
            first += columns;
            match *b {
                Operand::F32(b) => matmul(1.0, a, b, beta, c, threads)?,
                // Fewer columns than rows take the place of A; so few are soon widened.
                narrow if m == 0 || m > columns => matmul(1.0, a, &narrow.widened(), beta, c, threads)?,
                narrow => with_view!(narrow, b => product(1.0, a, b, beta, c, threads))?,
            }
        }
        return Ok(c);
    }
    let end = if some_bias { End::Bias(&bias) } else { End::Set };
    let side_by_side: Vec<Operand> = layers.iter().map(|(b, _)| *b).collect();
    let mut c = Array2::<f32>::uninit((m, n));
    // SAFETY: C has just been made, the shapes have been checked, and every value of it is written.
    unsafe {
        large_product(1.0, a, &side_by_side, end, c.raw_view_mut().cast(), threads)?;
        Ok(c.assume_init())
    }
}

/// The same row m times.
fn repeated(row: &[f32], m: usize) -> Array2<f32> {
    let n = row.len();
    let mut rows = Array2::<f32>::uninit((m, n));
    let values = rows.as_slice_mut().expect("made in standard layout");
    let copy = |rows: &mut [MaybeUninit<f32>]| {
        for target in rows.chunks_exact_mut(n.max(1)) {
            target.iter_mut().zip(row).for_each(|(target, value)| _ = target.write(*value));
        }
    };
    if values.len() < SHARED_BIAS {
        copy(values);
    } else {
        in_pool(|| values.par_chunks_mut((SHARED_BIAS / 4).next_multiple_of(n)).for_each(copy));
    }
    // SAFETY: every one of m rows of n values has been written.
    unsafe { rows.assume_init() }
}

/// [`matmul`] for m ≤ n, with shapes that fit.
fn product<'b, E: Element>(
    alpha: f32,
    a: ArrayView2<f32>,
    b: ArrayView2<'b, E>,
    beta: f32,
    mut c: ArrayViewMut2<f32>,
    threads: Threads,
) -> Result<(), Error>
where
    Operand<'b>: From<ArrayView2<'b, E>>,
{
    let (m, k) = a.dim();
    let few = m <= thin::GROUP && k > 0;
    if (few || (m <= THIN && k >= LONG))
        && let Some(b) = Lying::of(b)
    {
        let streamed = few && m * c.dim().1 <= STREAMED && matches!(b, Lying::Rows(_));
        let thin = if streamed { streamed_product } else { thin_product };
        return thin(alpha, a, b, beta, c, threads);
    }
    let end = if beta == 0.0 { End::Set } else { End::Old(beta) };
    // SAFETY: C is borrowed exclusively, and the shapes have been checked.
    unsafe { large_product(alpha, a, &[b.into()], end, c.raw_view_mut(), threads) }
}

/// A few rows against a matrix whose rows are contiguous: stretches of whole rows are shared out over the threads, as memory
/// is fastest read from one end to the other, and their sums added up in order.
fn streamed_product<E: Element>(
    alpha: f32,
    a: ArrayView2<f32>,
    b: Lying<E>,
    beta: f32,
    c: ArrayViewMut2<f32>,
    threads: Threads,
) -> Result<(), Error> {
    let isa = Isa::resolve(None)?;
    let ((m, k), n) = (a.dim(), c.dim().1);
    let a = a.as_standard_layout();
    let a = a.as_slice().expect("in standard layout");
    let threads = threads.count_reading(k as f64 * n as f64);
    // They follow from the shape alone, and so do the sums.
    let stretch = (STRETCH / n).next_multiple_of(thin::DEPTH).max(thin::DEPTH);
    let stretches: Vec<Range<usize>> = blocks(k, stretch).collect();
    PRODUCTS.lend(|scratch| {
        let [sums] = scratch.shared.cut([stretches.len() * m * n]);
        let parts = Parts::new(&mut *sums, m * n);
        let slots = &mut vec![(); threads.min(stretches.len())];
        for_each_task(slots, stretches.len(), |(), task| {
            // SAFETY: this part is written by this task alone, and not read before all are done.
            let out = unsafe { parts.write(task) };
            dispatch(isa, Thin { a, k, b, terms: stretches[task].clone(), columns: 0..n, out });
        });
        let (sum, others) = sums.split_at_mut(m * n);
        for other in others.chunks_exact(m * n) {
            vectorise(
                #[inline(always)]
                || sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other),
            );
        }
        let c = Rows::new(c.insert_axis(Axis(0)).insert_axis(Axis(0)));
        for (i, row) in sum.chunks_exact(n).enumerate() {
            // SAFETY: no one else writes here.
            unsafe { c.update((0, 0, i), 0, row, |old, new| scaled(alpha, new, beta, old)) };
        }
    });
    Ok(())
}

/// alpha·new + beta·old. Not 0·old, which a NaN would survive.
#[inline(always)]
fn scaled(alpha: f32, new: f32, beta: f32, old: f32) -> f32 {
    if beta == 0.0 { alpha * new } else { alpha * new + beta * old }
}

/// A few rows against a matrix that is read as it lies; columns shared out over the threads.
fn thin_product<E: Element>(
    alpha: f32,
    a: ArrayView2<f32>,
    b: Lying<E>,
    beta: f32,
    c: ArrayViewMut2<f32>,
    threads: Threads,
) -> Result<(), Error> {
    let isa = Isa::resolve(None)?;
    let ((m, k), n) = (a.dim(), c.dim().1);
    let a = a.as_standard_layout();
    let a = a.as_slice().expect("in standard layout");
    let threads = threads.count_reading(k as f64 * n as f64);
    let (by_thread, by_task) = (n.div_ceil(threads), n.div_ceil(TASKS * threads));
    let width = match b {
        _ if threads == 1 => n,
        Lying::Rows(_) => by_task.max(PIECE.min(by_thread)),
        Lying::Columns(_) => by_task,
    };
    let width = width.next_multiple_of(COLUMNS);
    let tasks = n.div_ceil(width);
    let mut slots: Vec<Vec<f32>> = vec![vec![0.0; m * width]; threads.min(tasks)];
    let c = Rows::new(c.insert_axis(Axis(0)).insert_axis(Axis(0)));
    for_each_task(&mut slots, tasks, |slot, task| {
        let columns = task * width..((task + 1) * width).min(n);
        let out = &mut slot[..m * columns.len()];
        dispatch(isa, Thin { a, k, b, terms: 0..k, columns: columns.clone(), out: &mut *out });
        for (i, row) in out.chunks_exact(columns.len()).enumerate() {
            // SAFETY: these columns belong to this task alone.
            unsafe {
                c.update((0, 0, i), columns.start, row, |old, new| scaled(alpha, new, beta, old));
            }
        }
    });
    Ok(())
}

/// alpha·A·\[B₁ | B₂ | …\] for large A and B, and what becomes of it.
///
/// # Safety
/// The shapes fit, C is exclusively the caller's, and it holds values if `end` is [`End::Old`].
unsafe fn large_product(
    alpha: f32,
    a: ArrayView2<f32>,
    b: &[Operand],
    end: End,
    c: RawArrayViewMut<f32, Ix2>,
    threads: Threads,
) -> Result<(), Error> {
    // Rows of C are written in one go: it should lie in rows. (Only C of `matmul` may lie otherwise, which has one B of f32 and
    // no bias.)
    if let [Operand::F32(b)] = b
        && stride(&c, 1).abs() > stride(&c, 0).abs()
    {
        // SAFETY: passed on.
        return unsafe {
            large_product(alpha, b.reversed_axes(), &[a.reversed_axes().into()], end, c.reversed_axes(), threads)
        };
    }
    let ((m, k), n) = (a.dim(), c.dim().1);
    let threads = threads.count(2.0 * m as f64 * n as f64 * k as f64);
    // SAFETY: passed on.
    let (isa, target) = (Isa::resolve(None)?, unsafe { Target::new(c) });
    let call = Large { alpha, a, b, end, target, isa, threads };
    PRODUCTS.lend(|scratch| if n <= product::COLUMNS { call.by_rows(scratch) } else { call.by_columns(scratch) });
    Ok(())
}

/// A product of large matrices.
struct Large<'a, 'b> {
    alpha: f32,
    a: ArrayView2<'a, f32>,
    /// Side by side.
    b: &'a [Operand<'b>],
    end: End<'a>,
    target: Target<'a>,
    isa: Supported,
    threads: usize,
}

/// Some columns of a product.
struct Piece {
    /// Which B they come from, and which of its columns they are.
    b: usize,
    columns: Range<usize>,
    /// The first of them in the result.
    at: usize,
}

impl Large<'_, '_> {
    /// The blocks of k, and what becomes of the product of each. Without terms, sums are 0.
    fn depths(&self) -> Vec<(Range<usize>, End<'_>)> {
        let k = self.a.dim().1;
        let mut depths: Vec<Range<usize>> = blocks(k, product::depth(k)).collect();
        if depths.is_empty() {
            depths.push(0..0);
        }
        depths
            .into_iter()
            .map(|depth| (depth.clone(), if depth.start == 0 { self.end } else { End::Old(1.0) }))
            .collect()
    }

    /// Copies one of the strips of some rows of A.
    fn copy(&self, rows: &Range<usize>, strip: usize, depth: &Range<usize>, out: &mut [f32]) {
        let first = rows.start + strip * STRIP;
        let a = self.a.slice(s![first..(first + STRIP).min(rows.end), depth.clone()]);
        dispatch(self.isa, Grouped { a, out });
    }

    /// The columns of all B, each cut into pieces of this width: which B, its columns, and where they belong.
    fn pieces(&self, width: usize) -> Vec<Piece> {
        let (mut pieces, mut first) = (Vec::new(), 0);
        for (b, matrix) in self.b.iter().enumerate() {
            let n = matrix.dim().1;
            pieces.extend(blocks(n, width).map(|columns| Piece { b, at: first + columns.start, columns }));
            first += n;
        }
        pieces
    }

    /// Copies the columns of a piece.
    fn copy_piece(&self, piece: &Piece, depth: &Range<usize>, out: &mut [f32]) {
        let alpha = self.alpha;
        with_view!(self.b[piece.b], b => {
            let b = b.slice(s![depth.clone(), piece.columns.clone()]);
            dispatch(self.isa, Panels { alpha, b, out });
        });
    }

    fn multiply(
        &self,
        a: &[f32],
        b: &[f32],
        (rows, piece): (Range<usize>, &Piece),
        (depth, end): (usize, End),
        out: &mut [f32],
    ) {
        let (target, columns) = (self.target, piece.at..piece.at + piece.columns.len());
        dispatch(self.isa, Product { a, b, depth, rows, columns, target, end, out });
    }

    /// For few columns: each thread has rows of its own, and copies B for itself, once; of A, a strip at a time.
    fn by_rows(&self, scratch: &mut Scratch) {
        let m = self.a.dim().0;
        let pieces = self.pieces(product::COLUMNS);
        let height = m.div_ceil(self.threads).next_multiple_of(MAX_ROWS);
        let (depths, tasks) = (self.depths(), m.div_ceil(height));
        let longest = depths.iter().map(|(depth, _)| depth.len()).max().unwrap_or(0);
        let of_pieces = pieces.iter().map(|piece| product::memory(longest, piece.columns.len()));
        let (of_b, of_c) = of_pieces.fold((0, 0), |(of_b, of_c), piece| (of_b + piece[0], of_c.max(piece[1])));
        let parts = [Grouped::strip(longest), of_b, of_c];
        for_each_task(scratch.slots(self.threads.min(tasks), &parts).0, tasks, |slot, task| {
            let rows = task * height..((task + 1) * height).min(m);
            let [groups, all_panels, out] = slot.memory.cut(parts);
            for (depth, end) in &depths {
                let mut rest = &mut *all_panels;
                let mut panels = Vec::with_capacity(pieces.len());
                for piece in &pieces {
                    let (own, after) = rest.split_at_mut(product::memory(depth.len(), piece.columns.len())[0]);
                    self.copy_piece(piece, depth, own);
                    panels.push(&*own);
                    rest = after;
                }
                for strip in 0..rows.len().div_ceil(STRIP) {
                    self.copy(&rows, strip, depth, groups);
                    let first = rows.start + strip * STRIP;
                    let rows = first..(first + STRIP).min(rows.end);
                    for (piece, panels) in pieces.iter().zip(&panels) {
                        self.multiply(groups, panels, (rows.clone(), piece), (depth.len(), *end), out);
                    }
                }
            }
        });
    }

    /// For many columns: each thread has columns of its own, and the copy of A is for all of them.
    fn by_columns(&self, scratch: &mut Scratch) {
        let (m, n) = (self.a.dim().0, self.b.iter().map(|b| b.dim().1).sum::<usize>());
        // As many tasks as there are threads, or a multiple of it; of the same width but for the last.
        let rounds = n.div_ceil(self.threads * product::COLUMNS);
        let width = n.div_ceil(self.threads * rounds).next_multiple_of(COLUMNS);
        let pieces = self.pieces(width);
        for (depth, end) in self.depths() {
            let parts = product::memory(depth.len(), width.min(n));
            let (slots, shared) = scratch.slots(self.threads, &parts);
            for rows in blocks(m, product::HEIGHT) {
                let (strips, of_strip) = (rows.len().div_ceil(STRIP), Grouped::strip(depth.len()));
                let [groups] = shared.cut([strips * of_strip]);
                let groups = Parts::new(groups, of_strip);
                let copy = |strip: usize| {
                    // SAFETY: this strip is copied by this call alone, and not read before all have been.
                    self.copy(&rows, strip, &depth, unsafe { groups.write(strip) });
                };
                let multiply = |slot: &mut Slot, task: usize| {
                    // SAFETY: all strips have been copied.
                    let groups = unsafe { groups.read() };
                    let ([panels, out], piece) = (slot.memory.cut(parts), &pieces[task]);
                    self.copy_piece(piece, &depth, panels);
                    self.multiply(groups, panels, (rows.clone(), piece), (depth.len(), end), out);
                };
                for_each_after(slots, strips, copy, pieces.len(), multiply);
            }
        }
    }
}

/// 0..end in blocks.
fn blocks(end: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(size).map(move |first| first..(first + size).min(end))
}

/// The stride of an axis. That of an axis with at most one entry carries no meaning; 1 keeps the fast paths open.
fn stride<S: RawData>(x: &ArrayBase<S, Ix2>, axis: usize) -> isize {
    if x.len_of(Axis(axis)) > 1 { x.strides()[axis] } else { 1 }
}
