//! Forward: checks the call, cuts it into blocks of rows, and shares them out.

use std::ops::Range;

use foveal_compute::tasks::for_each_task;
use foveal_compute::{Isa, Supported};
use ndarray::{ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis, s};

use crate::Error;
use crate::attention::Attention;
use crate::kernel::forward::{Forward, Results, memory};
use crate::kernel::gemm::MAX_ROWS;
use crate::kernel::matrix::Rows;
use crate::kernel::rows::Block;
use crate::kernel::{dispatch, small};
use crate::scores::Scores;
use crate::scratch::{Scratch, Slot};
use crate::shape::{Shape, expect};
use crate::tensor::{Output, Tensor, TensorMut};

/// Keys per part when decoding. Fixed, so that the result does not depend on the number of threads.
const SPLIT: usize = 2048;
/// Rows per block at most: packing a tile of keys then costs 1 or 2 % of using it, and 1,024 rows are one block.
const BLOCK: usize = 86 * MAX_ROWS;
/// Threads that there are blocks enough for under a sparse pattern, whatever the number of threads.
const SPARSE_THREADS: usize = 4;
/// Values of Q and of the accumulator per block at most: both stay in L2.
const BLOCK_VALUES: usize = 1 << 16;

/// What a call is given.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub q: Tensor<'a>,
    pub k: Tensor<'a>,
    pub v: Tensor<'a>,
}

pub(crate) fn forward(
    attention: &Attention,
    inputs: Inputs,
    (out, mut lse): (TensorMut, ArrayViewMut3<f64>),
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let shape = attention.shape(&inputs)?;
    expect("out", &shape.out(), &out.dim())?;
    expect("lse", &shape.lse(), lse.shape())?;
    let isa = Isa::resolve(attention.isa)?;
    let call = Call { inputs, shape, scores: Scores::new(attention, &shape), isa };
    let threads = match shape.decodes() {
        true => attention.threads.count_reading(shape.read()),
        false => attention.threads.count(shape.flops()),
    };
    let parts = shape.keys.div_ceil(SPLIT);
    if !shape.decodes() {
        let results = Results { out: Output::new(out), lse: Rows::new(lse.insert_axis(Axis(3))), partial: None };
        let whole_heads = shape.is_small() && call.scores.is_plain();
        if whole_heads { call.by_heads(threads, scratch, results) } else { call.by_rows(threads, scratch, results) }
    } else if parts <= 1 {
        let results = Results { out: Output::new(out), lse: Rows::new(lse.insert_axis(Axis(3))), partial: None };
        call.by_keys(1, threads, scratch, results);
    } else {
        // Each part is a result of its own; [part and sequence, head, query, value].
        let dim = [parts * shape.batch, shape.heads, shape.queries, shape.value_dim];
        let (mut shared, mut part_lse) =
            (std::mem::take(&mut scratch.memories.shared), std::mem::take(&mut scratch.lse));
        let [part_out, row] = shared.cut([dim.iter().product(), shape.value_dim]);
        part_lse.resize(dim[..3].iter().product(), 0.0);
        {
            let mut part_out = ArrayViewMut4::from_shape(dim, part_out).expect("cut to this size");
            let mut part_lse =
                ArrayViewMut3::from_shape([dim[0], dim[1], dim[2]], &mut part_lse[..]).expect("same size");
            let results = Results {
                out: Output::new(part_out.view_mut().into()),
                lse: Rows::new(part_lse.view_mut().insert_axis(Axis(3))),
                partial: Some(0),
            };
            call.by_keys(parts, threads, scratch, results);
            call.merge(parts, (part_out.view(), part_lse.view()), (Output::new(out), &mut lse), row);
        }
        (scratch.memories.shared, scratch.lse) = (shared, part_lse);
    }
    Ok(())
}

struct Call<'a> {
    inputs: Inputs<'a>,
    shape: Shape,
    scores: Scores<'a>,
    isa: Supported,
}

impl Call<'_> {
    /// Short sequences: a task is a head.
    fn by_heads(&self, threads: usize, scratch: &mut Scratch, results: Results) {
        let Shape { batch, heads, .. } = self.shape;
        let (scores, tasks) = (self.scores, batch * heads);
        let (slots, _) = scratch.memories.slots(threads.min(tasks), &[]);
        for_each_task(slots, tasks, |slot, task| {
            let (b, h) = (task / heads, task % heads);
            let (q, kv) = (scores.query_head(&self.inputs.q, b, h), h / self.shape.group());
            let (k, v) = (scores.key_head(&self.inputs.k, b, kv), scores.key_head(&self.inputs.v, b, kv));
            if q.rows() > 0 && k.rows() > 0 {
                let memory = &mut slot.memory;
                dispatch(self.isa, small::Forward { q, k, v, scores, b, h, memory, results });
            } else {
                self.run(Block { b, heads: h..h + 1, rows: 0..q.rows() }, 0..k.rows(), slot, results);
            }
        });
    }

    /// Many rows: a task is a block of rows of one head, against all keys.
    fn by_rows(&self, threads: usize, scratch: &mut Scratch, results: Results) {
        let Shape { batch, heads, queries, dim, value_dim, .. } = self.shape;
        // Where the rows of a pattern are cut into groups decides in which order they are added up.
        let share = if self.scores.is_sparse() { SPARSE_THREADS } else { threads };
        let size = block_size(queries, batch * heads, dim.max(value_dim), share);
        let blocks = queries.div_ceil(size);
        let tasks = blocks * batch * heads;
        let slots = self.slots(scratch, threads.min(tasks), size);
        for_each_task(slots, tasks, |slot, task| {
            // Under a causal mask the last rows are the most work: they go first, so that no thread is left with one alone.
            let (block, b, h) = (blocks - 1 - task / (batch * heads), task / heads % batch, task % heads);
            // Of packed sequences, not all have as many.
            let queries = self.scores.queries(b);
            let rows = (block * size).min(queries)..((block + 1) * size).min(queries);
            self.run(Block { b, heads: h..h + 1, rows }, 0..self.scores.keys(b), slot, results);
        });
    }

    /// A few rows: a task is the heads that share a key head, against one part of the keys.
    fn by_keys(&self, parts: usize, threads: usize, scratch: &mut Scratch, results: Results) {
        let Shape { batch, kv_heads, queries, .. } = self.shape;
        let group = self.shape.group();
        let tasks = parts * batch * kv_heads;
        let slots = self.slots(scratch, threads.min(tasks), queries * group);
        for_each_task(slots, tasks, |slot, task| {
            let (part, head) = (task % parts, task / parts);
            let (b, kv) = (head / kv_heads, head % kv_heads);
            let keys = self.scores.keys(b);
            let block = Block { b, heads: kv * group..(kv + 1) * group, rows: 0..self.scores.queries(b) };
            let range = if parts == 1 { 0..keys } else { (part * SPLIT).min(keys)..((part + 1) * SPLIT).min(keys) };
            let partial = results.partial.map(|_| part * batch + b);
            self.run(block, range, slot, Results { partial, ..results });
        });
    }

    fn slots<'s>(&self, scratch: &'s mut Scratch, n: usize, rows: usize) -> &'s mut [Slot] {
        scratch.memories.slots(n, &memory(&self.scores, rows, self.shape.dim, self.shape.value_dim)).0
    }

    fn run(&self, block: Block, keys: Range<usize>, slot: &mut Slot, results: Results) {
        let (scores, kv) = (self.scores, block.heads.start / self.shape.group());
        let (k, v) = (scores.key_head(&self.inputs.k, block.b, kv), scores.key_head(&self.inputs.v, block.b, kv));
        if block.len() > 0 {
            dispatch(self.isa, Forward { q: self.inputs.q, k, v, scores, block, keys, slot, results });
        }
    }

    /// Joins results over parts of the keys. `row` has room for one of them.
    fn merge(
        &self,
        parts: usize,
        (part_out, part_lse): (ArrayView4<f32>, ArrayView3<f64>),
        (out, lse): (Output, &mut ArrayViewMut3<f64>),
        row: &mut [f32],
    ) {
        let Shape { batch, heads, .. } = self.shape;
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            for i in 0..self.scores.queries(b) {
                let part = |p: usize| (part_lse[[p * batch + b, h, i]], part_out.slice(s![p * batch + b, h, i, ..]));
                let at = self.scores.query_row((b, h, i));
                lse[at] = merge_row(parts, part, self.scores.sink(h), row);
                // SAFETY: no other thread writes here.
                unsafe { out.write(at, row) };
            }
        }
    }
}

/// Joins one row of results over parts of the keys: with lse = ln Σ exp lseₚ, out = Σ exp(lseₚ − lse)·outₚ. A sink is a further
/// part without an output.
pub(crate) fn merge_row<'r>(
    parts: usize,
    part: impl Fn(usize) -> (f64, ndarray::ArrayView1<'r, f32>),
    sink: Option<f32>,
    row: &mut [f32],
) -> f64 {
    row.fill(0.0);
    let max = (0..parts).map(|p| part(p).0).chain(sink.map(f64::from)).fold(f64::NEG_INFINITY, f64::max);
    // Nothing visible in any part. (A NaN is not: `max` passes over it, and it must spread.)
    if max == f64::NEG_INFINITY && !(0..parts).any(|p| part(p).0.is_nan()) {
        return max;
    }
    let weight = |lse: f64| (lse - max).exp();
    let sum = (0..parts).map(|p| weight(part(p).0)).sum::<f64>() + sink.map_or(0.0, |sink| weight(sink.into()));
    for p in 0..parts {
        let (lse, out) = part(p);
        let weight = (weight(lse) / sum) as f32;
        // A part in which nothing is visible has an output of zeros.
        row.iter_mut().zip(out).for_each(|(x, y)| *x += weight * y);
    }
    max + sum.ln()
}

/// Rows per block: as many as stay in L2, but enough blocks for all threads.
fn block_size(rows: usize, heads: usize, dim: usize, threads: usize) -> usize {
    let most = (BLOCK_VALUES / dim).clamp(4 * MAX_ROWS, BLOCK);
    let wanted = (4 * threads).div_ceil(heads.max(1));
    let blocks = if threads == 1 { 1 } else { wanted.min(rows.div_ceil(2 * MAX_ROWS)) };
    rows.div_ceil(blocks.max(rows.div_ceil(most)).max(1)).next_multiple_of(MAX_ROWS)
}
