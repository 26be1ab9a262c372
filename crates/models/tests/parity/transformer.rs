//! The encoder-decoder against PyTorch's `nn.Transformer`, with the norms last and first; the second of two sequences to read
//! is shorter.

use foveal_models::layer::{CrossEntropy, MultiHeadAttention, Parameters};
use foveal_models::model::Transformer;
use foveal_models::model::transformer::Batch;
use foveal_models::trace::{Capture, Kind, Probe, Site};
use ndarray::{Array2, Array3, Axis, concatenate, s};

use crate::expected::{Expected, load, near};
use crate::heads;

const BOTH: [&str; 2] = ["norm_last", "norm_first"];

#[test]
fn run_and_gradients() {
    for name in BOTH {
        let (model, expected): (Transformer, _) = (load(name), Expected::of(name));
        let (tokens, lengths) = (expected.tokens("source"), expected.sizes("lengths"));
        let (target, next) = expected.shifted("target");
        let source = Batch { tokens: &tokens, lengths: &lengths };
        let (mut logits, saved) = model.forward(source, &target, None).unwrap();
        expected.check_rows("logits", &logits);
        let loss = CrossEntropy::new().forward_backward(&mut logits, &next).unwrap();
        expected.check_loss(loss.mean);
        let mut grad = model.zeros_like();
        let of_heads = model.backward(&saved, &logits, &mut grad).unwrap();
        expected.check_gradients(&grad);
        assert_eq!(of_heads.len(), 1 + 2 + 2);
        heads::check_gradients(&of_heads, |site| (attention(&model, site), attention(&grad, site)));
    }
}

#[test]
fn writing_in_pieces() {
    for name in BOTH {
        let (model, expected): (Transformer, _) = (load(name), Expected::of(name));
        let (tokens, lengths) = (expected.tokens("source"), expected.sizes("lengths"));
        let (target, _) = expected.shifted("target");
        let source = Batch { tokens: &tokens, lengths: &lengths };
        for pieces in [vec![5], vec![2, 3], vec![1; 5]] {
            let mut probe = Probe::new(Capture::All);
            let memory = model.encode(source, &mut probe).unwrap();
            let mut state = model.start(source, memory.view()).unwrap();
            assert!(state.is_empty());
            let mut written = Vec::new();
            for piece in pieces {
                let logits = model.write(&part(&target, state.len(), piece), &mut state, &mut probe).unwrap();
                written.push(by_sequence(logits, 2));
            }
            assert_eq!(state.len(), 5);
            let written: Vec<_> = written.iter().map(|logits| logits.view()).collect();
            let written = concatenate(Axis(1), &written).unwrap();
            near(format_args!("{name}: logits in pieces"), expected.get("logits"), &written.mapv(f64::from), 1e-4);
            expected.check_trace("", &probe.into_trace(), None);
        }
    }
}

/// Sequences that are taken out, doubled and swapped go on as they would have.
#[test]
fn selected_sequences() {
    for name in BOTH {
        let (model, expected): (Transformer, _) = (load(name), Expected::of(name));
        let (tokens, lengths) = (expected.tokens("source"), expected.sizes("lengths"));
        let (target, _) = expected.shifted("target");
        let source = Batch { tokens: &tokens, lengths: &lengths };
        let memory = model.encode(source, &mut Probe::default()).unwrap();
        let mut state = model.start(source, memory.view()).unwrap();
        model.write(&part(&target, 0, 3), &mut state, &mut Probe::default()).unwrap();
        let order = [1, 0, 1];
        assert!(state.select(&[0, 2]).is_err());
        state.select(&order).unwrap();
        let rest = part(&target, 3, 2);
        let rest: Vec<u32> = order.iter().flat_map(|b| rest[2 * b..2 * b + 2].to_vec()).collect();
        let logits = model.write(&rest, &mut state, &mut Probe::default()).unwrap();
        let expected = expected.get("logits").slice_axis(Axis(1), (3..5).into()).select(Axis(0), &order);
        near(format_args!("{name}: selected"), &expected, &by_sequence(logits, 3).mapv(f64::from), 1e-4);
    }
}

fn attention(model: &Transformer, Site { kind, layer }: Site) -> &MultiHeadAttention {
    match kind {
        Kind::Encoder => model.encoder[layer].attention.layer.attention().unwrap(),
        Kind::Decoder => model.decoder[layer].attention.layer.attention().unwrap(),
        Kind::Cross => &model.decoder[layer].cross.as_ref().unwrap().layer,
    }
}

/// Some tokens of each of two sequences.
fn part(tokens: &[u32], start: usize, length: usize) -> Vec<u32> {
    let sequences = ndarray::ArrayView2::from_shape((2, tokens.len() / 2), tokens).unwrap();
    sequences.slice(s![.., start..start + length]).iter().copied().collect()
}

/// [B·T, V] as [B, T, V].
fn by_sequence(rows: Array2<f32>, batch: usize) -> Array3<f32> {
    let (n, width) = rows.dim();
    rows.into_shape_with_order((batch, n / batch, width)).unwrap()
}
