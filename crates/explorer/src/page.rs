//! A trace as a page shows it: its layers as the page computes with them, and its tokens.

use foveal_models::TokenAxis;
use foveal_models::layer::BoundAttention;
use foveal_models::trace::{Kind, LayerTrace, Trace, TraceArray};
use foveal_view::{Group, Layer, Tokens};
use ndarray::{Array2, Array3, Axis};

use crate::fault::Fault;

/// Tokens of an attention that a page cannot compute, and holds as weights, at most.
const MOST_WEIGHTS: usize = 1024;

/// The layers of one kind of attention, of the first sequence, for a [`Page`](foveal_view::Page) in a file. `values`: with what
/// the arithmetic of a cell beyond its weight takes.
///
/// # Errors
/// If the tokens are not those of the trace, or the page would have to hold every weight of a long text.
pub fn page_group(
    trace: &Trace,
    kind: Kind,
    (queries, keys): (&TokenAxis, &TokenAxis),
    values: bool,
) -> Result<Group, Fault> {
    let named = match kind {
        Kind::Encoder => foveal_view::Kind::Encoder,
        Kind::Decoder => foveal_view::Kind::Decoder,
        Kind::Cross => foveal_view::Kind::Cross,
    };
    let mut group = Group::new(named, tokens(queries), tokens(keys))?;
    for (number, layer) in trace.of_kind(kind) {
        group = group.layer_at(number, self::layer(layer, values)?)?;
    }
    Ok(group)
}

/// What a page computes a layer from; its weights, where it could not.
fn layer(trace: &LayerTrace, values: bool) -> Result<Layer, Fault> {
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
        None if queries.max(keys) > MOST_WEIGHTS => {
            let tokens = queries.max(keys);
            return Err(Fault::request(
                format!(
                    "a page of {tokens} tokens with this kind of attention would hold every weight; take up to {MOST_WEIGHTS} tokens"
                ),
                format!(
                    "이 종류의 어텐션은 토큰 {tokens}개의 모든 가중치를 페이지에 담아야 합니다. 토큰을 {MOST_WEIGHTS}개까지로 줄이십시오"
                ),
            ));
        }
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
