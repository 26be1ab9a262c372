//! Attention as an operation of candle's, with its backward.

use std::sync::OnceLock;

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CustomOp3, Error, Layout, Result, Shape, StorageRef, Tensor};
use foveal::ndarray::Array3;
use foveal::{Attention, GradientsMut, Saved, Scratch};
use foveal_models::trace::{LayerTrace, record};

use crate::arrays::{Owned, copy, on_cpu, read};

/// Attention of `q` [B, H, T, D] to `k` [B, G, S, D] and `v` [B, G, S, Dv], with the options of `attention`: [B, H, T, Dv]
/// in the type of `q`.
///
/// The tensors are read where they lie, with any strides, as F32, F16 or BF16, which may differ between them. Heads are grouped
/// where G is smaller than H. Gradients of q, k and v follow in `backward`.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use foveal_candle::attention;
/// use foveal_candle::foveal::{Attention, Mask};
///
/// let q = Tensor::randn(0f32, 1., (1, 8, 100, 64), &Device::Cpu)?;
/// let kv = Tensor::randn(0f32, 1., (1, 2, 100, 64), &Device::Cpu)?; // four heads of queries to each
/// let out = attention(&q, &kv, &kv, &Attention::new().mask(Mask::causal()))?;
/// assert_eq!(out.dims(), [1, 8, 100, 64]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
/// If a tensor is not on the CPU, has another type or number of axes, or if the shapes do not fit each other or the options.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, attention: &Attention) -> Result<Tensor> {
    for (what, tensor) in [("q", q), ("k", k), ("v", v)] {
        on_cpu(what, &tensor.storage_and_layout().0)?;
    }
    q.apply_op3(k, v, Operation { attention: attention.clone(), lse: OnceLock::new() })
}

/// What candle lends of a tensor: its storage, locked for reading, and its layout.
pub type Lent<'a> = (StorageRef<'a>, &'a Layout);

/// It as the engine reads it.
pub fn tensor<'a>(what: &str, (storage, layout): &'a Lent<'_>) -> Result<foveal::Tensor<'a>> {
    read(what, on_cpu(what, storage)?, layout)
}

/// One call. The log-sum-exp of its rows stays here for backward.
struct Operation {
    attention: Attention,
    lse: OnceLock<Array3<f64>>,
}

impl CustomOp3 for Operation {
    fn name(&self) -> &'static str {
        "foveal-attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let stored = [(q, q_layout), (k, k_layout), (v, v_layout)];
        let dtype = q.dtype();
        let (q, k, v) = (read("q", q, q_layout)?, read("k", k, k_layout)?, read("v", v, v_layout)?);
        let [batch, heads, tokens, _] = q.dim();
        let mut out = Owned::zeros(dtype, [batch, heads, tokens, v.dim()[3]])?;
        let mut lse = Array3::zeros((batch, heads, tokens));
        Scratch::lend(|scratch| self.attention.forward_into(q, k, v, out.target(), lse.view_mut(), scratch))
            .map_err(Error::wrap)?;
        record(|| {
            let [q, k, v] = stored.map(|(storage, layout)| copy(storage, layout));
            LayerTrace::builder(self.attention.clone(), q, k).values(v).lse(lse.clone()).build()
        })
        .map_err(Error::wrap)?;
        // An operation is run once; were it run again, the numbers would be the same.
        let _ = self.lse.set(lse);
        Ok(out.into_storage())
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        out: &Tensor,
        dout: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let lse = self.lse.get().ok_or_else(|| Error::msg("backward of an attention that was not run forward"))?;
        let room = |tensor: &Tensor| Owned::zeros(tensor.dtype(), tensor.dims4()?.into());
        let (mut dq, mut dk, mut dv) = (room(q)?, room(k)?, room(v)?);
        let storages = [q, k, v, out, dout].map(Tensor::storage_and_layout);
        let [q, k, v, out, dout] = &storages;
        let (q, k, v) = (tensor("q", q)?, tensor("k", k)?, tensor("v", v)?);
        let saved = Saved { out: tensor("out", out)?, lse: lse.view() };
        let targets = GradientsMut::set(dq.target(), dk.target(), dv.target());
        let dout = tensor("dout", dout)?;
        Scratch::lend(|scratch| self.attention.backward_into(q, k, v, saved, dout, targets, scratch))
            .map_err(Error::wrap)?;
        Ok((Some(dq.into_tensor()), Some(dk.into_tensor()), Some(dv.into_tensor())))
    }
}
