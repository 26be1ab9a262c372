//! Any part of the weight matrix, from q, k and the log-sum-exp of each row.

use std::fmt;
use std::ops::Range;

use foveal_compute::tasks::for_each_task;
use foveal_compute::{Isa, Supported, Threads, in_pool};
use ndarray::{Array2, Array3, Array4, ArrayView3, ArrayViewMut4};
use rayon::prelude::*;

use crate::attention::Attention;
use crate::kernel::dispatch;
use crate::kernel::matrix::Rows;
use crate::kernel::rows::{Block, KEYS};
use crate::kernel::weights::{Copy, Pooled, Sink, Weights, bounds, memory};
use crate::scores::Scores;
use crate::scratch::{Scratch, Slot};
use crate::shape::{Shape, check_range, expect};
use crate::tensor::Tensor;
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

/// One head of one sequence, of which any part of the weights can be asked. Made by [`Attention::head`] and its siblings.
///
/// ```
/// use foveal::{Attention, Mask, Pool};
/// use ndarray::Array4;
///
/// let x = Array4::<f32>::ones((1, 2, 100, 8));
/// let attention = Attention::new().mask(Mask::causal());
/// let fwd = attention.forward(&x, &x, &x)?;
/// let head = attention.head(&x, &x, &fwd.lse, (0, 1))?;
/// assert_eq!(head.tile(3..4, 0..5)?.row(0).to_vec(), [0.25, 0.25, 0.25, 0.25, 0.0]);
/// assert_eq!(head.map(0..100, 0..100, (10, 10), Pool::Max)?[[0, 0]], 1.0);
/// # Ok::<(), foveal::Error>(())
/// ```
pub struct Head<'a> {
    weights: Kind<'a>,
    queries: usize,
    keys: usize,
}

/// Gives the weights of some queries on some keys.
type Tiles<'a> = Box<TilesFn<'a>>;
type TilesFn<'a> = dyn Fn(&Range<usize>, &Range<usize>) -> Array2<f32> + Send + Sync + 'a;

enum Kind<'a> {
    Softmax(Box<Call<'a>>, (usize, usize)),
    Tiles(Tiles<'a>, Threads),
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("queries", &self.queries).field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl<'a> Head<'a> {
    pub(crate) fn softmax(
        attention: &'a Attention,
        (q, k): (Tensor<'a>, Tensor<'a>),
        lse: ArrayView3<'a, f64>,
        at: (usize, usize),
    ) -> Result<Self, Error> {
        let call = Call::new(attention, q, k, lse)?;
        call.shape.check_head(at)?;
        let scores = call.scores();
        let (queries, keys) = (scores.queries(at.0), scores.keys(at.0));
        Ok(Head { queries, keys, weights: Kind::Softmax(Box::new(call), at) })
    }

    /// A head of an attention whose weights come as small rectangles.
    pub(crate) fn of_tiles(size: (usize, usize), threads: Threads, tiles: Tiles<'a>) -> Self {
        Head { weights: Kind::Tiles(tiles, threads), queries: size.0, keys: size.1 }
    }

    /// T, the queries.
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// S, the keys.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The weights of queries `rows` on keys `cols`. Nothing else is computed.
    ///
    /// # Errors
    /// If the rectangle does not lie within the matrix.
    pub fn tile(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Array2<f32>, Error> {
        self.check(&rows, &cols)?;
        let (call, at) = match &self.weights {
            Kind::Softmax(call, at) => (call, *at),
            Kind::Tiles(tiles, _) => return Ok(tiles(&rows, &cols)),
        };
        let mut out = Array2::zeros((rows.len(), cols.len()));
        let target = Rows::new(as_head(&mut out));
        call.share(rows.len().div_ceil(ROWS), ROWS.min(rows.len()), cols.len(), |slot, task| {
            let start = rows.start + task * ROWS;
            let range = start..(start + ROWS).min(rows.end);
            let sink = Copy { out: target, at: (0, 0), first: (rows.start as isize, cols.start) };
            call.run(at, range, cols.clone(), slot, sink);
        });
        Ok(out)
    }

    /// A picture of the weights of queries `rows` on keys `cols`, pooled to `pixels = (height, width)`. The matrix itself is
    /// never stored. Of n queries, row p of h rows of pixels pools those from ⌊p·n/h⌋ to before ⌊(p + 1)·n/h⌋, and likewise of
    /// the keys: every cell belongs to one pixel.
    ///
    /// # Errors
    /// As [`tile`](Head::tile); also if there are more pixels than cells in either direction.
    pub fn map(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        (height, width): (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, Error> {
        self.check(&rows, &cols)?;
        check_pixels((height, width), &rows, &cols)?;
        let (call, at) = match &self.weights {
            Kind::Softmax(call, at) => (call, *at),
            Kind::Tiles(tiles, threads) => {
                return Ok(map_of_tiles(&rows, &cols, (height, width), pool, *threads, &**tiles));
            }
        };
        let mut out = Array2::zeros((height, width));
        let target = Rows::new(as_head(&mut out));
        // A task is some rows of pixels: about ROWS rows of weights, and at least one row of pixels.
        let lines = (ROWS * height / rows.len()).clamp(1, height);
        let most = lines * rows.len().div_ceil(height);
        call.share(height.div_ceil(lines), most, cols.len(), |slot, task| {
            let pixels = task * lines..((task + 1) * lines).min(height);
            let row = |p: usize| rows.start + bounds(rows.len(), height, p);
            let range = row(pixels.start)..row(pixels.end);
            let sink =
                Pooled { out: target, pool, pixels, rows: rows.clone(), cols: cols.clone(), size: (height, width) };
            call.run(at, range, cols.clone(), slot, sink);
        });
        Ok(out)
    }

    fn check(&self, rows: &Range<usize>, cols: &Range<usize>) -> Result<(), Error> {
        check_range("rows", rows, self.queries)?;
        check_range("columns", cols, self.keys)
    }
}

pub(crate) fn weights(attention: &Attention, q: Tensor, k: Tensor) -> Result<Array4<f32>, Error> {
    let shape = attention.shape_of_scores(&q, &k)?;
    let lse = log_sum_exp(attention, &q, &k, &shape)?;
    let call = Call::new(attention, q, k, lse.view())?;
    let (Shape { batch, heads, keys, stored, .. }, scores) = (shape, call.scores());
    let mut out = Array4::zeros((stored.0, heads, stored.1, keys));
    let target = Rows::new(out.view_mut());
    let mut tasks = Vec::new();
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let queries = scores.queries(b);
        tasks.extend((0..queries).step_by(ROWS).map(|first| (b, h, first..(first + ROWS).min(queries))));
    }
    call.share(tasks.len(), ROWS.min(shape.queries), keys, |slot, task| {
        let (b, h, rows) = tasks[task].clone();
        let (stored, _, first) = scores.query_row((b, h, 0));
        let sink = Copy { out: target, at: (stored, h), first: (-(first as isize), 0) };
        call.run((b, h), rows, 0..scores.keys(b), slot, sink);
    });
    Ok(out)
}

/// [`Head::map`] of an attention whose weights come as small rectangles from `tile(rows, cols)`.
fn map_of_tiles(
    rows: &Range<usize>,
    cols: &Range<usize>,
    (height, width): (usize, usize),
    pool: Pool,
    threads: Threads,
    tile: &TilesFn<'_>,
) -> Array2<f32> {
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
    if threads == Threads::Sequential {
        tasks.for_each(work);
    } else {
        in_pool(|| tasks.into_par_iter().for_each(work));
    }
    out
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
fn log_sum_exp(attention: &Attention, q: &Tensor, k: &Tensor, shape: &Shape) -> Result<Array3<f64>, Error> {
    let [batch, kv_heads, keys, _] = k.dim();
    let nothing = Array4::<f32>::zeros((batch, kv_heads, keys, 0));
    let mut out = Array4::<f32>::zeros(shape.out());
    let mut lse = Array3::zeros(shape.lse());
    let inputs = forward::Inputs { q: *q, k: *k, v: (&nothing).into() };
    Scratch::lend(|scratch| forward::forward(attention, inputs, ((&mut out).into(), lse.view_mut()), scratch))?;
    Ok(lse)
}

struct Call<'a> {
    attention: &'a Attention,
    q: Tensor<'a>,
    k: Tensor<'a>,
    lse: ArrayView3<'a, f64>,
    shape: Shape,
    isa: Supported,
}

impl<'a> Call<'a> {
    fn new(attention: &'a Attention, q: Tensor<'a>, k: Tensor<'a>, lse: ArrayView3<'a, f64>) -> Result<Self, Error> {
        let shape = attention.shape_of_scores(&q, &k)?;
        expect("lse", &shape.lse(), lse.shape())?;
        Ok(Call { attention, q, k, lse, shape, isa: Isa::resolve(attention.isa)? })
    }

    fn scores(&self) -> Scores<'_> {
        Scores::new(self.attention, &self.shape)
    }

    /// Runs `tasks` tasks, each of at most `rows` × `cols` weights.
    fn share(&self, tasks: usize, rows: usize, cols: usize, work: impl Fn(&mut Slot, usize) + Sync) {
        let threads =
            self.attention.threads.count([2, tasks, rows, cols, self.shape.dim].iter().map(|x| *x as f64).product());
        let lengths = memory(&self.scores(), rows, self.shape.dim);
        Scratch::lend(|scratch| for_each_task(scratch.memories.slots(threads.min(tasks), &lengths).0, tasks, work));
    }

    fn run(&self, (b, h): (usize, usize), rows: Range<usize>, cols: Range<usize>, slot: &mut Slot, sink: impl Sink) {
        let scores = self.scores();
        let k = scores.key_head(&self.k, b, h / self.shape.group());
        // What a cache does not hold of the longest sequence is hidden, and not there.
        let cols = cols.start.min(k.rows())..cols.end.min(k.rows());
        let block = Block { b, heads: h..h + 1, rows };
        dispatch(self.isa, Weights { q: self.q, k, lse: &self.lse, scores, block, cols, slot, sink });
    }
}
