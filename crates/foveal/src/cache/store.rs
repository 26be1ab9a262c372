//! Room for tokens, in 32 or 16 bits.

use std::ops::Range;

use foveal_compute::kernel::element::Element;
use foveal_compute::{advise_large_pages, bf16, f16, join};
use ndarray::{Array4, ArrayViewMut4, Axis, s};

use super::Precision;
use crate::tensor::{Tensor, Values};

/// New values from which keys and values are copied side by side.
const SHARED: usize = 1 << 17;

#[derive(Clone, Debug)]
pub enum Store {
    F32(Array4<f32>),
    F16(Array4<f16>),
    Bf16(Array4<bf16>),
}

macro_rules! typed {
    ($store:expr, $array:ident => $work:expr) => {
        match $store {
            Store::F32($array) => $work,
            Store::F16($array) => $work,
            Store::Bf16($array) => $work,
        }
    };
}

impl Store {
    pub fn new(precision: Precision, dim: [usize; 4]) -> Self {
        match precision {
            Precision::F32 => Store::F32(empty(dim, 0.0)),
            Precision::F16 => Store::F16(empty(dim, f16::ZERO)),
            Precision::Bf16 => Store::Bf16(empty(dim, bf16::ZERO)),
        }
    }

    pub fn dim(&self) -> [usize; 4] {
        typed!(self, array => array.dim().into())
    }

    pub fn len(&self) -> usize {
        typed!(self, array => array.len())
    }

    /// Some of the tokens.
    pub fn tokens(&self, tokens: Range<usize>) -> Tensor<'_> {
        typed!(self, array => array.slice(s![.., .., tokens, ..]).into())
    }

    /// Room for `capacity` tokens, of which `used` are kept.
    pub fn grow(&mut self, used: usize, capacity: usize) {
        let [batch, heads, _, dim] = self.dim();
        let dim = [batch, heads, capacity, dim];
        match self {
            Store::F32(array) => *array = grown(array, used, empty(dim, 0.0)),
            Store::F16(array) => *array = grown(array, used, empty(dim, f16::ZERO)),
            Store::Bf16(array) => *array = grown(array, used, empty(dim, bf16::ZERO)),
        }
    }

    pub fn select(&self, axis: Axis, indices: &[usize]) -> Store {
        match self {
            Store::F32(array) => Store::F32(array.select(axis, indices)),
            Store::F16(array) => Store::F16(array.select(axis, indices)),
            Store::Bf16(array) => Store::Bf16(array.select(axis, indices)),
        }
    }

    /// Writes some tokens of one sequence of `from` to row b, from token `at` on.
    pub fn write(&mut self, (b, at): (usize, usize), from: &Tensor, (sequence, tokens): (usize, Range<usize>)) {
        let from = from.slice(sequence..sequence + 1, tokens.clone());
        typed!(self, array => {
            copy(array.slice_mut(s![b..=b, .., at..at + tokens.len(), ..]), &from);
        });
    }
}

/// Writes the tokens of all sequences, from token `at` on: keys and values side by side, if they are many.
pub fn write_both((k, v): (&mut Store, &mut Store), (new_k, new_v): (&Tensor, &Tensor), at: usize) {
    let write = |store: &mut Store, new: &Tensor| {
        let tokens = new.dim()[2];
        typed!(store, array => copy(array.slice_mut(s![.., .., at..at + tokens, ..]), new));
    };
    let values: usize = new_k.dim().iter().product::<usize>() + new_v.dim().iter().product::<usize>();
    both(values, || write(k, new_k), || write(v, new_v));
}

/// One after the other, or side by side: on a thread of a pool, as who does not work on one may not want it.
pub fn both(values: usize, keys: impl FnOnce() + Send, of_values: impl FnOnce() + Send) {
    if values >= SHARED && rayon::current_thread_index().is_some() {
        join(keys, of_values);
    } else {
        keys();
        of_values();
    }
}

/// Copies, rounding to what is stored.
fn copy<E: Element>(mut to: ArrayViewMut4<E>, from: &Tensor) {
    match from.values() {
        Values::F32(from) => to.zip_mut_with(&from.view(), |x, y| *x = E::narrow(*y)),
        Values::F16(from) => to.zip_mut_with(&from.view(), |x, y| *x = E::narrow(y.to_f32())),
        Values::Bf16(from) => to.zip_mut_with(&from.view(), |x, y| *x = E::narrow(y.to_f32())),
    }
}

/// Room for tokens, which will be read again with each one that comes.
fn empty<E: Copy>(dim: [usize; 4], zero: E) -> Array4<E> {
    let room = Array4::from_elem(dim, zero);
    room.as_slice().into_iter().for_each(advise_large_pages);
    room
}

fn grown<E: Copy>(old: &Array4<E>, used: usize, mut new: Array4<E>) -> Array4<E> {
    new.slice_mut(s![.., .., ..used, ..]).assign(&old.slice(s![.., .., ..used, ..]));
    new
}
