//! What forward and backward share: how tokens are cut into segments and chunks, and the sums S over the keys.
//!
//! Tokens are taken in chunks of 128. A long sequence is cut into segments of many chunks, which run at the same time: the sums
//! of each segment come first, then what precedes (or follows) each, then the segments by themselves. How it is cut follows
//! from the shapes alone, and so do the results, to the bit.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayView4, ArrayViewMut2, ArrayViewMut4, Axis, s};
use rayon::prelude::*;

use super::{Call, features::product};

/// Tokens per chunk: what is written out within a chunk costs about as much as what goes through S.
const CHUNK: usize = 128;
/// Tokens per segment at least, lest summing the segments first costs more than it gains.
const SEGMENT: usize = 8 * CHUNK;
/// Tasks of a call, if the shape allows: enough for the threads of a large machine.
const TASKS: usize = 32;

/// Σ φ(k)·v⁺ᵀ [m, Dv + 1], times e^(−shift).
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub values: Array2<f32>,
    pub shift: f32,
}

impl Sums {
    pub fn zero(width: usize, values: usize) -> Sums {
        Sums { values: Array2::zeros((width, values)), shift: f32::NEG_INFINITY }
    }

    /// Goes over to another shift.
    pub fn shift_to(&mut self, shift: f32) {
        if self.shift != shift {
            // Nothing has been added up under a shift of −∞.
            let factor = if self.shift == f32::NEG_INFINITY { 0.0 } else { (self.shift - shift).exp() };
            self.values.mapv_inplace(|x| x * factor);
            self.shift = shift;
        }
    }

    pub fn add(&mut self, other: &Sums) {
        let (shift, mut other) = (self.shift.max(other.shift), other.clone());
        self.shift_to(shift);
        other.shift_to(shift);
        self.values += &other.values;
    }
}

impl Call<'_> {
    /// Segments of `n` tokens.
    pub fn segments(&self, n: usize) -> Vec<Range<usize>> {
        let wanted = TASKS.div_ceil((self.shape.batch * self.shape.heads).max(1)).min(n / SEGMENT).max(1);
        let size = n.div_ceil(wanted).next_multiple_of(CHUNK).max(1);
        (0..n).step_by(size).map(|start| start..(start + size).min(n)).collect()
    }

    /// The queries that belong to each segment of the keys if causal, those that stand there; else segments of their own.
    pub fn query_segments(&self) -> Vec<Range<usize>> {
        if self.causal {
            self.segments(self.shape.keys).iter().map(|positions| self.rows_at(positions)).collect()
        } else {
            self.segments(self.shape.queries)
        }
    }

    /// The queries that stand at these positions.
    pub fn rows_at(&self, positions: &Range<usize>) -> Range<usize> {
        let clip = |p: usize| (p as isize - self.offset()).clamp(0, self.shape.queries as isize) as usize;
        clip(positions.start)..clip(positions.end)
    }

    /// The keys at these positions that are visible at all.
    pub fn keys_at(&self, b: usize, positions: &Range<usize>) -> Range<usize> {
        positions.start.min(self.keys(b))..positions.end.min(self.keys(b))
    }

    /// For each sequence and key head: if causal, the sums over the keys before each segment, and last over all; else over all.
    pub fn key_sums(&self, k: ArrayView4<f32>, v: ArrayView4<f32>) -> Vec<Vec<Sums>> {
        let (segments, kv_heads) = (self.segments(self.shape.keys), self.shape.kv_heads);
        let zero = Sums::zero(self.width, self.shape.value_dim + 1);
        let mut all = vec![zero.clone(); self.shape.batch * kv_heads * segments.len()];
        self.each(all.iter_mut().enumerate().collect(), |(n, sums): (usize, &mut Sums)| {
            let (head, segment) = (n / segments.len(), n % segments.len());
            let (b, kv) = (head / kv_heads, head % kv_heads);
            for keys in cut(&self.keys_at(b, &segments[segment])) {
                let (phi, shift) = self.features.of_keys(self.isa, k.slice(s![b, kv, keys.clone(), ..]), sums.shift);
                sums.shift_to(shift);
                let v = with_ones(v.slice(s![b, kv, keys, ..]));
                product(1.0, phi.t(), v.view(), 1.0, sums.values.view_mut());
            }
        });
        self.scanned(&all, self.shape.batch * kv_heads, &zero, Sums::add)
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
            if !self.causal {
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
        if self.threads.count(products.iter().map(|x| *x as f64).product()) == 1 {
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

/// V⁺ = [V, 1]
pub(super) fn with_ones(v: ArrayView2<f32>) -> Array2<f32> {
    let (rows, cols) = v.dim();
    let mut wide = Array2::ones((rows, cols + 1));
    wide.slice_mut(s![.., ..cols]).assign(&v);
    wide
}

/// a·b
pub(super) fn times(a: ArrayView2<f32>, b: ArrayView2<f32>) -> Array2<f32> {
    let mut c = Array2::zeros((a.dim().0, b.dim().1));
    product(1.0, a, b, 0.0, c.view_mut());
    c
}

/// c ⟵ c + a·b, where a 0 in `a` means that nothing is to be added, not even 0·NaN.
pub(super) fn add_seen(a: ArrayView2<f32>, b: ArrayView2<f32>, mut c: ArrayViewMut2<f32>) {
    if b.iter().fold(0.0, |sum, x| sum + x * 0.0) == 0.0 {
        return product(1.0, a, b, 1.0, c);
    }
    for ((i, k), x) in a.indexed_iter().filter(|(_, x)| **x != 0.0) {
        c.row_mut(i).scaled_add(*x, &b.row(k));
    }
}

/// Sets to 0 what the queries `rows` do not see of the keys: those after their own position.
pub(super) fn hide(products: &mut Array2<f32>, rows: &Range<usize>, keys: &Range<usize>, offset: isize) {
    for (i, mut row) in rows.clone().zip(products.rows_mut()) {
        let first = (i as isize + offset + 1 - keys.start as isize).clamp(0, keys.len() as isize);
        row.slice_mut(s![first..]).fill(0.0);
    }
}

/// An array [B, H, tokens, ·] cut into ranges of tokens, which follow each other, of each head: (head of all, number of the
/// range, values).
pub(super) fn pieces<'a>(
    array: ArrayViewMut4<'a, f32>,
    ranges: &[Range<usize>],
) -> Vec<(usize, usize, ArrayViewMut2<'a, f32>)> {
    let (batch, heads, tokens, dim) = array.dim();
    let rows = array.into_shape_with_order((batch * heads * tokens, dim)).expect("made in standard layout");
    let (mut rest, mut at, mut pieces) = (rows, 0, Vec::new());
    for head in 0..batch * heads {
        for (n, range) in ranges.iter().enumerate() {
            let skipped = rest.split_at(Axis(0), head * tokens + range.start - at).1;
            let (own, after) = skipped.split_at(Axis(0), range.len());
            pieces.push((head, n, own));
            (rest, at) = (after, head * tokens + range.end);
        }
    }
    pieces
}
