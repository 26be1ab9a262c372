//! How much each head matters, by the gradient (Michel 2019).
//!
//! $$ I_h = \mathbb{E}_x \left| \frac{\partial L}{\partial \xi_h} \right|, \qquad o_h \leftarrow \xi_h\, o_h \text{ at } \xi = 1 $$
//!
//! One backward pass for each text tells all heads at once, where [`ablation`](super::ablation) takes a run for each head.

use std::collections::BTreeMap;

use ndarray::{Array1, Axis};

use crate::layer::{CrossEntropy, Parameters};
use crate::model::{Bert, HeadGradients, Masked, Trained};
use crate::trace::Site;
use crate::{Error, Result};

/// I of every head, \[H\] for each layer: the mean over the texts, where L is the loss of predicting each next token.
///
/// # Errors
/// If there is no text, or one has fewer than two tokens or more than the model can see.
pub fn importance<M: Trained, T: AsRef<[u32]>>(model: &M, texts: &[T]) -> Result<BTreeMap<Site, Array1<f32>>> {
    // The gradients of the parameters come along and are not looked at.
    let mut grad = model.zeros_like();
    mean(texts, 2, |text| {
        let text = text.as_ref();
        if text.len() < 2 {
            return Err(Error::TooShort { tokens: text.len(), least: 2 });
        }
        let (mut logits, saved) = model.forward(&text[..text.len() - 1], 1, None)?;
        CrossEntropy::new().forward_backward(&mut logits, &text[1..])?;
        model.backward(&saved, &logits, &mut grad)
    })
}

/// The same for BERT, where L is the loss of guessing the masked words of a text.
///
/// # Errors
/// If there is no text, one has no masked word or more tokens than the model can see, or the model has no head that guesses.
pub fn of_masked(model: &Bert, texts: &[Masked]) -> Result<BTreeMap<Site, Array1<f32>>> {
    let mut grad = model.zeros_like();
    mean(texts, 1, |text| {
        if text.words().is_empty() {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        let (mut logits, saved) = model.forward(text, None)?;
        CrossEntropy::new().forward_backward(&mut logits, text.words())?;
        model.backward(&saved, &logits, &mut grad)
    })
}

/// The mean of |∂L/∂ξ| over the texts, of which there is at least one of `least` tokens.
fn mean<T>(
    texts: &[T],
    least: usize,
    mut gradients: impl FnMut(&T) -> Result<HeadGradients>,
) -> Result<BTreeMap<Site, Array1<f32>>> {
    if texts.is_empty() {
        return Err(Error::TooShort { tokens: 0, least });
    }
    let mut sums: BTreeMap<Site, Array1<f32>> = BTreeMap::new();
    for text in texts {
        for (site, dgates) in gradients(text)? {
            let share = dgates.sum_axis(Axis(0)).mapv(|d| d.abs() / texts.len() as f32);
            sums.entry(site).and_modify(|sum| *sum += &share).or_insert(share);
        }
    }
    Ok(sums)
}
