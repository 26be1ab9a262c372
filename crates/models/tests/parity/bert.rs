//! BERT with the head that guesses words: a pair of texts, and a batch of different lengths.

use foveal_models::layer::{CrossEntropy, Parameters};
use foveal_models::model::{Bert, HeadGradients, Masked, Sentences};
use foveal_models::trace::{Capture, Probe};
use ndarray::{Array2, ArrayView3, Axis, s};

use crate::expected::{Expected, load, near};
use crate::heads;

/// The sentences of the batch, each with its own length.
pub fn batch(expected: &Expected) -> Vec<Vec<u32>> {
    let (tokens, lengths) = (expected.tokens("batch.ids"), expected.sizes("batch.lengths"));
    let rows = tokens.chunks(tokens.len() / lengths.len()).zip(lengths);
    rows.map(|(row, length)| row[..length].to_vec()).collect()
}

#[test]
fn pair() {
    let (model, expected): (Bert, _) = (load("bert"), Expected::of("bert"));
    let sentences = Sentences::pair(&expected.tokens("pair.ids"), expected.sizes("pair.start")[0]);
    let mut probe = Probe::new(Capture::All);
    let hidden = model.infer(&sentences, &mut probe).unwrap();
    expected.check_rows("pair.hidden", &hidden);
    expected.check_rows("pair.logits", &model.guess(hidden.view()).unwrap());
    expected.check_trace("pair.", &probe.into_trace(), None);
}

#[test]
fn batch_of_different_lengths() {
    let (model, expected): (Bert, _) = (load("bert"), Expected::of("bert"));
    let sentences = batch(&expected);
    let mut probe = Probe::new(Capture::All);
    let hidden = model.infer(&Sentences::new(&sentences), &mut probe).unwrap();
    let logits = model.guess(hidden.view()).unwrap();
    let lengths: Vec<usize> = sentences.iter().map(Vec::len).collect();
    expected.check_trace("batch.", &probe.into_trace(), Some(&lengths));
    for (b, sentence) in sentences.iter().enumerate() {
        // What stands after the end of a sentence means nothing.
        for (key, got) in [("batch.hidden", &hidden), ("batch.logits", &logits)] {
            let all: ArrayView3<f64> = expected.get(key).view().into_dimensionality().unwrap();
            let (first, length) = (b * all.dim().1, sentence.len());
            let got = got.slice(s![first..first + length, ..]).mapv(f64::from);
            near(format_args!("bert: {key} of sentence {b}"), all.slice(s![b, ..length, ..]), &got, 1e-4);
        }
        // And it is the same for a sentence by itself.
        let alone = model.infer(&Sentences::new(&[sentence]), &mut Probe::default()).unwrap();
        let first = b * hidden.nrows() / sentences.len();
        let rows = hidden.slice(s![first..first + sentence.len(), ..]).mapv(f64::from);
        near(format_args!("bert: sentence {b} alone"), &alone.mapv(f64::from), &rows, 1e-5);
    }
}

/// The gradients of all parameters and of the heads, from words to guess in the pair and in the batch.
#[test]
fn gradients() {
    let (model, expected): (Bert, _) = (load("bert"), Expected::of("bert"));
    let pair = Sentences::pair(&expected.tokens("pair.ids"), expected.sizes("pair.start")[0]);
    let cases = [("pair", pair), ("batch", Sentences::new(&batch(&expected)))];
    let (mut grad, mut loss, mut of_heads) = (model.zeros_like(), 0.0, HeadGradients::new());
    for (case, sentences) in cases {
        let places: Vec<_> = expected.sizes(&format!("{case}.places")).chunks(2).map(|at| (at[0], at[1])).collect();
        let masked = Masked::new(sentences, &places, expected.tokens("mask")[0]).unwrap();
        let (mut logits, saved) = model.forward(&masked, None).unwrap();
        // Those of all rows, where only the masked ones were asked for.
        let hidden = model.infer(masked.sentences(), &mut Probe::default()).unwrap();
        let guessed = model.guess(hidden.select(Axis(0), masked.rows()).view()).unwrap();
        near(format_args!("bert: masked words of the {case}"), &guessed.mapv(f64::from), &logits.mapv(f64::from), 1e-5);
        loss += CrossEntropy::new().forward_backward(&mut logits, masked.words()).unwrap().mean;
        for (site, dgates) in model.backward(&saved, &logits, &mut grad).unwrap() {
            let dgates = dgates.sum_axis(Axis(0)).insert_axis(Axis(0));
            of_heads.entry(site).and_modify(|sum| *sum += &dgates).or_insert(dgates);
        }
    }
    expected.check_loss(loss);
    expected.check_gradients(&grad);
    assert_eq!(of_heads.len(), 2);
    let layers = (&model.layers, &grad.layers);
    heads::check_gradients(&of_heads, |site| {
        let at = site.layer;
        (layers.0[at].attention.layer.attention().unwrap(), layers.1[at].attention.layer.attention().unwrap())
    });
}

#[test]
fn words_that_are_not_there() {
    let sentences = Sentences::new(&[&[3, 1, 4][..], &[1, 5]]);
    for place in [(0, 3), (1, 2), (2, 0), (usize::MAX, 0), (0, usize::MAX)] {
        assert!(Masked::new(sentences.clone(), &[(0, 0), place], 9).is_err(), "{place:?}");
    }
    // A word that is asked for twice is still the word.
    assert_eq!(Masked::new(sentences, &[(1, 1), (1, 1)], 9).unwrap().words(), [5, 5]);
}

#[test]
fn sentence_vectors() {
    let (model, expected): (Bert, _) = (load("bert"), Expected::of("bert"));
    let sentences = batch(&expected);
    let got = model.embed(&Sentences::new(&sentences), &mut Probe::default()).unwrap();
    let hidden: ArrayView3<f64> = expected.get("batch.hidden").view().into_dimensionality().unwrap();
    let mut means = Array2::zeros(got.raw_dim());
    for (b, (sentence, mut mean)) in sentences.iter().zip(means.outer_iter_mut()).enumerate() {
        let sum = hidden.slice(s![b, ..sentence.len(), ..]).sum_axis(Axis(0));
        mean.assign(&(&sum / sum.dot(&sum).sqrt()));
    }
    near("bert: the vectors of the sentences", &means, &got.mapv(f64::from), 1e-4);
    let captured = model.embed(&Sentences::new(&sentences), &mut Probe::new(Capture::All)).unwrap();
    near("bert: the same with a trace", &means, &captured.mapv(f64::from), 1e-4);
    let empty: [&[u32]; 2] = [&[], &[]];
    assert_eq!(
        model.embed(&Sentences::new(&empty), &mut Probe::default()).unwrap(),
        Array2::<f32>::zeros((2, got.ncols()))
    );
}

#[test]
fn without_a_head() {
    let (model, expected): (Bert, _) = (load("bert_model"), Expected::of("bert_model"));
    assert!(model.head.is_none() && model.pooler.is_some());
    let tokens = expected.tokens("ids");
    let sentences: Vec<_> = tokens.chunks(tokens.len() / 2).collect();
    let hidden = model.infer(&Sentences::new(&sentences), &mut Probe::default()).unwrap();
    expected.check_rows("hidden", &hidden);
    expected.check_rows("pooled", &model.pool(&hidden, 2).unwrap());
    assert!(model.pool(&hidden, 3).is_err() && model.guess(hidden.view()).is_err());
}
