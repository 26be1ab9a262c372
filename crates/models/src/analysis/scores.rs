//! What a head does, in numbers.
//!
//! | score | definition |
//! |---|---|
//! | entropy | −Σⱼ A ln A, the mean over the queries: 0 for a single key, ln n for all alike |
//! | confidence | the largest weight, the mean over the queries |
//! | previous | A\[i, i−1\], the mean over i ≥ 1 |
//! | next | A\[i, i+1\], the mean over all i but the last; 0 in a decoder |
//! | duplicate | the weight on earlier tokens equal to this one, the mean over the tokens that have any |
//! | induction | on tokens that repeat with period P: A\[i, i−(P−1)\], the mean over i ≥ P: the token that came after this one the last time |
//! | sink | αₖ = the mean of A\[i, k\] over i ≥ k; the key with the largest |

use super::by_rows;
use crate::Result;
use crate::layer::expect;
use crate::trace::{Head, Kind, LayerTrace, Trace};

/// αₖ above which a key is called a sink.
pub const SINK: f32 = 0.3;

/// The key that takes most of a head's attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sink {
    /// Which key.
    pub key: usize,
    /// αₖ.
    pub share: f32,
}

impl Sink {
    /// Whether it takes so much that it is a place to leave attention at, not to look at.
    pub fn is_sink(&self) -> bool {
        self.share > SINK
    }
}

/// The scores of one head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadScores {
    /// Which head.
    pub head: Head,
    /// In nats.
    pub entropy: f32,
    /// The mean largest weight.
    pub confidence: f32,
    /// On the token before.
    pub previous: f32,
    /// On the token after.
    pub next: f32,
    /// On earlier equal tokens; none if no token comes twice.
    pub duplicate: Option<f32>,
    /// On what came after this token before; none if the tokens do not repeat as was said.
    pub induction: Option<f32>,
    /// Where attention is left. Only keys of the first half are asked: later ones are the mean of too few queries.
    pub sink: Option<Sink>,
}

/// The scores of all heads of one kind of attention, of a sequence to itself. `period` says that the tokens repeat.
///
/// # Errors
/// If there is no such sequence, it is attention between two sequences, or `tokens` are not its tokens.
pub fn head_scores(
    trace: &Trace,
    kind: Kind,
    sequence: usize,
    tokens: &[u32],
    period: Option<usize>,
) -> Result<Vec<HeadScores>> {
    let mut scores = Vec::new();
    for (number, layer) in trace.of_kind(kind) {
        expect("the tokens of the trace", &[layer.queries()], &[tokens.len()])?;
        expect("the keys, as many as queries,", &[layer.queries()], &[layer.keys()])?;
        for head in 0..layer.heads() {
            let head = Head::new(kind, number, head);
            scores.push(score(layer, sequence, head, tokens, period)?);
        }
    }
    Ok(scores)
}

fn score(layer: &LayerTrace, sequence: usize, head: Head, tokens: &[u32], period: Option<usize>) -> Result<HeadScores> {
    let n = tokens.len();
    let [mut entropy, mut confidence, mut previous, mut next, mut duplicate, mut induction] = [Mean::default(); 6];
    let mut received = vec![Mean::default(); n.div_ceil(2)];
    by_rows(layer, (sequence, head.head), |rows, weights| {
        for (i, row) in rows.zip(weights.outer_iter()) {
            entropy.add(-row.iter().filter(|w| **w > 0.0).map(|w| w * w.ln()).sum::<f32>());
            confidence.add(row.iter().fold(0.0, |max: f32, w| max.max(*w)));
            if i > 0 {
                previous.add(row[i - 1]);
            }
            if i + 1 < n {
                next.add(row[i + 1]);
            }
            let mut equal = (0..i).filter(|&j| tokens[j] == tokens[i]).map(|j| row[j]).peekable();
            if equal.peek().is_some() {
                duplicate.add(equal.sum());
            }
            if let Some(period) = period.filter(|&period| period > 0 && i >= period) {
                induction.add(row[i + 1 - period]);
            }
            received.iter_mut().zip(&row).take(i + 1).for_each(|(mean, w)| mean.add(*w));
        }
    })?;
    let shares = received.iter().enumerate().filter_map(|(key, mean)| Some(Sink { key, share: mean.get()? }));
    Ok(HeadScores {
        head,
        entropy: entropy.get().unwrap_or(0.0),
        confidence: confidence.get().unwrap_or(0.0),
        previous: previous.get().unwrap_or(0.0),
        next: next.get().unwrap_or(0.0),
        duplicate: duplicate.get(),
        induction: induction.get(),
        sink: shares.max_by(|a, b| a.share.total_cmp(&b.share).then(b.key.cmp(&a.key))),
    })
}

/// A mean that grows.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, x: f32) {
        self.sum += f64::from(x);
        self.count += 1;
    }

    fn get(self) -> Option<f32> {
        (self.count > 0).then(|| (self.sum / self.count as f64) as f32)
    }
}
