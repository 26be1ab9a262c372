//! Multiplicative attention (Luong 2015): the score is a product of query and key, without a scale.
//!
//! $$ \text{dot: } s_{ij} = q_i \cdot k_j, \qquad \text{general: } s_{ij} = q_i^\top W k_j $$
//!
//! The second is the first with q′ = Wᵀq for q. So both run on [`Attention`], with all its masks and without ever storing the
//! matrix of weights; and from dq′, which it gives back, dq = W·dq′ and dW = Σ q·dq′ᵀ.

use std::ops::Range;

use ndarray::{Array2, Array3, Array4, ArrayView3, ArrayView4, Axis, s};

use crate::attention::{Attention, Forward};
use crate::mask::{Align, Mask};
use crate::shape::expect;
use crate::{Error, Pool, Threads, matmul};

/// Luong's dot and general attention.
///
/// ```
/// use foveal::LuongAttention;
/// use ndarray::{Array3, Array4};
///
/// // Queries of dimension 6 and keys of dimension 8, one head.
/// let luong = LuongAttention::general(Array3::ones((1, 6, 8)));
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
    attention: Attention,
}

/// What [`LuongAttention::backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
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
        LuongAttention { weight: None, attention: Attention::new().scale(1.0) }
    }

    /// s = q·W·k, with `weight` = W: [1, D of q, D of k] for all heads, or one for each of H heads.
    pub fn general(weight: Array3<f32>) -> Self {
        LuongAttention { weight: Some(weight), ..LuongAttention::dot() }
    }

    /// Which keys a query may see.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.attention = self.attention.mask(mask);
        self
    }

    /// Where the queries stand among the keys if T ≠ S.
    #[must_use]
    pub fn align(mut self, align: Align) -> Self {
        self.attention = self.attention.align(align);
        self
    }

    /// Who does the work.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.attention = self.attention.threads(threads);
        self
    }

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
            None => self.attention.forward(q, k, v),
            Some(q) => self.attention.forward(q.view(), k.into(), v.into()),
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
            let grads = self.attention.backward(q, k, v, fwd, dout)?;
            return Ok(LuongGradients { dq: grads.dq, dk: grads.dk, dv: grads.dv, dweight: None });
        };
        let grads = self.attention.backward(projected.view(), k, v, fwd, dout)?;
        let (mut dq, mut dweight) = (Array4::zeros(q.dim()), Array3::zeros(weight.dim()));
        let (batch, heads, ..) = q.dim();
        for b in 0..batch {
            for h in 0..heads {
                let at = h.min(weight.dim().0 - 1);
                let dq_projected = grads.dq.slice(s![b, h, .., ..]);
                let dq = dq.slice_mut(s![b, h, .., ..]);
                matmul(1.0, dq_projected, weight.index_axis(Axis(0), at).t(), 0.0, dq, self.attention.threads)?;
                let (q, dweight) = (q.slice(s![b, h, .., ..]), dweight.index_axis_mut(Axis(0), at));
                matmul(1.0, q.t(), dq_projected, 1.0, dweight, self.attention.threads)?;
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
            None => self.attention.weights(q, k),
            Some(q) => self.attention.weights(q.view(), k.into()),
        }
    }

    /// The weights of queries `rows` on keys `cols`, in sequence and head `at`. See [`Attention::tile`].
    ///
    /// # Errors
    /// As [`forward`](LuongAttention::forward); also if the rectangle does not lie within the matrix.
    pub fn tile<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, Error> {
        let q = q.into();
        match self.project(q)? {
            None => self.attention.tile(q, k, lse, at, rows, cols),
            Some(q) => self.attention.tile(q.view(), k.into(), lse.into(), at, rows, cols),
        }
    }

    /// A picture of the weights. See [`Attention::map`].
    ///
    /// # Errors
    /// As [`tile`](LuongAttention::tile); also if there are more pixels than cells in either direction.
    #[expect(clippy::too_many_arguments, reason = "as Attention::map")]
    pub fn map<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, Error> {
        let q = q.into();
        match self.project(q)? {
            None => self.attention.map(q, k, lse, at, rows, cols, pixels, pool),
            Some(q) => self.attention.map(q.view(), k.into(), lse.into(), at, rows, cols, pixels, pool),
        }
    }

    /// q′ = Wᵀq for every query; `None` for the dot product.
    fn project(&self, q: ArrayView4<f32>) -> Result<Option<Array4<f32>>, Error> {
        let Some(weight) = &self.weight else { return Ok(None) };
        let ((batch, heads, queries, dim), (of, _, to)) = (q.dim(), weight.dim());
        expect("Luong's weight", &[if of == 1 { 1 } else { heads }, dim, to], weight.shape())?;
        let mut projected = Array4::zeros((batch, heads, queries, to));
        for ((b, h), _) in ndarray::Array2::<()>::default((batch, heads)).indexed_iter() {
            let (q, weight) = (q.slice(s![b, h, .., ..]), weight.index_axis(Axis(0), h.min(of - 1)));
            matmul(1.0, q, weight, 0.0, projected.slice_mut(s![b, h, .., ..]), self.attention.threads)?;
        }
        Ok(Some(projected))
    }
}
