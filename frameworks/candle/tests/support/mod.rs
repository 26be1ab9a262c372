//! Tensors of random values, and their values again.

use candle_core::{DType, Device, Result, Tensor};
use foveal_candle::foveal::ndarray::Array4;
use foveal_framework_testing::Random;

/// F32 in ±√3.
pub fn tensor(dim: [usize; 4], random: &mut Random) -> Result<Tensor> {
    Tensor::from_vec(random.values(dim), &dim, &Device::Cpu)
}

/// The values of a tensor.
pub fn array(tensor: &Tensor) -> Array4<f64> {
    let values = tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    Array4::from_shape_vec(tensor.dims4().unwrap(), values).unwrap()
}
