//! Learning to predict the next token of a text.

use std::marker::PhantomData;

use super::{Fingerprint, StepContext, Task};
use crate::layer::{CrossEntropy, Loss, Random};
use crate::model::Trained;
use crate::model::language::Shape;
use crate::trace::Probe;
use crate::{Error, Result, Tokenizer};

/// A text in tokens, cut into windows at random places. The last tenth is held out.
#[derive(Clone, Debug)]
pub struct Text<M> {
    learned: Vec<u32>,
    held_out: Vec<u32>,
    window: usize,
    batch: usize,
    vocabulary: Option<Fingerprint>,
    model: PhantomData<fn() -> M>,
}

/// Windows of an evaluation at most, spread evenly over the held-out text.
const EVALUATED: usize = 64;

impl<M: Trained> Text<M> {
    /// Learns from `batch` windows of `window` tokens at a time.
    ///
    /// # Errors
    /// [`Error::TooShort`] if the held-out tenth does not fill one window and a token.
    pub fn new(mut tokens: Vec<u32>, window: usize, batch: usize) -> Result<Self> {
        let all = tokens.len();
        let held_out = tokens.split_off(all - all / 10);
        Text::of_parts(tokens, held_out, window, batch)
            .map_err(|_| Error::TooShort { tokens: all, least: 10 * (window + 1) })
    }

    /// The same where it is said what is held out.
    ///
    /// # Errors
    /// [`Error::TooShort`] if one of the two does not fill one window and a token.
    pub fn of_parts(learned: Vec<u32>, held_out: Vec<u32>, window: usize, batch: usize) -> Result<Self> {
        let tokens = learned.len().min(held_out.len());
        if window == 0 || batch == 0 || tokens <= window {
            return Err(Error::TooShort { tokens, least: window + 1 });
        }
        Ok(Text { learned, held_out, window, batch, vocabulary: None, model: PhantomData })
    }

    /// Says which vocabulary the tokens are of: the same numbers may be another text.
    #[must_use]
    pub fn with_vocabulary(self, tokenizer: &Tokenizer) -> Self {
        Text { vocabulary: Some(tokenizer.fingerprint("vocabulary")), ..self }
    }

    /// −Σ ln p over the whole held-out text, in nats: every token but the first is predicted once, from at least half a
    /// window before it where there is as much.
    ///
    /// # Errors
    /// If model and data do not fit each other.
    pub fn surprise(&self, model: &M) -> Result<f64> {
        let (last, step) = (self.held_out.len() - 1 - self.window, self.window.div_ceil(2));
        let (mut nats, mut predicted) = (0.0, 0);
        for start in (0..last).step_by(step).chain([last]) {
            let (inputs, targets) = self.windows(&self.held_out, &[start]);
            let hidden = model.infer(&inputs, 1, None, &mut Probe::default())?;
            let new = predicted - start..self.window;
            let logits = model.logits(hidden.slice(ndarray::s![new.clone(), ..]))?;
            let loss = CrossEntropy::new().forward(&logits, &targets[new])?;
            nats += f64::from(loss.mean) * loss.counted as f64;
            predicted = start + self.window;
        }
        Ok(nats)
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
        context.backward(|| model.backward(&saved, &logits, grad))?;
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

    fn fingerprint(&self, model: &M) -> Fingerprint {
        let Shape { layers, heads, context, .. } = model.shape();
        let families = (0..layers).filter_map(|layer| model.attention(layer)).map(|layer| layer.mechanism.family());
        let families: Vec<String> = families.map(|family| family.to_string()).collect();
        self.vocabulary
            .clone()
            .unwrap_or_default()
            .data("learned tokens", self.learned.iter().copied())
            .data("held-out tokens", self.held_out.iter().copied())
            .fact("tokens of a window", self.window)
            .fact("batch", self.batch)
            .fact("heads", heads)
            .fact("context", context)
            .fact("attention", families.join(" "))
    }
}
