//! How much each head matters, by the gradient (Michel 2019).
//!
//! $$ I_h = \mathbb{E}_x \left| \frac{\partial L}{\partial \xi_h} \right|, \qquad o_h \leftarrow \xi_h\, o_h \text{ at } \xi = 1 $$
//!
//! One backward pass for each text tells all heads at once, where [`ablation`](super::ablation) takes a run for each head.

use std::collections::BTreeMap;

use ndarray::Array1;

use crate::layer::CrossEntropy;
use crate::model::Trained;
use crate::trace::Site;
use crate::{Error, Result};

/// I of every head, \[H\] for each layer: the mean over the texts.
///
/// # Errors
/// If there is no text, or one has fewer than two tokens or more than the model can see.
pub fn importance<M: Trained, T: AsRef<[u32]>>(model: &M, texts: &[T]) -> Result<BTreeMap<Site, Array1<f32>>> {
    if texts.is_empty() {
        return Err(Error::TooShort { tokens: 0, least: 2 });
    }
    let mut sums: BTreeMap<Site, Array1<f32>> = BTreeMap::new();
    // The gradients of the parameters come along and are not looked at.
    let mut grad = model.zeros_like();
    for text in texts {
        let text = text.as_ref();
        if text.len() < 2 {
            return Err(Error::TooShort { tokens: text.len(), least: 2 });
        }
        let (mut logits, saved) = model.forward(&text[..text.len() - 1], 1, None)?;
        CrossEntropy::new().forward_backward(&mut logits, &text[1..])?;
        for (site, dgates) in model.backward(&saved, &logits, &mut grad)? {
            let share = dgates.row(0).mapv(|d| d.abs() / texts.len() as f32);
            sums.entry(site).and_modify(|sum| *sum += &share).or_insert(share);
        }
    }
    Ok(sums)
}
