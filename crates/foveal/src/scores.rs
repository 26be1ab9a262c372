//! From q·k to the score: softcap, bias and mask, row by row.
//!
//! Everything a kernel needs to know about the options is asked here. Distances make intervals: under causal, window and
//! padding masks the keys that a row sees are one range, whose ends grow with the row. So a block of rows sees nothing
//! outside the range from its first row's start to its last row's end, and tiles outside are never touched. Under sparse
//! patterns the keys are several runs within that range; see [`Scores::runs`].

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use crate::attention::Attention;
use crate::bias::{Kind, Swin};
use crate::dropout;
use crate::kernel::options;
use crate::kernel::plan::Part;
use crate::kernel::rows::KEYS;
use crate::kernel::simd::Simd;
use crate::pattern::{Pattern, merge};
use crate::shape::Shape;

/// The options of one call, for its shape.
#[derive(Clone, Copy)]
pub(crate) struct Scores<'a> {
    attention: &'a Attention,
    queries: usize,
    keys: usize,
    /// What q·k is multiplied with.
    pub scale: f32,
}

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
    pub fn new(attention: &'a Attention, shape: &Shape) -> Self {
        Scores { attention, queries: shape.queries, keys: shape.keys, scale: attention.scale_for(shape.dim) }
    }

    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Where query i stands among the keys.
    #[inline(always)]
    fn position(&self, b: usize, i: usize) -> isize {
        i as isize + self.attention.align.offset(b, self.queries, self.keys)
    }

    /// The keys that distances and lengths let query i see.
    #[inline(always)]
    pub fn interval(&self, b: usize, i: usize) -> Range<usize> {
        let mask = &self.attention.mask;
        let (mut start, mut end) = (0, self.keys);
        if mask.left != usize::MAX || mask.right != usize::MAX {
            let position = self.position(b, i);
            let clip = |key: isize| key.clamp(0, self.keys as isize) as usize;
            start = clip(position.saturating_sub_unsigned(mask.left));
            end = clip(position.saturating_add_unsigned(mask.right).saturating_add(1));
        }
        for lengths in &mask.lengths {
            end = end.min(lengths[b]);
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

    /// The rows, counted from the first, that can see something of the keys `part` of `tile`.
    #[inline(always)]
    pub fn seeing(&self, b: usize, rows: &Range<usize>, tile: &Range<usize>, part: &Range<usize>) -> Range<usize> {
        // Both ends of the intervals grow with the row.
        let first = |seen: &dyn Fn(Range<usize>) -> bool| {
            let (mut low, mut high) = (0, rows.len());
            while low < high {
                let middle = low.midpoint(high);
                if seen(self.interval(b, rows.start + middle)) { high = middle } else { low = middle + 1 }
            }
            low
        };
        let start = first(&|interval| interval.end > tile.start + part.start);
        let end = first(&|interval| interval.start >= tile.start + part.end);
        start..end.max(start)
    }

    /// Whether there is nothing but dropout, and a mask by distances and lengths.
    pub fn is_plain(&self) -> bool {
        !self.changes() && !self.is_sparse() && self.attention.mask.keep.is_empty()
    }

    /// Whether there are sparse patterns.
    #[inline(always)]
    pub fn is_sparse(&self) -> bool {
        !self.attention.mask.patterns.is_empty()
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
                pattern.runs(positions.clone(), &within, |run| runs.push(run));
                merge(runs, new);
            }
            runs.drain(first..so_far);
        }
    }

    /// The end of the rows from i on that may see otherwise than row i only by moving with their position.
    pub fn same_until(&self, b: usize, h: usize, i: usize) -> usize {
        let position = self.position(b, i);
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
        let hides = matches!(self.attention.bias.0, Kind::Dense(_));
        let mut full = inner.start <= keys.start && keys.end <= inner.end && !hides;
        if full && self.is_sparse() {
            let positions = self.positions(b, rows);
            full = self.patterns(h).all(|pattern| pattern.shows_all(&positions, keys));
        }
        if self.attention.mask.keep.is_empty() {
            return if full { View::Full } else { View::Partial };
        }
        let (mut any, mut all) = (true, full);
        for part in 0..self.attention.mask.keep.len() {
            let mut seen = false;
            for i in rows.clone() {
                let keep = &self.keep(part, b, h, i)[keys.clone()];
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

    /// Whether query i sees key j.
    pub fn visible(&self, b: usize, h: usize, i: usize, j: usize) -> bool {
        self.interval(b, i).contains(&j)
            && (0..self.attention.mask.keep.len()).all(|part| self.keep(part, b, h, i)[j])
            && self.patterns(h).all(|pattern| pattern.sees(self.position(b, i), j))
            && self.dense_bias(b, h, i).is_none_or(|bias| bias[j] > f32::MIN || bias[j].is_nan())
    }

    /// A row of a dense bias.
    #[inline(always)]
    fn dense_bias(&self, b: usize, h: usize, i: usize) -> Option<&'a [f32]> {
        let attention: &'a Attention = self.attention;
        let Kind::Dense(bias) = &attention.bias.0 else { return None };
        let start = self.row_start(bias.dim(), b, h, i);
        Some(&bias.as_slice().expect("biases are stored in standard layout")[start..start + self.keys])
    }

    /// A row of a keep-array.
    #[inline(always)]
    fn keep(&self, part: usize, b: usize, h: usize, i: usize) -> &'a [bool] {
        let keep = &self.attention.mask.keep[part];
        let start = self.row_start(keep.dim(), b, h, i);
        &keep.as_slice().expect("keep-arrays are stored in standard layout")[start..start + self.keys]
    }

    /// Where row (b, h, i) starts in an array over the scores whose axes of length 1 are shared.
    #[inline(always)]
    pub fn row_start(
        &self,
        (batch, heads, rows, _): (usize, usize, usize, usize),
        b: usize,
        h: usize,
        i: usize,
    ) -> usize {
        let pick = |index: usize, len: usize| if len == 1 { 0 } else { index };
        ((pick(b, batch) * heads + pick(h, heads)) * rows + pick(i, rows)) * self.keys
    }

    /// Whether a score is more than scale·q·k, the mask aside.
    #[inline(always)]
    pub fn changes(&self) -> bool {
        self.attention.softcap.is_some() || !matches!(self.attention.bias.0, Kind::None)
    }

    pub fn softcap(&self) -> Option<f32> {
        self.attention.softcap
    }

    pub fn bias(&self) -> &'a Kind {
        &self.attention.bias.0
    }

    /// Shaw's table for head h: [distances, D].
    pub fn shaw_table(&self, h: usize) -> Option<ArrayView2<'a, f32>> {
        let attention: &'a Attention = self.attention;
        match &attention.bias.0 {
            Kind::Shaw(table) => {
                let head = if table.dim().0 == 1 { 0 } else { h };
                Some(table.view().index_axis_move(Axis(0), head))
            }
            _ => None,
        }
    }

    /// The number of distances that Shaw's table tells apart; 0 without one.
    pub fn shaw_distances(&self) -> usize {
        match &self.attention.bias.0 {
            Kind::Shaw(table) => table.dim().1,
            _ => 0,
        }
    }

    /// Turns a row of scale·q·k, whole vectors long, into cap·tanh(·/cap).
    #[inline(always)]
    pub fn cap<S: Simd>(&self, simd: S, row: &mut [f32]) {
        if let Some(cap) = self.attention.softcap {
            options::cap(simd, row, cap);
        }
    }

    /// Adds the bias of query i on the keys from `first` on. `relative` holds Shaw's scale·q·a of this row.
    #[inline(always)]
    pub fn add_bias<S: Simd>(
        &self,
        simd: S,
        (b, h, i): (usize, usize, usize),
        first: usize,
        relative: &[f32],
        row: &mut [f32],
    ) {
        match &self.attention.bias.0 {
            Kind::None => {}
            Kind::Alibi(slopes) => options::subtract_distance(simd, row, slopes[h], self.alibi_distance(b, i, first)),
            Kind::T5(t5) => {
                let table = t5.by_distance.row(h).to_slice().expect("made in standard layout");
                self.distances(b, i, first, row.len(), table.len()).add(simd, table, row);
            }
            Kind::Shaw(_) => self.distances(b, i, first, row.len(), relative.len()).add(simd, relative, row),
            Kind::Swin(swin) => {
                let table = swin.by_distance.as_slice().expect("made in standard layout");
                let table = &table[h * swin.distances()..(h + 1) * swin.distances()];
                let mut n = 0;
                while n < row.len() {
                    let (entries, distances) = self.swin_row(swin, b, i, first + n, row.len() - n);
                    distances.add(simd, &table[entries], &mut row[n..n + distances.len]);
                    n += distances.len;
                }
            }
            Kind::Dense(_) => options::add(simd, row, &self.dense_bias(b, h, i).expect("it is dense")[first..]),
        }
    }

    /// How the keys `first..first + len` spread over a table of clipped distances.
    #[inline(always)]
    pub fn distances(&self, b: usize, i: usize, first: usize, len: usize, table: usize) -> Distances {
        Distances::new(first as isize - self.position(b, i), len, table)
    }

    /// How the keys from `first` on, up to the end of their row of the image and at most `len`, spread over a row of Swin's
    /// table; and where that row is.
    #[inline(always)]
    pub fn swin_row(&self, swin: &Swin, b: usize, i: usize, first: usize, len: usize) -> (Range<usize>, Distances) {
        let (width, table) = (swin.grid.1, 2 * swin.window.1 - 1);
        let position = self.position(b, i) as usize;
        let (down, right) = (
            (first / width) as isize - (position / width) as isize,
            (first % width) as isize - (position % width) as isize,
        );
        let reach = swin.window.0 as isize - 1;
        let row = (down.clamp(-reach, reach) + reach) as usize;
        (row * table..(row + 1) * table, Distances::new(right, len.min(width - first % width), table))
    }

    /// How far the nearest key is that query i may see.
    #[inline(always)]
    pub fn nearest(&self, b: usize, i: usize) -> f32 {
        let (seen, position) = (self.interval(b, i), self.position(b, i));
        let beyond = (position - seen.end as isize + 1).max(seen.start as isize - position);
        beyond.max(0) as f32
    }

    /// ALiBi's distance of query i from the keys `first`, `first + 1`, …
    #[inline(always)]
    pub fn alibi_distance(&self, b: usize, i: usize, first: usize) -> f32 {
        first as f32 - self.position(b, i) as f32
    }

    /// Sets to `value` what query i does not see among the keys of `part`, and what is left of the last vector of the row.
    #[inline(always)]
    pub fn hide<S: Simd>(&self, simd: S, (b, h, i): (usize, usize, usize), part: &Part, row: &mut [f32], value: f32) {
        if part.view == View::Full {
            if part.len < row.len() {
                options::hide_outside(simd, row, 0..part.len, value);
            }
            return;
        }
        let (seen, first) = (self.interval(b, i), part.first);
        let clip = |key: usize| key.saturating_sub(first).min(part.len);
        let start = clip(seen.start);
        options::hide_outside(simd, row, start..clip(seen.end).max(start), value);
        let row = &mut row[..part.len];
        for part in 0..self.attention.mask.keep.len() {
            options::hide(simd, row, &self.keep(part, b, h, i)[first..], value);
        }
        for pattern in self.patterns(h) {
            let (position, mut keep) = (self.position(b, i), [false; KEYS]);
            let keep = &mut keep[..row.len()];
            // Of one run the outside is hidden at once; only of several is a keep-array made.
            let (mut only, mut several) = (0..0, false);
            pattern.runs(position..position + 1, &(first..first + row.len()), |run| {
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
        if let Some(bias) = self.dense_bias(b, h, i) {
            options::hide_biased(simd, row, &bias[first..], value);
        }
    }

    /// Whether weights are dropped.
    #[inline(always)]
    pub fn drops(&self) -> bool {
        self.attention.dropout.is_some()
    }

    /// The dropout of row i, if there is any.
    #[inline(always)]
    pub fn dropout(&self, b: usize, h: usize, i: usize) -> Option<dropout::Row> {
        self.attention.dropout.map(|dropout| dropout.row(b, h, i))
    }
}

/// A run of keys over a table of clipped distances: `..near` fall on its first entry, `near..far` on successive entries from
/// `entry` on, `far..` on its last.
pub(crate) struct Distances {
    pub near: usize,
    pub far: usize,
    pub entry: usize,
    /// The number of keys.
    pub len: usize,
}

impl Distances {
    /// `len` keys, the first of them at `distance`.
    #[inline(always)]
    fn new(distance: isize, len: usize, table: usize) -> Distances {
        // The entry of the first key, were the table without ends.
        let entry = distance + (table / 2) as isize;
        let clip = |x: isize| x.clamp(0, len as isize) as usize;
        let (near, far) = (clip(-entry), clip(table as isize - entry));
        Distances { near, far, entry: (entry + near as isize).clamp(0, table as isize) as usize, len }
    }

    /// row ⟵ row + table
    #[inline(always)]
    fn add<S: Simd>(&self, simd: S, table: &[f32], row: &mut [f32]) {
        let (near, rest) = row.split_at_mut(self.near);
        let (middle, far) = rest.split_at_mut(self.far - self.near);
        options::add_constant(simd, near, table[0]);
        options::add(simd, middle, &table[self.entry..]);
        options::add_constant(simd, far, table[table.len() - 1]);
    }

    /// table ⟵ table + row, the gradient of [`add`](Distances::add).
    #[inline(always)]
    pub fn collect(&self, row: &[f32], table: &mut [f32]) {
        let (near, rest) = row.split_at(self.near);
        let (middle, far) = rest.split_at(self.far - self.near);
        table[0] += near.iter().sum::<f32>();
        let last = table.len() - 1;
        table[last] += far.iter().sum::<f32>();
        table[self.entry..].iter_mut().zip(middle).for_each(|(t, s)| *t += s);
    }
}
