//! Loops over rows, on as many threads as are worth it.

use foveal::Threads;
use foveal_compute::Unwritten;
use ndarray::{Array2, ArrayBase, ArrayView, CowArray, Data, DataMut, Dimension};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};

/// Values below which the caller works alone: 10 to 30 µs, some times what it takes to wake a thread.
const WORTH_WAKING: usize = 1 << 15;
/// Values per block: what is loaded stays in the first two caches until the block is done.
pub const BLOCK: usize = 1 << 13;
/// Blocks of a sum over rows at most: the partial sums stay small.
const SUMS: usize = 64;

/// Rows per block for rows of this width.
pub fn block(width: usize) -> usize {
    (BLOCK / width.max(1)).max(1)
}

/// Rows per block where every block makes a partial sum. It follows from the shape alone, and so does the sum.
pub fn sum_block(rows: usize, width: usize) -> usize {
    block(width).max(rows.div_ceil(SUMS)).max(8)
}

/// Does all blocks, which hold `values` numbers together.
pub fn for_each<I: IndexedParallelIterator>(values: usize, blocks: I, work: impl Fn(I::Item) + Send + Sync) {
    blocks.with_min_len(least(values)).for_each(work);
}

/// A new array [N, D], whose blocks of `block` values are written each beside one of these.
pub fn write_new<I: IndexedParallelIterator>(
    dim: (usize, usize),
    block: usize,
    beside: I,
    work: impl Fn(I::Item, &mut Unwritten) + Send + Sync,
) -> Array2<f32> {
    foveal_compute::write_new(dim, block, beside.with_min_len(least(dim.0 * dim.1)), work)
}

/// How many blocks a thread takes at least, where all hold `values` numbers together.
fn least(values: usize) -> usize {
    if values < WORTH_WAKING || Threads::Rayon.available() == 1 { usize::MAX } else { 1 }
}

/// The array in standard layout: itself, unless it has unusual strides.
pub fn standard<'a, D: Dimension>(x: impl Into<ArrayView<'a, f32, D>>) -> CowArray<'a, f32, D> {
    let x = x.into();
    if x.is_standard_layout() { x.into() } else { x.as_standard_layout().into_owned().into() }
}

/// The values of an array in standard layout.
pub fn values<S: Data<Elem = f32>, D: Dimension>(x: &ArrayBase<S, D>) -> &[f32] {
    x.as_slice().expect("in standard layout")
}

/// The same, to change.
pub fn values_mut<S: DataMut<Elem = f32>, D: Dimension>(x: &mut ArrayBase<S, D>) -> &mut [f32] {
    x.as_slice_mut().expect("in standard layout")
}

/// The values of x in standard layout, brought into it if they are not.
pub fn contiguous(x: &mut Array2<f32>) -> &mut [f32] {
    if !x.is_standard_layout() {
        *x = x.as_standard_layout().into_owned();
    }
    values_mut(x)
}
