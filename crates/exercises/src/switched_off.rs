//! A real model with heads switched off, for the lessons' page: computed here once, shown there.

use foveal_models::OpenModel;
use foveal_models::analysis::ablate;
use foveal_models::trace::{Head, Kind};
use serde::Serialize;

use crate::Result;

/// What the model reads.
const TEXT: &str = "JULIET:\nO Romeo, Romeo! wherefore art thou Romeo?\nDeny thy father and refuse thy name.\n\nROMEO:\nShall I hear more, or shall I speak at this?\n\nJULIET";
/// Tokens that are listed.
const LISTED: usize = 5;

/// What a model predicts without each of its heads.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SwitchedOff {
    /// The model's name.
    pub model: String,
    /// What it reads.
    pub text: &'static str,
    /// Layers, and heads in each.
    pub layers: usize,
    /// Heads of a layer.
    pub heads: usize,
    /// The mean loss with all heads, in nats a token.
    pub loss: f32,
    /// The likeliest next tokens with all heads.
    pub next: Vec<(String, f32)>,
    /// Without each head, in the order of layers; after the heads of a layer, without all of that layer.
    pub without: Vec<Without>,
}

/// The same with something switched off.
#[derive(Clone, Debug, Serialize)]
pub struct Without {
    /// The layer.
    pub layer: usize,
    /// The head; none if it is the whole layer.
    pub head: Option<usize>,
    /// The mean loss.
    pub loss: f32,
    /// The likeliest next tokens.
    pub next: Vec<(String, f32)>,
}

/// Switches off every head of the model `shakespeare`, and every layer of heads.
///
/// # Errors
/// If the model cannot be opened.
pub fn switched_off() -> Result<SwitchedOff> {
    let open = OpenModel::open("shakespeare")?;
    let (model, tokenizer) = (open.model.as_language_model()?, open.tokenizer()?);
    let tokens = tokenizer.encode(TEXT)?;
    let shape = model.shape();
    let listed = |log: &ndarray::Array1<f32>| -> Result<Vec<(String, f32)>> {
        let mut order: Vec<usize> = (0..log.len()).collect();
        order.sort_by(|a, b| log[*b].total_cmp(&log[*a]));
        order.iter().take(LISTED).map(|&id| Ok((tokenizer.token(id as u32)?, log[id].exp()))).collect()
    };
    let (mut without, mut whole) = (Vec::new(), None);
    for layer in 0..shape.layers {
        for head in (0..shape.heads).map(Some).chain([None]) {
            let off = head.map_or(0..shape.heads, |head| head..head + 1);
            let off: Vec<Head> = off.map(|head| Head::new(Kind::Decoder, layer, head)).collect();
            let found = ablate(model, tokens.ids(), &off)?;
            without.push(Without { layer, head, loss: found.loss_without, next: listed(&found.next_without)? });
            whole.get_or_insert((found.loss, found.next));
        }
    }
    let (loss, next) = whole.unwrap_or_default();
    let next = listed(&next)?;
    Ok(SwitchedOff {
        model: open.name.clone(),
        text: TEXT,
        layers: shape.layers,
        heads: shape.heads,
        loss,
        next,
        without,
    })
}
