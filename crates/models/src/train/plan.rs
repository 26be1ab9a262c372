//! What a training run does, in numbers.

use serde::{Deserialize, Serialize};

use crate::Result;

/// How the learning rate goes, after the warm-up in which it rises to its peak in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Down half a cosine wave to `floor` at the last step.
    #[default]
    Cosine,
    /// Down with 1/√step, as for the first Transformer.
    InverseSquareRoot,
    /// It stays.
    Constant,
}

/// The plan of a run. The default is nanoGPT's for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// How many steps.
    pub steps: usize,
    /// The largest learning rate.
    pub peak: f32,
    /// The smallest one, at the end of a cosine.
    pub floor: f32,
    /// Steps until the peak.
    pub warmup: usize,
    /// What comes after.
    pub schedule: Schedule,
    /// β₁ and β₂ of AdamW.
    pub betas: (f32, f32),
    /// How fast matrices decay; vectors (norms and biases) do not.
    pub weight_decay: f32,
    /// The norm of all gradients together that a step is cut to.
    pub clip: Option<f32>,
    /// Batches whose gradients are averaged for a step.
    pub accumulate: usize,
    /// The share of values that are dropped.
    pub dropout: f32,
    /// The share of the target that is spread over all tokens.
    pub label_smoothing: f32,
    /// Steps between evaluations on held-out data; also one at the end.
    pub evaluate_every: usize,
    /// Evaluations without a better one before the run ends early.
    pub patience: Option<usize>,
    /// Random seed.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            steps: 2000,
            peak: 1e-3,
            floor: 1e-4,
            warmup: 100,
            schedule: Schedule::Cosine,
            betas: (0.9, 0.99),
            weight_decay: 0.1,
            clip: Some(1.0),
            accumulate: 1,
            dropout: 0.0,
            label_smoothing: 0.0,
            evaluate_every: 250,
            patience: None,
            seed: 1337,
        }
    }
}

impl Plan {
    /// The learning rate of a step, counted from 0.
    ///
    /// ```
    /// let plan = foveal_models::train::Plan { steps: 1000, warmup: 100, peak: 1.0, floor: 0.1, ..Default::default() };
    /// assert_eq!(plan.learning_rate(49), 0.5);
    /// assert_eq!(plan.learning_rate(99), 1.0);
    /// assert!((plan.learning_rate(549) - 0.55).abs() < 1e-3); // half way down
    /// assert!((plan.learning_rate(999) - 0.1).abs() < 1e-3);
    /// ```
    pub fn learning_rate(&self, step: usize) -> f32 {
        let (step, warmup) = (step as f64 + 1.0, self.warmup as f64);
        let (peak, floor) = (f64::from(self.peak), f64::from(self.floor));
        if step <= warmup {
            return (peak * step / warmup) as f32;
        }
        let rate = match self.schedule {
            Schedule::Constant => peak,
            Schedule::InverseSquareRoot => peak * (warmup.max(1.0) / step).sqrt(),
            Schedule::Cosine => {
                let way = ((step - warmup) / (self.steps as f64 - warmup).max(1.0)).min(1.0);
                floor + 0.5 * (peak - floor) * (1.0 + (std::f64::consts::PI * way).cos())
            }
        };
        rate as f32
    }

    pub(super) fn check(&self) -> Result<()> {
        let refused = |what, expected, got: f64| Err(foveal::Error::Value { what, expected, got }.into());
        let positive = |x: f32| x.is_finite() && x > 0.0;
        if !positive(self.peak) {
            return refused("the learning rate", "a finite number above 0", self.peak.into());
        }
        if !(self.floor.is_finite() && self.floor >= 0.0 && self.floor <= self.peak) {
            return refused("the smallest learning rate", "a number from 0 to the largest", self.floor.into());
        }
        for beta in [self.betas.0, self.betas.1] {
            if !(0.0..1.0).contains(&beta) {
                return refused("beta of AdamW", "a number from 0 to below 1", beta.into());
            }
        }
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            return refused("the weight decay", "a finite number from 0", self.weight_decay.into());
        }
        if let Some(clip) = self.clip.filter(|clip| !positive(*clip)) {
            return refused("the norm to clip at", "a finite number above 0", clip.into());
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return refused("dropout", "a probability from 0 to below 1", self.dropout.into());
        }
        if !(0.0..=1.0).contains(&self.label_smoothing) {
            return refused("the label smoothing", "a share from 0 to 1", self.label_smoothing.into());
        }
        for (what, got) in [
            ("the number of steps", self.steps),
            ("the batches of a step", self.accumulate),
            ("the steps between evaluations", self.evaluate_every),
        ] {
            if got == 0 {
                return refused(what, "at least 1", 0.0);
            }
        }
        Ok(())
    }
}
