//! Alignments read off cross-attention: which word was looked at while a word was written.
//!
//! Weights are merged to words first: those on the tokens of a source word added up, those of the tokens of a target word
//! averaged. Then each target word is linked to the source word with the largest weight.
//!
//! A decoder's query i has read the target up to token i − 1 and predicts token i. Where a word is looked up can be either: while
//! it is being predicted, or once it is there. [`Reading`] says which rows are read.

use ndarray::Array2;

use super::score::AlignmentScore;
use crate::analysis::words::{Group, merge};
use crate::trace::{Kind, Trace};
use crate::{Error, Result};

/// Which rows of cross-attention belong to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Those that predict its tokens.
    Predicting,
    /// Those that have its tokens as their newest.
    Having,
}

impl Reading {
    /// Both.
    pub const ALL: [Reading; 2] = [Reading::Predicting, Reading::Having];
}

/// For each target word the source word it is linked to, as (source, target). The weights are [T + 1, S]: row i predicts token i
/// of the target, the last one its end.
///
/// # Errors
/// If the words are not those of the weights.
pub fn links(
    weights: &Array2<f32>,
    source: &[Group],
    target: &[Group],
    reading: Reading,
) -> Result<Vec<(usize, usize)>> {
    let tokens = target.last().map_or(0, |group| group.tokens.end);
    if weights.nrows() != tokens + 1 {
        let (expected, got) = (vec![tokens + 1, weights.ncols()], weights.shape().to_vec());
        let (what, axes) = ("the cross-attention of these words", "[target tokens + 1, source tokens]");
        return Err(foveal::Error::Shape { what, axes, expected, got }.into());
    }
    let first = match reading {
        Reading::Predicting => 0,
        Reading::Having => 1,
    };
    let rows = weights.slice(ndarray::s![first..first + tokens, ..]).to_owned();
    let merged = merge(&rows, target, source)?;
    let strongest =
        |row: ndarray::ArrayView1<f32>| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]).then(b.cmp(a)));
    Ok(merged.outer_iter().enumerate().filter_map(|(word, row)| Some((strongest(row)?, word))).collect())
}

/// One way to read alignments, and how well it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aligner {
    /// The layer of the decoder.
    pub layer: usize,
    /// Its head; the mean of all heads if none.
    pub head: Option<usize>,
    /// Which rows are read.
    pub reading: Reading,
    /// Its links against the gold ones.
    pub score: AlignmentScore,
}

/// Gold links of a sentence, and the words they are between.
#[derive(Clone, Debug)]
pub struct Gold {
    /// The source words.
    pub source: Vec<Group>,
    /// The target words.
    pub target: Vec<Group>,
    /// Links that must be found: (source, target).
    pub sure: Vec<(usize, usize)>,
    /// Links that may be found.
    pub possible: Vec<(usize, usize)>,
}

/// Scores every way to read alignments: each layer, each head and the mean of all, both readings. Best first.
///
/// # Errors
/// If a trace has no cross-attention, or the words are not its words.
pub fn score<'a>(sentences: impl IntoIterator<Item = (&'a Trace, &'a Gold)>) -> Result<Vec<Aligner>> {
    let mut aligners: Vec<Aligner> = Vec::new();
    for (trace, gold) in sentences {
        if aligners.is_empty() {
            aligners = ways(trace)?;
        }
        for aligner in &mut aligners {
            let weights = weights(trace, aligner.layer, aligner.head)?;
            let found = links(&weights, &gold.source, &gold.target, aligner.reading)?;
            aligner.score.add(&found, &gold.sure, &gold.possible);
        }
    }
    aligners.sort_by(|a, b| a.score.error_rate().total_cmp(&b.score.error_rate()));
    Ok(aligners)
}

/// The cross-attention of one head, or the mean of all: [T + 1, S].
///
/// # Errors
/// If there is no such layer or head.
pub fn weights(trace: &Trace, layer: usize, head: Option<usize>) -> Result<Array2<f32>> {
    let layer = trace.layer(Kind::Cross, layer)?;
    let Some(head) = head else {
        let zeros = Array2::zeros((layer.queries(), layer.keys()));
        let sum = (0..layer.heads()).try_fold(zeros, |sum, head| Ok::<_, Error>(sum + layer.weights(0, head)?))?;
        return Ok(sum / layer.heads() as f32);
    };
    layer.weights(0, head)
}

/// Every way to read alignments off a trace, nothing scored yet.
fn ways(trace: &Trace) -> Result<Vec<Aligner>> {
    // Says what there is instead, if there is no cross-attention.
    trace.of_kind(Kind::Cross).next().map_or_else(|| trace.layer(Kind::Cross, 0).map(drop), |_| Ok(()))?;
    let mut ways = Vec::new();
    for (layer, traced) in trace.of_kind(Kind::Cross) {
        for head in (0..traced.heads()).map(Some).chain([None]) {
            let aligner = |reading| Aligner { layer, head, reading, score: AlignmentScore::default() };
            ways.extend(Reading::ALL.map(aligner));
        }
    }
    Ok(ways)
}
