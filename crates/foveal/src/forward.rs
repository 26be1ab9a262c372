//! Forward: checks the call, cuts it into blocks of rows, and shares them out.

use ndarray::{ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis};

use crate::Error;
use crate::attention::Attention;
use crate::kernel::forward::{Forward, parts};
use crate::kernel::gemm::MAX_ROWS;
use crate::kernel::matrix::{Matrix, Rows};
use crate::kernel::rows::Block;
use crate::kernel::{Isa, dispatch, small};
use crate::scores::Scores;
use crate::scratch::{self, Scratch, Slot};
use crate::shape::{Shape, expect};
use crate::threads::for_each_task;

/// Rows (of all heads that share a key head) up to which a call counts as decoding: keys are read in place, and split.
const THIN: usize = 4;
/// Keys per part when decoding. Fixed, so that the result does not depend on the number of threads.
const SPLIT: usize = 2048;
/// Rows per block at most: packing a tile of keys then costs 1 or 2 % of using it, and 1,024 rows are one block.
const BLOCK: usize = 86 * MAX_ROWS;
/// Threads that there are blocks enough for under a sparse pattern, whatever the number of threads.
const SPARSE_THREADS: usize = 4;
/// Values of Q and of the accumulator per block at most: both stay in L2.
const BLOCK_VALUES: usize = 1 << 16;

pub(crate) fn forward(
    attention: &Attention,
    q: ArrayView4<f32>,
    k: ArrayView4<f32>,
    v: ArrayView4<f32>,
    mut out: ArrayViewMut4<f32>,
    mut lse: ArrayViewMut3<f32>,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let shape = Shape::of(&q, &k, &v)?;
    expect("out", &shape.out(), out.shape())?;
    expect("lse", &shape.lse(), lse.shape())?;
    attention.check(&shape)?;
    let call = Call { q, k, v, shape, scores: Scores::new(attention, &shape), isa: Isa::resolve(attention.isa)? };
    let threads = match call.is_thin() {
        true => attention.threads.count_reading(shape.read()),
        false => attention.threads.count(shape.flops()),
    };
    let parts = shape.keys.div_ceil(SPLIT);
    if !call.is_thin() && shape.is_small() && call.scores.is_plain() {
        call.by_heads(threads, scratch, out, lse);
    } else if !call.is_thin() {
        call.by_rows(threads, scratch, out, lse);
    } else if parts <= 1 {
        call.by_keys(1, threads, &mut scratch.slots, out, lse);
    } else {
        // Each part is a result of its own; [part and sequence, head, query, value].
        let rows = parts * shape.batch * shape.heads * shape.queries;
        let [part_out, part_lse] = scratch.parts.cut([rows * shape.value_dim, rows]);
        let [_, heads, queries, values] = shape.out();
        let dim = (parts * shape.batch, heads, queries, values);
        let mut part_out = ArrayViewMut4::from_shape(dim, part_out).expect("cut to this size");
        let mut part_lse = ArrayViewMut3::from_shape((dim.0, dim.1, dim.2), part_lse).expect("cut to this size");
        call.by_keys(parts, threads, &mut scratch.slots, part_out.view_mut(), part_lse.view_mut());
        merge(parts, part_out, part_lse, &mut out, &mut lse);
    }
    Ok(())
}

struct Call<'a> {
    q: ArrayView4<'a, f32>,
    k: ArrayView4<'a, f32>,
    v: ArrayView4<'a, f32>,
    shape: Shape,
    scores: Scores<'a>,
    isa: Isa,
}

impl Call<'_> {
    fn is_thin(&self) -> bool {
        self.shape.queries * self.shape.group() <= THIN
    }

    /// Short sequences: a task is a head.
    fn by_heads(&self, threads: usize, scratch: &mut Scratch, out: ArrayViewMut4<f32>, lse: ArrayViewMut3<f32>) {
        let Shape { batch, heads, queries, keys, .. } = self.shape;
        let tasks = batch * heads;
        let slots = scratch::slots(&mut scratch.slots, threads.min(tasks).max(1), &[]);
        let (out, lse) = (Rows::new(out), Rows::new(lse.insert_axis(Axis(3))));
        for_each_task(slots, tasks, |slot, task| {
            let (b, h) = (task / heads, task % heads);
            let (q, kv) = (Matrix::new(&self.q, b, h), h / self.shape.group());
            let (k, v) = (Matrix::new(&self.k, b, kv), Matrix::new(&self.v, b, kv));
            let (scores, memory) = (self.scores, &mut slot.memory);
            if !dispatch(self.isa, small::Forward { q, k, v, scores, b, h, memory, out, lse }) {
                self.run(Block { b, heads: h..h + 1, rows: 0..queries }, 0..keys, slot, (out, lse, b));
            }
        });
    }

    /// Many rows: a task is a block of rows of one head, against all keys.
    fn by_rows(&self, threads: usize, scratch: &mut Scratch, out: ArrayViewMut4<f32>, lse: ArrayViewMut3<f32>) {
        let Shape { batch, heads, queries, dim, value_dim, .. } = self.shape;
        // Where the rows of a pattern are cut into groups decides in which order they are added up.
        let share = if self.scores.is_sparse() { SPARSE_THREADS } else { threads };
        let size = block_size(queries, batch * heads, dim.max(value_dim), share);
        let blocks = queries.div_ceil(size);
        let tasks = batch * heads * blocks;
        let slots = self.slots(&mut scratch.slots, threads.min(tasks), size);
        let (out, lse) = (Rows::new(out), Rows::new(lse.insert_axis(Axis(3))));
        for_each_task(slots, tasks, |slot, task| {
            // Under a causal mask the last rows are the most work: they go first, so that no thread is left with one alone.
            let (block, head) = (blocks - 1 - task / (batch * heads), task % (batch * heads));
            let (b, h) = (head / heads, head % heads);
            let rows = block * size..((block + 1) * size).min(queries);
            self.run(Block { b, heads: h..h + 1, rows }, 0..self.shape.keys, slot, (out, lse, b));
        });
    }

    /// A few rows: a task is the heads that share a key head, against one part of the keys.
    fn by_keys(
        &self,
        parts: usize,
        threads: usize,
        slots: &mut Vec<Slot>,
        out: ArrayViewMut4<f32>,
        lse: ArrayViewMut3<f32>,
    ) {
        let Shape { batch, kv_heads, queries, keys, .. } = self.shape;
        let group = self.shape.group();
        let tasks = parts * batch * kv_heads;
        let slots = self.slots(slots, threads.min(tasks), queries * group);
        let (out, lse) = (Rows::new(out), Rows::new(lse.insert_axis(Axis(3))));
        for_each_task(slots, tasks, |slot, task| {
            let (part, head) = (task % parts, task / parts);
            let (b, kv) = (head / kv_heads, head % kv_heads);
            let block = Block { b, heads: kv * group..(kv + 1) * group, rows: 0..queries };
            let range = if parts == 1 { 0..keys } else { part * SPLIT..((part + 1) * SPLIT).min(keys) };
            self.run(block, range, slot, (out, lse, part * batch + b));
        });
    }

    fn slots<'s>(&self, slots: &'s mut Vec<Slot>, n: usize, rows: usize) -> &'s mut [Slot] {
        scratch::slots(slots, n.max(1), &parts(&self.scores, rows, self.shape.dim, self.shape.value_dim))
    }

    fn run(&self, block: Block, keys: std::ops::Range<usize>, slot: &mut Slot, (out, lse, out_b): (Rows, Rows, usize)) {
        let kv = block.heads.start / self.shape.group();
        let (k, v) = (Matrix::new(&self.k, block.b, kv), Matrix::new(&self.v, block.b, kv));
        let (q, scores, thin) = (&self.q, self.scores, self.is_thin());
        dispatch(self.isa, Forward { q, k, v, scores, block, keys, thin, slot, out, lse, out_b });
    }
}

/// Rows per block: as many as stay in L2, but enough blocks for all threads.
fn block_size(rows: usize, heads: usize, dim: usize, threads: usize) -> usize {
    let most = (BLOCK_VALUES / dim).clamp(4 * MAX_ROWS, BLOCK);
    let wanted = (4 * threads).div_ceil(heads.max(1));
    let blocks = if threads == 1 { 1 } else { wanted.min(rows.div_ceil(2 * MAX_ROWS)) };
    rows.div_ceil(blocks.max(rows.div_ceil(most)).max(1)).next_multiple_of(MAX_ROWS)
}

/// Joins results over parts of the keys: with lse = ln Σ exp lseₚ, out = Σ exp(lseₚ − lse)·outₚ.
fn merge(
    parts: usize,
    part_out: ArrayViewMut4<f32>,
    part_lse: ArrayViewMut3<f32>,
    out: &mut ArrayViewMut4<f32>,
    lse: &mut ArrayViewMut3<f32>,
) {
    let (batch, heads, queries) = lse.dim();
    for b in 0..batch {
        for h in 0..heads {
            for i in 0..queries {
                let at = |p: usize| part_lse[[p * batch + b, h, i]];
                let max = (0..parts).map(at).fold(f32::NEG_INFINITY, f32::max);
                let mut row = out.slice_mut(ndarray::s![b, h, i, ..]);
                row.fill(0.0);
                lse[[b, h, i]] = max;
                // Nothing visible in any part. (A NaN is not: `max` passes over it, and it must spread.)
                if max == f32::NEG_INFINITY && !(0..parts).any(|p| at(p).is_nan()) {
                    continue;
                }
                let sum = (0..parts).map(|p| (at(p) - max).exp()).sum::<f32>();
                for p in 0..parts {
                    row.scaled_add((at(p) - max).exp() / sum, &part_out.slice(ndarray::s![p * batch + b, h, i, ..]));
                }
                lse[[b, h, i]] = max + sum.ln();
            }
        }
    }
}
