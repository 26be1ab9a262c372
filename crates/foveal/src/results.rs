//! What the two passes take from each other and give back.

use ndarray::{Array1, Array3, Array4, ArrayD, ArrayView3};

use crate::tensor::{Number, Tensor, TensorMut};
#[expect(unused_imports, reason = "for the documentation")]
use crate::{Attention, Bias};

/// What [`Attention::forward`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward<T = f32> {
    /// [B, H, T, Dv]
    pub out: Array4<T>,
    /// ln Σⱼ exp sᵢⱼ: [B, H, T]. With it any weight can be computed by itself; −∞ where a query sees nothing. It is f64 because
    /// rounding it to f32 would take digits off every weight of its row where scores are large.
    pub lse: Array3<f64>,
}

/// What [`Attention::backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gradients<T = f32> {
    /// Shaped like q.
    pub dq: Array4<T>,
    /// Shaped like k.
    pub dk: Array4<T>,
    /// Shaped like v.
    pub dv: Array4<T>,
    /// Shaped like what the [`Bias`] was made of: slopes, table, or dense array. `None` if there is no bias, or a
    /// [constant](Bias::constant) one.
    pub dbias: Option<ArrayD<f32>>,
    /// Of the [sinks](Attention::sinks): \[H\].
    pub dsinks: Option<Array1<f32>>,
}

/// The results of the forward pass that [`Attention::backward`] needs: made from a `&Forward`, or of views.
#[derive(Clone, Copy, Debug)]
pub struct Saved<'a> {
    /// [B, H, T, Dv]
    pub out: Tensor<'a>,
    /// [B, H, T]
    pub lse: ArrayView3<'a, f64>,
}

impl<'a, T: Number> From<&'a Forward<T>> for Saved<'a> {
    fn from(fwd: &'a Forward<T>) -> Self {
        Saved { out: T::tensor(&fwd.out), lse: fwd.lse.view() }
    }
}

impl<'a> Saved<'a> {
    /// The same, for a shorter while.
    pub(crate) fn reborrow<'b>(self) -> Saved<'b>
    where
        'a: 'b,
    {
        Saved { out: self.out, lse: self.lse.reborrow() }
    }
}

/// The gradient of a loss in the results of the forward pass: made from dout alone, an `&Array4` or an `ArrayView4`; or
/// with that of the log-sum-exp, where the loss depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// [B, H, T, Dv]
    pub dout: Tensor<'a>,
    /// [B, H, T]
    pub dlse: Option<ArrayView3<'a, f32>>,
}

impl<'a> Upstream<'a> {
    /// The same, for a shorter while.
    pub(crate) fn reborrow<'b>(self) -> Upstream<'b>
    where
        'a: 'b,
    {
        Upstream { dout: self.dout, dlse: self.dlse.map(ArrayView3::reborrow) }
    }
}

impl<'a, T> From<T> for Upstream<'a>
where
    Tensor<'a>: From<T>,
{
    fn from(dout: T) -> Self {
        Upstream { dout: dout.into(), dlse: None }
    }
}

/// Where [`Attention::backward_into`] puts the gradients of q, k and v: arrays of their shapes with any strides.
#[derive(Debug)]
pub struct GradientsMut<'a> {
    pub(crate) dq: TensorMut<'a>,
    pub(crate) dk: TensorMut<'a>,
    pub(crate) dv: TensorMut<'a>,
    pub(crate) adds: bool,
}

impl<'a> GradientsMut<'a> {
    /// What these arrays hold is overwritten.
    pub fn set(dq: impl Into<TensorMut<'a>>, dk: impl Into<TensorMut<'a>>, dv: impl Into<TensorMut<'a>>) -> Self {
        GradientsMut { dq: dq.into(), dk: dk.into(), dv: dv.into(), adds: false }
    }

    /// The gradients are added to what these arrays hold.
    pub fn add(dq: impl Into<TensorMut<'a>>, dk: impl Into<TensorMut<'a>>, dv: impl Into<TensorMut<'a>>) -> Self {
        GradientsMut { adds: true, ..GradientsMut::set(dq, dk, dv) }
    }
}

/// The gradients of what is learned beside q, k and v, as [`Attention::backward_into`] returns them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Learned {
    /// See [`Gradients::dbias`].
    pub dbias: Option<ArrayD<f32>>,
    /// See [`Gradients::dsinks`].
    pub dsinks: Option<Array1<f32>>,
}
