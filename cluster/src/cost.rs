//! What an exchange costs, and which way costs less.
//!
//! With $w_r$ the operations of rank r, $b_r$ the bytes that it receives, R operations and B bytes a second, and L the time of an
//! empty message:
//!
//! $$ t_{ring} = \max_r \max(w_r / R,\; b_r / B) + n L, \qquad
//!    t_{heads} = \frac{\lceil G / n \rceil}{G} \sum_r w_r / R + \max_r b'_r / B + 4 n L \lceil G / n \rceil $$
//!
//! In the ring, messages travel while there is work, and all ranks have work, whatever the number of heads. Exchanged heads are
//! waited for, but queries and outputs of one head are less than the keys and values of everybody, from some number of ranks on.

use std::ops::Range;

use crate::attention::Way;
use crate::options::Options;
use crate::shards::{Shards, part_of};

/// What work and messages cost. All ranks have to use the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Floating-point operations of a rank in a second.
    pub operations: f64,
    /// Bytes that a rank receives in a second.
    pub bytes: f64,
    /// Seconds until an empty message has arrived.
    pub latency: f64,
}

impl Default for Cost {
    /// A rank of a few cores on a network of 10 Gbit/s.
    fn default() -> Self {
        Cost { operations: 3e11, bytes: 1.2e9, latency: 2e-5 }
    }
}

/// The sizes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Sequences.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Queries of all ranks.
    pub queries: usize,
    /// Keys of all ranks.
    pub keys: usize,
    /// Dimensions of a key and a value together.
    pub dims: usize,
}

/// Places of a piece that are looked at to estimate how much it sees.
const SAMPLES: usize = 32;

impl Cost {
    /// The way that takes less time.
    pub fn cheapest(&self, options: &Options, queries: &Shards, keys: &Shards, size: Size) -> Way {
        let (ring, heads) = (self.ring(options, queries, keys, size), self.heads(options, queries, keys, size));
        if heads < ring { Way::Heads } else { Way::Ring }
    }

    /// Seconds of a forward pass as a ring.
    pub fn ring(&self, options: &Options, queries: &Shards, keys: &Shards, size: Size) -> f64 {
        let of = [size.batch, size.queries, size.keys];
        let seconds = |rank: usize| {
            let received = (0..keys.ranks()).filter(|owner| *owner != rank).flat_map(|owner| keys.pieces(owner));
            let parts = received.flat_map(|piece| (0..SAMPLES).map(move |n| part_of(piece, n, SAMPLES)));
            let seen = parts.filter(|part| queries.pieces(rank).iter().any(|piece| options.sees(piece, part, of)));
            let bytes = 4 * size.batch * size.kv_heads * size.dims * seen.map(|part| part.len()).sum::<usize>();
            (work(options, queries.pieces(rank), size) / self.operations).max(bytes as f64 / self.bytes)
        };
        some_ranks(queries.ranks()).map(seconds).fold(0.0, f64::max) + queries.ranks() as f64 * self.latency
    }

    /// Seconds of a forward pass with heads exchanged for tokens.
    pub fn heads(&self, options: &Options, queries: &Shards, keys: &Shards, size: Size) -> f64 {
        let ranks = queries.ranks();
        let rounds = size.kv_heads.div_ceil(ranks);
        let whole =
            work(options, std::slice::from_ref(&(0..size.queries)), size) * rounds as f64 / size.kv_heads.max(1) as f64;
        let bytes = |rank: usize| {
            // Queries go there and outputs come back; of keys and values each goes there.
            let tokens = queries.len(rank) * size.heads + keys.len(rank) * size.kv_heads;
            (4 * size.batch * size.dims * tokens) as f64 * (ranks - 1) as f64 / ranks as f64
        };
        let most = some_ranks(ranks).map(bytes).fold(0.0, f64::max);
        whole / self.operations + most / self.bytes + (4 * ranks * rounds) as f64 * self.latency
    }
}

/// Ranks of which one is about the busiest.
fn some_ranks(ranks: usize) -> impl Iterator<Item = usize> {
    [0, ranks / 2, ranks.saturating_sub(1)].into_iter()
}

/// The operations of a forward pass over these queries.
fn work(options: &Options, pieces: &[Range<usize>], size: Size) -> f64 {
    let seen = |piece: &Range<usize>| {
        let places = (0..SAMPLES).map(|n| piece.start + (2 * n + 1) * piece.len() / (2 * SAMPLES));
        let keys = places.map(|place| seen_by(options, place, size)).sum::<usize>();
        keys as f64 / SAMPLES as f64 * piece.len() as f64
    };
    2.0 * (size.batch * size.heads * size.dims) as f64 * pieces.iter().map(seen).sum::<f64>()
}

/// About how many keys a query sees; sequences are aligned at their ends.
fn seen_by(options: &Options, query: usize, size: Size) -> usize {
    let place = (query + size.keys).saturating_sub(size.queries);
    let first = options.left.map_or(0, |left| place.saturating_sub(left));
    let end = options.right.map_or(size.keys, |right| place.saturating_add(right).saturating_add(1).min(size.keys));
    end.saturating_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(tokens: usize, heads: usize, ranks: usize, cost: Cost) -> Way {
        let size = Size { batch: 1, heads, kv_heads: heads, queries: tokens, keys: tokens, dims: 128 };
        let shards = Shards::zigzag(tokens, ranks);
        cost.cheapest(&Options::causal(), &shards, &shards, size)
    }

    #[test]
    fn few_heads_or_long_sequences_go_round() {
        // One head cannot be shared by four ranks.
        assert_eq!(chosen(32_768, 1, 4, Cost::default()), Way::Ring);
        // So long that keys and values come in time.
        assert_eq!(chosen(1 << 20, 8, 4, Cost::default()), Way::Ring);
    }

    #[test]
    fn short_sequences_of_many_heads_on_a_slow_network_exchange_heads() {
        assert_eq!(chosen(8_192, 64, 16, Cost { bytes: 1e8, ..Cost::default() }), Way::Heads);
    }
}
