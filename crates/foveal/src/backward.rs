//! Backward: checks the call, cuts it into tasks that share no memory, and joins what they made.
//!
//! A task owns some tiles of keys and goes over all rows that see them, so dK and dV need no locks. dQ gets something from
//! every task: the tiles are dealt out to C *chunks*, each chunk collects a dQ of its own, and these are added up in order.
//! C follows from the shapes alone, never from the number of threads; so do the results, to the bit.
//!
//! Tiles that no row of a stretch sees are not dealt out, and a chunk without tiles has nothing to do.
//!
//! What shares a gradient takes turns: the query heads of a key head, and with a dense bias all sequences and heads that it is
//! shared by. Rows come in stretches, too, so that what a task works on stays in L2 and the chunks' dQ stay small.
//!
//! ```text
//! for each wave of units (a unit shares nothing with another), for each turn, for each stretch of rows
//!   in parallel, for each unit and chunk:  its tiles of keys against the stretch
//!   in parallel, for each unit:            dQ ⟵ Σ over chunks
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::{Array2, Array3, Array4, ArrayD, ArrayView2, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis, s};

use crate::Error;
use crate::attention::{Attention, Forward, Gradients};
use crate::bias::Kind;
use crate::kernel::backward::{Backward, Inputs, KEYS, ROWS, RowDots, STRIDE, Targets, dq_width, parts};
use crate::kernel::matrix::{Matrix, Rows, add};
use crate::kernel::{Isa, dispatch, small};
use crate::memory::zeros;
use crate::scores::Scores;
use crate::scratch::{self, Scratch, Slot};
use crate::shape::{Shape, expect};
use crate::threads::{Threads, for_each_task};

/// Tasks of a turn, if the shape allows: enough for the threads of a large machine.
const TASKS: usize = 32;
/// Tasks a thread in a wave: so many that waiting for the last of a stretch does not show, but no more memory than they take.
const WAVE: usize = 64;
/// Keys of a chunk at least, lest joining the chunks costs more than 1 % of what they do.
const CHUNK: usize = 4 * KEYS;
/// Values that a task may work on at a time, 1.7 MiB: P and dS, the packed tile, and the rows of the stretch, of which a
/// block is in use at a time. With longer stretches tiles are packed less often, with shorter ones more of them stays in L2.
const TASK_VALUES: usize = 440 << 10;

/// The gradients in arrays of their own.
pub(crate) fn backward(
    attention: &Attention,
    (q, k, v): (ArrayView4<f32>, ArrayView4<f32>, ArrayView4<f32>),
    fwd: &Forward,
    dout: ArrayView4<f32>,
    scratch: &mut Scratch,
) -> Result<Gradients, Error> {
    let (mut dq, mut dk, mut dv) = (zeros(q.dim()), zeros(k.dim()), zeros(v.dim()));
    let targets = (dq.view_mut(), dk.view_mut(), dv.view_mut());
    let dbias = backward_into(attention, (q, k, v), fwd, dout, targets, true, scratch)?;
    Ok(Gradients { dq, dk, dv, dbias })
}

/// The gradients in arrays of the caller's, which may be `zeroed` already; returns that of the bias.
pub(crate) fn backward_into(
    attention: &Attention,
    (q, k, v): (ArrayView4<f32>, ArrayView4<f32>, ArrayView4<f32>),
    fwd: &Forward,
    dout: ArrayView4<f32>,
    (mut dq, mut dk, mut dv): (ArrayViewMut4<f32>, ArrayViewMut4<f32>, ArrayViewMut4<f32>),
    zeroed: bool,
    scratch: &mut Scratch,
) -> Result<Option<ArrayD<f32>>, Error> {
    let shape = Shape::of(&q, &k, &v)?;
    attention.check(&shape)?;
    for (what, x, dx) in [("dq", &q, &dq), ("dk", &k, &dk), ("dv", &v, &dv)] {
        expect(what, x.shape(), dx.shape())?;
    }
    expect("the forward output", &shape.out(), fwd.out.shape())?;
    expect("lse", &shape.lse(), fwd.lse.shape())?;
    expect("dout", &shape.out(), dout.shape())?;
    let isa = Isa::resolve(attention.isa)?;

    let scores = Scores::new(attention, &shape);
    let mut zeroed = zeroed;
    if shape.is_small() && scores.is_plain() {
        let targets = (dq.view_mut(), dk.view_mut(), dv.view_mut());
        if by_heads(isa, &shape, scores, (&q, &k, &v), fwd, &dout, targets, (attention.threads, &mut *scratch)) {
            return Ok(None);
        }
        zeroed = false;
    }
    let cut = Cut::new(&shape, &scores);
    let threads = attention.threads.count(2.5 * shape.flops()).min(cut.tasks()).max(1);
    let Scratch { slots, parts: memory } = scratch;
    let slots = scratch::slots(slots, threads, &parts(&scores, cut.stretch, shape.dim, shape.value_dim));
    let wave = (WAVE * threads).div_ceil(cut.chunks).clamp(1, cut.units().max(1));
    let in_chunks = if cut.in_place { (0, 0, 0, 0) } else { (cut.chunks, wave, cut.stretch, cut.width) };
    let [delta, part] = memory.cut([fwd.lse.len(), in_chunks.0 * in_chunks.1 * in_chunks.2 * in_chunks.3]);
    let mut delta = ArrayViewMut3::from_shape(fwd.lse.dim(), delta).expect("cut to this size");
    let mut part = ArrayViewMut4::from_shape(in_chunks, part).expect("cut to this size");
    row_dots(isa, slots, &dout, &fwd.out, delta.view_mut());
    let (delta, lse) = (delta.view(), fwd.lse.view());
    let group = shape.group();
    let inputs = Inputs { q: &q, k: &k, v: &v, dout: &dout, lse: &lse, delta: &delta, scores, group };

    let heads = shape.batch * shape.heads;
    if !zeroed && shape.flops() == 0.0 {
        // No task will come by.
        [&mut dq, &mut dk, &mut dv].into_iter().for_each(|gradient| gradient.fill(0.0));
    }
    let (dense_dim, entries) = match scores.bias() {
        Kind::Dense(bias) => (bias.dim(), 0),
        Kind::T5(t5) => ((0, 0, 0, 0), t5.bucket.len()),
        Kind::Swin(swin) => ((0, 0, 0, 0), swin.distances()),
        Kind::Alibi(_) => ((0, 0, 0, 0), 1),
        Kind::None | Kind::Shaw(_) => ((0, 0, 0, 0), 0),
    };
    let mut dense = Array4::zeros(dense_dim);
    let mut tables = Array4::zeros((cut.chunks, 1, heads, entries));
    let mut shaw = Array3::zeros((heads, scores.shaw_distances(), shape.dim));
    let waves = (0..cut.units()).step_by(wave).map(|first| first..(first + wave).min(cut.units()));
    for (units, turn) in waves.flat_map(|units| (0..cut.turns()).map(move |turn| (units.clone(), turn))) {
        for start in (0..shape.queries).step_by(cut.stretch) {
            let rows = start..(start + cut.stretch).min(shape.queries);
            let heads = units.clone().map(|unit| cut.head(unit, turn)).collect::<Vec<_>>();
            let tasks = deal(&scores, &heads, &rows, cut.chunks);
            let once = !zeroed && cut.once(&tasks, heads.len());
            if !zeroed && !once && turn == 0 && start == 0 {
                for (unit, turn) in units.clone().flat_map(|unit| (0..cut.turns()).map(move |turn| (unit, turn))) {
                    let (b, h) = cut.head(unit, turn);
                    dq.slice_mut(s![b, h, .., ..]).fill(0.0);
                    dk.slice_mut(s![b, h / group, .., ..]).fill(0.0);
                    dv.slice_mut(s![b, h / group, .., ..]).fill(0.0);
                }
            }
            let targets = Targets {
                dq: Rows::new(dq.view_mut()),
                dk: Rows::new(dk.view_mut()),
                dv: Rows::new(dv.view_mut()),
                once,
                dense: Rows::new(dense.view_mut()),
                table: Rows::new(tables.view_mut()),
            };
            let part_rows = Rows::new(part.view_mut());
            for_each_task(slots, tasks.len(), |slot, task| {
                let Task { place, chunk, ref tiles } = tasks[task];
                let (b, h) = heads[place];
                // SAFETY: these rows of this unit and chunk belong to this task alone, and no other slice of them is held.
                let dq = unsafe {
                    if cut.in_place {
                        targets.dq.block(b, h, rows.clone())
                    } else {
                        Some(part_rows.standard(chunk, place, 0..rows.len()))
                    }
                };
                dispatch(isa, Backward { inputs, targets, chunk, tiles, b, h, rows: rows.clone(), dq, slot });
            });
            if !cut.in_place {
                join(slots, &heads, &tasks, &part.view(), rows, &inputs, targets.dq, &mut shaw);
            }
        }
    }
    Ok(bias_gradient(&scores, &shape, dense, &tables, &shaw))
}

/// Short sequences: a task is a key head. Whether all is done.
#[expect(clippy::too_many_arguments, reason = "what a call is made of")]
fn by_heads(
    isa: Isa,
    shape: &Shape,
    scores: Scores,
    (q, k, v): (&ArrayView4<f32>, &ArrayView4<f32>, &ArrayView4<f32>),
    fwd: &Forward,
    dout: &ArrayView4<f32>,
    (dq, dk, dv): (ArrayViewMut4<f32>, ArrayViewMut4<f32>, ArrayViewMut4<f32>),
    (threads, scratch): (Threads, &mut Scratch),
) -> bool {
    let (tasks, group) = (shape.batch * shape.kv_heads, shape.group());
    let threads = threads.count(2.5 * shape.flops()).min(tasks).max(1);
    let slots = scratch::slots(&mut scratch.slots, threads, &[]);
    let (dq, dk, dv) = (Rows::new(dq), Rows::new(dk), Rows::new(dv));
    let (all_out, all_done) = (fwd.out.view(), AtomicBool::new(true));
    for_each_task(slots, tasks, |slot, task| {
        let (b, kv) = (task / shape.kv_heads, task % shape.kv_heads);
        let (k, v) = (Matrix::new(k, b, kv), Matrix::new(v, b, kv));
        for h in kv * group..(kv + 1) * group {
            let (q, dout, out) = (Matrix::new(q, b, h), Matrix::new(dout, b, h), Matrix::new(&all_out, b, h));
            let (lse, first, memory) = (fwd.lse.slice(s![b, h, ..]), h == kv * group, &mut slot.memory);
            let head = small::Backward { q, k, v, dout, out, lse, scores, b, h, kv, first, memory, dq, dk, dv };
            if !dispatch(isa, head) {
                all_done.store(false, Ordering::Relaxed);
            }
        }
    });
    all_done.into_inner()
}

/// How a call is cut into tasks.
struct Cut {
    shape: Shape,
    /// Sequences and key heads of a unit, which take turns.
    together: (usize, usize),
    chunks: usize,
    /// Rows of a stretch, and values of a row of a chunk's dQ.
    stretch: usize,
    width: usize,
    /// Whether the only chunk can collect its dQ in dQ itself.
    in_place: bool,
}

impl Cut {
    fn new(shape: &Shape, scores: &Scores) -> Cut {
        let mut together = (1, 1);
        if let Kind::Dense(bias) = scores.bias() {
            let (batch, heads, ..) = bias.dim();
            together = (if batch == 1 { shape.batch } else { 1 }, if heads == 1 { shape.kv_heads } else { 1 });
        }
        let together = (together.0.max(1), together.1.max(1));
        let width = dq_width(scores, shape.dim);
        // Per key and per row of a stretch: K three times and V twice, Q three times and dOut twice (as they lie, packed, and
        // their gradients).
        let each = 3 * shape.dim + 2 * shape.value_dim;
        let stretch = TASK_VALUES.saturating_sub(2 * ROWS * STRIDE + KEYS * each) / each;
        let stretch = (stretch / ROWS).max(1).saturating_mul(ROWS);
        // Stretches of one length, and none more for the sake of a few rows.
        let count = shape.queries.saturating_sub(stretch / 8).div_ceil(stretch).max(1);
        let stretch = shape.queries.div_ceil(count).next_multiple_of(ROWS).min(shape.queries).max(1);
        let mut cut = Cut { shape: *shape, together, chunks: 1, stretch, width, in_place: false };
        cut.chunks = TASKS.div_ceil(cut.units().max(1)).min(shape.keys.div_ceil(CHUNK)).max(1);
        if cut.chunks > 4 {
            // A number that two or four threads share without a rest.
            cut.chunks -= cut.chunks % 4;
        }
        cut.in_place = cut.chunks == 1 && width == shape.dim;
        cut
    }

    /// Units share nothing with each other.
    fn units(&self) -> usize {
        (self.shape.batch / self.together.0) * (self.shape.kv_heads / self.together.1)
    }

    fn tasks(&self) -> usize {
        self.units() * self.chunks
    }

    fn turns(&self) -> usize {
        self.together.0 * self.together.1 * self.shape.group()
    }

    /// Whether these are all tasks that the keys of their heads will ever belong to, and every key belongs to one.
    fn once(&self, tasks: &[Task], heads: usize) -> bool {
        let tiles: usize = tasks.iter().map(|task| task.tiles.len()).sum();
        self.turns() == 1 && self.stretch >= self.shape.queries && tiles == heads * self.shape.keys.div_ceil(KEYS)
    }

    /// The sequence and query head of a unit whose turn it is.
    fn head(&self, unit: usize, turn: usize) -> (usize, usize) {
        let (across, heads) = (self.shape.kv_heads / self.together.1, self.together.1 * self.shape.group());
        (unit / across * self.together.0 + turn / heads, unit % across * heads + turn % heads)
    }
}

/// The tiles of one chunk in which some row of the stretch sees something.
struct Task {
    /// The place of its head among those of the wave.
    place: usize,
    chunk: usize,
    tiles: Vec<usize>,
}

/// Deals out the tiles that the rows see: of C chunks, chunk c has the tiles c, c + C, c + 2C, …
fn deal(scores: &Scores, heads: &[(usize, usize)], rows: &Range<usize>, chunks: usize) -> Vec<Task> {
    let (mut tasks, mut runs) = (Vec::new(), Vec::new());
    for (place, &(b, h)) in heads.iter().enumerate() {
        runs.clear();
        scores.runs(b, h, rows, &(0..scores.keys()), &mut runs);
        let mut seen: Vec<usize> = runs.iter().flat_map(|run| run.start / KEYS..run.end.div_ceil(KEYS)).collect();
        seen.dedup();
        seen.sort_by_key(|tile| tile % chunks);
        for tiles in seen.chunk_by(|one, other| one % chunks == other % chunks) {
            tasks.push(Task { place, chunk: tiles[0] % chunks, tiles: tiles.to_vec() });
        }
    }
    tasks
}

/// δ = dout·out for every row: [B, H, T].
fn row_dots(isa: Isa, slots: &mut [Slot], dout: &ArrayView4<f32>, out: &Array4<f32>, delta: ArrayViewMut3<f32>) {
    let (batch, heads, queries, _) = out.dim();
    let (target, out) = (Rows::new(delta.insert_axis(Axis(3))), out.view());
    for_each_task(slots, batch * heads, |_, head| {
        let (b, h) = (head / heads, head % heads);
        // SAFETY: this head belongs to this task alone, and no other slice of it is held.
        let delta = unsafe { target.standard(b, h, 0..queries) };
        dispatch(isa, RowDots { dout: Matrix::new(dout, b, h), out: Matrix::new(&out, b, h), delta });
    });
}

/// Adds up the chunks of a stretch of rows of the heads `of`: dQ, and what Shaw's table gives to dQ and gets from it.
#[expect(clippy::too_many_arguments, reason = "what the tasks made, and where it goes")]
fn join(
    slots: &mut [Slot],
    of: &[(usize, usize)],
    tasks: &[Task],
    part: &ArrayView4<f32>,
    rows: Range<usize>,
    inputs: &Inputs,
    dq: Rows,
    shaw: &mut Array3<f32>,
) {
    let (_, _, _, width) = part.dim();
    let (_, heads, _, dim) = inputs.q.dim();
    let shaw = Rows::new(shaw.view_mut().insert_axis(Axis(0)));
    for_each_task(slots, of.len(), |_, place| {
        let (b, h) = of[place];
        let own = tasks.partition_point(|task| task.place < place)..tasks.partition_point(|task| task.place <= place);
        let tasks = &tasks[own];
        for (r, i) in rows.clone().enumerate() {
            for (n, task) in tasks.iter().enumerate() {
                let row = part.slice(s![task.chunk, place, r, ..dim]);
                let row = row.as_slice().expect("made in standard layout");
                // SAFETY: this head belongs to this task alone.
                unsafe { dq.update((b, h, i), 0, row, |x, y| if n == 0 { y } else { x + y }) };
            }
        }
        if let Some(table) = inputs.scores.shaw_table(h) {
            let (distances, scale) = (table.dim().0, inputs.scores.scale);
            let first = width - distances.next_multiple_of(scratch::LINE);
            let mut relative = Array2::<f32>::zeros((rows.len(), distances));
            for task in tasks {
                relative += &part.slice(s![task.chunk, place, ..rows.len(), first..first + distances]);
            }
            let to_dq = product(relative.view(), table);
            let to_table = product(relative.t(), inputs.q.slice(s![b, h, rows.clone(), ..]));
            for (i, to_dq) in rows.clone().zip(to_dq.rows()) {
                let to_dq = to_dq.as_slice().expect("made in standard layout");
                // SAFETY: as above.
                unsafe { dq.update((b, h, i), 0, to_dq, |x, y| x + scale * y) };
            }
            // SAFETY: as above, and no other slice of it is held.
            let shaw = unsafe { shaw.standard(0, b * heads + h, 0..distances) };
            shaw.iter_mut().zip(&to_table).for_each(|(x, y)| *x = add(*x, scale * y));
        }
    });
}

/// a·b, where a 0 in `a` means that nothing is to be added, not even 0·NaN.
fn product(a: ArrayView2<f32>, b: ArrayView2<f32>) -> Array2<f32> {
    if b.iter().all(|x| x.is_finite()) {
        return a.dot(&b);
    }
    let mut c = Array2::zeros((a.dim().0, b.dim().1));
    for ((i, k), x) in a.indexed_iter().filter(|(_, x)| **x != 0.0) {
        c.row_mut(i).scaled_add(*x, &b.row(k));
    }
    c
}

/// The gradient of what the bias was made of, in its shape.
fn bias_gradient(
    scores: &Scores,
    shape: &Shape,
    dense: Array4<f32>,
    tables: &Array4<f32>,
    shaw: &Array3<f32>,
) -> Option<ArrayD<f32>> {
    // Sums over chunks and sequences: [H, entries].
    let by_head = || {
        let mut sum = Array2::<f32>::zeros((shape.heads, tables.dim().3));
        for table in tables.axis_iter(Axis(0)) {
            for (head, row) in table.index_axis(Axis(0), 0).rows().into_iter().enumerate() {
                let mut target = sum.row_mut(head % shape.heads);
                target += &row;
            }
        }
        sum
    };
    match scores.bias() {
        Kind::None => None,
        Kind::Dense(_) => Some(dense.into_dyn()),
        Kind::Alibi(_) => Some(by_head().index_axis_move(Axis(1), 0).into_dyn()),
        Kind::T5(t5) => {
            let by_head = by_head();
            let mut table = Array2::<f32>::zeros(t5.table.dim());
            for (entry, bucket) in t5.bucket.iter().enumerate() {
                let mut row = table.row_mut(*bucket);
                row += &by_head.column(entry);
            }
            Some(table.into_dyn())
        }
        Kind::Swin(swin) => {
            let (by_head, distances) = (by_head(), swin.distances());
            // From the query to the key there, from the key to the query here.
            let entry = |(distance, h): (usize, usize)| by_head[[h, distances - 1 - distance]];
            Some(Array2::from_shape_fn(swin.table.dim(), entry).into_dyn())
        }
        Kind::Shaw(table) => {
            let mut sum = Array3::<f32>::zeros(table.dim());
            for (head, gradient) in shaw.outer_iter().enumerate() {
                let target = if table.dim().0 == 1 { 0 } else { head % shape.heads };
                let mut target = sum.index_axis_mut(Axis(0), target);
                target += &gradient;
            }
            Some(sum.into_dyn())
        }
    }
}
