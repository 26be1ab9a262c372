//! Heads that follow the grammar of a sentence: how much of its weight the query of one word has on another word that it
//! belongs to, such as a verb on its subject.
//!
//! | measured | is |
//! |---|---|
//! | share | Σ A\[i, j\] over the tokens j of the word, the mean over all pairs of words |
//! | uniform | the same of a head that looks at all tokens alike |

use std::collections::BTreeMap;

use crate::Result;
use crate::analysis::words::{Group, merge};
use crate::trace::{Head, Kind, Trace};

/// Words of a sentence that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedWords {
    /// The tokens of each word.
    pub words: Vec<Group>,
    /// Words that look, and words that are looked at.
    pub pairs: Vec<(usize, usize)>,
}

/// How far a head follows a relation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelationScore {
    /// The head.
    pub head: Head,
    /// The mean weight on the words that are looked for.
    pub share: f32,
    /// What a head that looks at all tokens alike has there.
    pub uniform: f32,
    /// The pairs of words.
    pub pairs: usize,
}

/// The share of weight from which on a relation is what a head is for, and how far above that of a uniform head it must be.
const SHARE: f32 = 0.5;
const ABOVE: f32 = 3.0;

impl RelationScore {
    /// Whether the head may be called by the relation.
    pub fn is_syntactic(&self) -> bool {
        self.share >= SHARE && self.share >= ABOVE * self.uniform
    }
}

/// How far each head of one kind of self-attention follows a relation, over many sentences; the best first.
///
/// # Errors
/// If the words are not those of the trace.
pub fn relation_scores<'a>(
    sentences: impl IntoIterator<Item = (&'a Trace, &'a RelatedWords)>,
    kind: Kind,
) -> Result<Vec<RelationScore>> {
    let mut sums = BTreeMap::<Head, (f64, f64, usize)>::new();
    for (trace, RelatedWords { words, pairs }) in sentences {
        for (number, layer) in trace.of_kind(kind) {
            for head in 0..layer.heads() {
                let weights = merge(&layer.weights(0, head)?, words, words)?;
                let (share, uniform, count) = sums.entry(Head::new(kind, number, head)).or_default();
                for &(from, to) in pairs {
                    *share += f64::from(weights[[from, to]]);
                    *uniform += words[to].tokens.len() as f64 / layer.keys() as f64;
                    *count += 1;
                }
            }
        }
    }
    let mean = |sum: f64, count: usize| (sum / count.max(1) as f64) as f32;
    let score = |(head, (share, uniform, pairs)): (Head, (f64, f64, usize))| RelationScore {
        head,
        share: mean(share, pairs),
        uniform: mean(uniform, pairs),
        pairs,
    };
    let mut scores: Vec<RelationScore> = sums.into_iter().map(score).collect();
    scores.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(scores)
}
