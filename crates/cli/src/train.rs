//! `foveal train`: a run, its progress, its state on disk.

mod digits;
mod grammar;
mod judged;
mod material;
mod pairs;
mod progress;
mod questions;
mod repeats;
mod text;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use foveal_models::checkpoint::{Dtype, write_whole};
use foveal_models::train::{Ended, Plan, Task, Trainer, csv};
use foveal_view::{Chart, Scene};

use self::progress::Progress;
use crate::arguments::{Run, Train, TrainTask};
use crate::output::Output;

pub fn run(train: &Train, output: Output) -> Result<()> {
    match &train.task {
        TrainTask::Text(arguments) => text::run(arguments, output),
        TrainTask::Pairs(arguments) => pairs::run(arguments, output),
        TrainTask::Repeats(arguments) => repeats::run(arguments, output),
        TrainTask::Digits(arguments) => digits::run(arguments, output),
        TrainTask::Questions(arguments) => questions::run(arguments, output),
    }
}

impl Run {
    fn state(&self) -> PathBuf {
        self.folder.join("state.safetensors")
    }

    /// How the model's numbers are saved.
    fn dtype(&self) -> Dtype {
        if self.half { Dtype::F16 } else { Dtype::F32 }
    }

    /// The plan of the task, with what the user wants otherwise.
    fn plan(&self, base: Plan) -> Plan {
        let steps = self.steps.unwrap_or(base.steps);
        let peak = self.rate.unwrap_or(base.peak);
        Plan {
            steps,
            peak,
            floor: base.floor.min(peak),
            warmup: base.warmup.min(steps / 5),
            dropout: self.dropout.unwrap_or(base.dropout),
            evaluate_every: self.evaluate_every.unwrap_or(base.evaluate_every),
            patience: self.patience.or(base.patience),
            seed: self.seed,
            ..base
        }
    }

    /// A run from the beginning, or from the state in the folder.
    fn trainer<'t, T: Task>(&self, task: &'t T, model: T::Model, plan: Plan) -> Result<Trainer<'t, T>> {
        let state = self.state();
        match (self.resume, state.exists()) {
            (true, true) => Ok(Trainer::resume(task, model, plan, &state)?),
            (true, false) => bail!("{} is not there; leave out --resume to begin", state.display()),
            (false, true) => bail!("{} is there already; go on with --resume, or take another folder", state.display()),
            (false, false) => Ok(Trainer::new(task, model, plan)?),
        }
    }

    /// Trains to the end, or until Ctrl-C; either way the state is on disk then. `evaluated` is called after each evaluation.
    fn train<T: Task>(
        &self,
        trainer: &mut Trainer<'_, T>,
        evaluated: &mut dyn FnMut(&Trainer<'_, T>, &Progress) -> Result<()>,
    ) -> Result<Ended> {
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {}", self.folder.display()))?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        // A second Ctrl-C while the state is being written changes nothing; the first is enough.
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("cannot listen for Ctrl-C")?;
        let progress = Progress::new(trainer.plan().steps, trainer.records().len());
        let mut failed = None;
        let ended = trainer.run(&mut |trainer| {
            let record = trainer.records()[trainer.records().len() - 1];
            progress.step(&record);
            let mut work = || -> Result<()> {
                if record.held_out.is_some() {
                    evaluated(trainer, &progress)?;
                }
                if record.step.is_multiple_of(self.save_every.max(1)) {
                    self.save(trainer)?;
                }
                Ok(())
            };
            if let Err(error) = work() {
                failed = Some(error);
            }
            if failed.is_some() || interrupted.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        progress.finish();
        if let Some(error) = failed {
            return Err(error);
        }
        self.save(trainer)?;
        Ok(ended?)
    }

    fn save<T: Task>(&self, trainer: &Trainer<'_, T>) -> Result<()> {
        trainer.save(&self.state())?;
        let losses = csv(trainer.records());
        Ok(write_whole(&self.folder.join("losses.csv"), |file| file.write_all(losses.as_bytes()))?)
    }
}

/// The losses as a picture.
fn curve<T: Task>(trainer: &Trainer<'_, T>, output: &Output) -> Scene {
    let tr = |english, korean| output.language.of(english, korean);
    let records = trainer.records();
    // The loss of single batches jumps about; the mean of some shows where it goes.
    let block = records.len().div_ceil(200).max(1);
    let mean = records.chunks(block).map(|block| {
        let sum: f64 = block.iter().map(|record| f64::from(record.loss)).sum();
        (block[block.len() - 1].step as f64, sum / block.len() as f64)
    });
    let held_out = records.iter().filter_map(|record| Some((record.step as f64, f64::from(record.held_out?))));
    Chart::new(tr("step", "스텝"), tr("loss", "손실"))
        .series(tr("learned", "학습"), mean.collect::<Vec<_>>())
        .series(tr("held out", "검증"), held_out.collect::<Vec<_>>())
        .language(output.language.into())
        .into()
}

/// How a run ended, in words.
fn ending(ended: Ended, run: &Run, output: &Output) -> String {
    let tr = |english, korean| output.language.of(english, korean);
    match ended {
        Ended::Done => String::new(),
        Ended::Early => tr("It no longer got better, and ended early.", "더 나아지지 않아 일찍 끝났습니다.").into(),
        Ended::Stopped => {
            format!("{} --resume: {}", tr("Interrupted; go on with", "중단됨; 이어서 하려면"), run.state().display())
        }
    }
}
