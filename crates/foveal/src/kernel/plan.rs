//! Which spans of which tiles a block of rows has to compute: nothing that is hidden.
//!
//! ```text
//! cut the block into groups of up to 12 rows, also where a sparse pattern changes from one row to the next
//! for each group: the runs of keys that it sees                        one, unless the mask is a sparse pattern
//! for each tile of the grid that some run reaches into, in order of the keys
//!   for each group: its runs within the tile, widened to whole panels, joined where they are less than a panel apart
//! ```
//!
//! Tiles between the runs are never looked at: the time that a plan takes grows with the spans it finds.

use std::ops::Range;

use super::backward::KeyTile;
use super::gemm::PANEL;
use super::nonfinite::Stray;
use super::rows::Block;
use super::simd::Simd;
use crate::scores::{Scores, View};

/// What a group of rows sees of a tile: a range of its keys, and whether all pairs are visible.
#[derive(Clone, Debug)]
pub struct Span {
    /// The group: which rows of the block.
    pub rows: Range<usize>,
    /// The first key, a multiple of a panel's width from the tile's start.
    pub first: usize,
    pub len: usize,
    pub view: View,
}

/// The plan of one block of rows. Its memory is kept from block to block.
#[derive(Debug, Default)]
pub struct Plan {
    groups: Vec<Group>,
    /// The runs of all groups, one group after the other.
    runs: Vec<Range<usize>>,
    /// The spans of the present tile, group by group.
    spans: Vec<Span>,
    /// Room for the values of a tile that are not finite.
    pub strays: Vec<Stray>,
}

/// A group of rows, and which of the runs are its own and still to come.
#[derive(Debug)]
struct Group {
    rows: Range<usize>,
    runs: Range<usize>,
}

impl Plan {
    /// The plan for `block` on the keys `keys`, in groups of up to `size` rows.
    #[inline(always)]
    pub fn make(&mut self, scores: &Scores, block: &Block, size: usize, keys: &Range<usize>) {
        self.groups.clear();
        self.runs.clear();
        let (n, mut start) = (block.len(), 0);
        while start < n {
            let rows = if scores.is_sparse() && block.heads.len() == 1 {
                // Groups of about the same size up to where the pattern changes, rather than whole ones and a small rest.
                let until = scores.same_until(block.b, block.heads.start, block.rows.start + start);
                let left = (until - block.rows.start).min(n) - start;
                start..start + left.div_ceil(left.div_ceil(size))
            } else {
                start..(start + size).min(n)
            };
            start = rows.end;
            let first = self.runs.len();
            for h in if block.heads.len() == 1 { block.heads.clone() } else { heads_of(block, &rows) } {
                scores.runs(block.b, h, &block.queries(&rows), keys, &mut self.runs);
            }
            if block.heads.len() > 1 {
                crate::pattern::merge(&mut self.runs, first);
            }
            self.groups.push(Group { rows, runs: first..self.runs.len() });
        }
    }

    /// Goes on to the next tile of `width` keys of a grid that starts at `base`, in which something is visible, and finds its
    /// spans. Gives the keys from the first to the last of them.
    #[inline(always)]
    pub fn next_tile<S: Simd>(
        &mut self,
        scores: &Scores,
        block: &Block,
        base: usize,
        width: usize,
    ) -> Option<Range<usize>> {
        let panel = PANEL * S::LANES;
        loop {
            let mut start = usize::MAX;
            for group in &self.groups {
                if !group.runs.is_empty() {
                    start = start.min(self.runs[group.runs.start].start);
                }
            }
            if start == usize::MAX {
                return None;
            }
            start -= (start - base) % width;
            let end = start + width;
            self.spans.clear();
            let (mut first_key, mut last_key) = (end, start);
            for group in &mut self.groups {
                let own = self.spans.len();
                while !group.runs.is_empty() {
                    let run = &mut self.runs[group.runs.start];
                    if run.start >= end {
                        break;
                    }
                    let (first, stop) = (run.start - (run.start - start) % panel, run.end.min(end));
                    if run.end > end {
                        run.start = end;
                    } else {
                        group.runs.start += 1;
                    }
                    match self.spans[own..].last_mut() {
                        Some(last) if first < last.first + last.len.next_multiple_of(panel) + panel => {
                            last.len = stop - last.first;
                        }
                        _ => {
                            let rows = group.rows.clone();
                            self.spans.push(Span { rows, first, len: stop - first, view: View::Partial });
                        }
                    }
                    if stop == end {
                        break;
                    }
                }
                // What dense masks hide.
                let mut kept = own;
                for n in own..self.spans.len() {
                    let span = &mut self.spans[n];
                    let keys = span.first..span.first + span.len;
                    if block.heads.len() == 1 || scores.heads_see_alike() {
                        span.view = scores.view(block.b, block.heads.start, &block.queries(&span.rows), &keys);
                    }
                    if span.view != View::Hidden {
                        (first_key, last_key) = (first_key.min(keys.start), last_key.max(keys.end));
                        self.spans.swap(kept, n);
                        kept += 1;
                    }
                }
                self.spans.truncate(kept);
            }
            if !self.spans.is_empty() {
                return Some(first_key..last_key);
            }
        }
    }

    /// Whether the block sees something of any of the tiles of `width` keys, dense masks aside. Undoes the plan.
    pub fn sees_any(&mut self, scores: &Scores, block: &Block, tiles: &[KeyTile], width: usize) -> bool {
        self.groups.clear();
        self.runs.clear();
        scores.runs(block.b, block.heads.start, &block.rows, &(0..scores.keys(block.b)), &mut self.runs);
        tiles.iter().any(|KeyTile { index: tile, .. }| {
            let next = self.runs.partition_point(|run| run.end <= tile * width);
            self.runs.get(next).is_some_and(|run| run.start < (tile + 1) * width)
        })
    }

    /// The rows from the first that sees something of the present tile to the last.
    #[inline(always)]
    pub fn rows(&self) -> Range<usize> {
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => first.rows.start..last.rows.end,
            _ => 0..0,
        }
    }

    /// The spans of the present tile, group by group in order of their rows.
    #[inline(always)]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The rows of each group, and its spans of the present tile.
    #[inline(always)]
    pub fn groups(&self) -> impl Iterator<Item = (&Range<usize>, &[Span])> {
        let mut rest = &self.spans[..];
        self.groups.iter().map(move |group| {
            let (own, others) = rest.split_at(rest.partition_point(|span| span.rows.start <= group.rows.start));
            rest = others;
            (&group.rows, own)
        })
    }
}

/// The heads of a group of rows of a block of several heads.
fn heads_of(block: &Block, rows: &Range<usize>) -> Range<usize> {
    block.at(rows.start).1..block.at(rows.end - 1).1 + 1
}
