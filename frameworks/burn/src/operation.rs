//! Attention as an operation of burn's CPU backend.

use std::sync::{Arc, OnceLock};

use burn::Tensor;
use burn::backend::flex::{Flex, FlexTensor};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, DispatchDevice, backend_extension};
use burn::tensor::DType;
use foveal::ndarray::Array3;
use foveal::{Attention, Scratch};
use foveal_models::trace::{LayerTrace, record};

use crate::arrays::{Owned, copy, forwards, is_read, read};

/// Attention of `q` [B, H, T, D] to `k` [B, G, S, D] and `v` [B, G, S, Dv], with the options of `attention`: [B, H, T, Dv]
/// in the type of `q`.
///
/// The tensors are read where they lie, with any strides, as f32, f16 or bf16, which may differ between them. Heads are grouped
/// where G is smaller than H. On a device with autodiff, gradients of q, k and v follow in `backward`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use foveal_burn::attention;
/// use foveal_burn::foveal::{Attention, Mask};
///
/// let device = Device::flex();
/// let q = Tensor::<4>::random([1, 8, 100, 64], Distribution::Default, &device);
/// let kv = Tensor::<4>::random([1, 2, 100, 64], Distribution::Default, &device); // four heads of queries to each
/// let out = attention(q, kv.clone(), kv, &Attention::new().mask(Mask::causal()))?;
/// assert_eq!(out.dims(), [1, 8, 100, 64]);
/// # Ok::<(), foveal_burn::Error>(())
/// ```
///
/// # Errors
/// If a tensor is not on the Flex device or has another type, or if the shapes do not fit each other or the options.
pub fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, attention: &Attention) -> Result<Tensor<4>, Error> {
    for (what, tensor) in [("q", &q), ("k", &k), ("v", &v)] {
        let device = tensor.device();
        if !is_flex(device.as_dispatch()) {
            return Err(Error::Device { what, got: format!("{device:?}") });
        }
        if !is_read(tensor.dtype()) {
            return Err(Error::Type { what, got: tensor.dtype() });
        }
    }
    // burn would panic; tensors without autodiff are constants and fit any.
    let [q_way, k_way, v_way] = [&q, &k, &v].map(|tensor| tensor.device().gradient_checkpointing_strategy());
    let ways = || [q_way, k_way, v_way].into_iter().flatten();
    if ways().zip(ways().skip(1)).any(|(a, b)| a != b) {
        return Err(Error::Checkpointing);
    }
    let call = Call { attention: attention.clone(), outcome: Arc::new(OnceLock::new()) };
    let outcome = Arc::clone(&call.outcome);
    let out = Dispatch::foveal_attention(q.into_dispatch(), k.into_dispatch(), v.into_dispatch(), call);
    match outcome.get() {
        Some(Err(error)) => Err(error.clone()),
        _ => Ok(Tensor::from_dispatch(out)),
    }
}

fn is_flex(device: &DispatchDevice) -> bool {
    match device {
        DispatchDevice::Flex(_) => true,
        DispatchDevice::Autodiff(device) => is_flex(device),
        #[allow(unreachable_patterns, reason = "a program may enable other backends")]
        _ => false,
    }
}

/// Why a call was refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor lies elsewhere.
    #[error("{what} lies on {got}; attention runs on the CPU: move it with `to_device(&Device::flex())`")]
    Device {
        /// Which.
        what: &'static str,
        /// Where it is.
        got: String,
    },
    /// A tensor has numbers that attention does not read.
    #[error("{what} holds {got:?}; attention takes F32, F16 or BF16: convert it with `cast`")]
    Type {
        /// Which.
        what: &'static str,
        /// Its type.
        got: DType,
    },
    /// Tensors with autodiff come from devices that keep activations in different ways.
    #[error("q, k and v have different gradient checkpointing; make all of them on one device")]
    Checkpointing,
    /// Shapes or options do not fit together.
    #[error(transparent)]
    Call(#[from] Arc<foveal::Error>),
    /// What was attended to could not be kept.
    #[error(transparent)]
    Trace(#[from] Arc<foveal_models::Error>),
}

/// One call. Operations of a backend return tensors; whether it went well, and the log-sum-exp for backward, stand here.
#[derive(Clone, Debug)]
pub struct Call {
    pub attention: Attention,
    pub outcome: Arc<OnceLock<Result<Array3<f64>, Error>>>,
}

impl Call {
    /// The output, or an empty tensor where `outcome` tells of an error.
    pub fn forward(&self, q: &FlexTensor, k: &FlexTensor, v: &FlexTensor) -> FlexTensor {
        let (out, outcome) = match self.run(q, k, v) {
            Ok((out, lse)) => (out, Ok(lse)),
            Err(error) => (Owned::zeros(q.dtype(), [0; 4]), Err(error)),
        };
        // A call is run once; were it run again, its outcome would be the same.
        let _ = self.outcome.set(outcome);
        out.into_tensor()
    }

    fn run(&self, q: &FlexTensor, k: &FlexTensor, v: &FlexTensor) -> Result<(Owned, Array3<f64>), Error> {
        let [q, k, v] = &[q, k, v].map(forwards);
        let arrays @ [q_array, _, v_array] = [read(q), read(k), read(v)];
        let [batch, heads, tokens, _] = q_array.dim();
        let mut out = Owned::zeros(q.dtype(), [batch, heads, tokens, v_array.dim()[3]]);
        let mut lse = Array3::zeros((batch, heads, tokens));
        let [q_array, k_array, v_array] = arrays;
        Scratch::lend(|scratch| {
            self.attention.forward_into(q_array, k_array, v_array, out.target(), lse.view_mut(), scratch)
        })
        .map_err(Arc::new)?;
        record(|| {
            LayerTrace::builder(self.attention.clone(), copy(q), copy(k)).values(copy(v)).lse(lse.clone()).build()
        })
        .map_err(Arc::new)?;
        Ok((out, lse))
    }
}

/// Backends that attend.
#[backend_extension(Flex, Autodiff)]
pub trait FovealBackend: Backend {
    /// The output of a call.
    fn foveal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        call: Call,
    ) -> FloatTensor<Self>;
}

impl FovealBackend for Flex {
    fn foveal_attention(q: FlexTensor, k: FlexTensor, v: FlexTensor, call: Call) -> FlexTensor {
        call.forward(&q, &k, &v)
    }
}
