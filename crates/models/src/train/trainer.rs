//! The loop.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::adamw::{AdamW, Rates};
use super::halves::BatchHalves;
use super::{Peers, Plan, Task, state};
use crate::layer::Loss;
use crate::{Error, Result};

/// What happened in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Which step, counted from 1.
    pub step: usize,
    /// The loss on its batches.
    pub loss: f32,
    /// The loss on held-out data, where it was asked for.
    pub held_out: Option<f32>,
    /// The learning rate.
    pub learning_rate: f32,
    /// The norm of all gradients together, before clipping.
    pub gradient: f32,
    /// The tokens that were learned from.
    pub tokens: usize,
}

/// Why a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All steps are done.
    Done,
    /// It no longer gets better on held-out data.
    Early,
    /// Whoever watches it wanted it to.
    Stopped,
}

/// A model in training.
pub struct Trainer<'t, T: Task> {
    pub(super) task: &'t T,
    plan: Plan,
    pub(super) model: T::Model,
    grads: BatchHalves<T::Model>,
    pub(super) optimiser: AdamW<T::Model>,
    pub(super) records: Vec<Record>,
    /// The model with the lowest loss on held-out data, and that loss.
    pub(super) best: Option<(f32, T::Model)>,
    /// Evaluations since then.
    pub(super) worse: usize,
    peers: Option<Arc<dyn Peers>>,
}

impl<'t, T: Task> Trainer<'t, T> {
    /// A run from the beginning.
    ///
    /// # Errors
    /// If a number of the plan makes no sense.
    pub fn new(task: &'t T, model: T::Model, plan: Plan) -> Result<Self> {
        plan.check()?;
        let (grads, optimiser) = (BatchHalves::new(&model), AdamW::new(&model));
        Ok(Trainer { task, plan, model, grads, optimiser, records: Vec::new(), best: None, worse: 0, peers: None })
    }

    /// A run from where [`save`](Trainer::save) left it. `model` gives the shapes; its numbers are replaced.
    ///
    /// # Errors
    /// If the file is not the state of a run of this task, model and plan: [`Error::OtherTask`] and [`Error::OtherPlan`] say
    /// what differs.
    pub fn resume(task: &'t T, model: T::Model, plan: Plan, path: &Path) -> Result<Self> {
        let mut trainer = Trainer::new(task, model, plan)?;
        state::load(&mut trainer, path)?;
        Ok(trainer)
    }

    /// The same run by several processes, which all do the same: each learns from a share of every batch. The losses are those of
    /// one process, to the rounding of sums; those of two, to the bit. Any number of them can go on with a saved run.
    #[must_use]
    pub fn with_peers(self, peers: Arc<dyn Peers>) -> Self {
        Trainer { peers: Some(peers), ..self }
    }

    /// Saves all that is needed to go on, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written; the state that was there before is then still there.
    pub fn save(&self, path: &Path) -> Result<()> {
        state::save(self, path)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The model as it is now.
    pub fn model(&self) -> &T::Model {
        &self.model
    }

    /// The model that was best on held-out data, or as it is now if there was no evaluation yet.
    pub fn best(&self) -> &T::Model {
        self.best.as_ref().map_or(&self.model, |(_, model)| model)
    }

    /// All steps so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Runs to the end of the plan, or until `watch`, which sees the run after every step, breaks it off.
    ///
    /// # Errors
    /// As [`step`](Trainer::step).
    pub fn run(&mut self, watch: &mut dyn FnMut(&Self) -> ControlFlow<()>) -> Result<Ended> {
        while self.records.len() < self.plan.steps {
            if self.plan.patience.is_some_and(|patience| self.worse >= patience) {
                return Ok(Ended::Early);
            }
            self.step()?;
            if watch(self).is_break() {
                return Ok(Ended::Stopped);
            }
        }
        Ok(Ended::Done)
    }

    /// One step.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the loss or a gradient is no longer a number; the model is then as it was before the step.
    pub fn step(&mut self) -> Result<Record> {
        let mut record = foveal_compute::awake(|| self.learn())?;
        if record.step.is_multiple_of(self.plan.evaluate_every) || record.step == self.plan.steps {
            let held_out = self.evaluate()?;
            record.held_out = Some(held_out);
            if self.best.as_ref().is_none_or(|(best, _)| held_out < *best) {
                (self.best, self.worse) = (Some((held_out, self.model.clone())), 0);
            } else {
                self.worse += 1;
            }
        }
        self.records.push(record);
        Ok(record)
    }

    /// The loss on held-out data; of several processes the first one looks.
    fn evaluate(&self) -> Result<f32> {
        let Some(peers) = &self.peers else { return self.task.evaluate(&self.model) };
        let own = if peers.rank() == 0 { self.task.evaluate(&self.model)? } else { 0.0 };
        let mut sum = [f64::from(own)];
        peers.sum(&mut sum);
        Ok(sum[0] as f32)
    }

    /// The batches of a step, and what follows from them for the model.
    fn learn(&mut self) -> Result<Record> {
        let Trainer { task, plan, model, grads, optimiser, peers, .. } = self;
        let index = self.records.len();
        let (Loss { mean: loss, counted: tokens }, norm) = grads.learn(*task, model, (plan, index), peers.as_ref())?;
        let gradient = norm / plan.accumulate as f64;
        let learning_rate = plan.learning_rate(index);
        if !(loss.is_finite() && gradient.is_finite()) {
            return Err(Error::Diverged { step: index + 1, loss, gradient: gradient as f32, learning_rate });
        }
        let clip = plan.clip.map_or(1.0, |clip| (f64::from(clip) / (gradient + 1e-6)).min(1.0));
        let rates = Rates { learning_rate, betas: plan.betas, weight_decay: plan.weight_decay };
        grads.spend(|grad| optimiser.step(model, grad, (clip / plan.accumulate as f64) as f32, rates));
        Ok(Record { step: index + 1, loss, held_out: None, learning_rate, gradient: gradient as f32, tokens })
    }
}
