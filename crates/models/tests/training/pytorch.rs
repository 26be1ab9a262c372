//! Ten losses of PyTorch's AdamW (`fixtures/make_training.py`), from the same weights and batches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use foveal_models::Checkpoint;
use foveal_models::layer::{Loss, Random};
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Gpt2, Masked, Sentences, Trained, Transformer};
use foveal_models::train::{Fingerprint, Plan, StepContext, Task, Trainer};
use ndarray::{ArrayD, Axis};

use crate::support;

struct Fixture(BTreeMap<String, ArrayD<f64>>);

impl Fixture {
    fn read() -> Self {
        Fixture(support::tensors(&support::fixture("training.safetensors")))
    }

    /// The rows of one step.
    fn rows(&self, key: &str, step: usize) -> Vec<Vec<u32>> {
        let step = self.0[key].index_axis(Axis(0), step);
        step.outer_iter().map(|row| row.iter().map(|x| *x as u32).collect()).collect()
    }

    fn check(&self, key: &str, got: &[f32]) {
        for (step, (expected, got)) in self.0[key].iter().zip(got).enumerate() {
            assert!((expected - f64::from(*got)).abs() <= 1e-4, "{key}, step {step}: {got} instead of {expected}");
        }
    }
}

fn plan() -> Plan {
    let plan = Plan { steps: 10, warmup: 3, peak: 1e-2, floor: 1e-3, betas: (0.9, 0.99), ..Plan::default() };
    Plan { weight_decay: 0.1, clip: Some(1.0), ..plan }
}

fn losses<T: Task>(task: &T, model: T::Model, plan: Plan) -> Vec<f32> {
    let mut trainer = Trainer::new(task, model, plan).unwrap();
    (0..10).map(|_| trainer.step().unwrap().loss).collect()
}

fn model_of(name: &str) -> Checkpoint {
    Checkpoint::open(support::fixture("models").join(name)).unwrap()
}

/// A fixture, and how many of its steps have been made.
struct Steps(Fixture, AtomicUsize);

impl Steps {
    fn new() -> Self {
        Steps(Fixture::read(), AtomicUsize::new(0))
    }

    /// The rows of the next step, by their numbers.
    fn next(&self, key: &str) -> Vec<At> {
        let step = self.1.fetch_add(1, Ordering::Relaxed);
        (0..self.0.rows(key, step).len()).map(|row| (step, row)).collect()
    }

    /// One number for each of these rows.
    fn sizes(&self, key: &str, at: &[At]) -> Vec<usize> {
        at.iter().map(|&(step, row)| self.0.0[key][[step, row]] as usize).collect()
    }

    fn rows(&self, key: &str, at: &[At]) -> Vec<Vec<u32>> {
        at.iter().map(|&(step, row)| self.0.rows(key, step)[row].clone()).collect()
    }
}

/// A step and a row.
type At = (usize, usize);

struct Texts(Steps);

impl Task for Texts {
    type Model = Gpt2;
    type Example = At;

    fn choose(&self, _: &mut Random) -> Vec<At> {
        self.0.next("gpt2.text")
    }

    fn counted(&self, at: &At) -> usize {
        self.0.rows("gpt2.text", &[*at])[0].len() - 1
    }

    fn learn(&self, model: &Gpt2, at: &[At], context: &StepContext, grad: &mut Gpt2) -> foveal_models::Result<Loss> {
        let rows = self.0.rows("gpt2.text", at);
        let inputs: Vec<u32> = rows.iter().flat_map(|row| row[..row.len() - 1].to_vec()).collect();
        let targets: Vec<u32> = rows.iter().flat_map(|row| row[1..].to_vec()).collect();
        let (mut logits, saved) = model.forward(&inputs, rows.len(), context.dropout())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, &targets)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, _: &Gpt2) -> foveal_models::Result<f32> {
        Ok(0.0)
    }

    fn fingerprint(&self, _: &Gpt2) -> Fingerprint {
        Fingerprint::default()
    }
}

#[test]
fn gpt2_learns_as_in_pytorch() {
    let model = Gpt2::load(&model_of("gpt2")).unwrap();
    let got = losses(&Texts(Steps::new()), model, plan());
    Fixture::read().check("gpt2.losses", &got);
}

struct Gaps(Steps);

impl Task for Gaps {
    type Model = Bert;
    type Example = At;

    fn choose(&self, _: &mut Random) -> Vec<At> {
        self.0.next("bert.text")
    }

    fn counted(&self, _: &At) -> usize {
        1
    }

    fn learn(&self, model: &Bert, at: &[At], context: &StepContext, grad: &mut Bert) -> foveal_models::Result<Loss> {
        const MASK: u32 = 52;
        let (rows, lengths) = (self.0.rows("bert.text", at), self.0.sizes("bert.lengths", at));
        let sentences: Vec<_> = rows.iter().zip(lengths).map(|(row, length)| &row[..length]).collect();
        let places: Vec<_> = self.0.sizes("bert.places", at).into_iter().enumerate().collect();
        let masked = Masked::new(Sentences::new(&sentences), &places, MASK)?;
        let (mut logits, saved) = model.forward(&masked, context.dropout())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, masked.words())?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, _: &Bert) -> foveal_models::Result<f32> {
        Ok(0.0)
    }

    fn fingerprint(&self, _: &Bert) -> Fingerprint {
        Fingerprint::default()
    }
}

#[test]
fn bert_learns_as_in_pytorch() {
    let model = Bert::load(&model_of("bert")).unwrap();
    let got = losses(&Gaps(Steps::new()), model, plan());
    Fixture::read().check("bert.losses", &got);
}

struct Translations(Steps);

impl Task for Translations {
    type Model = Transformer;
    type Example = At;

    fn choose(&self, _: &mut Random) -> Vec<At> {
        self.0.next("transformer.source")
    }

    fn counted(&self, at: &At) -> usize {
        self.0.sizes("transformer.written", &[*at])[0]
    }

    fn learn(
        &self,
        model: &Transformer,
        at: &[At],
        context: &StepContext,
        grad: &mut Transformer,
    ) -> foveal_models::Result<Loss> {
        const IGNORED: u32 = u32::MAX;
        let (source, lengths) =
            (self.0.rows("transformer.source", at).concat(), self.0.sizes("transformer.lengths", at));
        let rows = self.0.rows("transformer.target", at);
        let inputs: Vec<u32> = rows.iter().flat_map(|row| row[..row.len() - 1].to_vec()).collect();
        let goals = rows.iter().zip(self.0.sizes("transformer.written", at)).flat_map(|(row, written)| {
            row[1..].iter().enumerate().map(|(i, token)| if i < written { *token } else { IGNORED }).collect::<Vec<_>>()
        });
        let goals: Vec<u32> = goals.collect();
        let batch = Batch { tokens: &source, lengths: &lengths };
        let (mut logits, saved) = model.forward(batch, &inputs, context.dropout())?;
        let loss = context.cross_entropy(Some(IGNORED)).forward_backward(&mut logits, &goals)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, _: &Transformer) -> foveal_models::Result<f32> {
        Ok(0.0)
    }

    fn fingerprint(&self, _: &Transformer) -> Fingerprint {
        Fingerprint::default()
    }
}

#[test]
fn the_encoder_decoder_learns_as_in_pytorch() {
    let model = Transformer::load(&model_of("norm_first")).unwrap();
    let plan = Plan { label_smoothing: 0.1, ..plan() };
    let got = losses(&Translations(Steps::new()), model, plan);
    Fixture::read().check("transformer.losses", &got);
}
