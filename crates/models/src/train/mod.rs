//! Training, on the explicit backward passes of the models.
//!
//! A [`Task`] knows the data and gives the loss and its gradients; a [`Trainer`] does the rest: schedule, clipping, AdamW,
//! evaluation, early stopping, and a state on disk to go on from. Every batch, every dropped value follows from the seed and
//! the number of the step, so a run that was interrupted goes on as if it had not been, on any number of threads.
//!
//! The two halves of a batch are learned from side by side, each on a thread of its own from its tokens to its gradients.
//!
//! ```
//! use foveal_models::layer::Random;
//! use foveal_models::model::{Gpt2, Gpt2Config};
//! use foveal_models::train::{Plan, Text, Trainer};
//!
//! let tokens: Vec<u32> = (0..500).map(|i| i % 7).collect();
//! let task = Text::new(tokens, 16, 4)?; // windows of 16 tokens, 4 at a time
//! let config = Gpt2Config { vocabulary: 7, context: 16, width: 16, heads: 2, layers: 1, hidden: 32, ..Gpt2Config::nano() };
//! let model = Gpt2::new(&config, &mut Random::new(1))?;
//! let mut trainer = Trainer::new(&task, model, Plan { steps: 60, warmup: 5, peak: 0.01, ..Plan::default() })?;
//! trainer.run(&mut |_| std::ops::ControlFlow::Continue(()))?;
//! assert!(trainer.records().last().unwrap().loss < 0.5);
//! # Ok::<(), foveal_models::Error>(())
//! ```

mod adamw;
mod fingerprint;
mod halves;
mod idx;
mod images;
mod pairs;
mod peers;
mod plan;
mod questions;
mod repeats;
mod snapshots;
mod state;
mod text;
mod trainer;

pub use self::adamw::AdamW;
pub use self::fingerprint::Fingerprint;
pub use self::idx::idx;
pub use self::images::Images;
pub use self::pairs::{Example, GuidedHead, Pairs};
pub use self::peers::Peers;
pub(crate) use self::peers::finished;
pub use self::plan::{Plan, Schedule};
pub use self::questions::{Asked, Questions};
pub use self::repeats::Repeats;
pub use self::snapshots::Snapshots;
pub use self::state::csv;
pub use self::text::Text;
pub use self::trainer::{Ended, Record, Trainer};
use crate::Result;
use crate::layer::{CrossEntropy, Dropout, Loss, Parameters, Random};

/// Something to be learned: a kind of model and data for it.
pub trait Task: Sync {
    /// The model.
    type Model: Parameters + Clone + Send + Sync;
    /// What a batch is made of, or where it is found.
    type Example: Send + Sync;

    /// A batch, chosen at random.
    fn choose(&self, random: &mut Random) -> Vec<Self::Example>;

    /// How many tokens of an example count for the loss.
    fn counted(&self, example: &Self::Example) -> usize;

    /// The loss on some examples of a batch; its gradients are added to `grad`.
    ///
    /// # Errors
    /// If model and data do not fit each other.
    fn learn(
        &self,
        model: &Self::Model,
        examples: &[Self::Example],
        context: &StepContext,
        grad: &mut Self::Model,
    ) -> Result<Loss>;

    /// The loss on data that is never learned from.
    ///
    /// # Errors
    /// As [`learn`](Task::learn).
    fn evaluate(&self, model: &Self::Model) -> Result<f32>;

    /// What tells this task from others of its kind: data, batch, vocabulary, and sizes of the model that its parameters'
    /// shapes do not tell. A run goes on only with the task that it began with.
    fn fingerprint(&self, model: &Self::Model) -> Fingerprint;
}

/// What half a batch is learned with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepContext {
    dropout: Dropout,
    label_smoothing: f32,
    /// The tokens of the whole batch that count.
    counted: usize,
    /// Whether these are the last examples of the step.
    last: bool,
}

impl StepContext {
    /// What to drop, by the numbers that these examples have in the batch.
    pub fn dropout(&self) -> Option<Dropout> {
        Some(self.dropout).filter(|dropout| dropout.probability > 0.0)
    }

    /// The tokens of the whole batch that count.
    pub fn counted(&self) -> usize {
        self.counted
    }

    /// The same for the examples from this one on.
    #[must_use]
    pub fn from(&self, example: usize) -> Self {
        StepContext { dropout: Dropout { first: self.dropout.first + example, ..self.dropout }, ..*self }
    }

    /// The same for examples after which others come in the same step.
    #[must_use]
    pub fn before_others(&self) -> Self {
        StepContext { last: false, ..*self }
    }

    /// Runs the backward pass of these examples. After that of the last ones in a step, gradients can be passed on: see
    /// [`Peers`].
    pub fn backward<R>(&self, pass: impl FnOnce() -> R) -> R {
        if self.last { peers::announcing(pass) } else { pass() }
    }

    /// The loss, where tokens to ignore have this number: the share of these examples in that of the batch.
    pub fn cross_entropy(&self, ignore: Option<u32>) -> CrossEntropy {
        CrossEntropy { label_smoothing: self.label_smoothing, ignore, of: Some(self.counted) }
    }
}
