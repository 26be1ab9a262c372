//! Writing one sequence from another with the encoder-decoder: greedily, many at once, or by beam search.
//!
//! Beam search keeps the `beams` best beginnings y and goes on from each. What has ended is compared by
//!
//! $$ \mathrm{score}(y) = \frac{\ln p(y \mid x)}{|y|^{\alpha}} $$
//!
//! since a sum of logarithms would favour short answers.

use ndarray::Axis;

use crate::layer::log_softmax;
use crate::model::Transformer;
use crate::model::transformer::Batch;
use crate::trace::{Capture, Probe, Trace};
use crate::{Error, Result, Tokenizer};

/// The tokens that begin and end a written sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BosEos {
    /// Begins.
    pub begin: u32,
    /// Ends.
    pub end: u32,
    /// What a model says of a sequence that is unlike all it has learned. It is never written, but takes its share of the
    /// probability.
    pub unsure: Option<u32>,
}

/// How a vocabulary spells [`BosEos::unsure`].
pub const UNSURE: &str = "<unsure>";

impl BosEos {
    /// Those of a tokenizer.
    ///
    /// # Errors
    /// [`Error::MissingPart`] if it has none.
    pub fn of(tokenizer: &Tokenizer) -> Result<Self> {
        let special = tokenizer.special();
        match (special.bos, special.eos) {
            (Some(begin), Some(end)) => Ok(BosEos { begin, end, unsure: tokenizer.id(UNSURE) }),
            _ => Err(Error::MissingPart {
                part: "tokens in its vocabulary that begin and end a sentence, as <s> and </s> do",
                fit: "a translator that has them",
            }),
        }
    }
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// How many beginnings are kept; 1 is greedy.
    pub beams: usize,
    /// Tokens at most.
    pub most: usize,
    /// α.
    pub length_penalty: f32,
}

impl Default for Search {
    fn default() -> Self {
        Search { beams: 4, most: 64, length_penalty: 1.0 }
    }
}

/// Something written.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Its tokens, without those that begin and end it.
    pub tokens: Vec<u32>,
    /// ln p.
    pub log_probability: f32,
    /// The score by which it is compared.
    pub score: f32,
    /// Whether it came to its end.
    pub ended: bool,
}

/// The best of what can be written for `source`, best first.
///
/// # Errors
/// [`Error::TooShort`] for an empty source or no beam; as [`Transformer::encode`].
pub fn search(model: &Transformer, source: &[u32], bos_eos: BosEos, search: Search) -> Result<Vec<Hypothesis>> {
    search_with(model, source, bos_eos, search, &mut Probe::default())
}

/// The same through a probe, which may switch heads off or stop the search. Beams come and go: it should keep nothing.
///
/// # Errors
/// As [`search`].
pub fn search_with(
    model: &Transformer,
    source: &[u32],
    bos_eos: BosEos,
    search: Search,
    probe: &mut Probe,
) -> Result<Vec<Hypothesis>> {
    if source.is_empty() || search.beams == 0 {
        return Err(Error::TooShort { tokens: source.len(), least: 1 });
    }
    let batch = Batch { tokens: source, lengths: &[source.len()] };
    let memory = model.encode(batch, probe)?;
    let mut state = model.start(batch, memory.view())?;
    let mut open = vec![(Vec::new(), 0.0)];
    let mut ended: Vec<Hypothesis> = Vec::new();
    let most = search.most.min(model.config().context - 1);
    let mut last = vec![bos_eos.begin];
    for _ in 0..most {
        let logits = model.write(&last, &mut state, probe)?;
        // Every way to go on from every beginning.
        let mut ways: Vec<(usize, u32, f32)> = Vec::new();
        for (from, row) in logits.axis_iter(Axis(0)).enumerate() {
            let so_far = open[from].1;
            ways.extend(log_softmax(row).iter().enumerate().map(|(token, p)| (from, token as u32, so_far + p)));
        }
        ways.sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        let (mut next, mut kept) = (Vec::new(), Vec::new());
        for (from, token, p) in ways {
            if next.len() == search.beams {
                break;
            }
            if Some(token) == bos_eos.unsure {
                continue;
            }
            if token == bos_eos.end {
                ended.push(hypothesis(open[from].0.clone(), p, search.length_penalty, true));
                continue;
            }
            next.push(([&open[from].0[..], &[token]].concat(), p));
            kept.push(from);
        }
        open = next;
        // What ends later can only be less likely, so with enough ended the rest need not be written.
        if ended.len() >= search.beams || open.is_empty() {
            break;
        }
        last = open.iter().map(|(tokens, _)| tokens[tokens.len() - 1]).collect();
        state.select(&kept)?;
    }
    if ended.is_empty() {
        ended = open.into_iter().map(|(tokens, p)| hypothesis(tokens, p, search.length_penalty, false)).collect();
    }
    ended.sort_by(|a, b| b.score.total_cmp(&a.score));
    ended.truncate(search.beams);
    Ok(ended)
}

fn hypothesis(tokens: Vec<u32>, log_probability: f32, penalty: f32, ended: bool) -> Hypothesis {
    // The end counts as a token.
    let length = (tokens.len() + usize::from(ended)).max(1) as f32;
    Hypothesis { tokens, log_probability, score: log_probability / length.powf(penalty), ended }
}

/// Sources that are written from at once.
const AT_ONCE: usize = 64;

/// The likeliest token each time, for many sources.
///
/// # Errors
/// As [`search`].
pub fn greedy<S: AsRef<[u32]>>(
    model: &Transformer,
    sources: &[S],
    bos_eos: BosEos,
    most: usize,
) -> Result<Vec<Hypothesis>> {
    let mut all = Vec::with_capacity(sources.len());
    for sources in sources.chunks(AT_ONCE) {
        all.extend(greedy_batch(model, sources, bos_eos, most.min(model.config().context - 1))?);
    }
    Ok(all)
}

fn greedy_batch<S: AsRef<[u32]>>(
    model: &Transformer,
    sources: &[S],
    bos_eos: BosEos,
    most: usize,
) -> Result<Vec<Hypothesis>> {
    let lengths: Vec<usize> = sources.iter().map(|source| source.as_ref().len()).collect();
    if lengths.contains(&0) {
        return Err(Error::TooShort { tokens: 0, least: 1 });
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut tokens = Vec::with_capacity(sources.len() * longest);
    for (n, source) in sources.iter().enumerate() {
        tokens.extend_from_slice(source.as_ref());
        tokens.resize((n + 1) * longest, 0);
    }
    let (batch, mut probe) = (Batch { tokens: &tokens, lengths: &lengths }, Probe::default());
    let memory = model.encode(batch, &mut probe)?;
    let mut state = model.start(batch, memory.view())?;
    let mut written = vec![hypothesis(Vec::new(), 0.0, 0.0, false); sources.len()];
    let mut open: Vec<usize> = (0..sources.len()).collect();
    let mut last = vec![bos_eos.begin; sources.len()];
    for _ in 0..most {
        let logits = model.write(&last, &mut state, &mut probe)?;
        let (mut kept, mut still, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (row, &n)) in logits.axis_iter(Axis(0)).zip(&open).enumerate() {
            let log_p = log_softmax(row);
            let writable = (0..row.len()).filter(|token| Some(*token as u32) != bos_eos.unsure);
            let best = writable.reduce(|best, token| if row[token] > row[best] { token } else { best }).unwrap_or(0);
            written[n].log_probability += log_p[best];
            let best = best as u32;
            written[n].ended = best == bos_eos.end;
            if !written[n].ended {
                written[n].tokens.push(best);
                kept.push(place);
                still.push(n);
                next.push(best);
            }
        }
        if still.is_empty() {
            break;
        }
        state.select(&kept)?;
        (open, last) = (still, next);
    }
    for one in &mut written {
        one.score = one.log_probability;
    }
    Ok(written)
}

/// What the model attends to while it reads `source` and writes `target`. Query i of the decoder is the one that predicts token
/// i of the target; the last predicts the end.
///
/// # Errors
/// As [`search`].
pub fn watch(model: &Transformer, source: &[u32], target: &[u32], bos_eos: BosEos, capture: Capture) -> Result<Trace> {
    watch_with(model, source, target, bos_eos, Probe::new(capture))
}

/// The same through a probe.
///
/// # Errors
/// As [`search`].
pub fn watch_with(
    model: &Transformer,
    source: &[u32],
    target: &[u32],
    bos_eos: BosEos,
    mut probe: Probe,
) -> Result<Trace> {
    let batch = Batch { tokens: source, lengths: &[source.len()] };
    let memory = model.encode(batch, &mut probe)?;
    let mut state = model.start(batch, memory.view())?;
    model.write(&[&[bos_eos.begin], target].concat(), &mut state, &mut probe)?;
    Ok(probe.into_trace())
}
