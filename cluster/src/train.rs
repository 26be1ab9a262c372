//! Training with data in parallel: each rank learns from its share of every batch.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use foveal_models::layer::Parameters;
use foveal_models::train::{Ended, Fingerprint, Peers, Plan, Record, Task, Trainer};

use crate::error::Result;
use crate::wire::{Summing, exit_now};
use crate::world::World;

/// The ranks of a run as [`Peers`] of a [`Trainer`].
pub struct Ranks {
    world: Arc<World>,
    sums: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    under_way: VecDeque<Summing>,
    done: Vec<Vec<f32>>,
}

impl Ranks {
    /// All ranks of a run.
    pub fn new(world: Arc<World>) -> Self {
        Ranks { world, sums: Mutex::default() }
    }

    /// Takes what has been added up; whether that is all.
    fn advance(&self) -> bool {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let Sums { under_way, done } = &mut *sums;
        while let Some(sum) = under_way.front_mut().and_then(|summing| summing.poll(self.world.wire())) {
            done.push(sum);
            under_way.pop_front();
        }
        under_way.is_empty()
    }
}

impl Peers for Ranks {
    fn rank(&self) -> usize {
        self.world.rank()
    }

    fn count(&self) -> usize {
        self.world.size()
    }

    fn start_sum(&self, numbers: Vec<f32>) {
        let summing = self.world.wire().start_sum(numbers);
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).under_way.push_back(summing);
    }

    fn poll(&self) {
        self.advance();
    }

    fn finish_sums(&self) -> Vec<Vec<f32>> {
        while !self.advance() {
            // Others may have work for this processor.
            std::thread::yield_now();
        }
        let sums = std::mem::take(&mut self.sums.lock().unwrap_or_else(PoisonError::into_inner).done);
        // MPI only recommends that all ranks get the same bits; models that drift apart would be found too late.
        let hash = |sum: u64, x: &f32| sum.rotate_left(5) ^ u64::from(x.to_bits());
        let hashes = self.world.wire().gather_number(sums.iter().flatten().fold(0, hash));
        if hashes.iter().any(|other| *other != hashes[0]) {
            eprintln!(
                "foveal-mpi: this MPI gives ranks different sums of the same numbers; choose another algorithm of its Allreduce"
            );
            exit_now(4);
        }
        sums
    }

    fn sum(&self, numbers: &mut [f64]) {
        self.world.sum(numbers);
    }
}

/// Where the state of a run is kept, and how often it is saved.
#[derive(Clone, Copy, Debug)]
pub struct Saving<'p> {
    /// One file, which all ranks can read.
    pub path: &'p Path,
    /// Steps between.
    pub every: usize,
}

/// Trains a model with all ranks, from the state that is kept, if there is one, and whatever number of ranks has left it.
/// `watch` sees every step, on all ranks, after its state was saved where that was due. It may break the run off, if it does so on all
/// of them.
///
/// # Errors
/// If the ranks disagree about task, model, plan or state before they start; as [`Trainer::run`] after that.
pub fn train<'t, T: Task>(
    world: &Arc<World>,
    task: &'t T,
    model: T::Model,
    plan: Plan,
    saving: Option<Saving>,
    watch: &mut dyn FnMut(&Record) -> ControlFlow<()>,
) -> Result<(Trainer<'t, T>, Ended)> {
    let state = saving.map(|saving| saving.path).filter(|path| path.exists());
    let trainer = match state {
        Some(path) => Trainer::resume(task, model, plan, path),
        None => Trainer::new(task, model, plan),
    };
    let numbers = trainer.as_ref().map_or(0, |trainer| hash(trainer.model()));
    let facts = Fingerprint::default()
        .fact("problem", trainer.as_ref().err().map_or("none".into(), ToString::to_string))
        .fact("plan", format!("{plan:?}"))
        .fact("steps done", trainer.as_ref().map_or(0, |trainer| trainer.records().len()))
        .fact("hash of the model", format!("{numbers:016x}"));
    let facts = match &trainer {
        Ok(trainer) => facts.fact("task", serde_json::to_string(&task.fingerprint(trainer.model())).expect("texts")),
        Err(_) => facts,
    };
    world.agree("this training", &facts)?;
    let mut trainer = trainer?.with_peers(Arc::new(Ranks::new(world.clone())));
    let mut failed = None;
    let ended = trainer.run(&mut |trainer| {
        let Some(record) = trainer.records().last() else { return ControlFlow::Continue(()) };
        let due = saving.filter(|saving| record.step.is_multiple_of(saving.every) || record.step == plan.steps);
        if let Some(Err(error)) = due.filter(|_| world.rank() == 0).map(|saving| trainer.save(saving.path)) {
            // The others hear of it when this rank ends.
            failed = Some(error);
            return ControlFlow::Break(());
        }
        watch(record)
    })?;
    failed.map_or(Ok((trainer, ended)), |error| Err(error.into()))
}

/// A hash of all parameters.
fn hash<M: Parameters>(model: &M) -> u64 {
    let mut hash = 0u64;
    model.visit("", &mut |_, values| {
        hash = values.iter().fold(hash, |hash, x| (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0000_0100_0000_01b3));
    });
    hash
}
