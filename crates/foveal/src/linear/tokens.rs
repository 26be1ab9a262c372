//! How tokens are cut, and which keys each query sees.
//!
//! Tokens are taken in chunks of 128. A long sequence is cut into segments of many chunks, which run at the same time: first the
//! sums of each segment, then what precedes (or follows) each, then the segments by themselves. The cuts follow from the shapes
//! alone, and so do the results, to the bit.
//!
//! A causal query belongs to the chunk of the last key that it sees: it sees all keys of the chunks before, and some of this one.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, ArrayViewMut4, Axis, CowArray, Ix2, s};
use rayon::prelude::*;

use super::Call;

/// Tokens per chunk: what is written out within a chunk costs about as much as what goes through S.
const CHUNK: usize = 128;
/// Tokens per segment at least, lest summing the segments first costs more than it gains.
const SEGMENT: usize = 8 * CHUNK;
/// Tasks of a call, if the shape allows: enough for the threads of a large machine.
const TASKS: usize = 32;

/// Some of the keys of one sequence: their positions, ascending.
pub(super) struct Keys(Vec<usize>);

/// Queries, and the keys after those that all of them see.
pub(super) struct Chunk {
    pub rows: Range<usize>,
    pub keys: Keys,
}

impl Keys {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn positions(&self) -> &[usize] {
        &self.0
    }

    /// From the first to the last, if there are no gaps between them.
    pub fn range(&self) -> Option<Range<usize>> {
        let range = self.0.first().copied().unwrap_or(0)..self.0.last().map_or(0, |last| last + 1);
        (range.len() == self.len()).then_some(range)
    }

    /// The rows of these keys.
    pub fn of<'a>(&self, x: ArrayView2<'a, f32>) -> CowArray<'a, f32, Ix2> {
        match self.range() {
            Some(range) => x.slice_move(s![range, ..]).into(),
            None => x.select(Axis(0), &self.0).into(),
        }
    }

    /// Adds `rows` to the rows of these keys in `x`, whose first is that of key `first`.
    pub fn add_to(&self, mut x: ArrayViewMut2<f32>, first: usize, rows: &Array2<f32>) {
        match self.range() {
            Some(range) if range.is_empty() => {}
            Some(range) => x.slice_mut(s![range.start - first..range.end - first, ..]).scaled_add(1.0, rows),
            None => {
                self.0.iter().zip(rows.rows()).for_each(|(key, row)| x.row_mut(key - first).scaled_add(1.0, &row));
            }
        }
    }

    /// V⁺ = [V, 1] of these keys.
    pub fn with_ones(&self, v: ArrayView2<f32>) -> Array2<f32> {
        with_ones(self.of(v).view())
    }
}

impl Call<'_> {
    /// Segments of `n` tokens.
    pub fn segments(&self, n: usize) -> Vec<Range<usize>> {
        let wanted = TASKS.div_ceil((self.shape.batch * self.shape.heads).max(1)).min(n / SEGMENT).max(1);
        let size = n.div_ceil(wanted).next_multiple_of(CHUNK).max(1);
        (0..n).step_by(size).map(|start| start..(start + size).min(n)).collect()
    }

    /// For each sequence the queries of each segment: of the segments of the keys if causal, else of their own.
    pub fn query_segments(&self) -> Vec<Vec<Range<usize>>> {
        let of_sequence = |b: usize| match self.is_causal() {
            true => self.segments(self.shape.keys).iter().map(|keys| self.rows_at(b, keys)).collect(),
            false => self.segments(self.shape.queries),
        };
        (0..self.shape.batch).map(of_sequence).collect()
    }

    /// The queries of sequence b whose last key is one of these; with the last of all keys, those that see beyond it, too.
    fn rows_at(&self, b: usize, keys: &Range<usize>) -> Range<usize> {
        let row = |key: usize| (key as isize - self.last_key(b, 0)).clamp(0, self.shape.queries as isize) as usize;
        row(keys.start)..if keys.end == self.shape.keys { self.shape.queries } else { row(keys.end) }
    }

    /// The chunks of a segment if causal.
    pub fn chunks(&self, b: usize, segment: usize) -> Vec<Chunk> {
        let keys = self.segments(self.shape.keys)[segment].clone();
        let mut rows = self.rows_at(b, &keys);
        let mut chunks = Vec::new();
        for keys in cut(&keys) {
            let end = self.rows_at(b, &keys).end.min(rows.start + CHUNK).min(rows.end);
            chunks.push(Chunk { rows: rows.start..end, keys: self.keys_at(b, &keys) });
            rows.start = end;
        }
        // Those that stand behind all keys.
        chunks.extend(cut(&rows).map(|rows| Chunk { rows, keys: Keys(Vec::new()) }));
        chunks
    }

    /// Those of these keys that are visible at all.
    pub fn keys_at(&self, b: usize, keys: &Range<usize>) -> Keys {
        let mask = &self.options.mask;
        let end = mask.lengths.iter().fold(keys.end, |end, lengths| end.min(lengths[b]));
        let kept = |key: &usize| mask.keep.iter().all(|keep| keep[[b.min(keep.dim().0 - 1), 0, 0, *key]]);
        Keys((keys.start..end).filter(kept).collect())
    }

    /// The position of the last key that query i sees if causal; it may lie before the first or after the last.
    fn last_key(&self, b: usize, i: usize) -> isize {
        /// No array is as long: sums of some do not overflow.
        const FAR: usize = isize::MAX as usize / 4;
        let right = self.options.mask.right.map_or(FAR, |right| right.min(FAR));
        self.options.align.offset(b, self.shape.queries, self.shape.keys) + (right + i) as isize
    }

    /// How many of the keys query i sees.
    pub fn seen(&self, b: usize, i: usize, keys: &Keys) -> usize {
        if !self.is_causal() {
            return keys.len();
        }
        let last = self.last_key(b, i);
        keys.0.partition_point(|key| *key as isize <= last)
    }

    /// Sets to 0 what the queries `rows` do not see of the keys.
    pub fn hide(&self, products: &mut Array2<f32>, b: usize, rows: &Range<usize>, keys: &Keys) {
        for (i, mut row) in rows.clone().zip(products.rows_mut()) {
            row.slice_mut(s![self.seen(b, i, keys)..]).fill(0.0);
        }
    }

    /// Of the sums of every segment of every head: if causal, what comes before each segment, and last the whole; else the whole.
    pub fn scanned<T: Clone>(&self, all: &[T], heads: usize, zero: &T, add: impl Fn(&mut T, &T)) -> Vec<Vec<T>> {
        let segments = all.len().checked_div(heads).unwrap_or(0);
        let of_head = |head: usize| {
            let mut sum = zero.clone();
            let mut before = Vec::with_capacity(segments + 1);
            for more in &all[head * segments..(head + 1) * segments] {
                before.push(sum.clone());
                add(&mut sum, more);
            }
            if !self.is_causal() {
                before.clear();
            }
            before.push(sum);
            before
        };
        (0..heads).map(of_head).collect()
    }

    /// Runs the tasks, on all threads if that is worth it.
    pub fn each<T: Send>(&self, tasks: Vec<T>, work: impl Fn(T) + Send + Sync) {
        let shape = &self.shape;
        let products = [4, shape.batch, shape.heads, shape.queries + shape.keys, self.width, shape.value_dim + 1];
        if self.options.threads.count(products.iter().map(|x| *x as f64).product()) == 1 {
            tasks.into_iter().for_each(work);
        } else {
            tasks.into_par_iter().with_max_len(1).for_each(work);
        }
    }
}

/// Chunks of a range.
pub(super) fn cut(range: &Range<usize>) -> impl DoubleEndedIterator<Item = Range<usize>> + use<> {
    let range = range.clone();
    range.clone().step_by(CHUNK).map(move |start| start..(start + CHUNK).min(range.end))
}

/// [X, 1]
pub(super) fn with_ones(x: ArrayView2<f32>) -> Array2<f32> {
    let (rows, cols) = x.dim();
    let mut wide = Array2::ones((rows, cols + 1));
    wide.slice_mut(s![.., ..cols]).assign(&x);
    wide
}

/// An array [B, H, tokens, ·] cut into ranges of tokens, which follow each other and may differ from sequence to sequence:
/// (head of all, number of the range, values).
pub(super) fn pieces<'a, A>(
    array: ArrayViewMut4<'a, A>,
    ranges: &[Vec<Range<usize>>],
) -> Vec<(usize, usize, ArrayViewMut2<'a, A>)> {
    let (batch, heads, tokens, dim) = array.dim();
    let rows = array.into_shape_with_order((batch * heads * tokens, dim)).expect("made in standard layout");
    let (mut rest, mut at, mut pieces) = (rows, 0, Vec::new());
    for head in 0..batch * heads {
        for (n, range) in ranges[head / heads].iter().enumerate() {
            let skipped = rest.split_at(Axis(0), head * tokens + range.start - at).1;
            let (own, after) = skipped.split_at(Axis(0), range.len());
            pieces.push((head, n, own));
            (rest, at) = (after, head * tokens + range.end);
        }
    }
    pieces
}
