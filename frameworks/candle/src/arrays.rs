//! candle's storage as the engine reads it: in place, whatever its strides.

use candle_core::backend::BackendStorage;
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, DType, Error, Layout, Result, Shape, Storage, bail};
use foveal::ndarray::{Array4, ArrayView4, Ix4, ShapeBuilder};
use foveal::{Tensor, TensorMut, bf16, f16};
use foveal_models::trace::TraceArray;

/// `what` as [B, H, T, D], without a copy.
pub fn read<'a>(what: &str, storage: &'a CpuStorage, layout: &Layout) -> Result<Tensor<'a>> {
    match storage {
        CpuStorage::F32(values) => Ok(view(what, values, layout)?.into()),
        CpuStorage::F16(values) => Ok(view(what, values, layout)?.into()),
        CpuStorage::BF16(values) => Ok(view(what, values, layout)?.into()),
        other => Err(unfit(what, other)),
    }
}

/// A copy of an array that [`read`] has taken, for a trace.
pub fn copy(storage: &CpuStorage, layout: &Layout) -> TraceArray {
    fn array<E: Clone>(values: &[E], layout: &Layout) -> Array4<E> {
        view("an array", values, layout).expect("it was read").to_owned()
    }
    match storage {
        CpuStorage::F32(values) => array(values, layout).into(),
        CpuStorage::F16(values) => array(values, layout).into(),
        CpuStorage::BF16(values) => array(values, layout).into(),
        _ => unreachable!("it was read"),
    }
}

fn unfit(what: &str, storage: &CpuStorage) -> Error {
    let dtype = storage.dtype();
    Error::msg(format!("{what} holds {dtype:?}; attention takes F32, F16 or BF16: convert it with `to_dtype`"))
}

/// The part of `storage` that a tensor on the CPU has.
pub fn on_cpu<'a>(what: &str, storage: &'a Storage) -> Result<&'a CpuStorage> {
    match storage {
        Storage::Cpu(storage) => Ok(storage),
        other => bail!(
            "{what} lies on {:?}; attention runs on the CPU: move it with `to_device(&Device::Cpu)`",
            other.device().location()
        ),
    }
}

fn view<'a, E>(what: &str, values: &'a [E], layout: &Layout) -> Result<ArrayView4<'a, E>> {
    let (&[batch, heads, tokens, dim], stride) = (layout.dims(), layout.stride()) else {
        bail!("{what} has the shape {:?}; attention takes [batch, heads, tokens, dim]", layout.shape());
    };
    let shape = Ix4(batch, heads, tokens, dim);
    // A tensor without values may begin behind the end of its storage, and its strides mean nothing.
    if layout.shape().elem_count() == 0 {
        return ArrayView4::from_shape(shape, &[]).map_err(Error::wrap);
    }
    let values = values.get(layout.start_offset()..).unwrap_or_default();
    let stride = Ix4(stride[0], stride[1], stride[2], stride[3]);
    ArrayView4::from_shape(shape.strides(stride), values).map_err(Error::wrap)
}

/// Room for a result, in the type of a tensor.
pub enum Owned {
    F32(Array4<f32>),
    F16(Array4<f16>),
    Bf16(Array4<bf16>),
}

impl Owned {
    pub fn zeros(dtype: DType, dim: [usize; 4]) -> Result<Self> {
        match dtype {
            DType::F32 => Ok(Owned::F32(Array4::zeros(dim))),
            DType::F16 => Ok(Owned::F16(Array4::from_elem(dim, f16::ZERO))),
            DType::BF16 => Ok(Owned::Bf16(Array4::from_elem(dim, bf16::ZERO))),
            other => bail!("attention gives F32, F16 or BF16, not {other:?}"),
        }
    }

    pub fn target(&mut self) -> TensorMut<'_> {
        match self {
            Owned::F32(array) => array.into(),
            Owned::F16(array) => array.into(),
            Owned::Bf16(array) => array.into(),
        }
    }

    /// The values as candle stores them.
    pub fn into_storage(self) -> (CpuStorage, Shape) {
        fn parts<E>(array: Array4<E>, store: impl FnOnce(Vec<E>) -> CpuStorage) -> (CpuStorage, Shape) {
            let shape = Shape::from(array.dim());
            (store(array.into_raw_vec_and_offset().0), shape)
        }
        match self {
            Owned::F32(array) => parts(array, CpuStorage::F32),
            Owned::F16(array) => parts(array, CpuStorage::F16),
            Owned::Bf16(array) => parts(array, CpuStorage::BF16),
        }
    }

    /// A tensor of its own, with no history.
    pub fn into_tensor(self) -> candle_core::Tensor {
        let (storage, shape) = self.into_storage();
        candle_core::Tensor::from_storage(Storage::Cpu(storage), shape, BackpropOp::none(), false)
    }
}
