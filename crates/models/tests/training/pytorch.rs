//! Ten losses of PyTorch's AdamW (`fixtures/make_training.py`), from the same weights and batches.

use std::cell::Cell;
use std::collections::BTreeMap;

use foveal_models::Checkpoint;
use foveal_models::layer::Loss;
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Gpt2, Masked, Sentences, Trained, Transformer};
use foveal_models::train::{Moment, Plan, Task, Trainer};
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

struct Texts(Fixture, Cell<usize>);

impl Task for Texts {
    type Model = Gpt2;

    fn learn(&self, model: &Gpt2, moment: &Moment, grad: &mut Gpt2) -> foveal_models::Result<Loss> {
        let rows = self.0.rows("gpt2.text", self.1.replace(self.1.get() + 1));
        let inputs: Vec<u32> = rows.iter().flat_map(|row| row[..row.len() - 1].to_vec()).collect();
        let targets: Vec<u32> = rows.iter().flat_map(|row| row[1..].to_vec()).collect();
        let (mut logits, saved) = model.forward(&inputs, rows.len(), moment.dropout())?;
        let loss = moment.cross_entropy(None).forward_backward(&mut logits, &targets)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, _: &Gpt2) -> foveal_models::Result<f32> {
        Ok(0.0)
    }
}

#[test]
fn gpt2_learns_as_in_pytorch() {
    let model = Gpt2::load(&model_of("gpt2")).unwrap();
    let got = losses(&Texts(Fixture::read(), Cell::new(0)), model, plan());
    Fixture::read().check("gpt2.losses", &got);
}

struct Gaps(Fixture, Cell<usize>);

impl Task for Gaps {
    type Model = Bert;

    fn learn(&self, model: &Bert, moment: &Moment, grad: &mut Bert) -> foveal_models::Result<Loss> {
        const MASK: u32 = 52;
        let (fixture, step) = (&self.0, self.1.replace(self.1.get() + 1));
        let sizes = |key| fixture.0[key].index_axis(Axis(0), step).iter().map(|x| *x as usize).collect::<Vec<_>>();
        let (rows, lengths) = (fixture.rows("bert.text", step), sizes("bert.lengths"));
        let sentences: Vec<_> = rows.iter().zip(lengths).map(|(row, length)| &row[..length]).collect();
        let places: Vec<_> = sizes("bert.places").into_iter().enumerate().collect();
        let masked = Masked::new(Sentences::new(&sentences), &places, MASK)?;
        let (mut logits, saved) = model.forward(&masked, moment.dropout())?;
        let loss = moment.cross_entropy(None).forward_backward(&mut logits, masked.words())?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, _: &Bert) -> foveal_models::Result<f32> {
        Ok(0.0)
    }
}

#[test]
fn bert_learns_as_in_pytorch() {
    let model = Bert::load(&model_of("bert")).unwrap();
    let got = losses(&Gaps(Fixture::read(), Cell::new(0)), model, plan());
    Fixture::read().check("bert.losses", &got);
}

struct Translations(Fixture, Cell<usize>);

impl Task for Translations {
    type Model = Transformer;

    fn learn(&self, model: &Transformer, moment: &Moment, grad: &mut Transformer) -> foveal_models::Result<Loss> {
        const IGNORED: u32 = u32::MAX;
        let (fixture, step) = (&self.0, self.1.replace(self.1.get() + 1));
        let sizes = |key| fixture.0[key].index_axis(Axis(0), step).iter().map(|x| *x as usize).collect::<Vec<_>>();
        let (source, lengths) = (fixture.rows("transformer.source", step).concat(), sizes("transformer.lengths"));
        let rows = fixture.rows("transformer.target", step);
        let inputs: Vec<u32> = rows.iter().flat_map(|row| row[..row.len() - 1].to_vec()).collect();
        let goals = rows.iter().zip(sizes("transformer.written")).flat_map(|(row, written)| {
            row[1..].iter().enumerate().map(|(i, token)| if i < written { *token } else { IGNORED }).collect::<Vec<_>>()
        });
        let goals: Vec<u32> = goals.collect();
        let batch = Batch { tokens: &source, lengths: &lengths };
        let (mut logits, saved) = model.forward(batch, &inputs, moment.dropout())?;
        let loss = moment.cross_entropy(Some(IGNORED)).forward_backward(&mut logits, &goals)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, _: &Transformer) -> foveal_models::Result<f32> {
        Ok(0.0)
    }
}

#[test]
fn the_encoder_decoder_learns_as_in_pytorch() {
    let model = Transformer::load(&model_of("norm_first")).unwrap();
    let plan = Plan { label_smoothing: 0.1, ..plan() };
    let got = losses(&Translations(Fixture::read(), Cell::new(0)), model, plan);
    Fixture::read().check("transformer.losses", &got);
}
