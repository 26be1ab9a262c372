//! The head that guesses masked words, whose last layer is the embedding once more, unless it has a matrix of its own.
//!
//! $$ \mathrm{logits} = \mathrm{norm}(f(x W^\top + b))\, E^\top + c $$

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::Result;
use crate::layer::activation::Slopes;
use crate::layer::{Activation, Embedding, LayerNorm, Linear, Random, layer_norm, parameters};

/// Guesses words: logits = norm(f(x·Wᵀ + b))·Eᵀ + c.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedHead {
    /// W and b: [D, D].
    pub dense: Linear,
    /// f.
    pub activation: Activation,
    /// The norm.
    pub norm: LayerNorm,
    /// What scores the words where E does not: [V, D].
    pub decoder: Option<Embedding>,
    /// c: \[V\].
    pub bias: Array1<f32>,
}

parameters!(MaskedHead { dense: "dense", norm: "norm", decoder: "decoder", bias: "bias" });

/// What [`MaskedHead::backward`] needs.
#[derive(Debug)]
pub(super) struct Saved {
    /// The input: [N, D].
    x: Array2<f32>,
    /// The slopes of the activation: [N, D].
    slopes: Slopes,
    norm: layer_norm::Saved,
    /// What E scores: [N, D].
    normed: Array2<f32>,
}

impl MaskedHead {
    pub(super) fn new(
        vocabulary: usize,
        activation: Activation,
        norm: LayerNorm,
        decoder: Option<Embedding>,
        random: &mut Random,
    ) -> Self {
        let width = norm.weight.len();
        let bias = Array1::zeros(vocabulary);
        MaskedHead { dense: Linear::new(width, width, random), activation, norm, decoder, bias }
    }

    /// logits: [N, V] for x: [N, D].
    pub(super) fn infer(&self, x: ArrayView2<f32>, tokens: &Embedding) -> Result<Array2<f32>> {
        let mut x = self.dense.forward(x)?;
        self.activation.apply(&mut x);
        let mut logits = self.decoder.as_ref().unwrap_or(tokens).logits(&self.norm.infer(&x)?)?;
        logits += &self.bias;
        Ok(logits)
    }

    /// The same, with what [`backward`](MaskedHead::backward) needs.
    pub(super) fn forward(&self, x: Array2<f32>, tokens: &Embedding) -> Result<(Array2<f32>, Saved)> {
        let hidden = self.dense.forward(&x)?;
        let (active, slopes) = self.activation.forward(hidden);
        let (normed, norm) = self.norm.forward(&active)?;
        let mut logits = self.decoder.as_ref().unwrap_or(tokens).logits(&normed)?;
        logits += &self.bias;
        Ok((logits, Saved { x, slopes, norm, normed }))
    }

    /// dx: [N, D].
    pub(super) fn backward(
        &self,
        saved: &Saved,
        dlogits: &Array2<f32>,
        tokens: &Embedding,
        (grad, dtokens): (&mut MaskedHead, &mut Embedding),
    ) -> Result<Array2<f32>> {
        let dnormed = match (&self.decoder, &mut grad.decoder) {
            (Some(decoder), Some(ddecoder)) => decoder.logits_backward(&saved.normed, dlogits, ddecoder)?,
            _ => tokens.logits_backward(&saved.normed, dlogits, dtokens)?,
        };
        grad.bias += &dlogits.sum_axis(Axis(0));
        let mut dhidden = self.norm.backward(&saved.norm, dnormed, &mut grad.norm)?;
        saved.slopes.apply(&mut dhidden)?;
        self.dense.backward(&saved.x, &dhidden, &mut grad.dense)
    }
}
