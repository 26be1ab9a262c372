//! The matrix product of the layers around attention.
//!
//! Large products go to the `gemm` crate, which reaches the peak of the machine. It cuts the sums over k where the shapes
//! say, and shares only rows and columns of C out to the threads; so results do not depend on their number. Products of
//! a few rows, as in generating text, are bound by reading the matrix from memory, which `gemm` would do on one thread or
//! copy first: they have a kernel of their own, [`crate::kernel::thin`].

#![allow(clippy::needless_pass_by_value, reason = "views are references already")]

use std::mem::MaybeUninit;

use gemm_common::Parallelism;
use ndarray::{Array2, ArrayBase, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Ix2, RawArrayViewMut, RawData};
use rayon::prelude::*;

use crate::Error;
use crate::kernel::matrix::{Matrix, Rows};
use crate::kernel::thin::{self, Lying, Thin};
use crate::kernel::{Isa, dispatch};
use crate::shape::expect;
use crate::threads::{Threads, for_each_task};

/// Rows of A up to which B is read as it lies. With more, packing it pays for itself.
const THIN: usize = 32;
/// Terms of a sum from which adding up the lanes of a vector at its end does not matter; for more than a few rows.
const LONG: usize = 256;
/// What reading one value of B from memory takes, as floating-point operations in the same time.
const FLOPS_PER_VALUE: f64 = 50.0;
/// Columns of a task of a thin product come in multiples of these: whole vectors of every instruction set, so that the
/// same columns fall into the last, partial vector however the columns are shared out.
const COLUMNS: usize = 64;
/// Columns of a task at least, if there are enough for all threads, where the rows of B are contiguous: shorter pieces of a
/// row are read from memory at two thirds of the speed.
const PIECE: usize = 512;
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
/// use foveal::{Threads, matmul};
/// use ndarray::{Array2, array};
///
/// let x = array![[1., 2., 3.]]; // one token of dimension 3
/// let weight = array![[1., 0., 1.], [0., 2., 0.]]; // [out, in], as PyTorch's Linear stores it
/// let mut y = Array2::zeros((1, 2));
/// matmul(1.0, &x, weight.t(), 0.0, &mut y, Threads::Rayon)?;
/// assert_eq!(y, array![[4., 4.]]);
/// # Ok::<(), foveal::Error>(())
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
/// nothing was written to before, so this is faster than [`matmul`] onto zeros.
///
/// ```
/// use foveal::{Threads, affine};
/// use ndarray::array;
///
/// let (x, weight, bias) = (array![[1., 2., 3.]], array![[1., 0., 1.], [0., 2., 0.]], array![10., 20.]);
/// assert_eq!(affine(&x, weight.t(), Some(bias.view()), Threads::Rayon)?, array![[14., 24.]]);
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit.
pub fn affine<'a, 'b>(
    a: impl Into<ArrayView2<'a, f32>>,
    b: impl Into<ArrayView2<'b, f32>>,
    bias: Option<ArrayView1<f32>>,
    threads: Threads,
) -> Result<Array2<f32>, Error> {
    let (a, b) = (a.into(), b.into());
    let ((m, k), n) = (a.dim(), b.dim().1);
    expect("the right operand of the product", &[k, n], b.shape())?;
    bias.map_or(Ok(()), |bias| expect("the bias", &[n], bias.shape()))?;
    let beta = if bias.is_some() { 1.0 } else { 0.0 };
    // The product adds to C while it is in registers, so the bias goes there first.
    if bias.is_some() || m.min(n) <= THIN || k == 0 {
        let mut c = bias.map_or_else(|| Array2::zeros((m, n)), |bias| repeated(bias, m));
        matmul(1.0, a, b, beta, &mut c, threads)?;
        return Ok(c);
    }
    let mut c = Array2::<f32>::uninit((m, n));
    // SAFETY: C has just been made, the shapes have been checked, and with beta = 0 every value of it is written.
    Ok(unsafe {
        gemm(1.0, a, b, beta, c.raw_view_mut().cast(), parallelism(threads, m, n, k));
        c.assume_init()
    })
}

/// The same row m times.
fn repeated(row: ArrayView1<f32>, m: usize) -> Array2<f32> {
    let (row, n) = (row.to_vec(), row.len());
    let mut rows = Array2::<f32>::uninit((m, n));
    let values = rows.as_slice_mut().expect("made in standard layout");
    let copy = |rows: &mut [MaybeUninit<f32>]| {
        for target in rows.chunks_exact_mut(n.max(1)) {
            target.iter_mut().zip(&row).for_each(|(target, value)| _ = target.write(*value));
        }
    };
    if values.len() < SHARED_BIAS {
        copy(values);
    } else {
        values.par_chunks_mut((SHARED_BIAS / 4).next_multiple_of(n)).for_each(copy);
    }
    // SAFETY: every one of m rows of n values has been written.
    unsafe { rows.assume_init() }
}

fn parallelism(threads: Threads, m: usize, n: usize, k: usize) -> Parallelism {
    match threads.count(2.0 * m as f64 * n as f64 * k as f64) {
        1 => Parallelism::None,
        count => Parallelism::Rayon(count),
    }
}

/// [`matmul`] for m ≤ n, with shapes that fit.
fn product(
    alpha: f32,
    a: ArrayView2<f32>,
    b: ArrayView2<f32>,
    beta: f32,
    mut c: ArrayViewMut2<f32>,
    threads: Threads,
) -> Result<(), Error> {
    let ((m, k), n) = (a.dim(), b.dim().1);
    let few = m <= thin::GROUP && k > 0;
    if few || (m <= THIN && k >= LONG) {
        let rows = Matrix::new(&b.insert_axis(Axis(0)).insert_axis(Axis(0)), 0, 0);
        let columns = Matrix::new(&b.reversed_axes().insert_axis(Axis(0)).insert_axis(Axis(0)), 0, 0);
        let lying = if rows.row(0).is_some() {
            Some(Lying::Rows(rows))
        } else {
            columns.row(0).is_some().then_some(Lying::Columns(columns))
        };
        if let Some(b) = lying {
            return thin_product(alpha, a, b, beta, c, threads);
        }
    }
    // SAFETY: C is borrowed exclusively, and the shapes have been checked.
    unsafe { gemm(alpha, a, b, beta, c.raw_view_mut(), parallelism(threads, m, n, k)) };
    Ok(())
}

/// A few rows against a matrix that is read as it lies; columns shared out over the threads.
fn thin_product(
    alpha: f32,
    a: ArrayView2<f32>,
    b: Lying,
    beta: f32,
    c: ArrayViewMut2<f32>,
    threads: Threads,
) -> Result<(), Error> {
    let isa = Isa::resolve(None)?;
    let ((m, k), n) = (a.dim(), c.dim().1);
    let a: Vec<f32> = a.iter().copied().collect();
    let threads = threads.count(FLOPS_PER_VALUE * k as f64 * n as f64);
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
        dispatch(isa, Thin { a: &a, k, b, columns: columns.clone(), out: &mut *out });
        for (i, row) in out.chunks_exact(columns.len()).enumerate() {
            // SAFETY: these columns belong to this task alone.
            unsafe {
                c.update((0, 0, i), columns.start, row, |old, new| {
                    // Not 0·old, which a NaN would survive.
                    if beta == 0.0 { alpha * new } else { alpha * new + beta * old }
                });
            }
        }
    });
    Ok(())
}

/// The `gemm` crate.
///
/// # Safety
/// The shapes fit, nothing else uses C meanwhile, and it holds values unless beta is 0.
unsafe fn gemm<'a>(
    alpha: f32,
    mut a: ArrayView2<'a, f32>,
    mut b: ArrayView2<'a, f32>,
    beta: f32,
    mut c: RawArrayViewMut<f32, Ix2>,
    parallelism: Parallelism,
) {
    // It wants C by columns, and no axis of C or k running backwards.
    if stride(&c, 1).abs() < stride(&c, 0).abs() {
        (a, b, c) = (b.reversed_axes(), a.reversed_axes(), c.reversed_axes());
    }
    if stride(&c, 0) < 0 {
        c.invert_axis(Axis(0));
        a.invert_axis(Axis(0));
    }
    if stride(&c, 1) < 0 {
        c.invert_axis(Axis(1));
        b.invert_axis(Axis(1));
    }
    if stride(&a, 1) < 0 {
        a.invert_axis(Axis(1));
        b.invert_axis(Axis(0));
    }
    let ((m, k), n) = (a.dim(), b.dim().1);
    debug_assert!(b.dim() == (k, n) && c.dim() == (m, n));
    let (c_rows, c_columns) = (stride(&c, 0), stride(&c, 1));
    // SAFETY: pointers, sizes and strides are those of the views, whose shapes fit each other; C is ours alone, so nothing
    // that is read overlaps it. In its names, alpha belongs to the old C and beta to the product.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            c.as_mut_ptr(),
            c_columns,
            c_rows,
            beta != 0.0,
            a.as_ptr(),
            stride(&a, 1),
            stride(&a, 0),
            b.as_ptr(),
            stride(&b, 1),
            stride(&b, 0),
            beta,
            alpha,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// The stride of an axis. That of an axis with at most one entry carries no meaning; 1 keeps the fast paths open.
fn stride<S: RawData>(x: &ArrayBase<S, Ix2>, axis: usize) -> isize {
    if x.len_of(Axis(axis)) > 1 { x.strides()[axis] } else { 1 }
}
