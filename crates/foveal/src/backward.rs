use ndarray::ArrayView4;
use crate::{Error, attention::{Attention, Forward, Gradients}};
pub(crate) fn backward(_: &Attention, _: ArrayView4<f32>, _: ArrayView4<f32>, _: ArrayView4<f32>, _: &Forward, _: ArrayView4<f32>) -> Result<Gradients, Error> { Err(Error::HeadDim) }
