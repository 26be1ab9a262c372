//! What is measured: reading, writing, sentence vectors, and steps of training.

use std::error::Error;
use std::hint::black_box;

use foveal_models::generate::{Choice, GenerateOptions, Session};
use foveal_models::layer::{Loss, Random};
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Gpt2, Sentences, Trained, Transformer};
use foveal_models::trace::{Capture, Probe};
use foveal_models::train::{Fingerprint, Plan, Schedule, StepContext, Task, Trainer};
use foveal_models::{Checkpoint, Model};
use ndarray::Array1;
use serde_json::Value;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What a work computes, by name.
pub type Answers = Vec<(&'static str, Vec<f32>)>;

pub trait Work: Send {
    /// What is timed.
    fn run(&mut self) -> Result<()>;

    fn answers(&mut self) -> Result<Answers>;
}

/// The work of a `load` request.
pub fn load(request: &Value) -> Result<Box<dyn Work>> {
    let checkpoint = Checkpoint::open(text(request, "model")?)?;
    Ok(match text(request, "work")? {
        "prefill" => Box::new(Prefill {
            model: Model::load(&checkpoint)?,
            tokens: field(request, "tokens")?,
            capture: if field(request, "capture")? { Capture::All } else { Capture::None },
        }),
        "generate" => Box::new(Generate {
            model: Model::load(&checkpoint)?,
            tokens: field(request, "tokens")?,
            most: field(request, "most")?,
        }),
        "embed" => Box::new(Embed { model: Bert::load(&checkpoint)?, sentences: field(request, "sentences")? }),
        "train_gpt2" => {
            let task = Text { inputs: field(request, "inputs")?, targets: field(request, "targets")? };
            Box::new(train(task, Gpt2::load(&checkpoint)?)?)
        }
        "train_transformer" => {
            let [source, inputs] = [field(request, "source")?, field(request, "inputs")?];
            let task = Translation { source, inputs, targets: field(request, "targets")? };
            Box::new(train(task, Transformer::load(&checkpoint)?)?)
        }
        other => return Err(format!("unknown work {other}").into()),
    })
}

/// Reading a text: the scores of all tokens to come next.
struct Prefill {
    model: Model,
    tokens: Vec<u32>,
    capture: Capture,
}

impl Prefill {
    fn logits(&self) -> Result<Array1<f32>> {
        let mut session = Session::new(self.model.as_language_model()?).watched_by(Probe::new(self.capture.clone()));
        let logits = session.feed(&self.tokens)?;
        black_box(session.trace());
        Ok(logits)
    }
}

impl Work for Prefill {
    fn run(&mut self) -> Result<()> {
        black_box(self.logits()?);
        Ok(())
    }

    fn answers(&mut self) -> Result<Answers> {
        Ok(vec![("logits", self.logits()?.to_vec())])
    }
}

/// Writing on, always the likeliest token.
struct Generate {
    model: Model,
    tokens: Vec<u32>,
    most: usize,
}

impl Generate {
    fn written(&self) -> Result<Vec<u32>> {
        let mut session = Session::new(self.model.as_language_model()?);
        let options = GenerateOptions { most: self.most, choice: Choice::Greedy, ..GenerateOptions::default() };
        Ok(session.generate(&self.tokens, options)?.collect::<foveal_models::Result<_>>()?)
    }
}

impl Work for Generate {
    fn run(&mut self) -> Result<()> {
        black_box(self.written()?);
        Ok(())
    }

    fn answers(&mut self) -> Result<Answers> {
        Ok(vec![("tokens", self.written()?.into_iter().map(|token| token as f32).collect())])
    }
}

/// A vector for each sentence.
struct Embed {
    model: Bert,
    sentences: Vec<Vec<u32>>,
}

impl Work for Embed {
    fn run(&mut self) -> Result<()> {
        black_box(self.model.embed(&Sentences::new(&self.sentences), &mut Probe::default())?);
        Ok(())
    }

    fn answers(&mut self) -> Result<Answers> {
        let vectors = self.model.embed(&Sentences::new(&self.sentences), &mut Probe::default())?;
        Ok(vec![("vectors", vectors.iter().copied().collect())])
    }
}

/// Steps of training, each on the same batch.
struct Train<T: Task + 'static> {
    trainer: Trainer<'static, T>,
}

/// The steps whose losses are the answer.
const CHECKED: usize = 5;

fn train<T: Task>(task: T, model: T::Model) -> Result<Train<T>> {
    let (steps, evaluate_every) = (usize::MAX, usize::MAX);
    let plan = Plan { steps, evaluate_every, warmup: 0, schedule: Schedule::Constant, ..Plan::default() };
    // One for each work, for as long as the worker lives.
    let task: &'static T = Box::leak(Box::new(task));
    Ok(Train { trainer: Trainer::new(task, model, plan)? })
}

impl<T: Task + Sync> Work for Train<T> {
    fn run(&mut self) -> Result<()> {
        black_box(self.trainer.step()?);
        Ok(())
    }

    fn answers(&mut self) -> Result<Answers> {
        let losses = (0..CHECKED).map(|_| Ok(self.trainer.step()?.loss)).collect::<Result<_>>()?;
        Ok(vec![("losses", losses)])
    }
}

/// Sequences of one length, as one list.
type Rows = Vec<Vec<u32>>;

/// Some of them, one after the other.
fn rows(all: &Rows, chosen: &[usize]) -> Vec<u32> {
    chosen.iter().flat_map(|&row| all[row].iter().copied()).collect()
}

/// The next token of a text.
struct Text {
    inputs: Rows,
    targets: Rows,
}

impl Task for Text {
    type Model = Gpt2;
    type Example = usize;

    fn choose(&self, _: &mut Random) -> Vec<usize> {
        (0..self.inputs.len()).collect()
    }

    fn counted(&self, &row: &usize) -> usize {
        self.targets[row].len()
    }

    fn learn(
        &self,
        model: &Gpt2,
        chosen: &[usize],
        context: &StepContext,
        grad: &mut Gpt2,
    ) -> foveal_models::Result<Loss> {
        let (mut logits, saved) = model.forward(&rows(&self.inputs, chosen), chosen.len(), context.dropout())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, &rows(&self.targets, chosen))?;
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

/// The next token of a sequence, given another.
struct Translation {
    source: Rows,
    inputs: Rows,
    targets: Rows,
}

impl Task for Translation {
    type Model = Transformer;
    type Example = usize;

    fn choose(&self, _: &mut Random) -> Vec<usize> {
        (0..self.source.len()).collect()
    }

    fn counted(&self, &row: &usize) -> usize {
        self.targets[row].len()
    }

    fn learn(
        &self,
        model: &Transformer,
        chosen: &[usize],
        context: &StepContext,
        grad: &mut Transformer,
    ) -> foveal_models::Result<Loss> {
        let lengths: Vec<usize> = chosen.iter().map(|&row| self.source[row].len()).collect();
        let source = Batch { tokens: &rows(&self.source, chosen), lengths: &lengths };
        let (mut logits, saved) = model.forward(source, &rows(&self.inputs, chosen), context.dropout())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, &rows(&self.targets, chosen))?;
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

fn text<'a>(object: &'a Value, name: &str) -> Result<&'a str> {
    object[name].as_str().ok_or_else(|| format!("{name} is missing").into())
}

fn field<T: serde::de::DeserializeOwned>(object: &Value, name: &str) -> Result<T> {
    serde_json::from_value(object[name].clone()).map_err(|error| format!("{name}: {error}").into())
}
