//! What BERT reads: batches of sentences, and sentences with gaps to fill.

use crate::Result;

/// Some sentences as one batch, filled up to the longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentences {
    /// [B·T], with 0 after the end of a sentence.
    tokens: Vec<u32>,
    /// The segment of each token, 0 or 1: [B·T].
    segments: Vec<u32>,
    lengths: Vec<usize>,
}

impl Sentences {
    /// A batch of sentences.
    pub fn new<S: AsRef<[u32]>>(sentences: &[S]) -> Self {
        let longest = sentences.iter().map(|sentence| sentence.as_ref().len()).max().unwrap_or(0);
        let mut tokens = Vec::with_capacity(sentences.len() * longest);
        for sentence in sentences {
            tokens.extend_from_slice(sentence.as_ref());
            tokens.resize(tokens.len() + longest - sentence.as_ref().len(), 0);
        }
        let lengths = sentences.iter().map(|sentence| sentence.as_ref().len()).collect();
        Sentences { segments: vec![0; tokens.len()], tokens, lengths }
    }

    /// One sentence of two segments, the second from token `start` on.
    pub fn pair(tokens: &[u32], start: usize) -> Self {
        let segments = (0..tokens.len()).map(|i| u32::from(i >= start)).collect();
        Sentences { tokens: tokens.to_vec(), segments, lengths: vec![tokens.len()] }
    }

    /// B.
    pub fn batch(&self) -> usize {
        self.lengths.len()
    }

    /// [B·T]
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// [B·T]
    pub(super) fn segments(&self) -> &[u32] {
        &self.segments
    }

    /// The number of tokens of each.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The rows of all tokens but those after the end of a sentence.
    pub(super) fn rows(&self) -> Vec<usize> {
        let longest = self.tokens.len() / self.batch().max(1);
        let of = |(b, &length): (usize, &usize)| b * longest..b * longest + length;
        self.lengths.iter().enumerate().flat_map(of).collect()
    }

    /// The row of a token among those of all sentences.
    fn row(&self, (sentence, token): (usize, usize)) -> Result<usize> {
        let outside = |what, at, limit| foveal::Error::Range { what, start: at, end: at.saturating_add(1), limit };
        let batch = self.batch();
        let length =
            self.lengths.get(sentence).ok_or_else(|| outside("the sentence of a masked word", sentence, batch))?;
        if token >= *length {
            return Err(outside("a masked word", token, *length).into());
        }
        Ok(sentence * (self.tokens.len() / batch) + token)
    }
}

/// Sentences some of whose words are masked, and what stood there: what BERT learns from.
///
/// ```
/// use foveal_models::model::{Masked, Sentences};
///
/// let sentences = Sentences::new(&[vec![101, 7, 8, 9, 102], vec![101, 5, 102]]);
/// let masked = Masked::new(sentences, &[(0, 2), (1, 1)], 103)?; // (sentence, token)
/// assert_eq!(masked.words(), [8, 5]);
/// # Ok::<(), foveal_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked {
    sentences: Sentences,
    rows: Vec<usize>,
    words: Vec<u32>,
}

impl Masked {
    /// Puts the token `mask` in the place of some words, each told by its sentence and its place there.
    ///
    /// # Errors
    /// If there is no such word.
    pub fn new(mut sentences: Sentences, places: &[(usize, usize)], mask: u32) -> Result<Self> {
        let rows = places.iter().map(|place| sentences.row(*place)).collect::<Result<Vec<_>>>()?;
        let words = rows.iter().map(|row| sentences.tokens[*row]).collect();
        rows.iter().for_each(|row| sentences.tokens[*row] = mask);
        Ok(Masked { sentences, rows, words })
    }

    /// What is read.
    pub fn sentences(&self) -> &Sentences {
        &self.sentences
    }

    /// Where the masked words are among the rows of all tokens, as [`Bert::infer`](super::Bert::infer) gives them.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The words that are masked, to be guessed.
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}
