//! Writing on: a language model, its cache, and the choice of the next token.
//!
//! ```
//! use foveal_models::generate::{Choice, Session, GenerateOptions};
//! use foveal_models::layer::Random;
//! use foveal_models::model::{Gpt2, Gpt2Config};
//!
//! let model = Gpt2::new(&Gpt2Config::nano(), &mut Random::new(1))?;
//! let mut session = Session::new(&model);
//! let options = GenerateOptions { most: 8, choice: Choice::Greedy, ..GenerateOptions::default() };
//! for token in session.generate(&[3, 1, 4], options)? {
//!     print!("{} ", token?); // as it comes
//! }
//! assert_eq!(session.tokens().len(), 3 + 8);
//! # Ok::<(), foveal_models::Error>(())
//! ```

pub mod beam;
mod sampler;

use foveal::KvCache;
use foveal_compute::awake;
use ndarray::{Array1, Axis};

pub use self::sampler::{Choice, Sampler, Sampling};
use crate::checkpoint::{Checkpoint, Config};
use crate::model::LanguageModel;
use crate::model::language::rewind;
use crate::trace::{LayerTrace, Probe, Site, Trace};
use crate::{Error, Result, Tokenizer};

/// What happens when a text outgrows the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// [`Error::Context`].
    #[default]
    Refuse,
    /// The window slides: the model forgets the older half of what it saw and reads the newer half again.
    Slide,
}

/// A text that a model reads and writes, token by token.
#[derive(Clone)]
pub struct Session<'m> {
    model: &'m dyn LanguageModel,
    cache: Vec<KvCache>,
    probe: Probe,
    overflow: Overflow,
    tokens: Vec<u32>,
    /// The first token that the model still sees.
    first: usize,
}

impl<'m> Session<'m> {
    /// An empty text.
    pub fn new(model: &'m dyn LanguageModel) -> Self {
        let (cache, probe) = (model.cache(1, 0), Probe::default());
        Session { model, cache, probe, overflow: Overflow::Refuse, tokens: Vec::new(), first: 0 }
    }

    /// Watches it with a probe. Meant for an empty text.
    #[must_use]
    pub fn watched_by(self, probe: Probe) -> Self {
        Session { probe, ..self }
    }

    /// What happens when the text outgrows the context.
    #[must_use]
    pub fn on_overflow(self, overflow: Overflow) -> Self {
        Session { overflow, ..self }
    }

    /// All tokens so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The first token that the model still sees: 0 until the window slides.
    pub fn first(&self) -> usize {
        self.first
    }

    /// What was attended to, from token [`first`](Session::first) on.
    pub fn trace(&self) -> Trace {
        self.probe.trace()
    }

    /// The same of one layer; none if it was not kept.
    pub fn layer_trace(&self, site: Site) -> Option<LayerTrace> {
        self.probe.layer(site)
    }

    /// Reads on. The scores of all tokens to come next: \[V\].
    ///
    /// # Errors
    /// [`Error::TooShort`] for no tokens, [`Error::TokenId`] for one outside the vocabulary, [`Error::Context`] for more than
    /// the model can see. The text is then what it was before.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<Array1<f32>> {
        let hidden = self.advance(tokens)?;
        self.logits(&hidden)
    }

    /// The scores of all tokens, from what the model made of the last: [V].
    fn logits(&self, hidden: &Array1<f32>) -> Result<Array1<f32>> {
        let row = hidden.view().insert_axis(Axis(0));
        Ok(awake(|| self.model.logits(row))?.index_axis_move(Axis(0), 0))
    }

    /// Reads on. What the model makes of the last token: [D].
    fn advance(&mut self, tokens: &[u32]) -> Result<Array1<f32>> {
        if tokens.is_empty() {
            return Err(Error::TooShort { tokens: 0, least: 1 });
        }
        let limit = self.model.shape().context;
        let seen = self.tokens.len() - self.first + tokens.len();
        if seen > limit {
            match self.overflow {
                Overflow::Refuse => return Err(Error::Context { tokens: seen, limit }),
                Overflow::Slide => return self.slide(tokens, limit),
            }
        }
        let hidden = self.read(tokens)?;
        self.tokens.extend_from_slice(tokens);
        Ok(hidden)
    }

    /// Starts anew from the newer half of what the model could see. A text longer than that, come at once, keeps its end.
    fn slide(&mut self, tokens: &[u32], limit: usize) -> Result<Array1<f32>> {
        let all = [&self.tokens[..], tokens].concat();
        let first = all.len() - limit.div_ceil(2).max(tokens.len().min(limit));
        self.cache = self.model.cache(1, limit);
        self.probe.clear();
        let hidden = self.read(&all[first..])?;
        (self.tokens, self.first) = (all, first);
        Ok(hidden)
    }

    fn read(&mut self, tokens: &[u32]) -> Result<Array1<f32>> {
        let Session { model, cache, probe, .. } = self;
        let hidden = awake(|| model.infer_last(tokens, cache, probe));
        Ok(hidden.inspect_err(|_| rewind(&mut self.cache))?.index_axis_move(Axis(0), 0))
    }

    /// Reads `prompt` and writes on.
    ///
    /// # Errors
    /// As [`feed`](Session::feed); also if the options of the choice make no sense.
    pub fn generate(&mut self, prompt: &[u32], options: GenerateOptions) -> Result<Generation<'_, 'm>> {
        let sampler = Sampler::new(options.choice, options.seed)?;
        let hidden = self.advance(prompt)?;
        Ok(Generation {
            session: self,
            sampler,
            hidden,
            begun: false,
            stop: options.stop,
            left: options.most,
            end: None,
        })
    }
}

/// How to write on.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// How many tokens at most.
    pub most: usize,
    /// How the next token is chosen.
    pub choice: Choice,
    /// What the choice is random by.
    pub seed: u64,
    /// Tokens that end the text; they are not part of it.
    pub stop: Vec<u32>,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions { most: 128, choice: Choice::default(), seed: 0, stop: Vec::new() }
    }
}

/// Why no more tokens come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There are as many as were asked for.
    Length,
    /// The model wrote a token that ends the text.
    Stop(u32),
    /// An error came instead of a token.
    Failed,
}

/// Tokens as they come: an iterator. Each is part of the session's text when it is handed out.
pub struct Generation<'s, 'm> {
    session: &'s mut Session<'m>,
    sampler: Sampler,
    /// What the model made of the last token: [D].
    hidden: Array1<f32>,
    /// Whether a token was chosen already.
    begun: bool,
    stop: Vec<u32>,
    left: usize,
    end: Option<End>,
}

impl Generation<'_, '_> {
    /// Why no more tokens come, once none do.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    fn step(&mut self) -> Result<Option<u32>> {
        let token = self.choose()?;
        if self.stop.contains(&token) {
            self.end = Some(End::Stop(token));
            return Ok(None);
        }
        self.hidden = self.session.advance(&[token])?;
        self.left -= 1;
        Ok(Some(token))
    }

    /// The next token. The first comes from the scores of all, so that it does not have to wait until the model has got ready to
    /// find the likeliest faster.
    fn choose(&mut self) -> Result<u32> {
        let begun = std::mem::replace(&mut self.begun, true);
        let scores = match self.sampler.enough().filter(|_| begun) {
            Some(k) => awake(|| self.session.model.top_k_candidates(self.hidden.view(), k))?,
            None => (0..).zip(self.session.logits(&self.hidden)?).collect(),
        };
        self.sampler.choose(scores)
    }
}

impl Iterator for Generation<'_, '_> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        if self.end.is_some() {
            return None;
        }
        if self.left == 0 {
            self.end = Some(End::Length);
            return None;
        }
        self.step().inspect_err(|_| self.end = Some(End::Failed)).transpose()
    }
}

/// The tokens that end a text: those that `generation_config.json` names, else the model's configuration, which may name
/// several; in GGUF also those that end a turn of a conversation; and the one that the tokenizer ends a text with.
///
/// # Errors
/// If `generation_config.json` is there and makes no sense.
pub fn stop_tokens(checkpoint: &Checkpoint, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    let path = checkpoint.folder().map(|folder| folder.join("generation_config.json"));
    let path = path.filter(|path| checkpoint.gguf().is_none() && path.exists());
    let settings = path.map(|path| Config::read(&path)).transpose()?;
    let configured = settings.as_ref().and_then(|settings| settings.get("eos_token_id"));
    let configured = configured.or_else(|| checkpoint.config().get("eos_token_id"));
    let ids =
        configured.into_iter().flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
    let mut stop: Vec<u32> = ids.filter_map(|id| u32::try_from(id.as_u64()?).ok()).collect();
    let turns = ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];
    stop.extend(checkpoint.gguf().into_iter().flat_map(|gguf| turns.iter().filter_map(|key| gguf.whole(key))));
    stop.extend(tokenizer.special().eos);
    stop.sort_unstable();
    stop.dedup();
    Ok(stop)
}
