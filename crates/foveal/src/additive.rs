//! Additive attention (Bahdanau 2014): the score is a small network on query and key instead of their product.
//!
//! $$ s_{ij} = a \cdot \tanh(q_i + k_j), \qquad w_{ij} = e^{s_{ij} - lse_i}, \qquad out_i = \sum_j w_{ij} v_j $$
//!
//! q and k are what the paper calls W·s and U·h: its two matrices are linear layers before the attention, as they are with
//! every other kind. Backward, with t = tanh(qᵢ + kⱼ) and ds = w·(doutᵢ·vⱼ − doutᵢ·outᵢ) as for any softmax:
//!
//! $$ dq_i = \sum_j ds_{ij}\, a \circ (1 - t_{ij}^2), \qquad dk_j = \sum_i ds_{ij}\, a \circ (1 - t_{ij}^2), \qquad
//!    da = \sum_{ij} ds_{ij}\, t_{ij} $$
//!
//! Every row is computed by itself, first those of the queries and then those of the keys, so only one row of scores is kept at
//! a time. Every pair takes D values of tanh: this is for the short sequences for which Bahdanau proposed it.

mod call;

use ndarray::{Array2, Array3, Array4, ArrayView1, ArrayView3, ArrayView4, s};

use crate::attention::Attention;
use crate::results::Forward;
use crate::setters::setters;
use crate::shape::{Shape, expect_axes};
use crate::{Error, Head};
use call::{Call, fill, softmax, weight};

/// a, in messages.
const WEIGHT: &str = "the weight of additive attention";
const WEIGHT_AXES: &str = "[heads or 1, dim]";

/// Additive attention and its options, in the manner of [`Attention`].
///
/// ```
/// use foveal::AdditiveAttention;
/// use ndarray::{Array2, Array4};
///
/// let additive = AdditiveAttention::new(Array2::ones((1, 8)))?; // a, shared by all heads
/// let (q, k, v) = (Array4::ones((2, 1, 3, 8)), Array4::ones((2, 1, 5, 8)), Array4::ones((2, 1, 5, 4)));
/// let fwd = additive.forward(&q, &k, &v)?;
/// assert_eq!(fwd.out.dim(), (2, 1, 3, 4));
/// assert!((additive.weights(&q, &k)?[[0, 0, 0, 0]] - 0.2).abs() < 1e-6);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdditiveAttention {
    /// [1 or H, D]
    weight: Array2<f32>,
    /// Mask, alignment, threads and instruction set.
    options: Attention,
}

/// What [`AdditiveAttention::backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdditiveGradients {
    /// Shaped like q.
    pub dq: Array4<f32>,
    /// Shaped like k.
    pub dk: Array4<f32>,
    /// Shaped like v.
    pub dv: Array4<f32>,
    /// Shaped like a: [1 or H, D].
    pub dweight: Array2<f32>,
}

impl AdditiveAttention {
    /// With `weight` = a: [1, D] for all heads, or [H, D].
    ///
    /// # Errors
    /// If an axis of a has length 0.
    pub fn new(weight: Array2<f32>) -> Result<Self, Error> {
        AdditiveAttention::with_options(weight, &Attention::new())
    }

    /// With the masks and the alignment of `options`, and run as they say. Weights are not dropped at random here.
    ///
    /// # Errors
    /// [`Error::Unfit`] if they have a scale, a bias or a softcap; also as [`new`](AdditiveAttention::new).
    pub fn with_options(weight: Array2<f32>, options: &Attention) -> Result<Self, Error> {
        if weight.is_empty() {
            let at_least_one = weight.shape().iter().map(|size| (*size).max(1)).collect::<Vec<_>>();
            expect_axes(WEIGHT, WEIGHT_AXES, &at_least_one, weight.shape())?;
        }
        Ok(AdditiveAttention { weight, options: options.plain("additive attention")? })
    }

    setters!(options);

    /// The output and the log-sum-exp of every row: q [B, H, T, D], k [B, H/g, S, D], v [B, H/g, S, Dv].
    ///
    /// # Errors
    /// If shapes, head counts, lengths or options do not fit together; see [`Error`].
    pub fn forward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Forward, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let call = Call::new(self, q, k, Shape::of(&q, &k, &v)?)?;
        let rows = call.each(call.rows(), |(b, h, i)| {
            let (seen, mut weights) = call.scores(b, h, i);
            let lse = softmax(&mut weights);
            let mut out = vec![0.0; call.shape.value_dim];
            for (j, w) in seen.iter().zip(&weights) {
                let v = v.slice(s![b, h / call.shape.group(), *j, ..]);
                out.iter_mut().zip(v).for_each(|(out, v)| *out += w * v);
            }
            (out, lse)
        });
        let mut fwd = Forward { out: Array4::zeros(call.shape.out()), lse: Array3::zeros(call.shape.lse()) };
        fill(fwd.out.view_mut(), rows.iter().map(|(out, _)| &out[..]));
        fwd.lse.iter_mut().zip(&rows).for_each(|(x, (_, lse))| *x = f64::from(*lse));
        Ok(fwd)
    }

    /// The gradients of a loss whose gradient in `fwd.out` is `dout`.
    ///
    /// # Errors
    /// As [`forward`](AdditiveAttention::forward); also if `fwd` or `dout` do not fit.
    pub fn backward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        fwd: &Forward,
        dout: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<AdditiveGradients, Error> {
        let (q, k, v, dout) = (q.into(), k.into(), v.into(), dout.into());
        let shape = Shape::of(&q, &k, &v)?;
        let call = Call::new(self, q, k, shape)?;
        shape.check_backward(fwd, &dout)?;
        let group = shape.group();
        // doutᵢ·vⱼ − doutᵢ·outᵢ
        let slope = |b: usize, h: usize, i: usize, j: usize| {
            let dout = dout.slice(s![b, h, i, ..]);
            dout.dot(&v.slice(s![b, h / group, j, ..])) - dout.dot(&fwd.out.slice(s![b, h, i, ..]))
        };
        let by_row = call.each(call.rows(), |(b, h, i)| {
            let (seen, mut ds) = call.scores(b, h, i);
            ds.iter_mut().zip(&seen).for_each(|(x, j)| *x = weight(*x, fwd.lse[[b, h, i]] as f32) * slope(b, h, i, *j));
            let mut grads = (vec![0.0; call.width], vec![0.0; call.width]);
            call.gradient(call.query(b, h, i), call.keys_of(b, h), h, &seen, &ds, &mut grads);
            grads
        });
        let by_key = call.each(call.key_rows(), |(b, kv, j)| {
            let mut grads = (vec![0.0; call.width], vec![0.0; call.width]);
            let mut dv = vec![0.0; shape.value_dim];
            for h in kv * group..(kv + 1) * group {
                let (seen, mut ds) = call.scores_of_key(b, h, j);
                for (x, i) in ds.iter_mut().zip(&seen) {
                    let w = weight(*x, fwd.lse[[b, h, *i]] as f32);
                    dv.iter_mut().zip(dout.slice(s![b, h, *i, ..])).for_each(|(dv, dout)| *dv += w * dout);
                    *x = w * slope(b, h, *i, j);
                }
                call.gradient(call.key(b, kv, j), call.queries_of(b, h), h, &seen, &ds, &mut grads);
            }
            (grads.0, dv)
        });
        let mut grads = AdditiveGradients {
            dq: Array4::zeros(q.dim()),
            dk: Array4::zeros(k.dim()),
            dv: Array4::zeros(v.dim()),
            dweight: Array2::zeros(self.weight.dim()),
        };
        fill(grads.dq.view_mut(), by_row.iter().map(|(dq, _)| &dq[..shape.dim]));
        fill(grads.dk.view_mut(), by_key.iter().map(|(dk, _)| &dk[..shape.dim]));
        fill(grads.dv.view_mut(), by_key.iter().map(|(_, dv)| &dv[..]));
        for ((_, h, _), (_, dweight)) in call.rows().into_iter().zip(&by_row) {
            let mut row = grads.dweight.row_mut(h.min(self.weight.dim().0 - 1));
            row += &ArrayView1::from(&dweight[..shape.dim]);
        }
        Ok(grads)
    }

    /// All weights: [B, H, T, S].
    ///
    /// # Errors
    /// As [`forward`](AdditiveAttention::forward).
    pub fn weights<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Array4<f32>, Error> {
        let (q, k) = (q.into(), k.into());
        let call = Call::new(self, q, k, Shape::of_scores(&q, &k)?)?;
        let mut out = Array4::zeros((call.shape.batch, call.shape.heads, call.shape.queries, call.shape.keys));
        let rows = call.each(call.rows(), |(b, h, i)| {
            let (seen, mut weights) = call.scores(b, h, i);
            softmax(&mut weights);
            let mut row = vec![0.0; call.shape.keys];
            seen.iter().zip(weights).for_each(|(j, w)| row[*j] = w);
            row
        });
        fill(out.view_mut(), rows.iter().map(|row| &row[..]));
        Ok(out)
    }

    /// One head of one sequence, of which any rectangle of the weights can be asked ([`Head::tile`]), or a picture of them
    /// ([`Head::map`]).
    ///
    /// # Errors
    /// As [`forward`](AdditiveAttention::forward); also if `lse` does not fit, or there is no such sequence or head.
    pub fn head<'a>(
        &'a self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f64>>,
        at: (usize, usize),
    ) -> Result<Head<'a>, Error> {
        let (q, k, lse) = (q.into(), k.into(), lse.into());
        let call = Call::new(self, q, k, Shape::of_scores(&q, &k)?)?;
        call.shape.check_head_and_lse(&lse, at)?;
        let (size, threads) = ((call.shape.queries, call.shape.keys), self.options.threads);
        Ok(Head::of_tiles(size, threads, Box::new(move |rows, cols| call.rectangle(lse, at, rows, cols))))
    }
}
