//! What holds for every language model.

use std::collections::BTreeMap;

use foveal_models::Trace;
use foveal_models::layer::CrossEntropy;
use foveal_models::model::{LanguageModel, Trained};
use foveal_models::trace::{Capture, Probe};
use ndarray::{Array2, Axis, concatenate, s};

use crate::expected::{Expected, load, near};
use crate::heads;
use crate::stored::Stored;

/// Logits and the weights of every layer.
pub fn check_run<M: Stored + Trained>(name: &'static str) {
    let (model, expected): (M, _) = (load(name), Expected::of(name));
    let (tokens, _) = expected.shifted("ids");
    let mut probe = Probe::new(Capture::All);
    let hidden = model.infer(&tokens, 2, None, &mut probe).unwrap();
    expected.check_rows("logits", &model.logits(hidden.view()).unwrap());
    expected.check_trace("", &probe.into_trace(), None);
    expected.check_rows("logits", &model.forward(&tokens, 2, None).unwrap().0);
}

/// The gradients of all parameters, and of the heads.
pub fn check_gradients<M: Stored + Trained>(name: &'static str) {
    let (model, expected): (M, _) = (load(name), Expected::of(name));
    let (tokens, targets) = expected.shifted("ids");
    let (mut logits, saved) = model.forward(&tokens, 2, None).unwrap();
    let loss = CrossEntropy::new().forward_backward(&mut logits, &targets).unwrap();
    expected.check_loss(loss.mean);
    let mut grad = model.zeros_like();
    let of_heads = model.backward(&saved, &logits, &mut grad).unwrap();
    expected.check_gradients(&grad);
    assert_eq!(of_heads.len(), 2);
    heads::check_gradients(&of_heads, |site| {
        (model.attention(site.layer).unwrap(), grad.attention(site.layer).unwrap())
    });
}

/// Tokens that come in pieces, with a cache, give what they give all at once.
pub fn check_cache<M: Stored + LanguageModel>(name: &'static str) {
    let (model, expected): (M, _) = (load(name), Expected::of(name));
    let (tokens, _) = expected.shifted("ids");
    let sequences = Array2::from_shape_vec((2, tokens.len() / 2), tokens).unwrap();
    let run = |pieces: &[usize], cached: bool| {
        let mut cache = model.cache(2, 3);
        let (mut probe, mut start, mut hidden) = (Probe::new(Capture::All), 0, Vec::new());
        for piece in pieces {
            let tokens: Vec<u32> = sequences.slice(s![.., start..start + piece]).iter().copied().collect();
            let rows = model.infer(&tokens, 2, cached.then_some(&mut cache), &mut probe).unwrap();
            let width = rows.ncols();
            hidden.push(rows.into_shape_with_order((2, *piece, width)).unwrap());
            start += piece;
        }
        assert_eq!(start, sequences.ncols());
        let hidden: Vec<_> = hidden.iter().map(|rows| rows.view()).collect();
        (concatenate(Axis(1), &hidden).unwrap(), probe.into_trace())
    };
    let (once, trace) = run(&[11], false);
    for pieces in [vec![11], vec![1, 4, 1, 5], vec![1; 11]] {
        let (hidden, joined) = run(&pieces, true);
        let what = format!("{name} in pieces of {pieces:?}");
        near(&what, &once.mapv(f64::from), &hidden.mapv(f64::from), 1e-5);
        expected.check_trace("", &joined, None);
        let (trace, joined) = (weights(&trace), weights(&joined));
        assert!(trace.keys().eq(joined.keys()));
        trace.iter().for_each(|(head, weights)| near(format_args!("{what}, {head:?}"), weights, &joined[head], 1e-5));
    }
}

/// The weights of all layers, sequences and heads.
fn weights(trace: &Trace) -> BTreeMap<(usize, usize, usize), Array2<f64>> {
    let all = trace.layers().flat_map(|(site, layer)| {
        let heads = (0..layer.batch()).flat_map(move |b| (0..layer.heads()).map(move |head| (b, head)));
        heads.map(move |(b, head)| ((site.layer, b, head), layer.weights(b, head).unwrap().mapv(f64::from)))
    });
    all.collect()
}
