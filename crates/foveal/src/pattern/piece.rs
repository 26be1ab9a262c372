//! The pieces that patterns are unions of. Each can say two things: whether one pair is visible, as defined, and which runs
//! of keys some positions see, as the kernels need it. Tests hold the one against the other.

use std::ops::Range;
use std::sync::Arc;

use crate::Error;

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// |j − p| ≤ reach, and a multiple of step.
    Band {
        reach: usize,
        step: usize,
    },
    /// These keys, for every query: sorted and disjoint.
    Keys(Arc<[Range<usize>]>),
    /// Every key, for these positions: sorted and disjoint.
    Queries(Arc<[Range<usize>]>),
    /// The keys j with j mod period ≥ from, for every query.
    Periodic {
        period: usize,
        from: usize,
    },
    /// ⌊j/size⌋ = ⌊p/size⌋
    Block {
        size: usize,
    },
    /// Both within the same of some stretches of tokens, which end before these: ascending, each after the last.
    Stretches(Arc<[usize]>),
    Lists(Lists),
    Grid(Grid),
}

/// No array is as long: sums of two of them do not overflow.
const FAR: usize = isize::MAX as usize / 4;

/// At most [`FAR`], and signed.
fn signed(size: usize) -> isize {
    size.min(FAR) as isize
}

impl Piece {
    /// Whether a query at any position, also one before the first key, sees a key.
    pub fn sees(&self, position: i128, key: usize) -> bool {
        let at = usize::try_from(position).ok();
        match self {
            Piece::Band { reach, step } => {
                let distance = usize::try_from((key as i128 - position).unsigned_abs()).unwrap_or(usize::MAX);
                distance <= *reach && distance.is_multiple_of(*step)
            }
            Piece::Keys(ranges) => ranges.iter().any(|range| range.contains(&key)),
            Piece::Queries(ranges) => at.is_some_and(|at| ranges.iter().any(|range| range.contains(&at))),
            Piece::Periodic { period, from } => key % period >= *from,
            Piece::Block { size } => at.is_some_and(|at| at / size == key / size),
            Piece::Stretches(ends) => at.is_some_and(|at| stretch(ends, at).contains(&key)),
            Piece::Lists(lists) => at.is_some_and(|at| lists.row(at / lists.size).iter().any(|run| run.contains(&key))),
            Piece::Grid(grid) => {
                at.is_some_and(|at| grid.window_of(at).is_some_and(|w| Some(w) == grid.window_of(key)))
            }
        }
    }

    /// See [`Pattern::runs`](super::Pattern::runs).
    #[inline]
    pub fn runs(&self, positions: Range<isize>, keys: &Range<usize>, give: &mut impl FnMut(Range<usize>)) {
        let mut give = |run: Range<usize>| {
            let run = run.start.max(keys.start)..run.end.min(keys.end);
            if run.start < run.end {
                give(run);
            }
        };
        // Keys that are there: from 0 on.
        let there = |start: isize, end: isize| start.max(0) as usize..end.max(0) as usize;
        // Positions that are there.
        let at = there(positions.start, positions.end);
        match self {
            Piece::Band { reach, step: 1 } => {
                let reach = signed(*reach);
                give(there(positions.start - reach, (positions.end + reach).min(FAR as isize)));
            }
            Piece::Band { reach, step } => {
                let (reach, step) = (signed(*reach), signed(*step));
                if positions.len() >= step as usize {
                    return give(there(positions.start - reach, (positions.end + reach).min(FAR as isize)));
                }
                // The positions moved by m steps. Those that end before the keys or start behind them are left out.
                let most = reach / step;
                let least = (keys.start as isize - positions.end + 1).div_euclid(step).max(-most);
                let last = (keys.end as isize - positions.start).div_euclid(step).min(most);
                for m in least..=last {
                    give(there(positions.start + m * step, positions.end + m * step));
                }
            }
            Piece::Keys(ranges) => {
                let first = ranges.partition_point(|range| range.end <= keys.start);
                ranges[first..].iter().take_while(|range| range.start < keys.end).cloned().for_each(give);
            }
            Piece::Queries(ranges) => {
                let first = ranges.partition_point(|range| range.end <= at.start);
                if ranges.get(first).is_some_and(|range| range.start < at.end) {
                    give(keys.clone());
                }
            }
            Piece::Periodic { period, from } => {
                for start in (keys.start / period * period..keys.end).step_by(*period) {
                    give(start + from..start.saturating_add(*period));
                }
            }
            Piece::Block { size } => {
                if !at.is_empty() {
                    give(at.start / size * size..((at.end - 1) / size).saturating_mul(*size).saturating_add(*size));
                }
            }
            Piece::Stretches(ends) => {
                if !at.is_empty() {
                    give(stretch(ends, at.start).start..stretch(ends, at.end - 1).end);
                }
            }
            Piece::Lists(lists) => {
                for block in at.start / lists.size..at.end.div_ceil(lists.size) {
                    let runs = lists.row(block);
                    let first = runs.partition_point(|run| run.end <= keys.start);
                    runs[first..].iter().take_while(|run| run.start < keys.end).cloned().for_each(&mut give);
                }
            }
            Piece::Grid(grid) => {
                let mut at = at;
                while at.start < at.end {
                    let Some([rows, cols]) = grid.window_of(at.start) else { return };
                    let width = grid.size.1;
                    let rows = rows.start.max(keys.start / width)..rows.end.min(keys.end.div_ceil(width));
                    let token = |y: usize, x: usize| y.saturating_mul(width).saturating_add(x);
                    rows.for_each(|y| give(token(y, cols.start)..token(y, cols.end)));
                    at.start = grid.next_break(at.start);
                }
            }
        }
    }

    /// See [`Pattern::shows_all`](super::Pattern::shows_all).
    #[inline]
    pub fn shows_all(&self, positions: &Range<isize>, keys: &Range<usize>) -> bool {
        // Without a break a row only moves: what the first and the last see, those between see, too, if there are no gaps.
        let gaps = matches!(self, Piece::Band { step: 2.., .. }) && positions.len() > 1;
        !gaps
            && [positions.start, positions.end - 1].into_iter().all(|position| {
                let mut covered = false;
                self.runs(position..position + 1, keys, &mut |run| covered |= run == *keys);
                covered
            })
    }

    /// See [`Pattern::next_break`](super::Pattern::next_break).
    #[inline]
    pub fn next_break(&self, position: isize) -> isize {
        let Ok(at) = usize::try_from(position) else {
            return match self {
                Piece::Band { .. } | Piece::Keys(_) | Piece::Periodic { .. } => isize::MAX,
                _ => 0,
            };
        };
        let next = match self {
            Piece::Band { .. } | Piece::Keys(_) | Piece::Periodic { .. } => usize::MAX,
            Piece::Queries(ranges) => {
                let first = ranges.partition_point(|range| range.end <= at);
                ranges.get(first).map_or(usize::MAX, |range| if range.start > at { range.start } else { range.end })
            }
            Piece::Block { size } | Piece::Lists(Lists { size, .. }) => (at / size + 1).saturating_mul(*size),
            Piece::Stretches(ends) => ends.get(ends.partition_point(|end| *end <= at)).copied().unwrap_or(usize::MAX),
            Piece::Grid(grid) => grid.next_break(at),
        };
        isize::try_from(next).unwrap_or(isize::MAX)
    }
}

/// The stretch that a token lies in; nothing behind the last.
fn stretch(ends: &[usize], token: usize) -> Range<usize> {
    let n = ends.partition_point(|end| *end <= token);
    let start = if n == 0 { 0 } else { ends[n - 1] };
    start..ends.get(n).copied().unwrap_or(start)
}

/// Visible blocks, row by row of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub size: usize,
    /// Where the runs of each row of blocks end; those of the next start there.
    ends: Arc<[usize]>,
    /// Runs of keys: sorted and disjoint within a row.
    runs: Arc<[Range<usize>]>,
}

impl Lists {
    pub fn new(size: usize, rows: Vec<Vec<usize>>) -> Result<Lists, Error> {
        let blocks = rows.len();
        let (mut ends, mut runs) = (Vec::with_capacity(blocks), Vec::new());
        for row in rows {
            if let Some(&block) = row.iter().find(|block| **block >= blocks) {
                let fits = format!("0 to {}, one for each row of the list", blocks - 1);
                return Err(Error::Fit { what: "a block of the list", got: block, fits });
            }
            let keys = row.into_iter().map(|block| block.saturating_mul(size)..(block + 1).saturating_mul(size));
            runs.extend(merged(keys.collect()));
            ends.push(runs.len());
        }
        Ok(Lists { size, ends: ends.into(), runs: runs.into() })
    }

    /// The runs of a row of blocks; none outside the list.
    fn row(&self, block: usize) -> &[Range<usize>] {
        let start = if block == 0 { 0 } else { self.ends.get(block - 1).copied().unwrap_or(self.runs.len()) };
        &self.runs[start..self.ends.get(block).copied().unwrap_or(start)]
    }
}

/// Windows on an image.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Of the image, a window, and the shift: (height, width).
    pub size: (usize, usize),
    pub window: (usize, usize),
    pub shift: (usize, usize),
}

impl Grid {
    /// The rows and columns of the window that a token lies in, if it lies in the image.
    fn window_of(&self, token: usize) -> Option<[Range<usize>; 2]> {
        let (height, width) = self.size;
        let (y, x) = (token.checked_div(width)?, token % width);
        let along = |at: usize, window: usize, shift: usize, side: usize| {
            // Windows start at shift, shift + window, …; before the shift there is the rest of one.
            let start = if at < shift { 0 } else { at - (at - shift) % window };
            start..(if at < shift { shift } else { start.saturating_add(window) }).min(side)
        };
        (y < height)
            .then(|| [along(y, self.window.0, self.shift.0, height), along(x, self.window.1, self.shift.1, width)])
    }

    /// The first token after this one in another window.
    fn next_break(&self, token: usize) -> usize {
        let width = self.size.1;
        match self.window_of(token) {
            Some([_, cols]) => (token - token % width).saturating_add(cols.end),
            None => usize::MAX,
        }
    }
}

/// Ranges sorted, and joined where they touch.
pub(crate) fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    merge(&mut ranges, 0);
    ranges
}

/// Sorts the ranges from `first` on, and joins those that touch.
pub(crate) fn merge(ranges: &mut Vec<Range<usize>>, first: usize) {
    ranges[first..].sort_unstable_by_key(|range| range.start);
    let mut kept = first;
    for n in first..ranges.len() {
        let range = ranges[n].clone();
        match ranges[first..kept].last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => {
                ranges[kept] = range;
                kept += 1;
            }
        }
    }
    ranges.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::super::{BigBird, Pattern};

    /// What `runs`, `next_break` and `shows_all` say, against `sees`.
    #[test]
    fn runs_are_what_is_seen() {
        let sizes = BigBird { block: 3, window: 3, global_start: 1, global_end: 1, random: 2, seed: 4 };
        let patterns = [
            Pattern::longformer(3, 1, &[0, 5, 6, 30]).unwrap(),
            Pattern::longformer(2, 3, &[]).unwrap(),
            Pattern::longformer(usize::MAX, 2, &[]).unwrap(),
            Pattern::longformer(2, 15, &[4]).unwrap(),
            Pattern::strided(5).unwrap(),
            Pattern::strided(usize::MAX).unwrap(),
            Pattern::fixed(7, 2).unwrap(),
            Pattern::fixed(usize::MAX, 1).unwrap(),
            Pattern::big_bird(38, sizes).unwrap(),
            Pattern::swin((4, 9), (2, 3), (1, 2)).unwrap(),
            Pattern::blocks(5, (0..8).map(|r| (0..8).filter(|c| r * c % 3 == 1).collect())).unwrap(),
            Pattern::documents(&[3, 0, 17, 1, 9]).unwrap(),
            Pattern::blocks(4, [vec![1, 0], vec![]]).unwrap().or(Pattern::longformer(1, 1, &[]).unwrap()).unwrap(),
        ];
        for pattern in patterns {
            for start in -4isize..40 {
                let cut = pattern.next_break(start);
                for (len, from, to) in [(1, 0, 40), (1, 7, 12), (3, 0, 40), (12, 0, 33), (12, 9, 10)] {
                    let mut seen = [false; 60];
                    pattern.runs(start..start + len, &(from..to), |run| {
                        assert!(from <= run.start && run.start < run.end && run.end <= to);
                        seen[run].fill(true);
                    });
                    for key in from..to {
                        let any = (start..start + len).any(|position| pattern.sees(position, key));
                        assert!(seen[key] || !any, "{pattern:?} at {start} + {len}, key {key}");
                        assert!(len > 1 || seen[key] == any, "{pattern:?} at {start}, key {key}");
                    }
                    let positions = start..(start + len).min(cut);
                    if pattern.shows_all(&positions, &(from..to)) {
                        assert!(positions.clone().all(|p| (from..to).all(|key| pattern.sees(p, key))), "{pattern:?}");
                    }
                }
            }
        }
    }
}
