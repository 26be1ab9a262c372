//! BERT with the head that guesses words: a pair of texts, and a batch of different lengths.

use foveal_models::model::{Bert, Sentences};
use foveal_models::trace::{Capture, Probe};
use ndarray::{Array2, ArrayView3, s};

use crate::expected::{Expected, load, near};

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

#[test]
fn sentence_vectors() {
    let (model, expected): (Bert, _) = (load("bert"), Expected::of("bert"));
    let sentences = batch(&expected);
    let got = model.embed(&Sentences::new(&sentences), &mut Probe::default()).unwrap();
    let hidden: ArrayView3<f64> = expected.get("batch.hidden").view().into_dimensionality().unwrap();
    let mut means = Array2::zeros(got.raw_dim());
    for (b, (sentence, mut mean)) in sentences.iter().zip(means.outer_iter_mut()).enumerate() {
        let sum = hidden.slice(s![b, ..sentence.len(), ..]).sum_axis(ndarray::Axis(0));
        mean.assign(&(&sum / sum.dot(&sum).sqrt()));
    }
    near("bert: the vectors of the sentences", &means, &got.mapv(f64::from), 1e-4);
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
