//! New arrays that are written once. An array whose every value is about to be written need not be filled with zeros first.

use std::mem::MaybeUninit;

use ndarray::Array2;
use rayon::prelude::*;

use crate::threads::in_pool;

/// A block of a new array, to be written from its first value to its last.
#[derive(Debug)]
pub struct Unwritten<'a> {
    values: &'a mut [MaybeUninit<f32>],
    /// How many of them have been written.
    written: usize,
}

impl Unwritten<'_> {
    /// Writes the next values, as many as are given and fit into the block. Within [`vectorise`](crate::vectorise), an
    /// iterator over slices becomes vector code.
    #[inline(always)]
    pub fn write(&mut self, values: impl Iterator<Item = f32>) {
        let mut count = 0;
        for (place, value) in self.values[self.written..].iter_mut().zip(values) {
            place.write(value);
            count += 1;
        }
        // Only now: should an iterator panic, no more counts as written than is.
        self.written += count;
    }
}

/// A new array \[n, d\], made by `work` in blocks of `block` values on the rayon pool that the call is made from. Each block
/// comes with an item of `beside`, such as the same values of another array. Faster than writing over zeros.
///
/// ```
/// use ndarray::array;
/// use rayon::prelude::*;
///
/// let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let double = |x: &[f32], y: &mut foveal_compute::Unwritten| y.write(x.iter().map(|x| 2.0 * x));
/// assert_eq!(foveal_compute::write_new((2, 3), 4, x.par_chunks(4), double), array![[2., 4., 6.], [8., 10., 12.]]);
/// ```
///
/// # Panics
/// If a value of the array has not been written.
pub fn write_new<I: IndexedParallelIterator>(
    dim: (usize, usize),
    block: usize,
    beside: I,
    work: impl Fn(I::Item, &mut Unwritten<'_>) + Send + Sync,
) -> Array2<f32> {
    let mut array = Array2::<f32>::uninit(dim);
    let values = array.as_slice_mut().expect("made in standard layout");
    let written = in_pool(|| {
        let written = values.par_chunks_mut(block.max(1)).zip(beside).map(|(values, beside)| {
            let mut unwritten = Unwritten { values, written: 0 };
            work(beside, &mut unwritten);
            unwritten.written
        });
        written.sum::<usize>()
    });
    assert_eq!(written, array.len(), "every value of a new array must be written");
    // SAFETY: `written` counts places of one block that have been written, each once; blocks share no place, and `work`, which
    // takes blocks of any lifetime, cannot put another in the place of its own. So all places have been written.
    unsafe { array.assume_init() }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn blocks_of_any_size() {
        for (dim, block) in [((7, 5), 1), ((7, 5), 4), ((7, 5), 35), ((7, 5), 100), ((1, 1), 1)] {
            let starts = (0..35usize).into_par_iter().step_by(block);
            let array = write_new(dim, block, starts, |start, y| {
                // In two steps, and more than fit.
                y.write((start..start + 1).map(|i| i as f32));
                y.write((start + 1..1000).map(|i| i as f32));
            });
            assert_eq!(array, Array2::from_shape_fn(dim, |(i, j)| (i * dim.1 + j) as f32), "{dim:?} in {block}");
        }
    }

    #[test]
    fn nothing_and_nan() {
        for dim in [(0, 5), (5, 0), (0, 0)] {
            let nothing = write_new(dim, 0, (0..5).into_par_iter(), |_, _| unreachable!("no block"));
            assert_eq!(nothing.dim(), dim);
        }
        let nan = write_new((1, 2), 2, [f32::NAN].into_par_iter(), |x, y| y.write([x, 1.0].into_iter()));
        assert!(nan[[0, 0]].is_nan() && nan[[0, 1]] == 1.0);
    }

    #[test]
    fn what_is_not_written_is_never_read() {
        let fails = |work: &(dyn Fn(usize, &mut Unwritten) + Sync), blocks: usize| {
            catch_unwind(AssertUnwindSafe(|| write_new((4, 4), 8, (0..blocks).into_par_iter(), work))).is_err()
        };
        let all = |_, y: &mut Unwritten| y.write((0..8).map(|i| i as f32));
        assert!(!fails(&all, 2) && !fails(&all, 3), "blocks to spare do no harm");
        assert!(fails(&all, 1), "a block is missing");
        assert!(fails(&|_, y| y.write((0..7).map(|i| i as f32)), 2), "a value is missing");
        let caught = |_, y: &mut Unwritten| {
            let some = (0..8).map(|i| if i < 5 { i as f32 } else { panic!("half-way") });
            _ = catch_unwind(AssertUnwindSafe(|| y.write(some)));
        };
        assert!(fails(&caught, 2), "an iterator that panics");
    }
}
