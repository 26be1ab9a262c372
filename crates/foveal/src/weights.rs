use ndarray::*; use std::ops::Range;
use crate::{Error, attention::Attention};
#[allow(missing_docs)]
pub enum Pool { Max }
pub(crate) fn weights(_: &Attention, _: ArrayView4<f32>, _: ArrayView4<f32>) -> Result<Array4<f32>, Error> { Err(Error::HeadDim) }
pub(crate) fn tile(_: &Attention, _: ArrayView4<f32>, _: ArrayView4<f32>, _: ArrayView3<f32>, _: (usize,usize), _: Range<usize>, _: Range<usize>) -> Result<Array2<f32>, Error> { Err(Error::HeadDim) }
pub(crate) fn map(_: &Attention, _: ArrayView4<f32>, _: ArrayView4<f32>, _: ArrayView3<f32>, _: (usize,usize), _: Range<usize>, _: Range<usize>, _: (usize,usize), _: Pool) -> Result<Array2<f32>, Error> { Err(Error::HeadDim) }
