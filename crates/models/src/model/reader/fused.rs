//! Passages that are read each by itself, and where the decoder finds them side by side.

use ndarray::{Array2, s};

use crate::layer::expect;
use crate::{Error, Result};

/// The passages of some questions, each with its question before it, filled up to the longest: P passages of S tokens.
#[derive(Clone, Copy, Debug)]
pub struct PassageBatch<'a> {
    /// [P·S]; what stands after the end of a passage is not looked at.
    pub tokens: &'a [u32],
    /// [P·S], the mark of each token.
    pub marks: &'a [u32],
    /// The tokens of each passage: \[P\].
    pub lengths: &'a [usize],
    /// Where the part begins that the decoder sees: \[P\].
    pub starts: &'a [usize],
    /// The passages of each question: \[B\], P together.
    pub counts: &'a [usize],
}

/// Where the decoder finds the tokens it sees: those of a question's passages, one after the other, filled up to the most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fused {
    /// Of each place, the row of the encoder; none where it is filled up: [B·M].
    rows: Vec<Option<usize>>,
    /// The token of each place: [B·M].
    pub tokens: Vec<u32>,
    /// The places of each question: \[B\].
    pub lengths: Vec<usize>,
}

impl PassageBatch<'_> {
    /// Where the decoder finds what it sees.
    pub(super) fn fuse(&self, context: usize) -> Result<Fused> {
        let passages = self.lengths.len();
        let length = self.tokens.len() / passages.max(1);
        expect("the tokens of all passages", &[passages * length], &[self.tokens.len()])?;
        expect("the marks of all passages", &[self.tokens.len()], &[self.marks.len()])?;
        expect("the beginnings of all passages", &[passages], &[self.starts.len()])?;
        expect("the passages of all questions", &[passages], &[self.counts.iter().sum()])?;
        if length > context {
            return Err(Error::Context { tokens: length, limit: context });
        }
        let seen = |p: usize| self.lengths[p].saturating_sub(self.starts[p]);
        let mut first = 0;
        let lengths: Vec<usize> = (self.counts.iter())
            .map(|count| {
                first += count;
                (first - count..first).map(seen).sum()
            })
            .collect();
        let most = lengths.iter().copied().max().unwrap_or(0);
        let (mut rows, mut tokens) = (Vec::new(), Vec::new());
        let mut passage = 0;
        for (question, count) in self.counts.iter().enumerate() {
            for p in passage..passage + count {
                let (start, end) = (p * length + self.starts[p].min(self.lengths[p]), p * length + self.lengths[p]);
                rows.extend((start..end).map(Some));
                tokens.extend_from_slice(&self.tokens[start..end]);
            }
            passage += count;
            rows.resize((question + 1) * most, None);
            tokens.resize((question + 1) * most, 0);
        }
        Ok(Fused { rows, tokens, lengths })
    }
}

impl Fused {
    /// The encoder's rows [P·S, D] as the decoder sees them: [B·M, D].
    pub(super) fn gather(&self, encoded: &Array2<f32>) -> Array2<f32> {
        let mut memory = Array2::zeros((self.rows.len(), encoded.ncols()));
        for (mut to, row) in memory.outer_iter_mut().zip(&self.rows) {
            row.iter().for_each(|row| to.assign(&encoded.slice(s![*row, ..])));
        }
        memory
    }

    /// The gradient of the encoder's rows, [rows, D], from that of [`gather`](Fused::gather): each row is seen once at most.
    pub(super) fn scatter(&self, dmemory: &Array2<f32>, rows: usize) -> Array2<f32> {
        let mut dencoded = Array2::zeros((rows, dmemory.ncols()));
        for (from, row) in dmemory.outer_iter().zip(&self.rows) {
            row.iter().for_each(|row| dencoded.slice_mut(s![*row, ..]).assign(&from));
        }
        dencoded
    }
}
