//! Training a [`Tiny`] on a page of Shakespeare, and letting it write.

use std::ops::ControlFlow;

use foveal::Attention;
use foveal_models::Tokenizer;
use foveal_models::layer::{CrossEntropy, Loss, Random};
use foveal_models::train::{Fingerprint, Plan, StepContext, Task, Trainer};
use ndarray::ArrayView1;

use crate::tiny::{CONTEXT, Tiny};
use crate::{Error, Progress, Result, Text, Watch};

/// Plays in the public domain.
const TEXT: &str = include_str!("../data/shakespeare.txt");
/// Windows of a batch.
const BATCH: usize = 16;
/// Windows that a held-out loss is measured on.
const EVALUATED: usize = 48;
/// How far below 1 unlikely characters are kept from being chosen.
const TEMPERATURE: f32 = 0.8;

/// A text in characters, the last tenth of it held out.
pub struct School {
    tokenizer: Tokenizer,
    learned: Vec<u32>,
    held_out: Vec<u32>,
}

/// A model after its training.
pub struct Schooled {
    /// The model.
    pub model: Tiny,
    /// The step and the held-out loss, in nats a character.
    pub curve: Vec<(usize, f32)>,
}

impl Schooled {
    /// The held-out loss at the end.
    pub fn loss(&self) -> f32 {
        self.curve.last().map_or(f32::NAN, |(_, loss)| *loss)
    }
}

impl School {
    /// The text inside.
    pub fn new() -> Result<Self> {
        let tokenizer = Tokenizer::of_characters(TEXT)?;
        let mut learned = tokenizer.encode_bare(TEXT)?.ids().to_vec();
        let held_out = learned.split_off(learned.len() - learned.len() / 10);
        Ok(School { tokenizer, learned, held_out })
    }

    /// Characters there are.
    pub fn vocabulary(&self) -> usize {
        self.tokenizer.vocabulary()
    }

    /// Trains a model. `told` are the steps of all models of the lab: those before, and all of them.
    pub fn train(
        &self,
        model: Tiny,
        plan: Plan,
        told: (usize, usize),
        doing: &Text,
        watch: &mut Watch,
    ) -> Result<Schooled> {
        let mut trainer = Trainer::new(self, model, plan)?;
        let mut stopped = Ok(());
        trainer.run(&mut |trainer| {
            let done = told.0 + trainer.records().len();
            stopped = watch.tell(&Progress { done, of: told.1, doing: doing.clone() });
            if stopped.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        stopped?;
        let curve = trainer.records().iter().filter_map(|record| Some((record.step, record.held_out?))).collect();
        Ok(Schooled { model: trainer.model().clone(), curve })
    }

    /// The loss on text that was never learned from, if the model attends so.
    pub fn loss(&self, model: &Tiny, attention: &Attention) -> Result<f32, foveal_models::Error> {
        let places = self.held_out.len() - CONTEXT - 1;
        let (mut sum, mut counted) = (0.0, 0);
        let starts: Vec<usize> = (0..EVALUATED).map(|i| i * places / EVALUATED).collect();
        for starts in starts.chunks(BATCH) {
            let (inputs, targets) = windows(&self.held_out, starts);
            let loss = CrossEntropy::new().forward(&model.infer(&inputs, starts.len(), attention)?, &targets)?;
            sum += f64::from(loss.mean) * loss.counted as f64;
            counted += loss.counted;
        }
        Ok((sum / counted as f64) as f32)
    }

    /// What the model writes after a beginning, character by character, each chosen by chance.
    pub fn write(&self, model: &Tiny, beginning: &str, most: usize, seed: u64) -> Result<String> {
        let mut tokens = self.tokenizer.encode_bare(beginning)?.ids().to_vec();
        let mut random = Random::new(seed);
        for _ in 0..most {
            let seen = &tokens[tokens.len().saturating_sub(CONTEXT)..];
            let logits = model.infer(seen, 1, &model.attention)?;
            tokens.push(choose(logits.row(seen.len() - 1), random.uniform()));
        }
        Ok(self.tokenizer.decode(&tokens)?)
    }

    /// The characters of a text, as tokens and as labels.
    pub fn read(&self, text: &str) -> Result<(Vec<u32>, Vec<String>)> {
        let encoding = self.tokenizer.encode_bare(text)?;
        Ok((encoding.ids().to_vec(), encoding.labels().to_vec()))
    }
}

/// Windows that begin at these places, and what comes after each of their characters.
fn windows(text: &[u32], starts: &[usize]) -> (Vec<u32>, Vec<u32>) {
    let cut = |from: usize| starts.iter().flat_map(move |start| text[start + from..start + from + CONTEXT].to_vec());
    (cut(0).collect(), cut(1).collect())
}

/// A token by chance, from softmax(logits / temperature).
fn choose(logits: ArrayView1<f32>, chance: f64) -> u32 {
    let max = logits.fold(f32::NEG_INFINITY, |max, x| max.max(*x));
    let shares: Vec<f64> = logits.iter().map(|x| f64::from((x - max) / TEMPERATURE).exp()).collect();
    let mut left = chance * shares.iter().sum::<f64>();
    let found = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(shares.len() - 1) as u32
}

impl Task for School {
    type Model = Tiny;
    /// Where a window begins.
    type Example = usize;

    fn choose(&self, random: &mut Random) -> Vec<usize> {
        (0..BATCH).map(|_| random.below(self.learned.len() - CONTEXT)).collect()
    }

    fn counted(&self, _: &usize) -> usize {
        CONTEXT
    }

    fn learn(
        &self,
        model: &Tiny,
        starts: &[usize],
        context: &StepContext,
        grad: &mut Tiny,
    ) -> Result<Loss, foveal_models::Error> {
        let (inputs, targets) = windows(&self.learned, starts);
        let (mut logits, saved) = model.forward(&inputs, starts.len())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, &targets)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn fingerprint(&self, _: &Tiny) -> Fingerprint {
        Fingerprint::default().data("learned tokens", self.learned.iter().copied()).fact("batch", BATCH)
    }

    fn evaluate(&self, model: &Tiny) -> Result<f32, foveal_models::Error> {
        self.loss(model, &model.attention)
    }
}

/// The plan of a lab's training.
pub fn plan(steps: usize, seed: u64) -> Plan {
    let evaluate_every = (steps / 10).max(1);
    Plan { steps, peak: 3e-3, floor: 3e-4, warmup: (steps / 20).max(1), evaluate_every, seed, ..Plan::default() }
}

/// The knob's error for a width that heads do not divide.
pub fn indivisible(width: usize, heads: usize) -> Error {
    let fit: Vec<String> = (1..=64).filter(|h| width.is_multiple_of(*h)).map(|h: usize| h.to_string()).collect();
    let fit = fit.join(", ");
    Error::knob(
        format!("d_model {width} does not divide by {heads} heads; heads that fit: {fit}"),
        format!("너비 {width}은(는) 헤드 {heads}개로 나누어떨어지지 않습니다. 가능한 헤드 수: {fit}"),
    )
}
