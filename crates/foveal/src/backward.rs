//! Backward: checks the call, runs the steps of its [`Schedule`], and joins what their tasks made.
//!
//! ```text
//! δ ⟵ dout·out − dlse
//! for each step
//!   in parallel, for each head and chunk:  its tiles of keys against the rows of the step
//!   in parallel, for each head:            dQ ⟵ Σ over chunks
//! ```

mod learned;
mod schedule;

use foveal_compute::tasks::for_each_task;
use foveal_compute::{Isa, Supported};
use ndarray::{Array2, Array3, Array4, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis, s};

pub(crate) use self::learned::sink_gradient;
use self::learned::{bias_gradient, product};
use self::schedule::{Schedule, Step, Task, Touched, shaw_column};
use crate::Error;
use crate::attention::Attention;
use crate::bias::Kind;
use crate::forward;
use crate::kernel::backward::{Backward, DenseGradient, Gradient, Inputs, Targets, memory};
use crate::kernel::delta::{Refined, RowDots};
use crate::kernel::matrix::Rows;
use crate::kernel::rows::Block;
use crate::kernel::{dispatch, precise, small};
use crate::results::{GradientsMut, Learned, Saved, Upstream};
use crate::scores::Scores;
use crate::scratch::{Scratch, Slot};
use crate::shape::{Shape, expect};
use crate::tensor::{Tensor, TensorMut, ValuesMut};

pub(crate) fn backward(
    attention: &Attention,
    inputs: forward::Inputs,
    (saved, upstream): (Saved, Upstream),
    into: GradientsMut,
    scratch: &mut Scratch,
) -> Result<Learned, Error> {
    let shape = attention.shape(&inputs)?;
    for (what, x, dx) in [("dq", inputs.q, &into.dq), ("dk", inputs.k, &into.dk), ("dv", inputs.v, &into.dv)] {
        expect(what, &x.dim(), &dx.dim())?;
    }
    if [inputs.q, inputs.k, inputs.v, saved.out, upstream.dout].iter().any(Tensor::is_paged) {
        let fits = "arrays in one piece";
        return Err(Error::Unfit { what: "a backward pass", option: "tokens in pages", fits });
    }
    check_given(&saved, &upstream, &shape.out())?;
    let isa = Isa::resolve(attention.isa)?;
    let (saved, upstream) = (saved.reborrow(), upstream.reborrow());
    let call = Call { attention, inputs, saved, upstream, shape, scores: Scores::new(attention, &shape), isa };
    let GradientsMut { dq, dk, dv, adds } = into;
    match (dq.0, dk.0, dv.0) {
        (ValuesMut::F32(dq), ValuesMut::F32(dk), ValuesMut::F32(dv)) => Ok(call.run((dq, dk, dv), adds, scratch)),
        // Gradients are sums: in 16 bits they are written, or added to, once.
        (dq, dk, dv) => {
            let zeros = |x: Tensor| Array4::zeros(x.dim());
            let mut sums = [zeros(inputs.q), zeros(inputs.k), zeros(inputs.v)];
            let [q, k, v] = &mut sums;
            let learned = call.run((q.view_mut(), k.view_mut(), v.view_mut()), false, scratch);
            for (target, sum) in [dq, dk, dv].into_iter().zip(&sums) {
                TensorMut(target).take(sum, adds);
            }
            Ok(learned)
        }
    }
}

/// What comes from the forward pass and from the loss must be shaped like the output.
pub(crate) fn check_given(saved: &Saved, upstream: &Upstream, out: &[usize; 4]) -> Result<(), Error> {
    expect("the forward output", out, &saved.out.dim())?;
    expect("lse", &out[..3], saved.lse.shape())?;
    expect("dout", out, &upstream.dout.dim())?;
    upstream.dlse.map_or(Ok(()), |dlse| expect("dlse", &out[..3], dlse.shape()))
}

struct Call<'a> {
    attention: &'a Attention,
    inputs: forward::Inputs<'a>,
    saved: Saved<'a>,
    upstream: Upstream<'a>,
    shape: Shape,
    scores: Scores<'a>,
    isa: Supported,
}

/// dq, dk and dv.
type Views<'a> = (ArrayViewMut4<'a, f32>, ArrayViewMut4<'a, f32>, ArrayViewMut4<'a, f32>);

impl Call<'_> {
    fn run(&self, (mut dq, mut dk, mut dv): Views, adds: bool, scratch: &mut Scratch) -> Learned {
        let Call { shape, scores, .. } = self;
        let small = shape.is_small() && scores.is_plain() && !shape.decodes();
        let schedule = Schedule::new(shape, scores);
        let tasks = if small { shape.batch * shape.kv_heads } else { schedule.tasks() };
        let threads = self.attention.threads.count(2.5 * shape.flops()).min(tasks).max(1);
        let lengths =
            if small { Vec::new() } else { memory(scores, schedule.rows, shape.dim, shape.value_dim).to_vec() };
        let (slots, shared) = scratch.memories.slots(threads, &lengths);
        let parts = if small { [0; 4] } else { schedule.parts(threads) };
        let (rows, of_rows) = (self.saved.lse.len(), self.saved.lse.dim());
        let [delta, factor, part] = shared.cut([rows, rows, parts.iter().product()]);
        let mut delta = ArrayViewMut3::from_shape(of_rows, delta).expect("cut to this size");
        let mut factor = ArrayViewMut3::from_shape(of_rows, factor).expect("cut to this size");
        let mut part = ArrayViewMut4::from_shape(parts, part).expect("cut to this size");
        self.prepare(slots, delta.view_mut(), factor.view_mut());
        let heads = shape.batch * shape.heads;
        let (dense_dim, entries) = match scores.bias() {
            _ if !scores.learns_bias() => ([0; 4], 0),
            Kind::Dense(bias) => (bias.dim().into(), 0),
            Kind::T5(t5) => ([0; 4], t5.bucket.len()),
            Kind::Swin(swin) => ([0; 4], swin.distances()),
            Kind::Alibi(_) => ([0; 4], 1),
            Kind::None | Kind::Shaw(_) => ([0; 4], 0),
        };
        let shared = dense_dim[..3] != [shape.batch, shape.heads, shape.queries];
        let mut dense = Array4::<f32>::zeros(if shared { [0; 4] } else { dense_dim });
        let mut dense_sums = Array4::<f64>::zeros(if shared { dense_dim } else { [0; 4] });
        let mut tables = Array4::zeros((schedule.chunks, 1, heads, entries));
        let mut shaw = Array3::zeros((heads, scores.shaw_distances(), shape.dim));
        {
            let forward::Inputs { q, k, v } = self.inputs;
            let (delta, factor, lse) = (delta.view(), factor.view(), self.saved.lse.reborrow());
            let (dout, scores, group) = (self.upstream.dout, self.scores, shape.group());
            let inputs = Inputs { q, k, v, dout, lse: &lse, factor: &factor, delta: &delta, scores, group };
            let targets = Targets {
                dq: Gradient(Rows::new(dq.view_mut())),
                dk: Gradient(Rows::new(dk.view_mut())),
                dv: Gradient(Rows::new(dv.view_mut())),
                adds,
                dense: if shared {
                    DenseGradient::Shared(Rows::new(dense_sums.view_mut()))
                } else {
                    DenseGradient::Own(Rows::new(dense.view_mut()))
                },
                table: Rows::new(tables.view_mut()),
            };
            if small {
                self.by_heads(slots, inputs, targets);
            } else {
                self.by_steps(&schedule, slots, inputs, targets, (part.view_mut(), &mut shaw));
            }
        }
        let dsinks = scores.sinks().map(|sinks| sink_gradient(sinks, self.saved.lse, delta.view()));
        let dense = if shared { dense_sums.mapv(|x| x as f32) } else { dense };
        Learned { dbias: bias_gradient(scores, shape, dense, &tables, &shaw), dsinks }
    }

    /// For every row δ = dout·out − dlse, and what precise weights are multiplied with, exp MARGIN or what makes their sum 1:
    /// [B, H, T].
    fn prepare(&self, slots: &mut [Slot], mut delta: ArrayViewMut3<f32>, mut factor: ArrayViewMut3<f32>) {
        /// Rows of a task.
        const ROWS: usize = 480;
        let Shape { batch, heads, .. } = self.shape;
        let scores = self.scores;
        // A part of a larger call has not all the keys that are summed over to refine δ.
        let whole = self.attention.part.is_none();
        let all = whole && (scores.learns_bias() || self.shape.decodes());
        factor.fill(precise::MARGIN.exp() as f32);
        let [to_delta, to_factor] = [delta.view_mut(), factor.view_mut()].map(|x| Rows::new(x.insert_axis(Axis(3))));
        let mut tasks = Vec::new();
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            let rows = scores.queries(b);
            tasks.extend((0..rows).step_by(ROWS).map(|first| (b, h, first..(first + ROWS).min(rows))));
        }
        for_each_task(slots, tasks.len(), |slot, task| {
            let (b, h, rows) = tasks[task].clone();
            let (stored, _, first) = scores.query_row((b, h, rows.start));
            // SAFETY: these rows belong to this task alone, and no other slice of them is held.
            let [delta, factor] =
                [to_delta, to_factor].map(|rows_of| unsafe { rows_of.standard(stored, h, first..first + rows.len()) });
            if !all {
                let dout = scores.query_head(&self.upstream.dout, b, h);
                let out = scores.query_head(&self.saved.out, b, h);
                let (rows, delta) = (rows.clone(), &mut *delta);
                dispatch(self.isa, RowDots { dout, out, rows, delta, memory: &mut slot.memory });
            }
            let lse = &self.saved.lse.reborrow();
            if all || whole && rows.clone().any(|i| scores.is_precise(lse[scores.query_row((b, h, i))])) {
                let kv = h / self.shape.group();
                let (k, v) = (scores.key_head(&self.inputs.k, b, kv), scores.key_head(&self.inputs.v, b, kv));
                let block = Block { b, heads: h..h + 1, rows };
                let (q, dout) = (self.inputs.q, self.upstream.dout);
                dispatch(self.isa, Refined { q, dout, k, v, lse, scores, block, all, slot, delta, factor });
            }
        });
        if let Some(dlse) = self.upstream.dlse {
            delta -= &dlse;
        }
    }

    /// Short sequences: a task is a key head.
    fn by_heads(&self, slots: &mut [Slot], inputs: Inputs, targets: Targets) {
        let (kv_heads, group) = (self.shape.kv_heads, self.shape.group());
        for_each_task(slots, self.shape.batch * kv_heads, |slot, task| {
            let (b, kv) = (task / kv_heads, task % kv_heads);
            let (queries, keys) = (self.scores.queries(b), self.scores.keys(b));
            for h in kv * group..(kv + 1) * group {
                let first = h == kv * group;
                if queries > 0 && keys > 0 {
                    let memory = &mut slot.memory;
                    dispatch(self.isa, small::Backward { inputs, targets, b, h, first, memory });
                } else if !targets.adds {
                    // SAFETY: these heads belong to this task alone.
                    unsafe { self.clear((b, h, 0..queries), (b, kv, 0..if first { keys } else { 0 }), targets) };
                }
            }
        });
    }

    /// Writes zeros to rows of dQ, and to rows of dK and dV.
    ///
    /// # Safety
    /// No one else may access these rows.
    unsafe fn clear(
        &self,
        (b, h, rows): (usize, usize, std::ops::Range<usize>),
        (_, kv, keys): (usize, usize, std::ops::Range<usize>),
        targets: Targets,
    ) {
        let zeros = vec![0.0; self.shape.dim.max(self.shape.value_dim)];
        // SAFETY: passed on.
        unsafe {
            rows.for_each(|i| targets.dq.put(self.scores.query_row((b, h, i)), &zeros[..self.shape.dim], false));
            for j in keys {
                let at = self.scores.key_row((b, kv, j));
                targets.dk.put(at, &zeros[..self.shape.dim], false);
                targets.dv.put(at, &zeros[..self.shape.value_dim], false);
            }
        }
    }

    /// Any sequences: step by step.
    fn by_steps(
        &self,
        schedule: &Schedule,
        slots: &mut [Slot],
        inputs: Inputs,
        targets: Targets,
        (mut part, shaw): (ArrayViewMut4<f32>, &mut Array3<f32>),
    ) {
        let (scores, threads) = (self.scores, slots.len());
        let mut touched = Touched::new(&self.shape);
        for step in schedule.steps(threads) {
            let tasks = schedule.deal(&step, &scores, &mut touched);
            let part_rows = Rows::new(part.view_mut());
            for_each_task(slots, tasks.len(), |slot, task| {
                let Task { place, chunk, ref tiles } = tasks[task];
                let (b, h) = step.heads[place];
                let rows = schedule.rows_of(&step, &scores, b);
                // SAFETY: these rows of this head and chunk belong to this task alone, and no other slice of them is held.
                let dq = unsafe {
                    if !schedule.in_place {
                        Some(part_rows.standard(chunk, place, 0..rows.len()))
                    } else if targets.adds {
                        None
                    } else {
                        let (stored, _, start) = scores.query_row((b, h, rows.start));
                        targets.dq.0.block(stored, h, start..start + rows.len())
                    }
                };
                dispatch(self.isa, Backward { inputs, targets, chunk, tiles, b, h, rows, dq, slot });
            });
            if !schedule.in_place {
                self.join(schedule, slots, &step, (&tasks, &part.view()), targets, shaw);
            } else if !targets.adds {
                for (place, &(b, h)) in step.heads.iter().enumerate() {
                    if !tasks.iter().any(|task| task.place == place) {
                        let rows = schedule.rows_of(&step, &scores, b);
                        // SAFETY: no task is running.
                        unsafe { self.clear((b, h, rows), (b, 0, 0..0), targets) };
                    }
                }
            }
        }
        if !targets.adds {
            for (b, kv, keys) in touched.untouched(&scores) {
                // SAFETY: no task is running.
                unsafe { self.clear((b, 0, 0..0), (b, kv, keys), targets) };
            }
        }
    }

    /// Adds up the chunks of a step: dQ, and what Shaw's table gives to dQ and gets from it.
    fn join(
        &self,
        schedule: &Schedule,
        slots: &mut [Slot],
        step: &Step,
        (tasks, part): (&[Task], &ArrayView4<f32>),
        targets: Targets,
        shaw: &mut Array3<f32>,
    ) {
        let (scores, heads, dim) = (self.scores, self.shape.heads, self.shape.dim);
        let shaw = Rows::new(shaw.view_mut().insert_axis(Axis(0)));
        for_each_task(slots, step.heads.len(), |_, place| {
            let (b, h) = step.heads[place];
            let own = tasks.partition_point(|t| t.place < place)..tasks.partition_point(|t| t.place <= place);
            let chunks: Vec<usize> = tasks[own].iter().map(|task| task.chunk).collect();
            let rows = schedule.rows_of(step, &scores, b);
            let mut sum = vec![0.0; dim];
            for (r, i) in rows.clone().enumerate() {
                sum.fill(0.0);
                for (n, chunk) in chunks.iter().enumerate() {
                    let row = part.slice(s![*chunk, place, r, ..dim]);
                    sum.iter_mut().zip(row).for_each(|(x, y)| *x = if n == 0 { *y } else { *x + y });
                }
                // SAFETY: this head belongs to this task alone.
                unsafe { targets.dq.put(scores.query_row((b, h, i)), &sum, targets.adds) };
            }
            if let Some(table) = scores.shaw_table(h) {
                let (distances, scale) = (table.dim().0, scores.scale);
                let first = shaw_column(schedule.width, distances);
                let mut relative = Array2::<f32>::zeros((rows.len(), distances));
                for chunk in chunks {
                    relative += &part.slice(s![chunk, place, ..rows.len(), first..first + distances]);
                }
                let q = scores.query_head(&self.inputs.q, b, h);
                let q = Array2::from_shape_fn((rows.len(), dim), |(r, d)| q.get(rows.start + r, d));
                let (to_dq, to_table) = (product(relative.view(), table), product(relative.t(), q.view()));
                for (i, to_dq) in rows.zip(to_dq.rows()) {
                    let to_dq = to_dq.as_slice().expect("made in standard layout");
                    // SAFETY: as above.
                    unsafe { targets.dq.0.update(scores.query_row((b, h, i)), 0, to_dq, |x, y| x + scale * y) };
                }
                // SAFETY: as above, and no other slice of it is held.
                let shaw = unsafe { shaw.standard(0, b * heads + h, 0..distances) };
                shaw.iter_mut().zip(&to_table).for_each(|(x, y)| *x += scale * y);
            }
        });
    }
}
