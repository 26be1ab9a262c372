//! What is dropped of an example is its own: neither the examples beside it, nor the padding that they bring, nor the place
//! where a batch is cut change it.

use std::sync::Mutex;

use foveal_models::Result;
use foveal_models::layer::dropout::{self, Dropout};
use foveal_models::layer::{CrossEntropy, Embedding, Loss, Parameters, Random};
use foveal_models::model::transformer::Batch;
use foveal_models::model::{
    Bert, BertConfig, Gpt2, Gpt2Config, Masked, Sentences, Trained, Transformer, TransformerConfig, Vit, VitConfig,
};
use foveal_models::train::{Fingerprint, Plan, StepContext, Task, Trainer};
use ndarray::{Array2, Array4, ArrayView2, Axis, s};

/// Half of everything, so that no other mask gives nearly the same.
fn half(first: usize) -> Dropout {
    Dropout { first, ..Dropout::new(0.5, 9) }
}

#[track_caller]
fn near(name: &str, one: ArrayView2<f32>, other: ArrayView2<f32>) {
    assert_eq!(one.dim(), other.dim(), "{name}");
    for (a, b) in one.iter().zip(&other) {
        assert!((a - b).abs() <= 2e-5 * (1.0 + a.abs()), "{name}: {a} and {b}");
    }
}

#[test]
fn masks_of_tokens_are_those_of_the_example() {
    let dropped = |first, batch, tokens| {
        let mut x = Array2::<f32>::ones((batch * tokens, 33));
        dropout::apply(half(first), batch, &mut x).unwrap();
        x
    };
    let padded = dropped(0, 6, 9);
    for n in 0..6 {
        assert_eq!(dropped(n, 1, 5), padded.slice(s![n * 9..n * 9 + 5, ..]), "example {n} alone");
    }
    assert_eq!(dropped(3, 3, 9), padded.slice(s![27.., ..]), "the second half");
    assert_ne!(padded.slice(s![..9, ..]), padded.slice(s![9..18, ..]), "two examples");
    assert!(dropout::apply(half(0), 4, &mut Array2::ones((6, 2))).is_err(), "6 rows of 4 sequences");
}

/// Pairs of different lengths, filled up to the longest of those that are chosen.
struct Padded {
    source: Vec<u32>,
    lengths: Vec<usize>,
    target: Vec<u32>,
    counted: Vec<u32>,
}

const LENGTHS: [(usize, usize); 4] = [(3, 2), (7, 5), (2, 6), (5, 3)];
const NOT_COUNTED: u32 = u32::MAX;

fn pad(chosen: std::ops::Range<usize>) -> Padded {
    let (read, written) = chosen.clone().fold((0, 0), |(s, t), n| (s.max(LENGTHS[n].0), t.max(LENGTHS[n].1)));
    let mut padded = Padded { source: vec![], lengths: vec![], target: vec![], counted: vec![] };
    for n in chosen {
        let (s, t) = LENGTHS[n];
        padded.source.extend((0..read).map(|i| if i < s { (3 * n + i) as u32 % 9 } else { 0 }));
        padded.lengths.push(s);
        padded.target.extend((0..written).map(|i| if i < t { (5 * n + i) as u32 % 11 } else { 1 }));
        padded.counted.extend((0..written).map(|i| if i < t { (5 * n + i + 1) as u32 % 11 } else { NOT_COUNTED }));
    }
    padded
}

#[test]
fn a_translated_pair_is_learned_alike_alone_in_either_half_and_in_the_batch() {
    let config = TransformerConfig {
        source_vocabulary: 9,
        target_vocabulary: 11,
        context: 12,
        width: 16,
        heads: 2,
        hidden: 32,
        ..TransformerConfig::small()
    };
    let model = Transformer::new(&config, &mut Random::new(1)).unwrap();
    let counted = LENGTHS.iter().map(|(_, t)| t).sum();
    let run = |cuts: &[std::ops::Range<usize>]| {
        let (mut grad, mut loss) = (model.zeros_like(), 0.0);
        for cut in cuts {
            let Padded { source, lengths, target, counted: words } = pad(cut.clone());
            let source = Batch { tokens: &source, lengths: &lengths };
            let (mut logits, saved) = model.forward(source, &target, Some(half(cut.start))).unwrap();
            let of = CrossEntropy { label_smoothing: 0.0, ignore: Some(NOT_COUNTED), of: Some(counted) };
            loss += of.forward_backward(&mut logits, &words).unwrap().mean;
            model.backward(&saved, &logits, &mut grad).unwrap();
        }
        let mut gradients = Vec::new();
        grad.visit("", &mut |_, gradient| gradients.extend(gradient.iter().copied()));
        (loss, Array2::from_shape_vec((1, gradients.len()), gradients).unwrap())
    };
    #[allow(clippy::single_range_in_vec_init)]
    let (loss, whole) = run(&[0..4]);
    for cuts in [&[0..2, 2..4][..], &[0..1, 1..2, 2..3, 3..4], &[0..3, 3..4]] {
        let (cut_loss, gradients) = run(cuts);
        assert!((cut_loss - loss).abs() < 1e-5, "{cuts:?}: {cut_loss}, {loss} in one");
        near(&format!("{cuts:?}"), gradients.view(), whole.view());
    }
}

#[test]
fn models_of_all_kinds_drop_by_the_number_of_the_example() {
    let config =
        Gpt2Config { vocabulary: 17, context: 8, width: 16, heads: 2, layers: 2, hidden: 32, ..Gpt2Config::nano() };
    let model = Gpt2::new(&config, &mut Random::new(1)).unwrap();
    let tokens: Vec<u32> = (0..32).map(|i| i * i % 17).collect();
    let (whole, _) = model.forward(&tokens, 4, Some(half(0))).unwrap();
    let (second, _) = model.forward(&tokens[16..], 2, Some(half(2))).unwrap();
    near("GPT-2's second half", second.view(), whole.slice(s![16.., ..]));
    // In a causal model what follows is as good as padding.
    let (alone, _) = model.forward(&tokens[24..29], 1, Some(half(3))).unwrap();
    near("GPT-2's last example, cut short", alone.view(), whole.slice(s![24..29, ..]));

    let config = BertConfig {
        vocabulary: 17,
        context: 12,
        width: 16,
        heads: 2,
        layers: 2,
        hidden: 32,
        guesses: true,
        ..BertConfig::base()
    };
    let model = Bert::new(&config, &mut Random::new(1)).unwrap();
    let sentences: Vec<Vec<u32>> = [9u32, 4, 7].iter().map(|&n| (0..n).map(|i| (i * n) % 17).collect()).collect();
    let guess = |chosen: &[Vec<u32>], first| {
        let places: Vec<(usize, usize)> = (0..chosen.len()).map(|n| (n, 2)).collect();
        model.forward(&Masked::new(Sentences::new(chosen), &places, 3).unwrap(), Some(half(first))).unwrap().0
    };
    let whole = guess(&sentences, 0);
    for n in 0..3 {
        near("a sentence of BERT alone", guess(&sentences[n..=n], n).view(), whole.slice(s![n..=n, ..]));
    }

    let config = VitConfig { image: 8, width: 16, heads: 2, layers: 2, hidden: 32, ..VitConfig::digits() };
    let model = Vit::new(&config, &mut Random::new(1)).unwrap();
    let images = Array4::from_shape_fn((3, 1, 8, 8), |(n, _, y, x)| ((n * 7 + y * 3 + x) as f32).sin());
    let (whole, _) = model.forward(&images, Some(half(0))).unwrap();
    let (last, _) = model.forward(&images.select(Axis(0), &[2]), Some(half(2))).unwrap();
    near("ViT's last image", last.view(), whole.slice(s![2.., ..]));
}

/// Keeps what each part of a batch was to be learned with.
#[derive(Default)]
struct Recorded {
    parts: Mutex<Vec<(Vec<usize>, Dropout)>>,
}

impl Task for Recorded {
    type Model = Embedding;
    type Example = usize;

    fn choose(&self, _: &mut Random) -> Vec<usize> {
        (0..7).collect()
    }

    fn counted(&self, _: &usize) -> usize {
        1
    }

    fn learn(&self, _: &Embedding, examples: &[usize], context: &StepContext, _: &mut Embedding) -> Result<Loss> {
        self.parts.lock().unwrap().push((examples.to_vec(), context.dropout().unwrap()));
        Ok(Loss { mean: 1.0, counted: examples.len() })
    }

    fn evaluate(&self, _: &Embedding) -> Result<f32> {
        Ok(1.0)
    }

    fn fingerprint(&self, _: &Embedding) -> Fingerprint {
        Fingerprint::default()
    }
}

#[test]
fn halves_share_a_seed_that_is_the_steps_own() {
    let (task, plan) = (Recorded::default(), Plan { dropout: 0.1, accumulate: 2, ..Plan::default() });
    let mut trainer = Trainer::new(&task, Embedding::new(2, 2, &mut Random::new(1)), plan).unwrap();
    trainer.step().unwrap();
    trainer.step().unwrap();
    let mut seeds = Vec::new();
    for batch in task.parts.into_inner().unwrap().chunks(2) {
        for (examples, dropout) in batch {
            assert_eq!(examples[0], dropout.first, "examples are numbered through the batch");
        }
        assert_eq!(batch[0].1.seed, batch[1].1.seed);
        seeds.push(batch[0].1.seed);
    }
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 4, "every batch of every step drops anew");
}
