//! Tensors of random values, and their values again.

use burn::tensor::{Device, Tensor, TensorData};
use foveal_burn::foveal::ndarray::Array4;
use foveal_framework_testing::Random;

/// F32 in ±√3.
pub fn tensor(dim: [usize; 4], random: &mut Random, device: &Device) -> Tensor<4> {
    Tensor::from_data(TensorData::new(random.values(dim), dim), device)
}

/// The values of a tensor.
pub fn array(tensor: &Tensor<4>) -> Array4<f64> {
    let values = tensor.clone().into_data_as::<f64>().try_into_vec::<f64>().unwrap();
    Array4::from_shape_vec(tensor.dims(), values).unwrap()
}
