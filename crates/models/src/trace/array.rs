//! Queries, keys and values as they were given.

use foveal::{Tensor, bf16, f16};
use ndarray::{ArcArray, Array4, ArrayView4, Axis, CowArray, Ix4, concatenate};

/// An array of heads, [B, H, T, D], in the element type it was given in. It is shared, not copied, when it is cloned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TraceArray {
    /// IEEE single precision.
    F32(ArcArray<f32, Ix4>),
    /// IEEE half precision.
    F16(ArcArray<f16, Ix4>),
    /// The upper half of single precision.
    Bf16(ArcArray<bf16, Ix4>),
}

impl TraceArray {
    /// B, H, T and D.
    pub fn dim(&self) -> (usize, usize, usize, usize) {
        match self {
            TraceArray::F32(array) => array.dim(),
            TraceArray::F16(array) => array.dim(),
            TraceArray::Bf16(array) => array.dim(),
        }
    }

    /// The numbers as f32, without a copy where they are.
    pub fn to_f32(&self) -> CowArray<'_, f32, Ix4> {
        match self {
            TraceArray::F32(array) => array.view().into(),
            TraceArray::F16(array) => array.mapv(f16::to_f32).into(),
            TraceArray::Bf16(array) => array.mapv(bf16::to_f32).into(),
        }
    }

    /// What the engine is given.
    pub(super) fn view(&self) -> Tensor<'_> {
        match self {
            TraceArray::F32(array) => array.into(),
            TraceArray::F16(array) => array.into(),
            TraceArray::Bf16(array) => array.into(),
        }
    }

    /// Arrays one after the other along the tokens: in their type, or in f32 where they have several.
    pub(super) fn join(arrays: &[&TraceArray]) -> TraceArray {
        macro_rules! joined {
            ($variant:ident) => {
                arrays
                    .iter()
                    .map(|array| match array {
                        TraceArray::$variant(array) => Some(array.view()),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()
                    .map(|views| concatenate(Axis(2), &views).expect("runs of the same layer").into())
            };
        }
        let widened = || {
            let arrays: Vec<_> = arrays.iter().map(|array| array.to_f32()).collect();
            let views: Vec<_> = arrays.iter().map(|array| array.view()).collect();
            concatenate(Axis(2), &views).expect("runs of the same layer").into()
        };
        joined!(F32).or_else(|| joined!(F16)).or_else(|| joined!(Bf16)).unwrap_or_else(widened)
    }
}

/// From arrays, shared or their own, and (by a copy) from views.
macro_rules! from_arrays {
    ($($number:ty => $variant:ident),+) => {
        $(
            impl From<ArcArray<$number, Ix4>> for TraceArray {
                fn from(array: ArcArray<$number, Ix4>) -> Self {
                    TraceArray::$variant(array)
                }
            }

            impl From<Array4<$number>> for TraceArray {
                fn from(array: Array4<$number>) -> Self {
                    array.into_shared().into()
                }
            }

            impl From<ArrayView4<'_, $number>> for TraceArray {
                fn from(view: ArrayView4<$number>) -> Self {
                    view.to_shared().into()
                }
            }

            impl From<&Array4<$number>> for TraceArray {
                fn from(array: &Array4<$number>) -> Self {
                    array.view().into()
                }
            }
        )+
    };
}
from_arrays!(f32 => F32, f16 => F16, bf16 => Bf16);
