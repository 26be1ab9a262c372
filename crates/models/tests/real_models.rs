//! Real models against what transformers makes of them (`fixtures/make_real_models.py`): the sentence encoder MiniLM, and
//! SmolLM2-135M from GGUF. The files are those that `make data` fetches.

mod support;

use std::collections::BTreeMap;

use foveal_models::generate::{Choice, GenerateOptions, Session};
use foveal_models::model::{Bert, LanguageModel, Llama, Sentences};
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_models::{Checkpoint, Tokenizer};
use ndarray::{Array1, Array2, ArrayD, ArrayView, ArrayView2, Dimension};

fn expected() -> BTreeMap<String, ArrayD<f64>> {
    support::tensors(&support::fixture("real_models.safetensors"))
}

fn near<D: Dimension>(what: &str, expected: ArrayView<f64, D>, got: ArrayView<f32, D>) {
    assert_eq!(expected.shape(), got.shape(), "{what}");
    let error = expected.iter().zip(got).map(|(expected, got)| (expected - f64::from(*got)).abs()).fold(0.0, f64::max);
    assert!(error <= 1e-4, "{what} differs by {error:.1e}");
    println!("{what} differs by {error:.1e}");
}

fn minilm() -> Option<(Bert, Tokenizer)> {
    let checkpoint = Checkpoint::open(support::data("minilm")?).unwrap();
    Some((Bert::load(&checkpoint).unwrap(), Tokenizer::of(&checkpoint).unwrap()))
}

/// Those of the script.
const SENTENCES: [&str; 6] = [
    "The cat sat on the mat.",
    "A kitten is resting on a rug.",
    "The stock market fell sharply on Monday.",
    "Shares lost much of their value at the start of the week.",
    "안녕하세요, 반갑습니다.",
    "Attention weights of a row sum to one, whatever the length of the sequence that the queries and keys come from.",
];

#[test]
fn vectors_of_minilm() {
    let Some((model, tokenizer)) = minilm() else { return };
    let ids = SENTENCES.map(|sentence| tokenizer.encode(sentence).unwrap().ids().to_vec());
    assert_eq!(ids[0], [101, 1996, 4937, 2938, 2006, 1996, 13523, 1012, 102]);
    let vectors = model.embed(&Sentences::new(&ids), &mut Probe::default()).unwrap();
    near("MiniLM's vectors of all sentences", expected()["minilm.embeddings"].view(), vectors.view().into_dyn());
    for (begin, expected) in vectors.row(0).iter().zip([0.130_237, -0.015_773, -0.036_717, 0.057_986]) {
        assert!((begin - expected).abs() <= 1e-4, "{begin} instead of {expected}");
    }
    let alone = model.embed(&Sentences::new(&ids[..1]), &mut Probe::default()).unwrap();
    near("the first by itself", vectors.row(0).mapv(f64::from).view(), alone.row(0));

    let similarity = vectors.dot(&vectors.t());
    assert!((similarity[[0, 1]] - 0.6084).abs() <= 1e-4, "{}", similarity[[0, 1]]);
    // Of two about cats and two about shares, each is nearest to the other of its kind.
    for (sentence, like) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        let others = (0..SENTENCES.len()).filter(|other| ![sentence, like].contains(other));
        for other in others {
            assert!(similarity[[sentence, like]] > similarity[[sentence, other]] + 0.2, "{sentence}: {other}");
        }
    }
}

#[test]
fn attention_of_minilm() {
    let Some((model, tokenizer)) = minilm() else { return };
    let mut probe = Probe::new(Capture::All);
    let ids = tokenizer.encode(SENTENCES[0]).unwrap();
    model.infer(&Sentences::new(&[ids.ids()]), &mut probe).unwrap();
    let (trace, expected) = (probe.into_trace(), expected());
    let expected = &expected["minilm.weights"];
    assert_eq!(trace.layers().len(), expected.shape()[0]);
    for ((layer, of_layer), expected) in trace.of_kind(Kind::Encoder).zip(expected.outer_iter()) {
        assert_eq!(of_layer.heads(), expected.shape()[0]);
        for (head, expected) in expected.outer_iter().enumerate() {
            let weights = of_layer.weights(0, head).unwrap();
            near(&format!("layer {layer}, head {head} of MiniLM"), expected, weights.view().into_dyn());
        }
    }
}

/// Those of the script.
const PROMPTS: [&str; 3] = [
    "Once upon a time, there was a little girl who",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "for i in range(10):\n    print(",
];

fn smollm2() -> Option<(Llama, Tokenizer)> {
    let checkpoint = Checkpoint::open(support::data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?).unwrap();
    Some((Llama::load(&checkpoint).unwrap(), Tokenizer::of(&checkpoint).unwrap()))
}

fn ids(expected: &ArrayD<f64>) -> Vec<u32> {
    expected.iter().map(|id| *id as u32).collect()
}

/// The likeliest next token.
fn best(model: &Llama, hidden: &Array2<f32>) -> u32 {
    let last = hidden.row(hidden.nrows() - 1).insert_axis(ndarray::Axis(0));
    let logits: Array1<f32> = model.logits(last).unwrap().remove_axis(ndarray::Axis(0));
    logits.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as u32
}

/// One test, because loading takes longer than the rest.
#[test]
fn continuations_and_attention_of_smollm2() {
    let (Some((model, tokenizer)), expected) = (smollm2(), expected()) else { return };
    for (number, prompt) in PROMPTS.into_iter().enumerate() {
        let mut next = tokenizer.encode(prompt).unwrap().ids().to_vec();
        assert_eq!(next, ids(&expected[&format!("smollm2.{number}.prompt")]), "{prompt:?}");
        let continuation = ids(&expected[&format!("smollm2.{number}.continuation")]);
        let layers = if number == 0 { vec![0, 13, 29] } else { Vec::new() };
        let mut probe = Probe::new(Capture::Layers(layers.clone()));
        let (mut cache, mut written) = (model.cache(1, next.len() + continuation.len()), Vec::new());
        for _ in 0..continuation.len() {
            let hidden = model.infer(&next, 1, Some(&mut cache), &mut probe).unwrap();
            next = vec![best(&model, &hidden)];
            written.extend_from_slice(&next);
        }
        assert_eq!(written.len(), 64);
        assert_eq!(written, continuation, "{:?}", tokenizer.decode(&written));
        let options = GenerateOptions { most: 64, choice: Choice::Greedy, ..GenerateOptions::default() };
        let mut session = Session::new(&model);
        let generated: Result<Vec<u32>, _> =
            session.generate(tokenizer.encode(prompt).unwrap().ids(), options).unwrap().collect();
        assert_eq!(generated.unwrap(), continuation);

        let trace = probe.into_trace();
        assert_eq!(trace.layers().len(), layers.len());
        for layer in layers {
            let (of_layer, expected_heads) =
                (trace.layer(Kind::Decoder, layer).unwrap(), &expected[&format!("smollm2.weights.{layer}")]);
            for (head, expected_rows) in expected_heads.outer_iter().enumerate() {
                let expected_rows: ArrayView2<f64> = expected_rows.into_dimensionality().unwrap();
                for (row, at) in expected_rows.outer_iter().zip(ids(&expected["smollm2.rows"])) {
                    let at = at as usize;
                    let weights = of_layer.tile(0, head, at..at + 1, 0..of_layer.keys()).unwrap();
                    near(&format!("row {at} of layer {layer}, head {head} of SmolLM2"), row, weights.row(0));
                }
            }
        }
    }
}
