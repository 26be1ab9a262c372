//! The projections of an attention layer: where queries, keys and values come from.
//!
//! $$ [\,q \mid k \mid v\,] = x\, [\,W_q \mid W_k \mid W_v\,]^\top + [\,b_q \mid b_k \mid b_v\,] $$
//!
//! Whether the weights are stored in one piece or in three, the results lie side by side in one array, cut into heads of
//! Dh columns: first the H heads of the queries, then the G of the keys, then the G of the values.

use std::ops::Range;

use foveal::Threads;
use foveal_compute::{affine, affine_side_by_side, matmul};
use ndarray::{Array2, ArrayView2, s};

use super::linear::project_backward_parameters;
use super::shape::expect;
use super::{Linear, Param, ParamMut, Parameters, parameters::join};
use crate::Error;

/// The weights that make queries, keys and values, as the model's file stores them.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one for each layer of a model, never moved about")]
pub enum Projection {
    /// Three layers (BERT, Llama; `q_proj`, `k_proj`, `v_proj`).
    Separate {
        /// [H·Dh, D]
        q: Linear,
        /// [G·Dh, D]
        k: Linear,
        /// [G·Dh, D]
        v: Linear,
    },
    /// One layer, [(H + 2G)·Dh, D] (GPT-2's `c_attn`, PyTorch's `in_proj`): one product instead of three.
    Fused(Linear),
}

impl Parameters for Projection {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        match self {
            Projection::Fused(qkv) => qkv.params(&join(prefix, "qkv_proj"), f),
            Projection::Separate { q, k, v } => {
                q.params(&join(prefix, "q_proj"), f);
                k.params(&join(prefix, "k_proj"), f);
                v.params(&join(prefix, "v_proj"), f);
            }
        }
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        match self {
            Projection::Fused(qkv) => qkv.params_mut(&join(prefix, "qkv_proj"), f),
            Projection::Separate { q, k, v } => {
                q.params_mut(&join(prefix, "q_proj"), f);
                k.params_mut(&join(prefix, "k_proj"), f);
                v.params_mut(&join(prefix, "v_proj"), f);
            }
        }
    }
}

/// Some columns of q|k|v and the rows of the layer that make them.
struct Cut {
    /// Which layer.
    part: usize,
    /// Its rows.
    rows: Range<usize>,
    /// The columns they make, counted from the first one wanted.
    at: Range<usize>,
}

impl Projection {
    /// The columns of q, k and v together.
    pub(super) fn width(&self) -> usize {
        self.parts().iter().map(|part| part.weight.nrows()).sum()
    }

    /// The columns `columns` of q|k|v for the rows of x: [N, columns].
    pub(super) fn forward(&self, x: ArrayView2<f32>, columns: &Range<usize>) -> Result<Array2<f32>, Error> {
        let parts = self.parts();
        let layers: Vec<_> = (cuts(&parts, columns).into_iter())
            .map(|Cut { part, rows, .. }| {
                let Linear { weight, bias } = parts[part];
                let bias = bias.as_ref().map(|bias| bias.slice(s![rows.clone()]));
                (weight.operand().rows(rows).t(), bias)
            })
            .collect();
        Ok(affine_side_by_side(x, &layers, Threads::Rayon)?)
    }

    /// dx: [N, D], from the gradient of those columns.
    pub(super) fn backward(
        &self,
        x: ArrayView2<f32>,
        columns: &Range<usize>,
        dout: ArrayView2<f32>,
        grad: &mut Projection,
    ) -> Result<Array2<f32>, Error> {
        expect("the gradient of q, k and v", &[x.nrows(), columns.len()], dout.shape())?;
        let mut dx = None;
        let (parts, mut grads) = (self.parts(), grad.parts_mut());
        expect("the number of projections of the gradient", &[parts.len()], &[grads.len()])?;
        for Cut { part, rows, at } in cuts(&parts, columns) {
            let (dout, weight) = (dout.slice(s![.., at]), parts[part].weight.slice(s![rows.clone(), ..]));
            match &mut dx {
                None => dx = Some(affine(dout, weight, None, Threads::Rayon)?),
                Some(dx) => matmul(1.0, dout, weight, 1.0, dx, Threads::Rayon)?,
            }
            let Linear { weight: dweight, bias: dbias } = &mut *grads[part];
            let dbias = dbias.as_mut().map(|bias| bias.slice_mut(s![rows.clone()]));
            project_backward_parameters(x, dout, dweight.slice_mut(s![rows, ..]), dbias)?;
        }
        Ok(dx.unwrap_or_else(|| Array2::zeros(x.raw_dim())))
    }

    /// The layers in the order of their columns.
    pub(super) fn parts(&self) -> Vec<&Linear> {
        match self {
            Projection::Separate { q, k, v } => vec![q, k, v],
            Projection::Fused(qkv) => vec![qkv],
        }
    }

    fn parts_mut(&mut self) -> Vec<&mut Linear> {
        match self {
            Projection::Separate { q, k, v } => vec![q, k, v],
            Projection::Fused(qkv) => vec![qkv],
        }
    }
}

/// Which rows of which layer make these columns.
fn cuts(parts: &[&Linear], columns: &Range<usize>) -> Vec<Cut> {
    let mut next = 0;
    let all = parts.iter().enumerate().filter_map(|(part, linear)| {
        let start = next;
        next += linear.weight.nrows();
        let (first, end) = (columns.start.max(start), columns.end.min(next));
        (first < end).then(|| {
            let from = |origin: usize| first - origin..end - origin;
            Cut { part, rows: from(start), at: from(columns.start) }
        })
    });
    all.collect()
}
