//! Analysis against its definitions, written out cell by cell on the dense weights.

mod support;

use foveal_models::analysis::RelatedWords;
use foveal_models::analysis::importance::of_masked;
use foveal_models::analysis::{
    self, ablation, head_scores, importance, norms, relation_scores, rollout, rollouts, top, words,
};
use foveal_models::layer::{CrossEntropy, Parameters, Random};
use foveal_models::model::{
    Bert, BertConfig, Gpt2, Gpt2Config, LanguageModel, Llama, LlamaConfig, Masked, Sentences, Trained,
};
use foveal_models::trace::{Capture, Head, Kind, Probe, Trace};
use foveal_models::{Error, Tokenizer};
use ndarray::{Array1, Array2, Axis, s};

const TOKENS: [u32; 9] = [3, 1, 4, 1, 5, 9, 2, 6, 5];

/// Large weights, so that attention is far from even.
fn gpt2() -> Gpt2 {
    let config =
        Gpt2Config { vocabulary: 11, context: 32, width: 24, heads: 3, layers: 3, hidden: 48, ..Gpt2Config::nano() };
    let mut model = Gpt2::new(&config, &mut Random::new(5)).unwrap();
    model.visit_mut("", &mut |_, mut parameter| parameter.mapv_inplace(|x| if x == 1.0 { x } else { 12.0 * x }));
    model
}

fn trace_of(model: &dyn LanguageModel, tokens: &[u32]) -> Trace {
    let mut probe = Probe::new(Capture::All);
    model.infer(tokens, 1, None, &mut probe).unwrap();
    probe.into_trace()
}

fn weights(trace: &Trace, layer: usize, head: usize) -> Array2<f64> {
    trace.layer(Kind::Decoder, layer).unwrap().weights(0, head).unwrap().mapv(f64::from)
}

fn near(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance, "{what}: {got} instead of {expected}");
}

#[test]
fn rollout_is_the_product_of_half_attention_and_half_identity() {
    let trace = trace_of(&gpt2(), &TOKENS);
    let n = TOKENS.len();
    let mut expected = Array2::<f64>::eye(n);
    let each: Vec<Array2<f32>> = rollouts(&trace, Kind::Decoder, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(each.len(), 3);
    for layer in 0..3 {
        let mixed = Array2::from_shape_fn((n, n), |(i, j)| {
            let mean = (0..3).map(|head| weights(&trace, layer, head)[[i, j]]).sum::<f64>() / 3.0;
            0.5 * mean + if i == j { 0.5 } else { 0.0 }
        });
        expected = mixed.dot(&expected);
        let got = rollout(&trace, Kind::Decoder, 0, layer).unwrap();
        assert_eq!(got, each[layer], "one by one, or at once");
        for (got, expected) in got.iter().zip(&expected) {
            near((*got).into(), *expected, 1e-5, "rollout");
        }
    }
    assert!(matches!(rollout(&trace, Kind::Cross, 0, 0), Err(Error::CrossRollout)));
    let mut missing = rollouts(&trace, Kind::Decoder, 7).unwrap();
    assert!(missing.next().is_some_and(|first| first.is_err()) && missing.next().is_none(), "no such sequence");
    assert!(matches!(rollout(&trace, Kind::Decoder, 0, 3), Err(Error::NotCaptured { .. })));
}

#[test]
fn norms_are_those_of_the_vectors_that_reach_the_output() {
    let config = LlamaConfig { vocabulary: 11, width: 24, heads: 4, key_heads: 2, head_dim: 6, ..LlamaConfig::nano() };
    let model = Llama::new(&config, &mut Random::new(3)).unwrap();
    let trace = trace_of(&model, &TOKENS);
    let layer = trace.layer(Kind::Decoder, 1).unwrap();
    let output = layer.output().unwrap().mapv(f64::from);
    // w·v·W_o of one head, one query and one key.
    let share = |head: usize, i: usize, j: usize| -> Array1<f64> {
        let v: Array1<f64> = layer.v().unwrap().to_f32().slice(s![0, head / 2, j, ..]).mapv(f64::from);
        output.slice(s![.., 6 * head..6 * (head + 1)]).dot(&v) * weights(&trace, 1, head)[[i, j]]
    };
    let of_layer = norms::of_layer(layer, 0).unwrap();
    for (i, j) in [(0, 0), (4, 2), (8, 8), (8, 0), (2, 6)] {
        for head in 0..4 {
            let expected = share(head, i, j);
            let expected_norm = expected.dot(&expected).sqrt();
            near(norms::of_head(layer, 0, head).unwrap()[[i, j]].into(), expected_norm, 1e-6, "norm of a head");
            let cell = layer.cell(0, head, i, j).unwrap();
            for (got, expected) in cell.share.as_ref().unwrap().iter().zip(&expected) {
                near((*got).into(), *expected, 1e-6, "share of a cell");
            }
        }
        let sum = (0..4).map(|head| share(head, i, j)).reduce(|a, b| a + b).unwrap();
        near(of_layer[[i, j]].into(), sum.dot(&sum).sqrt(), 1e-5, "norm of a layer");
    }
}

#[test]
fn a_cell_goes_from_the_product_to_the_weight() {
    let model = gpt2();
    let trace = trace_of(&model, &TOKENS);
    let layer = trace.layer(Kind::Decoder, 2).unwrap();
    let q: Array1<f64> = layer.q().to_f32().slice(s![0, 1, 6, ..]).mapv(f64::from);
    let k: Array1<f64> = layer.k().to_f32().slice(s![0, 1, 2, ..]).mapv(f64::from);
    let cell = layer.cell(0, 1, 6, 2).unwrap();
    near(cell.product, q.dot(&k), 1e-9, "q·k");
    near(cell.scaled, q.dot(&k) / 8f64.sqrt(), 1e-9, "scaled");
    near(cell.exp / cell.sum, cell.weight, 1e-12, "softmax");
    near(cell.weight, weights(&trace, 2, 1)[[6, 2]], 1e-6, "weight");
    near(cell.max + cell.sum.ln(), layer.lse()[[0, 1, 6]], 1e-5, "lse");
    let hidden = layer.cell(0, 1, 2, 6).unwrap();
    assert!(!hidden.visible && hidden.weight == 0.0 && hidden.score == f64::NEG_INFINITY && hidden.product != 0.0);
    assert!(layer.cell(0, 1, 2, 9).is_err() && layer.cell(0, 3, 0, 0).is_err() && layer.cell(1, 0, 0, 0).is_err());
}

#[test]
fn scores_follow_their_definitions() {
    let model = gpt2();
    let tokens: Vec<u32> = [7, 2, 9, 4, 1].repeat(2);
    let (n, period) = (10, 5);
    let trace = trace_of(&model, &tokens);
    for scores in head_scores(&trace, Kind::Decoder, 0, &tokens, Some(period)).unwrap() {
        let a = weights(&trace, scores.head.site.layer, scores.head.head);
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let entropy = |i: usize| -a.row(i).iter().filter(|w| **w > 0.0).map(|w| w * w.ln()).sum::<f64>();
        near(scores.entropy.into(), mean((0..n).map(entropy).collect()), 1e-5, "entropy");
        let largest = |i: usize| a.row(i).iter().fold(0.0, |x: f64, y| x.max(*y));
        near(scores.confidence.into(), mean((0..n).map(largest).collect()), 1e-5, "confidence");
        near(scores.previous.into(), mean((1..n).map(|i| a[[i, i - 1]]).collect()), 1e-5, "previous");
        near(scores.duplicate.unwrap().into(), mean((5..n).map(|i| a[[i, i - 5]]).collect()), 1e-5, "duplicate");
        near(scores.induction.unwrap().into(), mean((5..n).map(|i| a[[i, i - 4]]).collect()), 1e-5, "induction");
        let received = |k: usize| mean((k..n).map(|i| a[[i, k]]).collect());
        let sink = scores.sink.unwrap();
        near(sink.share.into(), received(sink.key), 1e-5, "sink");
        assert!((0..5).all(|k| received(k) <= f64::from(sink.share) + 1e-5));
    }
    assert!(head_scores(&trace, Kind::Decoder, 0, &tokens[1..], None).is_err());
}

#[test]
fn the_strongest_links_come_first() {
    let trace = trace_of(&gpt2(), &TOKENS);
    let dense = weights(&trace, 1, 2);
    for (i, links) in top(trace.layer(Kind::Decoder, 1).unwrap(), 0, 2, 3).unwrap().into_iter().enumerate() {
        let mut row: Vec<(usize, f64)> = dense.row(i).iter().copied().enumerate().filter(|(_, w)| *w > 0.0).collect();
        row.sort_by(|a, b| b.1.total_cmp(&a.1));
        let keys: Vec<usize> = links.iter().map(|link| link.key).collect();
        assert_eq!(keys, row.iter().take(3).map(|(key, _)| *key).collect::<Vec<_>>());
    }
}

/// A head multiplied by ξ is its columns of W_o multiplied by ξ.
fn with_gate(model: &Gpt2, layer: usize, head: usize, gate: f32) -> Gpt2 {
    let mut model = model.clone();
    let output = std::sync::Arc::make_mut(&mut model.layers[layer].attention.layer.attention_mut().unwrap().output);
    output.weight.slice_mut(s![.., 8 * head..8 * (head + 1)]).mapv_inplace(|x| gate * x);
    model
}

#[test]
fn ablation_is_a_gate_of_zero() {
    let model = gpt2();
    let changes = ablation::each(&model, &TOKENS).unwrap();
    for (layer, head) in [(0, 0), (1, 2), (2, 1)] {
        let ablated = analysis::ablate(&model, &TOKENS, &[Head::new(Kind::Decoder, layer, head)]).unwrap();
        let gated = with_gate(&model, layer, head, 0.0);
        let expected = gated.loss(&TOKENS, &mut Probe::default()).unwrap().mean;
        near(ablated.loss_without.into(), expected.into(), 1e-5, "loss without a head");
        near(ablated.change().into(), changes[3 * layer + head].1.into(), 1e-6, "the change");
        near(
            ablated.next_without.iter().map(|x| f64::from(*x).exp()).sum(),
            1.0,
            1e-5,
            "the next token's distribution",
        );
        let divergence = ablated.next.iter().zip(&ablated.next_without).map(|(p, q)| {
            let (p, q) = (f64::from(*p), f64::from(*q));
            p.exp() * (p - q)
        });
        near(ablated.divergence().into(), divergence.sum(), 1e-5, "divergence");
        assert!(ablated.divergence() > 0.0);
    }
    let none = analysis::ablate(&model, &TOKENS, &[]).unwrap();
    assert_eq!((none.change(), none.divergence()), (0.0, 0.0));
    for absent in [Head::new(Kind::Decoder, 3, 0), Head::new(Kind::Decoder, 0, 3), Head::new(Kind::Encoder, 0, 0)] {
        assert!(matches!(analysis::ablate(&model, &TOKENS, &[absent]), Err(Error::NoHead { .. })));
    }
}

#[test]
fn importance_is_the_slope_of_the_loss_in_the_gates() {
    let model = gpt2();
    let texts = [&TOKENS[..], &[8, 8, 3, 0, 10][..]];
    let importance = importance(&model, &texts).unwrap();
    for layer in 0..3 {
        for head in 0..3 {
            let slope = |text: &[u32]| {
                let loss = |gate| {
                    let gated = with_gate(&model, layer, head, gate);
                    let (logits, _) = gated.forward(&text[..text.len() - 1], 1, None).unwrap();
                    f64::from(CrossEntropy::new().forward(&logits, &text[1..]).unwrap().mean)
                };
                (loss(1.01) - loss(0.99)) / 0.02
            };
            let expected = texts.iter().map(|text| slope(text).abs()).sum::<f64>() / 2.0;
            let site = Head::new(Kind::Decoder, layer, head).site;
            near(importance[&site][head].into(), expected, 2e-3 + 2e-2 * expected, "importance");
        }
    }
}

#[test]
fn importance_for_an_encoder_is_the_slope_of_the_loss_of_masked_words() {
    let sizes =
        BertConfig { vocabulary: 11, context: 16, width: 24, heads: 3, layers: 2, hidden: 48, ..BertConfig::base() };
    let mut model = Bert::new(&BertConfig { guesses: true, ..sizes }, &mut Random::new(5)).unwrap();
    model.visit_mut("", &mut |_, mut parameter| parameter.mapv_inplace(|x| if x == 1.0 { x } else { 4.0 * x }));
    let pair = Masked::new(Sentences::new(&[&TOKENS[..], &TOKENS[3..]]), &[(0, 1), (0, 6), (1, 2)], 10).unwrap();
    let texts = [pair, Masked::new(Sentences::pair(&[8, 8, 3, 0, 9], 3), &[(0, 2)], 10).unwrap()];
    let importance = of_masked(&model, &texts).unwrap();
    assert_eq!(importance.len(), 2);
    for (site, of_heads) in &importance {
        for (head, got) in of_heads.iter().enumerate() {
            let loss = |text: &Masked, gate: f32| {
                let mut gated = model.clone();
                let attention = gated.layers[site.layer].attention.layer.attention_mut().unwrap();
                let output = std::sync::Arc::make_mut(&mut attention.output);
                output.weight.slice_mut(s![.., 8 * head..8 * (head + 1)]).mapv_inplace(|x| gate * x);
                let hidden = gated.infer(text.sentences(), &mut Probe::default()).unwrap();
                let logits = gated.guess(hidden.select(Axis(0), text.rows()).view()).unwrap();
                f64::from(CrossEntropy::new().forward(&logits, text.words()).unwrap().mean)
            };
            let slope = |text| (loss(text, 1.01) - loss(text, 0.99)) / 0.02;
            let expected = texts.iter().map(|text| slope(text).abs()).sum::<f64>() / 2.0;
            near((*got).into(), expected, 2e-3 + 2e-2 * expected, "importance");
        }
    }
    assert!(importance.values().any(|of_heads| of_heads.iter().any(|x| *x > 1e-2)));
    assert!(matches!(of_masked(&model, &[]), Err(Error::TooShort { tokens: 0, least: 1 })));
    let nothing = Masked::new(Sentences::new(&[TOKENS]), &[], 10).unwrap();
    assert!(matches!(of_masked(&model, &[nothing]), Err(Error::TooShort { tokens: 0, least: 1 })));
    model.head = None;
    assert!(matches!(of_masked(&model, &texts), Err(Error::MissingPart { .. })));
}

#[test]
fn words_are_whole_again() {
    let Some(folder) = support::data("gpt2") else { return };
    let tokenizer = Tokenizer::from_folder(&folder).unwrap();
    let encoding = tokenizer.encode("나는 학교에 갑니다, unbelievably.").unwrap();
    let groups = words::groups(&encoding);
    let labels: Vec<&str> = groups.iter().map(|group| group.label.as_str()).collect();
    assert_eq!(labels, ["나는", "학교에", "갑니다,", "unbelievably."]);
    assert!(encoding.len() > 10, "byte-level BPE cuts Hangul into many tokens");
    let n = encoding.len();
    let weights = Array2::from_shape_fn((n, n), |(i, j)| if j <= i { 1.0 / (i + 1) as f32 } else { 0.0 });
    let merged = words::merge(&weights, &groups, &groups).unwrap();
    for (u, row) in merged.outer_iter().enumerate() {
        near(row.sum().into(), 1.0, 1e-5, "a row of words");
        for (w, got) in row.iter().enumerate() {
            let (rows, cols) = (groups[u].tokens.clone(), groups[w].tokens.clone());
            let sum: f32 =
                rows.clone().flat_map(|i| cols.clone().map(move |j| (i, j))).map(|(i, j)| weights[[i, j]]).sum();
            near((*got).into(), f64::from(sum) / rows.len() as f64, 1e-6, "a pair of words");
        }
    }
    let band = weights.slice(s![words::tokens(&groups[1..3]), ..]).to_owned();
    assert_eq!(words::merge(&band, &groups[1..3], &groups).unwrap(), merged.slice(s![1..3, ..]));
    assert!(words::merge(&weights, &groups[1..], &groups[..3]).is_err());
}

#[test]
fn a_relation_is_the_weight_from_word_to_word() {
    let trace = trace_of(&gpt2(), &TOKENS);
    let word = |tokens: std::ops::Range<usize>| words::Group { label: String::new(), tokens };
    let sentence = RelatedWords { words: vec![word(0..1), word(1..3), word(3..9)], pairs: vec![(2, 1), (1, 0)] };
    let scores = relation_scores([(&trace, &sentence), (&trace, &sentence)], Kind::Decoder).unwrap();
    assert_eq!(scores.len(), 9);
    assert!(scores.windows(2).all(|pair| pair[0].share >= pair[1].share));
    for score in scores {
        let weights = trace.layer(Kind::Decoder, score.head.site.layer).unwrap().weights(0, score.head.head).unwrap();
        let first = weights.slice(s![3..9, 1..3]).sum() / 6.0;
        let second = weights.slice(s![1..3, 0..1]).sum() / 2.0;
        assert!((score.share - (first + second) / 2.0).abs() < 1e-5);
        assert!((score.uniform - (2.0 / 9.0 + 1.0 / 9.0) / 2.0).abs() < 1e-6 && score.pairs == 4);
        assert_eq!(score.is_syntactic(), score.share >= 0.5);
    }
    let short = RelatedWords { words: vec![word(0..2)], pairs: vec![] };
    assert!(relation_scores([(&trace, &short)], Kind::Decoder).is_err());
}
