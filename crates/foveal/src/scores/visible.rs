//! What a query sees.
//!
//! Distances make intervals: under causal, window and padding masks the keys that a row sees are one range, whose ends grow
//! with the row. So a block of rows sees nothing outside the range from its first row's start to its last row's end, and tiles
//! outside are never touched. Under sparse patterns the keys are several runs within that range; see [`Scores::runs`].

use std::ops::Range;

use super::{At, Scores};
use crate::attention::Attention;
use crate::bias::Kind;
use crate::kernel::options;
use crate::kernel::plan::Span;
use crate::kernel::rows::KEYS;
use crate::kernel::simd::Simd;
use crate::pattern::{Pattern, merge};

/// What a rectangle of the score matrix looks like through the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Every pair is hidden.
    Hidden,
    /// Some pairs may be hidden.
    Partial,
    /// Every pair is visible.
    Full,
}

impl<'a> Scores<'a> {
    /// The keys that distances and lengths let query i see.
    #[inline(always)]
    pub fn interval(&self, b: usize, i: usize) -> Range<usize> {
        let mask = &self.attention.mask;
        let keys = self.keys(b);
        let (mut start, mut end) = (0, keys);
        let clip = |key: isize| key.clamp(0, keys as isize) as usize;
        if let Some(left) = mask.left {
            start = clip(self.position(b, i).saturating_sub_unsigned(left));
        }
        if let Some(right) = mask.right {
            end = clip(self.position(b, i).saturating_add_unsigned(right).saturating_add(1));
        }
        for lengths in &mask.lengths {
            let length = isize::try_from(lengths[b]).unwrap_or(isize::MAX);
            end = end.min(length.saturating_sub(self.part.keys).max(0) as usize);
        }
        start.min(end)..end
    }

    /// The smallest range of keys outside which none of the rows sees anything.
    #[inline(always)]
    pub fn hull(&self, b: usize, rows: &Range<usize>) -> Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        let end = self.interval(b, rows.end - 1).end;
        // A row above all keys has an empty interval, whose start says nothing.
        self.interval(b, rows.start).start.min(end)..end
    }

    /// The rows, counted from the first, that can see something of the keys `some` of `tile`.
    #[inline(always)]
    pub fn seeing(&self, b: usize, rows: &Range<usize>, tile: &Range<usize>, some: &Range<usize>) -> Range<usize> {
        // Both ends of the intervals grow with the row.
        let first = |seen: &dyn Fn(Range<usize>) -> bool| {
            let (mut low, mut high) = (0, rows.len());
            while low < high {
                let middle = low.midpoint(high);
                if seen(self.interval(b, rows.start + middle)) { high = middle } else { low = middle + 1 }
            }
            low
        };
        let start = first(&|interval| interval.end > tile.start + some.start);
        let end = first(&|interval| interval.start >= tile.start + some.end);
        start..end.max(start)
    }

    /// Whether there are sparse patterns.
    #[inline(always)]
    pub fn is_sparse(&self) -> bool {
        !self.attention.mask.patterns.is_empty()
    }

    /// Whether every head sees the same.
    #[inline(always)]
    pub fn heads_see_alike(&self) -> bool {
        let mask = &self.attention.mask;
        mask.patterns.is_empty() && mask.keep.is_empty() && !matches!(self.attention.bias.kind, Kind::Dense(_))
    }

    /// The patterns of head h.
    #[inline(always)]
    fn patterns(&self, h: usize) -> impl Iterator<Item = &'a Pattern> + use<'a> {
        let attention: &'a Attention = self.attention;
        attention.mask.patterns.iter().map(move |heads| &heads[if heads.len() == 1 { 0 } else { h }])
    }

    /// Appends to `runs` the runs of keys within `keys` outside which none of the rows sees anything, the dense masks aside:
    /// sorted, and with gaps between them.
    #[inline(always)]
    pub fn runs(&self, b: usize, h: usize, rows: &Range<usize>, keys: &Range<usize>, runs: &mut Vec<Range<usize>>) {
        let hull = self.hull(b, rows);
        let seen = hull.start.max(keys.start)..hull.end.min(keys.end);
        if seen.start >= seen.end {
            return;
        }
        if self.is_sparse() { self.sparse_runs(b, h, rows, &seen, runs) } else { runs.push(seen) }
    }

    fn sparse_runs(&self, b: usize, h: usize, rows: &Range<usize>, keys: &Range<usize>, runs: &mut Vec<Range<usize>>) {
        let (first, positions) = (runs.len(), self.positions(b, rows));
        runs.push(keys.clone());
        for pattern in self.patterns(h) {
            // Within each of the runs so far, what this pattern shows.
            let so_far = runs.len();
            for n in first..so_far {
                let within = runs[n].clone();
                let new = runs.len();
                self.pattern_runs(pattern, positions.clone(), &within, |run| runs.push(run));
                merge(runs, new);
            }
            runs.drain(first..so_far);
        }
    }

    /// The runs of keys within `keys` that a pattern shows to any of the positions. Patterns count in the whole call, from its
    /// first token on.
    #[inline(always)]
    fn pattern_runs(
        &self,
        pattern: &Pattern,
        positions: Range<isize>,
        keys: &Range<usize>,
        mut give: impl FnMut(Range<usize>),
    ) {
        let origin = self.part.keys;
        if origin == 0 {
            return pattern.runs(positions, keys, give);
        }
        let whole = |key: usize| (key as isize + origin).max(0) as usize;
        let here = |key: usize| (key as isize - origin) as usize;
        let positions = positions.start + origin..positions.end + origin;
        let keys = whole(keys.start)..whole(keys.end);
        if !keys.is_empty() {
            pattern.runs(positions, &keys, |run| give(here(run.start)..here(run.end)));
        }
    }

    /// The end of the rows from i on that may see otherwise than row i only by moving with their position.
    pub fn same_until(&self, b: usize, h: usize, i: usize) -> usize {
        let position = self.position(b, i) + self.part.keys;
        let next = self.patterns(h).fold(isize::MAX, |next, pattern| next.min(pattern.next_break(position)));
        next.saturating_sub(position).saturating_add_unsigned(i).max(0) as usize
    }

    /// Where the rows stand.
    #[inline(always)]
    fn positions(&self, b: usize, rows: &Range<usize>) -> Range<isize> {
        let first = self.position(b, rows.start);
        first..first + rows.len() as isize
    }

    /// What the mask shows of a rectangle within the rows' hull. There is no row among them at which a pattern changes.
    #[inline(always)]
    pub fn view(&self, b: usize, h: usize, rows: &Range<usize>, keys: &Range<usize>) -> View {
        let inner = self.interval(b, rows.end - 1).start..self.interval(b, rows.start).end;
        // A dense bias may hide any pair; looking for one would take as long as hiding it.
        let hides = matches!(self.attention.bias.kind, Kind::Dense(_));
        let mut full = inner.start <= keys.start && keys.end <= inner.end && !hides;
        if full && self.is_sparse() {
            full = self.patterns_show_all(b, h, rows, keys);
        }
        if self.attention.mask.keep.is_empty() {
            return if full { View::Full } else { View::Partial };
        }
        let (mut any, mut all) = (true, full);
        for mask in 0..self.attention.mask.keep.len() {
            let mut seen = false;
            for i in rows.clone() {
                let keep = &self.keep(mask, (b, h, i))[keys.clone()];
                seen = seen || keep.iter().fold(false, |any, x| any | x);
                all = all && keep.iter().fold(true, |all, x| all & x);
                if seen && !all {
                    break;
                }
            }
            any &= seen;
        }
        match (any, all) {
            (false, _) => View::Hidden,
            (true, true) => View::Full,
            (true, false) => View::Partial,
        }
    }

    fn patterns_show_all(&self, b: usize, h: usize, rows: &Range<usize>, keys: &Range<usize>) -> bool {
        let (positions, origin) = (self.positions(b, rows), self.part.keys);
        let Ok(first) = usize::try_from(keys.start as isize + origin) else { return false };
        let (positions, keys) = (positions.start + origin..positions.end + origin, first..first + keys.len());
        self.patterns(h).all(|pattern| pattern.shows_all(&positions, &keys))
    }

    /// Whether query i sees key j.
    pub fn visible(&self, (b, h, i): At, j: usize) -> bool {
        let in_whole = usize::try_from(self.key_in_whole(j));
        let shows = |pattern: &Pattern| {
            in_whole.as_ref().is_ok_and(|key| pattern.sees(self.position(b, i) + self.part.keys, *key))
        };
        self.interval(b, i).contains(&j)
            && (0..self.attention.mask.keep.len()).all(|mask| self.keep(mask, (b, h, i))[j])
            && self.patterns(h).all(shows)
            && self.dense_bias((b, h, i)).is_none_or(|bias| bias[j] > f32::MIN || bias[j].is_nan())
    }

    /// A row of a keep-array.
    #[inline(always)]
    fn keep(&self, mask: usize, at: At) -> &'a [bool] {
        let keep = &self.attention.mask.keep[mask];
        let start = row_start(keep.dim(), at);
        &keep.as_slice().expect("keep-arrays are stored in standard layout")[start..start + self.keys(at.0)]
    }

    /// A row of a dense bias.
    #[inline(always)]
    pub(super) fn dense_bias(&self, at: At) -> Option<&'a [f32]> {
        let attention: &'a Attention = self.attention;
        let Kind::Dense(bias) = &attention.bias.kind else { return None };
        let start = row_start(bias.dim(), at);
        Some(&bias.as_slice().expect("biases are stored in standard layout")[start..start + self.keys(at.0)])
    }

    /// Sets to `value` what query i does not see among the keys of a span, and what is left of the last vector of the row.
    #[inline(always)]
    pub fn hide<S: Simd>(&self, simd: S, at: At, span: &Span, row: &mut [f32], value: f32) {
        if span.view == View::Full {
            if span.len < row.len() {
                options::hide_outside(simd, row, 0..span.len, value);
            }
            return;
        }
        let (b, h, i) = at;
        let (seen, first) = (self.interval(b, i), span.first);
        let clip = |key: usize| key.saturating_sub(first).min(span.len);
        let start = clip(seen.start);
        options::hide_outside(simd, row, start..clip(seen.end).max(start), value);
        let row = &mut row[..span.len];
        for mask in 0..self.attention.mask.keep.len() {
            options::hide(simd, row, &self.keep(mask, at)[first..], value);
        }
        for pattern in self.patterns(h) {
            let (position, mut keep) = (self.position(b, i), [false; KEYS]);
            let keep = &mut keep[..row.len()];
            // Of one run the outside is hidden at once; only of several is a keep-array made.
            let (mut only, mut several) = (0..0, false);
            self.pattern_runs(pattern, position..position + 1, &(first..first + row.len()), |run| {
                let run = run.start - first..run.end - first;
                if only.is_empty() {
                    only = run;
                } else {
                    if !several {
                        keep[only.clone()].fill(true);
                    }
                    keep[run].fill(true);
                    several = true;
                }
            });
            if several {
                options::hide(simd, row, keep, value);
            } else {
                row[..only.start].fill(value);
                row[only.end..].fill(value);
            }
        }
        if let Some(bias) = self.dense_bias(at) {
            options::hide_biased(simd, row, &bias[first..], value);
        }
    }
}

/// Where row (b, h, i) starts in an array over the scores whose axes of length 1 are shared.
#[inline(always)]
pub(super) fn row_start((batch, heads, rows, keys): (usize, usize, usize, usize), (b, h, i): At) -> usize {
    let pick = |index: usize, len: usize| if len == 1 { 0 } else { index };
    ((pick(b, batch) * heads + pick(h, heads)) * rows + pick(i, rows)) * keys
}
