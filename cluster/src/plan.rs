//! Which chunk of keys and values goes where, and when.
//!
//! The keys and values of every rank are cut into chunks. Chunk j of rank o visits, in the order of the ring, those ranks that
//! see some of it; the gradients collected on the way go home from the last one. Rank r works in the order
//!
//! ```text
//! for j, for s in 0..n:  chunk j of rank r − s, if r sees it
//! ```
//!
//! so that every rank is busy with another one's chunk, and all steps are of about the same length. An event waits for events that
//! are earlier in this order alone, on whatever rank, so no two ranks wait for each other.
//!
//! Every rank makes the plan of all by itself: it follows from shards and masks.

use crate::options::Options;
use crate::shards::{Chunk, Shards};

/// A chunk that comes to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Whose keys these are.
    pub owner: usize,
    /// Which of its chunks.
    pub number: usize,
    /// Who sends it; none if it is the rank's own.
    pub from: Option<usize>,
    /// Whom it is sent on to.
    pub to: Option<usize>,
    /// Whether there is something to do. A rank's own keys may be seen by others only.
    pub works: bool,
}

/// What one rank does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The chunks of every rank.
    pub chunks: Vec<Vec<Chunk>>,
    pub events: Vec<Event>,
    /// Of the own chunks that go on a journey: the number, and the last rank that sees it.
    pub journeys: Vec<(usize, usize)>,
}

/// What a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cargo {
    KeysAndValues,
    /// Gradients on their way from rank to rank.
    Gradients,
    /// All gradients of a chunk, on their way home.
    Home,
}

impl Cargo {
    /// The tag of a message. MPI promises tags up to 32,767; messages of the same tag between two ranks keep their order.
    pub fn tag(self, owner: usize, number: usize, ranks: usize) -> usize {
        self as usize + 3 * ((number * ranks + owner) % 8192)
    }
}

impl Plan {
    /// The plan of `rank`, with chunks of about `most` tokens.
    pub fn new(options: &Options, queries: &Shards, keys: &Shards, batch: usize, rank: usize, most: usize) -> Plan {
        let ranks = keys.ranks();
        let of = [batch, queries.tokens(), keys.tokens()];
        let sees = |rank: usize, chunk: &Chunk| {
            let mut spans = chunk.spans.iter();
            spans.any(|span| queries.pieces(rank).iter().any(|piece| options.sees(piece, &span.tokens, of)))
        };
        let chunks: Vec<Vec<Chunk>> = (0..ranks).map(|owner| keys.chunks(owner, most)).collect();
        let (mut events, mut journeys) = (Vec::new(), Vec::new());
        for number in 0..chunks.iter().map(Vec::len).max().unwrap_or(0) {
            for step in 0..ranks {
                let owner = (rank + ranks - step) % ranks;
                let Some(chunk) = chunks[owner].get(number) else { continue };
                let works = sees(rank, chunk);
                if !works && step > 0 {
                    continue;
                }
                let onward = (step + 1..ranks).map(|step| (owner + step) % ranks);
                let to = onward.clone().find(|other| sees(*other, chunk));
                let back = (0..step).rev().map(|step| (owner + step) % ranks);
                let from = back.into_iter().find(|other| *other == owner || sees(*other, chunk));
                events.push(Event { owner, number, from, to, works });
                if step == 0 {
                    journeys.extend(onward.rev().find(|other| sees(*other, chunk)).map(|last| (number, last)));
                }
            }
        }
        Plan { chunks, events, journeys }
    }

    /// The tokens of an event.
    pub fn chunk(&self, event: &Event) -> &Chunk {
        &self.chunks[event.owner][event.number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(options: &Options, shards: &Shards, most: usize) -> Vec<Plan> {
        (0..shards.ranks()).map(|rank| Plan::new(options, shards, shards, 1, rank, most)).collect()
    }

    /// What one sends, the other awaits, and nobody waits in a circle.
    #[test]
    fn messages_meet_and_nobody_waits_for_ever() {
        let options = [Options::default(), Options::causal(), Options { left: Some(3), ..Options::causal() }];
        for options in &options {
            for shards in [Shards::zigzag(50, 4), Shards::contiguous(50, 3), Shards::of_lengths(&[1, 40, 0, 9])] {
                let plans = plans(options, &shards, 6);
                let sent = |rank: usize, event: &Event| {
                    event.to.is_none_or(|to| {
                        plans[to].events.iter().any(|other| {
                            (other.owner, other.number, other.from) == (event.owner, event.number, Some(rank))
                        })
                    })
                };
                assert!(plans.iter().enumerate().all(|(rank, plan)| plan.events.iter().all(|event| sent(rank, event))));
                // Each rank does what it can until nobody has anything left to do.
                let mut next = vec![0; plans.len()];
                let done = |next: &[usize], rank: usize, owner: usize, number: usize| {
                    plans[rank].events[..next[rank]].iter().any(|event| (event.owner, event.number) == (owner, number))
                };
                loop {
                    let ready = (0..plans.len()).find(|rank| {
                        plans[*rank].events.get(next[*rank]).is_some_and(|event| {
                            event.from.is_none_or(|from| done(&next, from, event.owner, event.number))
                        })
                    });
                    let Some(rank) = ready else { break };
                    next[rank] += 1;
                }
                assert!(plans.iter().zip(&next).all(|(plan, next)| plan.events.len() == *next));
            }
        }
    }

    #[test]
    fn a_window_sends_to_the_neighbour_alone() {
        let window = Options { left: Some(5), ..Options::causal() };
        for (rank, plan) in plans(&window, &Shards::contiguous(80, 4), 5).iter().enumerate() {
            let from: Vec<usize> = plan.events.iter().filter_map(|event| event.from).collect();
            // Of the four chunks of the rank before, the last one alone is seen.
            assert_eq!(from, if rank == 0 { vec![] } else { vec![rank - 1] });
        }
    }

    #[test]
    fn contiguous_causal_shards_travel_to_later_ranks_alone() {
        let plans = plans(&Options::causal(), &Shards::contiguous(40, 4), 10);
        let received: Vec<usize> = plans.iter().map(|plan| plan.events.iter().flat_map(|e| e.from).count()).collect();
        assert_eq!(received, [0, 1, 2, 3]);
    }
}
