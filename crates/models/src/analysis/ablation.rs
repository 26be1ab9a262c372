//! What a model loses without some of its heads.

use ndarray::{Array1, Axis};

use crate::layer::{CrossEntropy, log_softmax};
use crate::model::LanguageModel;
use crate::trace::{Head, Kind, Probe};
use crate::{Error, Result};

/// A run with heads switched off, against one with all.
#[derive(Clone, Debug, PartialEq)]
pub struct Ablation {
    /// The mean of −ln p(next token) with all heads.
    pub loss: f32,
    /// The same without the heads.
    pub loss_without: f32,
    /// ln p of every token to come after the text, with all heads: \[V\].
    pub next: Array1<f32>,
    /// The same without the heads.
    pub next_without: Array1<f32>,
}

impl Ablation {
    /// ΔL: how much harder the text becomes to predict.
    pub fn change(&self) -> f32 {
        self.loss_without - self.loss
    }

    /// The Kullback-Leibler divergence Σ p ln(p / q) of the next token's distribution without the heads, q, from that with
    /// them, p: in nats.
    pub fn divergence(&self) -> f32 {
        let terms = self.next.iter().zip(&self.next_without).map(|(p, q)| f64::from(p.exp()) * f64::from(p - q));
        terms.filter(|term| !term.is_nan()).sum::<f64>() as f32
    }
}

/// Switches these heads off.
///
/// # Errors
/// If the text has fewer than two tokens or more than the model can see, or there is no such head.
pub fn ablate(model: &dyn LanguageModel, text: &[u32], heads: &[Head]) -> Result<Ablation> {
    let shape = model.shape();
    if let Some(head) = heads
        .iter()
        .find(|head| head.site.kind != Kind::Decoder || head.site.layer >= shape.layers || head.head >= shape.heads)
    {
        return Err(Error::NoHead { head: *head, layers: shape.layers, heads: shape.heads });
    }
    let (loss, next) = run(model, text, &mut Probe::default())?;
    let (loss_without, next_without) = run(model, text, &mut Probe::default().without(heads.iter().copied()))?;
    Ok(Ablation { loss, loss_without, next, next_without })
}

/// ΔL of every head by itself, in the order of layers and heads.
///
/// # Errors
/// As [`ablate`].
pub fn each(model: &dyn LanguageModel, text: &[u32]) -> Result<Vec<(Head, f32)>> {
    let (shape, whole) = (model.shape(), model.loss(text, &mut Probe::default())?.mean);
    let heads = (0..shape.layers).flat_map(|layer| (0..shape.heads).map(move |h| Head::new(Kind::Decoder, layer, h)));
    heads.map(|head| Ok((head, model.loss(text, &mut Probe::default().without([head]))?.mean - whole))).collect()
}

/// The loss, and the distribution of the token after the text.
fn run(model: &dyn LanguageModel, text: &[u32], probe: &mut Probe) -> Result<(f32, Array1<f32>)> {
    if text.len() < 2 {
        return Err(Error::TooShort { tokens: text.len(), least: 2 });
    }
    let hidden = model.infer(text, 1, None, probe)?;
    let logits = model.logits(hidden.view())?;
    let (known, next) = logits.view().split_at(Axis(0), text.len() - 1);
    Ok((CrossEntropy::new().forward(known, &text[1..])?.mean, log_softmax(next.row(0))))
}
