//! Any part of the weight matrix, from q, k and the log-sum-exp of each row.

use std::ops::Range;

use ndarray::{Array2, Array3, Array4, ArrayView3, ArrayView4, ArrayViewMut4};
use rayon::prelude::*;

use crate::attention::Attention;
use crate::kernel::matrix::Rows;
use crate::kernel::rows::{Block, KEYS};
use crate::kernel::weights::{Copy, Pooled, Sink, Weights, bounds, parts};
use crate::kernel::{Isa, dispatch};
use crate::scores::Scores;
use crate::scratch::{self, Scratch, Slot};
use crate::shape::{Shape, expect};
use crate::threads::for_each_task;
use crate::{Error, forward};

/// How the weights that fall on one pixel of a map become one number. Hidden pairs count as weight 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The largest: no strong link is lost, whatever the zoom.
    Max,
    /// The mean.
    Mean,
    /// The sum: the attention that a group of queries pays to a group of keys.
    Sum,
}

/// Rows per task: a tile of keys is packed once for each.
const ROWS: usize = 480;

/// Rows of a rectangle that [`map_of_tiles`] asks for.
const STRIP: usize = 128;

pub(crate) fn weights(attention: &Attention, q: ArrayView4<f32>, k: ArrayView4<f32>) -> Result<Array4<f32>, Error> {
    let shape = Shape::of_scores(&q, &k)?;
    let lse = log_sum_exp(attention, &q, &k, &shape)?;
    let call = Call::new(attention, q, k, lse.view(), shape)?;
    let Shape { batch, heads, queries, keys, .. } = shape;
    let mut out = Array4::zeros((batch, heads, queries, keys));
    let rows = Rows::new(out.view_mut());
    let blocks = queries.div_ceil(ROWS);
    call.share(batch * heads * blocks, ROWS.min(queries), keys, |slot, task| {
        let (block, head) = (task % blocks, task / blocks);
        let at = (head / heads, head % heads);
        let range = block * ROWS..((block + 1) * ROWS).min(queries);
        call.run(at, range, 0..keys, slot, Copy { out: rows, at, first: (0, 0) });
    });
    Ok(out)
}

pub(crate) fn tile(
    attention: &Attention,
    q: ArrayView4<f32>,
    k: ArrayView4<f32>,
    lse: ArrayView3<f32>,
    at: (usize, usize),
    rows: Range<usize>,
    cols: Range<usize>,
) -> Result<Array2<f32>, Error> {
    let call = Call::checked(attention, q, k, lse, at, &rows, &cols)?;
    let mut out = Array2::zeros((rows.len(), cols.len()));
    let target = Rows::new(as_head(&mut out));
    call.share(rows.len().div_ceil(ROWS), ROWS.min(rows.len()), cols.len(), |slot, task| {
        let start = rows.start + task * ROWS;
        let range = start..(start + ROWS).min(rows.end);
        call.run(at, range, cols.clone(), slot, Copy { out: target, at: (0, 0), first: (rows.start, cols.start) });
    });
    Ok(out)
}

#[expect(clippy::too_many_arguments, reason = "as Attention::map")]
pub(crate) fn map(
    attention: &Attention,
    q: ArrayView4<f32>,
    k: ArrayView4<f32>,
    lse: ArrayView3<f32>,
    at: (usize, usize),
    rows: Range<usize>,
    cols: Range<usize>,
    (height, width): (usize, usize),
    pool: Pool,
) -> Result<Array2<f32>, Error> {
    let call = Call::checked(attention, q, k, lse, at, &rows, &cols)?;
    check_pixels((height, width), &rows, &cols)?;
    let mut out = Array2::zeros((height, width));
    let target = Rows::new(as_head(&mut out));
    // A task is some rows of pixels: about ROWS rows of weights, and at least one row of pixels.
    let lines = (ROWS * height / rows.len()).clamp(1, height);
    let most = lines * rows.len().div_ceil(height);
    call.share(height.div_ceil(lines), most, cols.len(), |slot, task| {
        let pixels = task * lines..((task + 1) * lines).min(height);
        let range =
            rows.start + bounds(rows.len(), height, pixels.start)..rows.start + bounds(rows.len(), height, pixels.end);
        let sink = Pooled { out: target, pool, pixels, rows: rows.clone(), cols: cols.clone(), size: (height, width) };
        call.run(at, range, cols.clone(), slot, sink);
    });
    Ok(out)
}

/// [`map`] of an attention whose weights come as small rectangles from `tile(rows, cols)`.
pub(crate) fn map_of_tiles(
    rows: &Range<usize>,
    cols: &Range<usize>,
    (height, width): (usize, usize),
    pool: Pool,
    one_thread: bool,
    tile: impl Fn(&Range<usize>, &Range<usize>) -> Array2<f32> + Sync,
) -> Result<Array2<f32>, Error> {
    check_pixels((height, width), rows, cols)?;
    let mut out = Array2::zeros((height, width));
    let target = Rows::new(as_head(&mut out));
    let lines = (ROWS * height / rows.len()).clamp(1, height);
    let work = |task: usize| {
        let pixels = task * lines..((task + 1) * lines).min(height);
        let row = |p: usize| rows.start + bounds(rows.len(), height, p);
        let range = row(pixels.start)..row(pixels.end);
        let mut memory = vec![0.0; pixels.len() * KEYS];
        let mut sink =
            Pooled { out: target, pool, pixels, rows: rows.clone(), cols: cols.clone(), size: (height, width) };
        for start in cols.clone().step_by(KEYS) {
            let keys = start..(start + KEYS).min(cols.end);
            for first in range.clone().step_by(STRIP) {
                let strip = first..(first + STRIP).min(range.end);
                for (i, row) in strip.clone().zip(tile(&strip, &keys).rows()) {
                    sink.row(i, start, start, row.to_slice().expect("made in standard layout"), &mut memory);
                }
            }
            sink.end(keys, &mut memory);
        }
    };
    let tasks = 0..height.div_ceil(lines);
    if one_thread {
        tasks.for_each(work);
    } else {
        tasks.into_par_iter().for_each(work);
    }
    Ok(out)
}

/// Every pixel pools at least one cell.
fn check_pixels((height, width): (usize, usize), rows: &Range<usize>, cols: &Range<usize>) -> Result<(), Error> {
    for (what, pixels, cells) in [("rows", height, rows.len()), ("columns", width, cols.len())] {
        if pixels == 0 || pixels > cells {
            return Err(Error::Pixels { what, pixels, cells });
        }
    }
    Ok(())
}

/// A matrix as the only head of the only sequence.
fn as_head(out: &mut Array2<f32>) -> ArrayViewMut4<'_, f32> {
    let (rows, cols) = out.dim();
    ArrayViewMut4::from_shape((1, 1, rows, cols), out.as_slice_mut().expect("made in standard layout"))
        .expect("same size")
}

/// The log-sum-exp alone: the forward pass with values of no dimension.
fn log_sum_exp(
    attention: &Attention,
    q: &ArrayView4<f32>,
    k: &ArrayView4<f32>,
    shape: &Shape,
) -> Result<Array3<f32>, Error> {
    let nothing = Array4::zeros((shape.batch, shape.kv_heads, shape.keys, 0));
    let mut out = Array4::zeros(shape.out());
    let mut lse = Array3::zeros(shape.lse());
    Scratch::lend(|scratch| {
        forward::forward(attention, q.view(), k.view(), nothing.view(), out.view_mut(), lse.view_mut(), scratch)
    })?;
    Ok(lse)
}

struct Call<'a> {
    attention: &'a Attention,
    q: ArrayView4<'a, f32>,
    k: ArrayView4<'a, f32>,
    lse: ArrayView3<'a, f32>,
    shape: Shape,
    isa: Isa,
}

impl<'a> Call<'a> {
    fn new(
        attention: &'a Attention,
        q: ArrayView4<'a, f32>,
        k: ArrayView4<'a, f32>,
        lse: ArrayView3<'a, f32>,
        shape: Shape,
    ) -> Result<Self, Error> {
        attention.check(&shape)?;
        expect("lse", &shape.lse(), lse.shape())?;
        Ok(Call { attention, q, k, lse, shape, isa: Isa::resolve(attention.isa)? })
    }

    /// The call for one rectangle of one head.
    fn checked(
        attention: &'a Attention,
        q: ArrayView4<'a, f32>,
        k: ArrayView4<'a, f32>,
        lse: ArrayView3<'a, f32>,
        (b, h): (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Result<Self, Error> {
        let shape = Shape::of_scores(&q, &k)?;
        shape.check_rectangle((b, h), rows, cols)?;
        Call::new(attention, q, k, lse, shape)
    }

    /// Runs `tasks` tasks, each of at most `rows` × `cols` weights.
    fn share(&self, tasks: usize, rows: usize, cols: usize, work: impl Fn(&mut Slot, usize) + Sync) {
        let threads =
            self.attention.threads.count([2, tasks, rows, cols, self.shape.dim].iter().map(|x| *x as f64).product());
        let parts = parts(&Scores::new(self.attention, &self.shape), rows, self.shape.dim);
        Scratch::lend(|scratch| {
            for_each_task(scratch::slots(&mut scratch.slots, threads.min(tasks).max(1), &parts), tasks, work);
        });
    }

    fn run(&self, (b, h): (usize, usize), rows: Range<usize>, cols: Range<usize>, slot: &mut Slot, sink: impl Sink) {
        let scores = Scores::new(self.attention, &self.shape);
        let block = Block { b, heads: h..h + 1, rows };
        let k = crate::kernel::matrix::Matrix::new(&self.k, b, h / self.shape.group());
        dispatch(self.isa, Weights { q: &self.q, k, lse: &self.lse, scores, block, cols, slot, sink });
    }
}
