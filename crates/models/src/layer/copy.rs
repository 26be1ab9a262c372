//! A decoder that may copy (See 2017): one head of its cross-attention is a pointer into the sequence that was read.
//!
//! $$ p_{nv} = (1 - g_n)\, \mathrm{softmax}(x_n)_v + g_n \sum_j a_{nj}\, [s_j = v], \qquad g = \sigma(h\, w^\top + b) $$
//!
//! with the scores x of all tokens, the decoder's vectors h, the weights a of that head and the tokens s that were read. A
//! token that was never learned can be written so: its weight is the sum of those of its places. With
//! $d p_{nv} = \partial L / \partial p_{nv}$ and the softmax y of the scores:
//!
//! $$ dx_{nv} = (1 - g_n)\, y_{nv} \left( dp_{nv} - \textstyle\sum_u y_{nu}\, dp_{nu} \right), \qquad
//!    da_{nj} = g_n\, dp_{n s_j}, \qquad
//!    d(h\, w^\top + b)_n = g_n (1 - g_n) \textstyle\sum_v dp_{nv} \left( \sum_j a_{nj} [s_j = v] - y_{nv} \right) $$
//!
//! ```
//! use foveal_models::layer::{CopyHead, Pointed, Random};
//! use ndarray::{Array2, Array3};
//!
//! // A gate of σ(0) = ½, a flat softmax over ten tokens, and a pointer on a sequence that has token 7 twice.
//! let head = CopyHead::new(4, &mut Random::zeros());
//! let weights = Array3::from_elem((1, 1, 4), 0.25);
//! let pointed = Pointed { weights: weights.view(), tokens: &[7, 1, 7, 3] };
//! let mixture = head.forward(&Array2::ones((1, 4)), Array2::zeros((1, 10)), pointed)?;
//! assert!((mixture.log_probabilities()[[0, 7]].exp() - (0.5 / 10.0 + 0.5 * 0.5)).abs() < 1e-6);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use std::ops::AddAssign;

use foveal::Forward;
use ndarray::{Array1, Array2, Array3, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayViewMut4, Axis, s};

use super::shape::expect;
use super::{AttentionRecord, BoundAttention, CrossEntropy, Linear, Loss, Random, parameters, vector};
use crate::Error;

/// Probabilities below this count as this: a logarithm must be finite.
const LEAST: f32 = 1e-30;

/// The gate between writing and copying.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyHead {
    /// w and b: [1, D].
    pub gate: Linear,
}

parameters!(CopyHead { gate: "gate" });

/// Where the pointer points.
#[derive(Clone, Copy, Debug)]
pub struct Pointed<'a> {
    /// a: [B, T, S], the weights of one head.
    pub weights: ArrayView3<'a, f32>,
    /// s: [B·S], the tokens that were read. Those with a weight of 0 do not count.
    pub tokens: &'a [u32],
}

/// What [`MultiHeadAttention`](super::MultiHeadAttention) is told on the way back when one of its heads is a pointer.
#[derive(Clone, Copy, Debug)]
pub struct PointerGradient<'a> {
    /// The head.
    pub head: usize,
    /// da: [B, T, S].
    pub dweights: ArrayView3<'a, f32>,
}

/// The probabilities of all tokens, in their two parts.
#[derive(Clone, Debug)]
pub struct Mixture<'a> {
    /// y, the softmax of the scores: [N, V].
    generated: Array2<f32>,
    /// g: \[N\].
    gates: Array1<f32>,
    pointed: Pointed<'a>,
}

/// The gradients of a [`Mixture`].
#[derive(Clone, Debug)]
pub struct Gradients {
    /// dx: [N, V].
    pub dlogits: Array2<f32>,
    /// The gradient of h·wᵀ + b: [N, 1].
    pub dgates: Array2<f32>,
    /// da: [B, T, S].
    pub dweights: Array3<f32>,
}

impl CopyHead {
    /// For vectors of this width: weights of deviation 0.02, a gate that is half open.
    pub fn new(width: usize, random: &mut Random) -> Self {
        CopyHead { gate: Linear::new(width, 1, random) }
    }

    /// The probabilities of all tokens, from h: [N, D] and scores [N, V], N = B·T.
    ///
    /// # Errors
    /// If the shapes do not fit, or a token that was read is not in the vocabulary.
    pub fn forward<'a, 'h>(
        &self,
        hidden: impl Into<ArrayView2<'h, f32>>,
        mut logits: Array2<f32>,
        pointed: Pointed<'a>,
    ) -> Result<Mixture<'a>, Error> {
        let ((b, t, s), (n, vocabulary)) = (pointed.weights.dim(), logits.dim());
        expect("the scores of a copy head", &[b * t, vocabulary], &[n, vocabulary])?;
        expect("the tokens of a pointer", &[b * s], &[pointed.tokens.len()])?;
        if let Some(&id) = pointed.tokens.iter().find(|token| **token as usize >= vocabulary) {
            return Err(Error::TokenId { id, vocabulary });
        }
        let gates = self.gate.forward(hidden)?;
        expect("the gate of a copy head", &[n, 1], gates.shape())?;
        for mut row in logits.outer_iter_mut() {
            softmax(row.as_slice_mut().expect("scores are made in standard layout"));
        }
        Ok(Mixture { generated: logits, gates: gates.column(0).mapv(vector::sigmoid), pointed })
    }

    /// dh: [N, D], from the gradients of the gates.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn backward<'h>(
        &self,
        hidden: impl Into<ArrayView2<'h, f32>>,
        gradients: &Gradients,
        grad: &mut CopyHead,
    ) -> Result<Array2<f32>, Error> {
        self.gate.backward(hidden, &gradients.dgates, &mut grad.gate)
    }
}

impl Mixture<'_> {
    /// g, how much of each token was copied: \[N\].
    pub fn gates(&self) -> ArrayView1<'_, f32> {
        self.gates.view()
    }

    /// ln p: [N, V].
    pub fn log_probabilities(&self) -> Array2<f32> {
        let mut all = self.generated.clone();
        for (n, mut row) in all.outer_iter_mut().enumerate() {
            let gate = self.gates[n];
            row.mapv_inplace(|y| (1.0 - gate) * y);
            for (token, weight) in self.pointers(n) {
                row[token] += gate * weight;
            }
            row.mapv_inplace(|p| p.max(LEAST).ln());
        }
        all
    }

    /// The loss −ln p of these targets, with its options, and all gradients.
    ///
    /// # Errors
    /// If there are not as many targets as rows, or a target is no token.
    pub fn loss_backward(self, options: &CrossEntropy, targets: &[u32]) -> Result<(Loss, Gradients), Error> {
        let log_p = self.log_probabilities();
        let (n, vocabulary) = log_p.dim();
        // ln p is its own log-softmax: the loss of probabilities is that of these scores.
        let loss = options.forward(&log_p, targets)?;
        let scale = 1.0 / options.of.unwrap_or(loss.counted).max(1) as f32;
        let (sharp, flat) = (1.0 - options.label_smoothing, options.label_smoothing / vocabulary as f32);
        let mut dgates = Array2::zeros((n, 1));
        let mut dweights = Array3::zeros(self.pointed.weights.raw_dim());
        let tokens = dweights.dim().1.max(1);
        let mut dlogits = log_p;
        for (n, mut row) in dlogits.outer_iter_mut().enumerate() {
            if options.ignore == Some(targets[n]) {
                row.fill(0.0);
                continue;
            }
            // From ln p to dp.
            let (gate, target) = (self.gates[n], targets[n] as usize);
            let at_target = -scale * sharp / row[target].exp();
            match flat > 0.0 {
                true => row.mapv_inplace(|log_p| -scale * flat * (-log_p).exp()),
                false => row.fill(0.0),
            }
            row[target] += at_target;
            let y = self.generated.row(n);
            let mean = y.dot(&row);
            let mut dgate = -mean;
            for ((token, weight), da) in self.pointers(n).zip(dweights.slice_mut(s![n / tokens, n % tokens, ..])) {
                dgate += weight * row[token];
                *da = gate * row[token];
            }
            dgates[[n, 0]] = dgate * gate * (1.0 - gate);
            row.zip_mut_with(&y, |dp, y| *dp = (1.0 - gate) * y * (*dp - mean));
        }
        Ok((loss, Gradients { dlogits, dgates, dweights }))
    }

    /// The tokens that row n points at, with their weights.
    fn pointers(&self, n: usize) -> impl Iterator<Item = (usize, f32)> {
        let (_, t, s) = self.pointed.weights.dim();
        let (sequence, row) = (n / t.max(1), n % t.max(1));
        let tokens = &self.pointed.tokens[sequence * s..(sequence + 1) * s];
        let weights = self.pointed.weights.slice_move(s![sequence, row, ..]);
        tokens.iter().zip(weights).map(|(token, weight)| (*token as usize, *weight))
    }
}

impl AttentionRecord {
    /// The weights of one head for a pointer: [B, T, S], without dropout.
    ///
    /// # Errors
    /// As [`weights`](AttentionRecord::weights); also if there is no such head.
    pub fn pointer(&self, head: usize) -> Result<Array3<f32>, Error> {
        let ((b, _, t, _), s) = (self.q.dim(), self.k.dim().2);
        let mut all = Array3::zeros((b, t, s));
        for (sequence, mut weights) in all.outer_iter_mut().enumerate() {
            let keys = ((&self.q).into(), (&self.k).into(), self.forward.lse.view());
            weights.assign(&self.attention.tile(keys, (sequence, head), 0..t, 0..s)?);
        }
        Ok(all)
    }
}

impl PointerGradient<'_> {
    /// Adds the gradients of a head that was a pointer to those of the queries, [B, H, T, Dh], and of the keys,
    /// [B, G, S, Dh]. The engine knows the gradient of outputs, not of weights; but with values $V = da^\top$ and a gradient
    /// of the outputs that is the identity, $dp = dO\, V^\top$ is da.
    pub(super) fn backward(
        &self,
        record: &AttentionRecord,
        mut dq: ArrayViewMut4<f32>,
        mut dk: ArrayViewMut4<f32>,
    ) -> Result<(), Error> {
        let ((b, h, t, dim), (_, g, s, _)) = (record.q.dim(), record.k.dim());
        expect("the gradient of a pointer", &[b, t, s], self.dweights.shape())?;
        if self.head >= h {
            let (start, end, limit) = (self.head, self.head + 1, h);
            return Err(foveal::Error::Range { what: "head", start, end, limit }.into());
        }
        let (head, key_head) = (self.head..=self.head, self.head * g / h);
        let key_head = key_head..=key_head;
        let (q, k) = (record.q.slice(s![.., head.clone(), .., ..]), record.k.slice(s![.., key_head.clone(), .., ..]));
        let v = self.dweights.permuted_axes([0, 2, 1]).insert_axis(Axis(1));
        let dout = Array2::<f32>::eye(t);
        let dout = dout.broadcast((b, 1, t, t)).expect("leading axes can be added");
        let attention = match &record.attention {
            BoundAttention::Softmax(attention) => BoundAttention::Softmax(attention.clone().dropout(0.0, 0)),
            other => other.clone(),
        };
        let mut forward = Forward { out: Array4::zeros((b, 1, t, t)), lse: Array3::zeros((b, 1, t)) };
        attention.forward_into((q.into(), k.into(), v.into()), forward.out.view_mut(), forward.lse.view_mut())?;
        let (mut more_dq, mut more_dk) = (Array4::zeros((b, 1, t, dim)), Array4::zeros((b, 1, s, dim)));
        let mut dv = Array4::zeros((b, 1, s, t));
        let targets = (more_dq.view_mut(), more_dk.view_mut(), dv.view_mut());
        attention.backward_into((q, k, v), &forward, dout, targets)?;
        dq.slice_mut(s![.., head, .., ..]).add_assign(&more_dq);
        dk.slice_mut(s![.., key_head, .., ..]).add_assign(&more_dk);
        Ok(())
    }
}

/// Scores to probabilities, in place.
fn softmax(row: &mut [f32]) {
    foveal_compute::vectorise(
        #[inline(always)]
        || {
            let max = vector::max(row);
            row.iter_mut().for_each(|x| *x = vector::exp(*x - max));
            let factor = 1.0 / vector::sum(row, |x| x);
            row.iter_mut().for_each(|x| *x *= factor);
        },
    );
}
