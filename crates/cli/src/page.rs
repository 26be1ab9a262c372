//! The page of what a model has read: its layers as the page computes with them, and its tokens.

use anyhow::{Result, bail};
use foveal_models::layer::BoundAttention;
use foveal_models::trace::{Kind, LayerTrace, Trace, TraceArray};
use foveal_models::{Observation, TokenAxis};
use foveal_view::{Group, Layer, Page, Storage, Tokens};
use ndarray::{Array2, Array3, Axis};

use crate::arguments::PageOptions;
use crate::output::Output;

/// Tokens of an attention that a page cannot compute, and holds as weights, at most.
const MOST_WEIGHTS: usize = 1024;

/// The page of an observation, with all kinds of attention that were seen. `salient`: the layer and head it opens with.
pub fn of(seen: &Observation, salient: (usize, usize), options: &PageOptions, output: &Output) -> Result<Page> {
    let mut groups = Vec::new();
    for kind in seen.trace.kinds() {
        let (queries, keys) = axes(seen, kind);
        let group = group(&seen.trace, kind, (queries, keys), options)?;
        groups.push(if kind == seen.kind { group.salient(salient.0, salient.1) } else { group });
    }
    let next = seen.predictions.iter().map(|next| (next.label.clone(), next.probability));
    let page = page(groups, options, output).next(next).view("site", seen.kind.to_string());
    Ok(match &seen.written {
        Some(written) => page.written(written.text.clone()),
        None => page,
    })
}

/// A page of these groups.
pub fn page(groups: Vec<Group>, options: &PageOptions, output: &Output) -> Page {
    let storage = if options.exact { Storage::Exact } else { Storage::Fitting };
    let page = Page::new(groups).storage(storage).language(output.language.into());
    if output.is_dark() { page.view("theme", "dark") } else { page }
}

/// The tokens of another kind of attention than the one that was asked for: an encoder-decoder has two sequences.
fn axes(seen: &Observation, kind: Kind) -> (&TokenAxis, &TokenAxis) {
    match (seen.kind, kind) {
        (Kind::Cross, Kind::Encoder) => (&seen.keys, &seen.keys),
        (Kind::Cross, Kind::Decoder) => (&seen.queries, &seen.queries),
        _ => (&seen.queries, &seen.keys),
    }
}

/// The layers of one kind of attention.
pub fn group(
    trace: &Trace,
    kind: Kind,
    (queries, keys): (&TokenAxis, &TokenAxis),
    options: &PageOptions,
) -> Result<Group> {
    let named = match kind {
        Kind::Encoder => foveal_view::Kind::Encoder,
        Kind::Decoder => foveal_view::Kind::Decoder,
        Kind::Cross => foveal_view::Kind::Cross,
    };
    let mut group = Group::new(named, tokens(queries), tokens(keys))?;
    for (number, layer) in trace.of_kind(kind) {
        group = group.layer_at(number, self::layer(layer, options.values)?)?;
    }
    Ok(group)
}

/// What a page computes a layer from; its weights, where it could not.
fn layer(trace: &LayerTrace, values: bool) -> Result<Layer> {
    let (heads, queries, keys) = (trace.heads(), trace.queries(), trace.keys());
    let size = (queries, keys, trace.q().dim().3);
    let options = match trace.attention() {
        BoundAttention::Softmax(attention) => (0..heads)
            .map(|head| attention.head_options((0, head), size))
            .collect::<Result<Option<Vec<_>>, foveal::Error>>()?,
        _ => None,
    };
    let mut layer = match options {
        Some(options) => {
            let lse = trace.lse().index_axis_move(Axis(0), 0).to_owned();
            Layer::scores(first(trace.q()), first(trace.k()), lse, options)?
        }
        None if queries.max(keys) > MOST_WEIGHTS => bail!(
            "a page of {} tokens with this kind of attention would hold every weight; take up to {MOST_WEIGHTS} tokens",
            queries.max(keys)
        ),
        None => Layer::weights((0..heads).map(|head| trace.weights(0, head)).collect::<foveal_models::Result<_>>()?)?,
    };
    if let (Some(v), Some(output)) = (trace.v(), trace.output()) {
        let mut norms = Array2::zeros((heads, keys));
        for (head, mut row) in norms.outer_iter_mut().enumerate() {
            let transformed = trace.transformed(0, head)?;
            row.iter_mut().zip(transformed.outer_iter()).for_each(|(norm, f)| *norm = f.dot(&f).sqrt());
        }
        layer = layer.norms(norms)?;
        if values {
            layer = layer.values(first(v), (**output).clone())?;
        }
    }
    Ok(layer)
}

/// The arrays of the first sequence.
fn first(array: &TraceArray) -> Array3<f32> {
    array.to_f32().index_axis(Axis(0), 0).to_owned()
}

fn tokens(side: &TokenAxis) -> Tokens {
    let words = side.groups.iter().enumerate().flat_map(|(word, group)| group.tokens.clone().map(move |_| word));
    Tokens::new(side.labels.clone())
        .words(words.collect::<Vec<_>>())
        .word_labels(side.groups.iter().map(|group| group.label.clone()))
        .special(side.special.clone())
}
