//! A trace made by others: any program that has queries and keys can ask for their weights.
//!
//! ```
//! use foveal::{Attention, Mask};
//! use foveal_models::trace::{Kind, LayerTrace, Site, Trace};
//! use ndarray::{Array2, Array4};
//!
//! let (q, k, v) = (Array4::<f32>::ones((1, 4, 9, 8)), Array4::<f32>::ones((1, 2, 9, 8)), Array4::<f32>::ones((1, 2, 9, 8)));
//! let attention = Attention::new().mask(Mask::causal());
//! let forward = attention.forward(&q, &k, &v)?;
//! let layer = LayerTrace::builder(attention, q, k) // four heads of queries, two of keys
//!     .lse(forward.lse)
//!     .values(v) // for norms and for the arithmetic of a cell
//!     .output(Array2::<f32>::eye(32)) // W_o, [D, H·Dv], for the same
//!     .build()?;
//! let trace = Trace::from_iter([(Site { kind: Kind::Decoder, layer: 0 }, layer)]);
//! let weights = trace.layer(Kind::Decoder, 0)?.weights(0, 3)?;
//! assert!((weights[[8, 0]] - 1.0 / 9.0).abs() < 1e-6);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use std::sync::Arc;

use ndarray::{Array3, Array4};

use super::{LayerTrace, TraceArray};
use crate::Result;
use crate::layer::{BoundAttention, Linear, Weight, expect};

/// Puts a [`LayerTrace`] together. Queries, keys and the attention are all that weights need; the rest is optional.
#[derive(Clone, Debug)]
pub struct LayerTraceBuilder {
    attention: BoundAttention,
    q: TraceArray,
    k: TraceArray,
    lse: Option<Array3<f64>>,
    v: Option<TraceArray>,
    output: Option<Arc<Linear>>,
}

impl LayerTrace {
    /// Begins a trace of queries [B, H, T, D] and keys [B, G, S, D], both as the scores are computed from them: turned, if there
    /// is RoPE. The attention is the one that was used, with its scale, mask and bias.
    pub fn builder(
        attention: impl Into<BoundAttention>,
        q: impl Into<TraceArray>,
        k: impl Into<TraceArray>,
    ) -> LayerTraceBuilder {
        LayerTraceBuilder { attention: attention.into(), q: q.into(), k: k.into(), lse: None, v: None, output: None }
    }
}

impl LayerTraceBuilder {
    /// The log-sum-exp of every row of scores, [B, H, T], in natural logarithms and after scale, mask and bias: what the forward
    /// pass of the same attention gives. Without it, it is computed, which takes as long as a forward pass.
    #[must_use]
    pub fn lse(self, lse: Array3<f64>) -> Self {
        LayerTraceBuilder { lse: Some(lse), ..self }
    }

    /// Values: [B, G, S, Dv].
    #[must_use]
    pub fn values(self, v: impl Into<TraceArray>) -> Self {
        LayerTraceBuilder { v: Some(v.into()), ..self }
    }

    /// W_o: [D, H·Dv], the weight of the layer that joins the heads.
    #[must_use]
    pub fn output(self, weight: impl Into<Weight>) -> Self {
        let output = Linear { weight: weight.into(), bias: None };
        LayerTraceBuilder { output: Some(Arc::new(output)), ..self }
    }

    /// The trace.
    ///
    /// # Errors
    /// If the shapes do not fit each other or the options of the attention.
    pub fn build(self) -> Result<LayerTrace> {
        let LayerTraceBuilder { attention, q, k, lse, v, output } = self;
        let ((b, h, t, d), (_, g, s, _)) = (q.dim(), k.dim());
        let (_, _, _, key_dim) = k.dim();
        expect("the keys", &[b, g, s, d], &[k.dim().0, g, s, key_dim])?;
        if g == 0 || !h.is_multiple_of(g) {
            return Err(foveal::Error::Heads { query: h, key: g }.into());
        }
        if let Some(lse) = &lse {
            expect("the log-sum-exp", &[b, h, t], lse.shape())?;
        }
        let dim = match &v {
            Some(v) => {
                let (vb, vg, vs, dim) = v.dim();
                expect("the values", &[b, g, s, dim], &[vb, vg, vs, dim])?;
                dim
            }
            None => d,
        };
        if let Some(output) = output.as_ref().filter(|_| v.is_some()) {
            expect("W_o", &[output.weight.nrows(), h * dim], &output.weight.shape())?;
        }
        let lse = match lse {
            Some(lse) => lse,
            None => log_sum_exp(&attention, &q, &k)?,
        };
        let trace = LayerTrace { q, k, v, lse, attention, output };
        if b > 0 && h > 0 {
            // Checks the options against the shapes: a mask or a bias may be made for others.
            trace.tile(0, 0, 0..0, 0..0)?;
        }
        Ok(trace)
    }
}

/// lse: [B, H, T], from a forward pass over values that nobody needs.
fn log_sum_exp(attention: &BoundAttention, q: &TraceArray, k: &TraceArray) -> Result<Array3<f64>> {
    let ((b, h, t, _), (_, g, s, _)) = (q.dim(), k.dim());
    let v = Array4::<f32>::zeros((b, g, s, 1));
    let (mut out, mut lse) = (Array4::zeros((b, h, t, 1)), Array3::zeros((b, h, t)));
    attention.forward_into((q.view(), k.view(), (&v).into()), out.view_mut(), lse.view_mut())?;
    Ok(lse)
}
