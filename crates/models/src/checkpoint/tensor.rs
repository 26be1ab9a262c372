use foveal::{bf16, f16};
use half::vec::HalfBitsVecExt;
use ndarray::{Array2, ArrayD, ArrayViewD, ArrayViewMutD, Axis, Ix4, IxDyn, Zip};
use rayon::prelude::*;

use super::Dtype;
use super::dequantise::dequantise;
use crate::layer::Weight;
use crate::{Error, Result};

/// One tensor of a checkpoint, still where it is in the file. Reading it costs nothing until
/// [`to_f32`](Tensor::to_f32).
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    pub(super) name: &'a str,
    pub(super) shape: &'a [usize],
    pub(super) dtype: Dtype,
    pub(super) order: Order,
    pub(super) bytes: &'a [u8],
}

/// How the numbers lie in the file, where that is not as Hugging Face has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As the shape says.
    Same,
    /// A matrix stored transposed.
    Transposed,
    /// The rows of each head stored in pairs (0, D/2), (1, D/2 + 1), …: what llama.cpp does to Llama's queries and
    /// keys, because it turns neighbours where Hugging Face turns halves.
    Pairs {
        /// How many heads share the rows.
        heads: usize,
    },
}

/// Numbers a task converts: big enough to be worth a task, small enough to stay in the cache, a multiple of every
/// block.
const TASK: usize = 1 << 15;

impl<'a> Tensor<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Its shape, outermost dimension first.
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// How its numbers are stored.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its bytes, as they are stored.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether it holds the same numbers as another, stored in the same way.
    pub(crate) fn is_same(&self, other: &Tensor<'_>) -> bool {
        (self.shape, self.dtype, self.order) == (other.shape, other.dtype, other.order) && self.bytes == other.bytes
    }

    /// Its numbers, in the order of its shape, converted by all threads of the current pool.
    ///
    /// # Errors
    /// If it holds no floating-point numbers.
    pub fn to_f32(&self) -> Result<ArrayD<f32>> {
        self.block()?;
        let mut numbers = ArrayD::zeros(IxDyn(self.shape));
        self.read_into(numbers.view_mut())?;
        Ok(numbers)
    }

    /// The same into an array that is there already, of the same shape.
    pub(super) fn read_into(&self, mut target: ArrayViewMutD<f32>) -> Result<()> {
        debug_assert_eq!(target.shape(), self.shape);
        if let (Order::Same, Some(numbers)) = (self.order, target.as_slice_mut()) {
            return self.convert(numbers);
        }
        let mut numbers = vec![0.0; self.shape.iter().product()];
        self.convert(&mut numbers)?;
        self.arrange(&numbers, target);
        Ok(())
    }

    /// A matrix, or its transposed, of numbers of 16 bits, as they are; `None` of others.
    pub(super) fn stored_weight(&self, transposed: bool) -> Option<Weight> {
        if !matches!(self.dtype, Dtype::BF16 | Dtype::F16) {
            return None;
        }
        let &[rows, columns] = self.shape else { return None };
        let count = rows * columns;
        let copy = || {
            let mut bits = vec![0u16; count];
            foveal_compute::advise_large_pages(&bits);
            (bits.par_chunks_mut(TASK), self.bytes.par_chunks(2 * TASK)).into_par_iter().for_each(|(bits, bytes)| {
                let stored = bytes.as_chunks().0;
                bits.iter_mut().zip(stored).for_each(|(bits, stored)| *bits = u16::from_le_bytes(*stored));
            });
            bits
        };
        let shape = if transposed { (columns, rows) } else { (rows, columns) };
        let bits = if self.order == Order::Same && !transposed {
            copy()
        } else {
            let mut target = Array2::zeros(shape);
            target.as_slice().into_iter().for_each(foveal_compute::advise_large_pages);
            let values = target.view_mut().into_dyn();
            self.arrange(&copy(), if transposed { values.reversed_axes() } else { values });
            target.into_raw_vec_and_offset().0
        };
        let whole = "as many numbers as the shape says";
        Some(match self.dtype {
            Dtype::BF16 => Array2::<bf16>::from_shape_vec(shape, bits.reinterpret_into()).expect(whole).into(),
            _ => Array2::<f16>::from_shape_vec(shape, bits.reinterpret_into()).expect(whole).into(),
        })
    }

    /// Puts numbers as they lie in the file where they belong.
    fn arrange<E: Copy + Send + Sync>(&self, numbers: &[E], mut target: ArrayViewMutD<E>) {
        let shaped = |shape: &[usize]| {
            ArrayViewD::from_shape(IxDyn(shape), numbers).expect("opening checked the shape against the bytes")
        };
        match self.order {
            Order::Same => assign(target, shaped(self.shape)),
            Order::Transposed => {
                let stored: Vec<usize> = self.shape.iter().rev().copied().collect();
                assign(target, shaped(&stored).reversed_axes());
            }
            Order::Pairs { heads } => {
                let rows = self.shape[0];
                let pairs = [heads, rows / heads / 2, 2, numbers.len() / rows.max(1)];
                let pairs = shaped(&pairs).into_dimensionality::<Ix4>().expect("four dimensions were given");
                let halves = pairs.permuted_axes([0, 2, 1, 3]);
                // Rows of the target one after the other: head, half, place.
                let mut rows = target.axis_iter_mut(Axis(0));
                for half in halves.outer_iter().flat_map(|head| head.into_outer_iter()) {
                    for values in half.into_outer_iter() {
                        let mut row = rows.next().expect("as many rows as there are values for");
                        let values = values.into_shape_with_order(row.raw_dim()).expect("a row of the same numbers");
                        row.assign(&values);
                    }
                }
            }
        }
    }

    /// All its numbers, as they lie in the file.
    fn convert(&self, numbers: &mut [f32]) -> Result<()> {
        let (block, block_bytes) = self.block()?;
        debug_assert_eq!(numbers.len() / block * block_bytes, self.bytes.len());
        (numbers.par_chunks_mut(TASK), self.bytes.par_chunks(TASK / block * block_bytes))
            .into_par_iter()
            .for_each(|(numbers, bytes)| dequantise(self.dtype, bytes, numbers));
        Ok(())
    }

    /// The numbers of a block, and its bytes.
    fn block(&self) -> Result<(usize, usize)> {
        let (name, got) = (self.name.to_owned(), self.dtype.to_string());
        self.dtype.block().ok_or(Error::Dtype { name, got })
    }
}

/// target ⟵ source, by all threads.
fn assign<E: Copy + Send + Sync>(mut target: ArrayViewMutD<E>, source: ArrayViewD<E>) {
    Zip::from(&mut target).and(source).par_for_each(|target, &x| *target = x);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
        numbers.into_iter().flat_map(f32::to_le_bytes).collect()
    }

    #[test]
    fn transposed_and_paired_rows_come_back_in_order() {
        let stored = bytes((0..6u8).map(f32::from));
        let tensor = Tensor { name: "w", shape: &[3, 2], dtype: Dtype::F32, order: Order::Transposed, bytes: &stored };
        assert_eq!(tensor.to_f32().unwrap(), ndarray::array![[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]].into_dyn());
        // Two heads of four rows: 0 2 1 3 in the file are rows 0 1 2 3 of the head.
        let stored = bytes([0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
        for shape in [&[8usize][..], &[8, 1]] {
            let order = Order::Pairs { heads: 2 };
            let tensor = Tensor { name: "q", shape, dtype: Dtype::F32, order, bytes: &stored };
            let numbers: Vec<f32> = tensor.to_f32().unwrap().into_iter().collect();
            assert_eq!(numbers, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        }
    }

    #[test]
    fn weights_of_16_bits_are_the_same_numbers() {
        let (shape, other) = ([8usize, TASK / 4 + 1], [8, 0]);
        let count = shape[0] * shape[1];
        let brain: Vec<u8> = (0..count).flat_map(|i| bf16::from_f32((i % 251) as f32).to_le_bytes()).collect();
        let half: Vec<u8> = (0..count).flat_map(|i| f16::from_f32((i % 251) as f32).to_le_bytes()).collect();
        for (dtype, bytes) in [(Dtype::BF16, &brain), (Dtype::F16, &half)] {
            for order in [Order::Same, Order::Transposed, Order::Pairs { heads: 2 }] {
                for (shape, bytes) in [(&shape, &bytes[..]), (&other, &[])] {
                    let tensor = Tensor { name: "w", shape, dtype, order, bytes };
                    let numbers = tensor.to_f32().unwrap().into_dimensionality().unwrap();
                    let (weight, transposed) =
                        (tensor.stored_weight(false).unwrap(), tensor.stored_weight(true).unwrap());
                    assert!(weight.is_narrow() && transposed.is_narrow());
                    assert_eq!((&*weight, transposed.t()), (&numbers, numbers.view()), "{dtype}, {order:?}");
                }
            }
        }
        let wide = Tensor { name: "w", shape: &[1, 1], dtype: Dtype::F32, order: Order::Same, bytes: &[0; 4] };
        assert!(wide.stored_weight(false).is_none());
    }

    #[test]
    fn many_tasks_and_a_rest() {
        let count = 3 * TASK + 5;
        let stored: Vec<u8> = (0..count).flat_map(|i| half::bf16::from_f32((i % 251) as f32).to_le_bytes()).collect();
        let tensor = Tensor { name: "w", shape: &[count], dtype: Dtype::BF16, order: Order::Same, bytes: &stored };
        assert!(tensor.to_f32().unwrap().iter().enumerate().all(|(i, &x)| x == (i % 251) as f32));
        let stored: Vec<u8> = (0..count).flat_map(|i| half::f16::from_f32((i % 251) as f32).to_le_bytes()).collect();
        let tensor = Tensor { name: "w", shape: &[count], dtype: Dtype::F16, order: Order::Same, bytes: &stored };
        assert!(tensor.to_f32().unwrap().iter().enumerate().all(|(i, &x)| x == (i % 251) as f32));
    }

    #[test]
    fn integers_are_refused() {
        let tensor =
            Tensor { name: "ids", shape: &[1], dtype: Dtype::Other("I64"), order: Order::Same, bytes: &[0; 8] };
        assert!(matches!(tensor.to_f32(), Err(Error::Dtype { .. })));
    }
}
