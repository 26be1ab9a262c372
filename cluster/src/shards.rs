//! Which rank holds which tokens of a sequence.

use std::ops::Range;

use crate::error::{Error, Result};

/// The tokens of a sequence, dealt out to ranks: each has some pieces, one after the other in its arrays.
///
/// ```text
/// 8 tokens, 2 ranks       contiguous  0 0 0 0 1 1 1 1      zigzag  0 0 1 1 1 1 0 0
/// ```
///
/// Under a causal mask the last tokens see all the others, and the first ones next to nothing. With contiguous shards, the last
/// rank would work for n − ½ units of time and the first for ½; in a zigzag all have the same work.
///
/// ```
/// use foveal_cluster::Shards;
///
/// let shards = Shards::zigzag(10, 2);
/// assert_eq!(shards.pieces(0), [0..2, 7..10]);
/// assert_eq!(shards.len(1), 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    tokens: usize,
    pieces: Vec<Vec<Range<usize>>>,
}

/// The part `n` of `parts` equal parts of a range, to a token.
pub(crate) fn part_of(range: &Range<usize>, n: usize, parts: usize) -> Range<usize> {
    let at = |n: usize| range.start + (range.len() as u128 * n as u128 / parts.max(1) as u128) as usize;
    at(n)..at(n + 1)
}

impl Shards {
    /// Each rank has one piece. Best where all tokens see as many others: without a mask, or with a window.
    pub fn contiguous(tokens: usize, ranks: usize) -> Self {
        let pieces = (0..ranks).map(|rank| vec![part_of(&(0..tokens), rank, ranks)]).collect();
        Shards { tokens, pieces }
    }

    /// Rank r of n has the pieces r and 2n − 1 − r of 2n: the same work for all under a causal mask.
    pub fn zigzag(tokens: usize, ranks: usize) -> Self {
        let piece = |n: usize| part_of(&(0..tokens), n, 2 * ranks);
        Shards { tokens, pieces: (0..ranks).map(|rank| vec![piece(rank), piece(2 * ranks - 1 - rank)]).collect() }
    }

    /// One piece a rank, of these lengths.
    pub fn of_lengths(lengths: &[usize]) -> Self {
        let mut end = 0;
        let mut next = |length: &usize| {
            end += length;
            std::iter::once(end - length..end).collect()
        };
        let pieces = lengths.iter().map(&mut next).collect();
        Shards { tokens: end, pieces }
    }

    /// Any pieces.
    ///
    /// # Errors
    /// If a token is in none of them, or in more than one.
    pub fn new(pieces: Vec<Vec<Range<usize>>>) -> Result<Self> {
        let mut all: Vec<&Range<usize>> = pieces.iter().flatten().filter(|piece| !piece.is_empty()).collect();
        all.sort_by_key(|piece| piece.start);
        let mut tokens = 0;
        for piece in all {
            if piece.start != tokens {
                let problem = match piece.start < tokens {
                    true => format!("token {} is in two of them", piece.start),
                    false => format!("token {tokens} is in none of them"),
                };
                return Err(Error::Shards { what: "a sequence", problem });
            }
            tokens = piece.end;
        }
        Ok(Shards { tokens, pieces })
    }

    /// All tokens.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.pieces.len()
    }

    /// How many tokens a rank has.
    pub fn len(&self, rank: usize) -> usize {
        self.pieces[rank].iter().map(Range::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens == 0
    }

    /// The pieces of a rank, in the order of its arrays.
    pub fn pieces(&self, rank: usize) -> &[Range<usize>] {
        &self.pieces[rank]
    }

    /// The places in the sequence of a rank's tokens, in the order of its arrays.
    pub fn places(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        self.pieces[rank].iter().cloned().flatten()
    }

    /// Cuts a rank's tokens into chunks of at most about `most`. Each chunk has a share of every piece, so that all chunks of a
    /// zigzag are the same work.
    pub(crate) fn chunks(&self, rank: usize, most: usize) -> Vec<Chunk> {
        let count = self.len(rank).div_ceil(most.max(1));
        let chunk = |n: usize| {
            let mut first = 0;
            let mut spans = Vec::new();
            for piece in &self.pieces[rank] {
                let tokens = part_of(piece, n, count);
                let start = first + (tokens.start - piece.start);
                first += piece.len();
                if !tokens.is_empty() {
                    spans.push(Span { rows: start..start + tokens.len(), tokens });
                }
            }
            Chunk { spans }
        };
        (0..count).map(chunk).collect()
    }
}

/// Successive tokens of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where they stand in the sequence.
    pub tokens: Range<usize>,
    /// Where they stand in the arrays of their rank.
    pub rows: Range<usize>,
}

/// Some tokens of a shard, which travel together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub spans: Vec<Span>,
}

impl Chunk {
    pub fn len(&self) -> usize {
        self.spans.iter().map(|span| span.tokens.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_in_one_chunk_of_one_rank() {
        for shards in [
            Shards::contiguous(101, 4),
            Shards::zigzag(101, 3),
            Shards::zigzag(3, 4),
            Shards::of_lengths(&[0, 50, 7, 1]),
            Shards::contiguous(0, 2),
        ] {
            assert_eq!(Shards::new(shards.pieces.clone()).unwrap(), shards);
            for most in [1, 5, 1000] {
                let mut seen = vec![0; shards.tokens()];
                for rank in 0..shards.ranks() {
                    let places: Vec<usize> = shards.places(rank).collect();
                    for span in shards.chunks(rank, most).into_iter().flat_map(|chunk| chunk.spans) {
                        assert_eq!(span.tokens.clone().collect::<Vec<_>>(), places[span.rows.clone()]);
                        span.tokens.for_each(|token| seen[token] += 1);
                    }
                }
                assert!(seen.iter().all(|times| *times == 1), "{shards:?} {most}");
            }
        }
    }

    #[test]
    fn a_zigzag_is_the_same_causal_work_for_all() {
        let shards = Shards::zigzag(1200, 4);
        let work = |rank: usize| shards.places(rank).map(|token| token + 1).sum::<usize>();
        let works: Vec<usize> = (0..4).map(work).collect();
        assert!(works.iter().all(|work| *work == works[0]), "{works:?}");
    }

    #[test]
    fn gaps_and_doubles_are_named() {
        let problem = |pieces| Shards::new(pieces).unwrap_err().to_string();
        assert!(problem(vec![vec![0..3], vec![4..5]]).contains("token 3 is in none"));
        assert!(problem(vec![vec![0..3], vec![2..5]]).contains("token 2 is in two"));
    }
}
