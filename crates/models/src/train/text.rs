//! Learning to predict the next token of a text.

use std::marker::PhantomData;

use super::{StepContext, Task};
use crate::layer::{CrossEntropy, Loss, Random};
use crate::model::Trained;
use crate::trace::Probe;
use crate::{Error, Result};

/// A text in tokens, cut into windows at random places. The last tenth is held out.
#[derive(Clone, Debug)]
pub struct Text<M> {
    learned: Vec<u32>,
    held_out: Vec<u32>,
    window: usize,
    batch: usize,
    model: PhantomData<fn() -> M>,
}

/// Windows of an evaluation at most, spread evenly over the held-out text.
const EVALUATED: usize = 64;

impl<M: Trained> Text<M> {
    /// Learns from `batch` windows of `window` tokens at a time.
    ///
    /// # Errors
    /// [`Error::TooShort`] if the held-out tenth does not fill one window and a token.
    pub fn new(tokens: Vec<u32>, window: usize, batch: usize) -> Result<Self> {
        let cut = tokens.len() - tokens.len() / 10;
        let (learned, held_out) = (tokens[..cut].to_vec(), tokens[cut..].to_vec());
        if window == 0 || batch == 0 || held_out.len() <= window {
            return Err(Error::TooShort { tokens: tokens.len(), least: 10 * (window + 1) });
        }
        Ok(Text { learned, held_out, window, batch, model: PhantomData })
    }

    /// Windows that begin at these places, and what comes after each of their tokens.
    fn windows(&self, text: &[u32], starts: &[usize]) -> (Vec<u32>, Vec<u32>) {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for &start in starts {
            inputs.extend_from_slice(&text[start..start + self.window]);
            targets.extend_from_slice(&text[start + 1..start + 1 + self.window]);
        }
        (inputs, targets)
    }
}

impl<M: Trained> Task for Text<M> {
    type Model = M;
    /// Where a window begins.
    type Example = usize;

    fn choose(&self, random: &mut Random) -> Vec<usize> {
        (0..self.batch).map(|_| random.below(self.learned.len() - self.window)).collect()
    }

    fn counted(&self, _: &usize) -> usize {
        self.window
    }

    fn learn(&self, model: &M, starts: &[usize], context: &StepContext, grad: &mut M) -> Result<Loss> {
        let (inputs, targets) = self.windows(&self.learned, starts);
        let (mut logits, saved) = model.forward(&inputs, starts.len(), context.dropout())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, &targets)?;
        model.backward(&saved, &logits, grad)?;
        Ok(loss)
    }

    fn evaluate(&self, model: &M) -> Result<f32> {
        let places = self.held_out.len() - self.window;
        let count = places.div_ceil(self.window).min(EVALUATED);
        let (mut sum, mut tokens) = (0.0, 0);
        let starts: Vec<usize> = (0..count).map(|i| i * places / count).collect();
        for starts in starts.chunks(self.batch) {
            let (inputs, targets) = self.windows(&self.held_out, starts);
            let hidden = model.infer(&inputs, starts.len(), None, &mut Probe::default())?;
            let loss = CrossEntropy::new().forward(&model.logits(hidden.view())?, &targets)?;
            sum += f64::from(loss.mean) * loss.counted as f64;
            tokens += loss.counted;
        }
        Ok((sum / tokens.max(1) as f64) as f32)
    }
}
