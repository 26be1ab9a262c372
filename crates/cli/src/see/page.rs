//! The page with all layers and heads.

use anyhow::Result;
use foveal_models::analysis::{norms, rollouts};
use foveal_models::trace::Kind;
use foveal_models::{Observation, TokenAxis};
use foveal_view::{Group, Page, Tokens};

use super::title;
use crate::output::Output;

/// Beyond this many tokens, rollout takes longer than anyone waits for a page.
const ROLLOUT: usize = 1024;

pub fn of(seen: &Observation, note: &str, output: &Output) -> Result<Page> {
    let kind = match seen.kind {
        Kind::Encoder => foveal_view::Kind::Encoder,
        Kind::Decoder => foveal_view::Kind::Decoder,
        Kind::Cross => foveal_view::Kind::Cross,
    };
    let mut group = Group::new(kind, tokens(&seen.queries), tokens(&seen.keys))?;
    for layer in seen.layers() {
        let trace = seen.layer(layer)?;
        let heads = |of: &dyn Fn(usize) -> foveal_models::Result<ndarray::Array2<f32>>| {
            (0..seen.heads()).map(of).collect::<foveal_models::Result<Vec<_>>>()
        };
        group = group
            .layer(heads(&|head| trace.weights(0, head))?)?
            .norms(heads(&|head| norms::of_head(trace, 0, head))?)?;
    }
    if !seen.is_cross() && seen.queries.len() <= ROLLOUT {
        let layers = rollouts(&seen.trace, seen.kind, 0)?;
        group = group.rollout(layers.collect::<foveal_models::Result<_>>()?)?;
    }
    Ok(Page::new(vec![group]).title(title(&seen.text)).note(note).language(output.language.into()))
}

fn tokens(side: &TokenAxis) -> Tokens {
    let words = side.groups.iter().enumerate().flat_map(|(word, group)| group.tokens.clone().map(move |_| word));
    Tokens::new(side.labels.clone())
        .words(words.collect::<Vec<_>>())
        .word_labels(side.groups.iter().map(|group| group.label.clone()))
        .special(side.special.clone())
}
