//! Multiplicative attention (Luong 2015): the score is a product of query and key, without a scale.
//!
//! $$ \text{dot: } s_{ij} = q_i \cdot k_j, \qquad \text{general: } s_{ij} = q_i^\top W k_j $$
//!
//! The second is the first with q′ = Wᵀq in place of q. So both run on [`Attention`], with all its masks and without ever
//! storing the matrix of weights; from the dq′ that it gives back follow dq = W·dq′ and dW = Σ q·dq′ᵀ.

use std::ops::Range;

use ndarray::{Array3, Array4, ArrayView3, ArrayView4, Axis, s};

use crate::attention::Attention;
use crate::results::Forward;
use crate::setters::setters;
use crate::shape::expect_axes;
use foveal_compute::matmul;

use crate::{Error, Head};

/// W, in messages.
const WEIGHT: &str = "Luong's weight";
const WEIGHT_AXES: &str = "[heads or 1, dim of q, dim of k]";

/// Luong's dot and general attention.
///
/// ```
/// use foveal::LuongAttention;
/// use ndarray::{Array3, Array4};
///
/// // Queries of dimension 6 and keys of dimension 8, one head.
/// let luong = LuongAttention::general(Array3::ones((1, 6, 8)))?;
/// let (q, k, v) = (Array4::ones((2, 1, 3, 6)), Array4::ones((2, 1, 5, 8)), Array4::ones((2, 1, 5, 8)));
/// let fwd = luong.forward(&q, &k, &v)?;
/// let grads = luong.backward(&q, &k, &v, &fwd, &fwd.out)?;
/// assert_eq!(grads.dweight.unwrap().dim(), (1, 6, 8));
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LuongAttention {
    /// W: [1 or H, D of q, D of k]; none for the dot product.
    weight: Option<Array3<f32>>,
    options: Attention,
}

/// What [`LuongAttention::backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LuongGradients {
    /// Shaped like q.
    pub dq: Array4<f32>,
    /// Shaped like k.
    pub dk: Array4<f32>,
    /// Shaped like v.
    pub dv: Array4<f32>,
    /// Shaped like W. `None` for the dot product.
    pub dweight: Option<Array3<f32>>,
}

impl LuongAttention {
    /// s = q·k.
    pub fn dot() -> Self {
        LuongAttention { weight: None, options: Attention::new().scale(1.0) }
    }

    /// s = q·W·k, with `weight` = W: [1, D of q, D of k] for all heads, or one for each of H heads.
    ///
    /// # Errors
    /// If an axis of W has length 0.
    pub fn general(weight: Array3<f32>) -> Result<Self, Error> {
        if weight.is_empty() {
            let at_least_one = weight.shape().iter().map(|size| (*size).max(1)).collect::<Vec<_>>();
            expect_axes(WEIGHT, WEIGHT_AXES, &at_least_one, weight.shape())?;
        }
        Ok(LuongAttention { weight: Some(weight), ..LuongAttention::dot() })
    }

    setters!(options);

    /// The output and the log-sum-exp of every row.
    ///
    /// # Errors
    /// As [`Attention::forward`]; also if W does not fit q.
    pub fn forward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Forward, Error> {
        let q = q.into();
        match self.project(q)? {
            None => self.options.forward(q, k.into(), v.into()),
            Some(q) => self.options.forward(q.view(), k.into(), v.into()),
        }
    }

    /// The gradients of a loss whose gradient in `fwd.out` is `dout`.
    ///
    /// # Errors
    /// As [`forward`](LuongAttention::forward); also if `fwd` or `dout` do not fit.
    pub fn backward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        fwd: &Forward,
        dout: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<LuongGradients, Error> {
        let (q, k, v, dout) = (q.into(), k.into(), v.into(), dout.into());
        let (Some(projected), Some(weight)) = (self.project(q)?, &self.weight) else {
            let grads = self.options.backward(q, k, v, fwd, dout)?;
            return Ok(LuongGradients { dq: grads.dq, dk: grads.dk, dv: grads.dv, dweight: None });
        };
        let grads = self.options.backward(projected.view(), k, v, fwd, dout)?;
        let (mut dq, mut dweight) = (Array4::zeros(q.dim()), Array3::zeros(weight.dim()));
        let (batch, heads, ..) = q.dim();
        for b in 0..batch {
            for h in 0..heads {
                let at = h.min(weight.dim().0 - 1);
                let dq_projected = grads.dq.slice(s![b, h, .., ..]);
                let dq = dq.slice_mut(s![b, h, .., ..]);
                matmul(1.0, dq_projected, weight.index_axis(Axis(0), at).t(), 0.0, dq, self.options.threads)?;
                let (q, dweight) = (q.slice(s![b, h, .., ..]), dweight.index_axis_mut(Axis(0), at));
                matmul(1.0, q.t(), dq_projected, 1.0, dweight, self.options.threads)?;
            }
        }
        Ok(LuongGradients { dq, dk: grads.dk, dv: grads.dv, dweight: Some(dweight) })
    }

    /// All weights: [B, H, T, S].
    ///
    /// # Errors
    /// As [`forward`](LuongAttention::forward).
    pub fn weights<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Array4<f32>, Error> {
        let q = q.into();
        match self.project(q)? {
            None => self.options.weights(q, k.into()),
            Some(q) => self.options.weights(q.view(), k.into()),
        }
    }

    /// One head of one sequence, of which any rectangle of the weights can be asked ([`Head::tile`]), or a picture of them
    /// ([`Head::map`]).
    ///
    /// # Errors
    /// As [`forward`](LuongAttention::forward); also if `lse` does not fit, or there is no such sequence or head.
    pub fn head<'a>(
        &'a self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f64>>,
        at: (usize, usize),
    ) -> Result<Head<'a>, Error> {
        let (q, k, lse) = (q.into(), k.into(), lse.into());
        let Some(projected) = self.project(q)? else { return self.options.head(q, k, lse, at) };
        let head = self.options.head(&projected, k, lse, at)?;
        let (size, threads) = ((head.queries(), head.keys()), self.options.threads);
        drop(head);
        let tile = move |rows: &Range<usize>, cols: &Range<usize>| {
            let head = self.options.head(&projected, k, lse, at).expect("checked above");
            head.tile(rows.clone(), cols.clone()).expect("asked for within the head")
        };
        Ok(Head::of_tiles(size, threads, Box::new(tile)))
    }

    /// q′ = Wᵀq for every query; `None` for the dot product.
    fn project(&self, q: ArrayView4<f32>) -> Result<Option<Array4<f32>>, Error> {
        let Some(weight) = &self.weight else { return Ok(None) };
        let ((batch, heads, queries, dim), (of, _, to)) = (q.dim(), weight.dim());
        expect_axes(WEIGHT, WEIGHT_AXES, &[if of == 1 { 1 } else { heads }, dim, to], weight.shape())?;
        let mut projected = Array4::zeros((batch, heads, queries, to));
        for b in 0..batch {
            for h in 0..heads {
                let (q, weight) = (q.slice(s![b, h, .., ..]), weight.index_axis(Axis(0), h.min(of - 1)));
                matmul(1.0, q, weight, 0.0, projected.slice_mut(s![b, h, .., ..]), self.options.threads)?;
            }
        }
        Ok(Some(projected))
    }
}
