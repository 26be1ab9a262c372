//! The tensors of burn's CPU backend as the engine reads them: in place, whatever their strides.

use std::borrow::Cow;

use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, TensorData};
use foveal::ndarray::{Array4, ArrayView4, Ix4, ShapeBuilder};
use foveal::{Tensor, TensorMut, bf16, f16};
use foveal_models::trace::TraceArray;

/// Whether attention can read tensors of this type.
pub fn is_read(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// A tensor that [`read`] takes: itself, or a copy where it runs backwards.
pub fn forwards(tensor: &FlexTensor) -> Cow<'_, FlexTensor> {
    match tensor.layout().strides().iter().all(|stride| *stride >= 0) {
        true => Cow::Borrowed(tensor),
        false => Cow::Owned(tensor.to_contiguous()),
    }
}

/// It as [B, H, T, D], without a copy.
pub fn read(tensor: &FlexTensor) -> Tensor<'_> {
    match tensor.dtype() {
        DType::F32 => view(tensor, tensor.storage::<f32>()).into(),
        DType::F16 => view(tensor, tensor.storage::<f16>()).into(),
        DType::BF16 => view(tensor, tensor.storage::<bf16>()).into(),
        other => unreachable!("{other:?} was refused"),
    }
}

/// A copy, for a trace.
pub fn copy(tensor: &FlexTensor) -> TraceArray {
    match tensor.dtype() {
        DType::F32 => view(tensor, tensor.storage::<f32>()).into(),
        DType::F16 => view(tensor, tensor.storage::<f16>()).into(),
        DType::BF16 => view(tensor, tensor.storage::<bf16>()).into(),
        other => unreachable!("{other:?} was refused"),
    }
}

fn view<'a, E>(tensor: &FlexTensor, values: &'a [E]) -> ArrayView4<'a, E> {
    let layout = tensor.layout();
    let axis = |i: usize| (layout.shape()[i], layout.strides()[i] as usize);
    let [(batch, a), (heads, b), (tokens, c), (dim, d)] = [0, 1, 2, 3].map(axis);
    let shape = Ix4(batch, heads, tokens, dim);
    // A tensor without values may begin behind the end of its storage, and its strides mean nothing.
    let view = match layout.num_elements() {
        0 => ArrayView4::from_shape(shape, &[]),
        _ => ArrayView4::from_shape(shape.strides(Ix4(a, b, c, d)), &values[layout.start_offset()..]),
    };
    view.expect("a tensor lies within its storage")
}

/// Room for a result, in the type of a tensor.
pub enum Owned {
    F32(Array4<f32>),
    F16(Array4<f16>),
    Bf16(Array4<bf16>),
}

impl Owned {
    pub fn zeros(dtype: DType, dim: [usize; 4]) -> Self {
        match dtype {
            DType::F16 => Owned::F16(Array4::from_elem(dim, f16::ZERO)),
            DType::BF16 => Owned::Bf16(Array4::from_elem(dim, bf16::ZERO)),
            _ => Owned::F32(Array4::zeros(dim)),
        }
    }

    pub fn target(&mut self) -> TensorMut<'_> {
        match self {
            Owned::F32(array) => array.into(),
            Owned::F16(array) => array.into(),
            Owned::Bf16(array) => array.into(),
        }
    }

    pub fn into_tensor(self) -> FlexTensor {
        fn data<E: burn::tensor::Element>(array: Array4<E>) -> FlexTensor {
            let shape = array.shape().to_vec();
            FlexTensor::from_data(TensorData::new(array.into_raw_vec_and_offset().0, shape))
        }
        match self {
            Owned::F32(array) => data(array),
            Owned::F16(array) => data(array),
            Owned::Bf16(array) => data(array),
        }
    }
}
