//! Additive attention (Bahdanau 2014): the score is a small network on query and key instead of their product.
//!
//! $$ s_{ij} = a \cdot \tanh(q_i + k_j), \qquad w_{ij} = e^{s_{ij} - lse_i}, \qquad out_i = \sum_j w_{ij} v_j $$
//!
//! q and k are what the paper calls W·s and U·h: its two matrices are linear layers before the attention, as with every other
//! kind. Backward, with t = tanh(qᵢ + kⱼ) and ds = w·(doutᵢ·vⱼ − doutᵢ·outᵢ) as for any softmax:
//!
//! $$ dq_i = \sum_j ds_{ij}\, a \circ (1 - t_{ij}^2), \qquad dk_j = \sum_i ds_{ij}\, a \circ (1 - t_{ij}^2), \qquad
//!    da = \sum_{ij} ds_{ij}\, t_{ij} $$
//!
//! Rows are computed by themselves, queries first and then keys, so only one row of scores is kept at a time. Every pair takes D
//! values of tanh: it is meant for the short sequences it was made for.

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayView1, ArrayView3, ArrayView4, ArrayViewMut4, Axis, s};
use rayon::prelude::*;

use crate::attention::{Attention, Forward};
use crate::kernel::additive::{Gradient, Scores as AdditiveScores};
use crate::kernel::{Isa, dispatch};
use crate::mask::{Align, Mask};
use crate::scores::Scores;
use crate::scratch::LINE;
use crate::shape::{Shape, expect};
use crate::weights::map_of_tiles;
use crate::{Error, Pool, Threads};

/// Additive attention and its options, in the manner of [`Attention`].
///
/// ```
/// use foveal::AdditiveAttention;
/// use ndarray::{Array2, Array4};
///
/// let additive = AdditiveAttention::new(Array2::ones((1, 8))); // a, shared by all heads
/// let (q, k, v) = (Array4::ones((2, 1, 3, 8)), Array4::ones((2, 1, 5, 8)), Array4::ones((2, 1, 5, 4)));
/// let fwd = additive.forward(&q, &k, &v)?;
/// assert_eq!(fwd.out.dim(), (2, 1, 3, 4));
/// assert!((additive.weights(&q, &k)?[[0, 0, 0, 0]] - 0.2).abs() < 1e-6);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdditiveAttention {
    /// [1 or H, D]
    weight: Array2<f32>,
    /// Mask, alignment, threads and instruction set.
    options: Attention,
}

/// What [`AdditiveAttention::backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct AdditiveGradients {
    /// Shaped like q.
    pub dq: Array4<f32>,
    /// Shaped like k.
    pub dk: Array4<f32>,
    /// Shaped like v.
    pub dv: Array4<f32>,
    /// Shaped like a: [1 or H, D].
    pub dweight: Array2<f32>,
}

impl AdditiveAttention {
    /// With `weight` = a: [1, D] for all heads, or [H, D].
    pub fn new(weight: Array2<f32>) -> Self {
        AdditiveAttention { weight, options: Attention::new() }
    }

    /// With the masks and the alignment of `options`, and run as they say. Weights are not dropped at random here.
    ///
    /// # Errors
    /// [`Error::Unfit`] if they have a scale, a bias or a softcap.
    pub fn with_options(weight: Array2<f32>, options: &Attention) -> Result<Self, Error> {
        options.expect_plain("additive attention")?;
        Ok(AdditiveAttention { weight, options: Attention { dropout: None, ..options.clone() } })
    }

    /// Which keys a query may see.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.options.mask = mask;
        self
    }

    /// Where the queries stand among the keys if T ≠ S.
    #[must_use]
    pub fn align(mut self, align: Align) -> Self {
        self.options.align = align;
        self
    }

    /// Who does the work.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.options.threads = threads;
        self
    }

    /// Forces an instruction set, for tests and comparisons.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.options.isa = Some(isa);
        self
    }

    /// The output and the log-sum-exp of every row: q [B, H, T, D], k [B, H/g, S, D], v [B, H/g, S, Dv].
    ///
    /// # Errors
    /// If shapes, head counts, lengths or options do not fit together; see [`Error`].
    pub fn forward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Forward, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let call = Call::new(self, q, k, Shape::of(&q, &k, &v)?)?;
        let rows = call.each(call.rows(), |(b, h, i)| {
            let (seen, mut weights) = call.scores(b, h, i);
            let lse = softmax(&mut weights);
            let mut out = vec![0.0; call.shape.value_dim];
            for (j, w) in seen.iter().zip(&weights) {
                let v = v.slice(s![b, h / call.shape.group(), *j, ..]);
                out.iter_mut().zip(v).for_each(|(out, v)| *out += w * v);
            }
            (out, lse)
        });
        let mut fwd = Forward { out: Array4::zeros(call.shape.out()), lse: ndarray::Array3::zeros(call.shape.lse()) };
        fill(fwd.out.view_mut(), rows.iter().map(|(out, _)| &out[..]));
        fwd.lse.iter_mut().zip(&rows).for_each(|(x, (_, lse))| *x = *lse);
        Ok(fwd)
    }

    /// The gradients of a loss whose gradient in `fwd.out` is `dout`.
    ///
    /// # Errors
    /// As [`forward`](AdditiveAttention::forward); also if `fwd` or `dout` do not fit.
    pub fn backward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        fwd: &Forward,
        dout: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<AdditiveGradients, Error> {
        let (q, k, v, dout) = (q.into(), k.into(), v.into(), dout.into());
        let shape = Shape::of(&q, &k, &v)?;
        let call = Call::new(self, q, k, shape)?;
        expect("the forward output", &shape.out(), fwd.out.shape())?;
        expect("lse", &shape.lse(), fwd.lse.shape())?;
        expect("dout", &shape.out(), dout.shape())?;
        let group = shape.group();
        // doutᵢ·vⱼ − doutᵢ·outᵢ
        let slope = |b: usize, h: usize, i: usize, j: usize| {
            let dout = dout.slice(s![b, h, i, ..]);
            dout.dot(&v.slice(s![b, h / group, j, ..])) - dout.dot(&fwd.out.slice(s![b, h, i, ..]))
        };
        let by_row = call.each(call.rows(), |(b, h, i)| {
            let (seen, mut ds) = call.scores(b, h, i);
            ds.iter_mut().zip(&seen).for_each(|(x, j)| *x = weight(*x, fwd.lse[[b, h, i]]) * slope(b, h, i, *j));
            let mut grads = (vec![0.0; call.width], vec![0.0; call.width]);
            call.gradient(call.query(b, h, i), call.keys_of(b, h), h, &seen, &ds, &mut grads);
            grads
        });
        let by_key = call.each(call.key_rows(), |(b, kv, j)| {
            let mut grads = (vec![0.0; call.width], vec![0.0; call.width]);
            let mut dv = vec![0.0; shape.value_dim];
            for h in kv * group..(kv + 1) * group {
                let (seen, mut ds) = call.scores_of_key(b, h, j);
                for (x, i) in ds.iter_mut().zip(&seen) {
                    let w = weight(*x, fwd.lse[[b, h, *i]]);
                    dv.iter_mut().zip(dout.slice(s![b, h, *i, ..])).for_each(|(dv, dout)| *dv += w * dout);
                    *x = w * slope(b, h, *i, j);
                }
                call.gradient(call.key(b, kv, j), call.queries_of(b, h), h, &seen, &ds, &mut grads);
            }
            (grads.0, dv)
        });
        let mut grads = AdditiveGradients {
            dq: Array4::zeros(q.dim()),
            dk: Array4::zeros(k.dim()),
            dv: Array4::zeros(v.dim()),
            dweight: Array2::zeros(self.weight.dim()),
        };
        fill(grads.dq.view_mut(), by_row.iter().map(|(dq, _)| &dq[..shape.dim]));
        fill(grads.dk.view_mut(), by_key.iter().map(|(dk, _)| &dk[..shape.dim]));
        fill(grads.dv.view_mut(), by_key.iter().map(|(_, dv)| &dv[..]));
        for ((_, h, _), (_, dweight)) in call.rows().into_iter().zip(&by_row) {
            let mut row = grads.dweight.row_mut(h.min(self.weight.dim().0 - 1));
            row += &ArrayView1::from(&dweight[..shape.dim]);
        }
        Ok(grads)
    }

    /// All weights: [B, H, T, S].
    ///
    /// # Errors
    /// As [`forward`](AdditiveAttention::forward).
    pub fn weights<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Array4<f32>, Error> {
        let (q, k) = (q.into(), k.into());
        let call = Call::new(self, q, k, Shape::of_scores(&q, &k)?)?;
        let mut out = Array4::zeros((call.shape.batch, call.shape.heads, call.shape.queries, call.shape.keys));
        let rows = call.each(call.rows(), |(b, h, i)| {
            let (seen, mut weights) = call.scores(b, h, i);
            softmax(&mut weights);
            let mut row = vec![0.0; call.shape.keys];
            seen.iter().zip(weights).for_each(|(j, w)| row[*j] = w);
            row
        });
        fill(out.view_mut(), rows.iter().map(|row| &row[..]));
        Ok(out)
    }

    /// The weights of queries `rows` on keys `cols`, in sequence and head `at`, from the log-sum-exp of each row.
    ///
    /// # Errors
    /// As [`forward`](AdditiveAttention::forward); also if the rectangle does not lie within the matrix.
    pub fn tile<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, Error> {
        let (q, k, lse) = (q.into(), k.into(), lse.into());
        let call = Call::new(self, q, k, Shape::of_scores(&q, &k)?)?;
        call.shape.check_rectangle(at, &rows, &cols)?;
        expect("lse", &call.shape.lse(), lse.shape())?;
        Ok(call.rectangle(lse, at, &rows, &cols))
    }

    /// A picture of the weights of queries `rows` on keys `cols`, in sequence and head `at`, pooled to
    /// `pixels = (height, width)`. The matrix itself is never stored.
    ///
    /// # Errors
    /// As [`tile`](AdditiveAttention::tile); also if there are more pixels than cells in either direction.
    #[expect(clippy::too_many_arguments, reason = "as Attention::map")]
    pub fn map<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, Error> {
        let (q, k, lse) = (q.into(), k.into(), lse.into());
        let call = Call::new(self, q, k, Shape::of_scores(&q, &k)?)?;
        call.shape.check_rectangle(at, &rows, &cols)?;
        expect("lse", &call.shape.lse(), lse.shape())?;
        let one = call.threads.count((rows.len() * cols.len() * call.width * 16) as f64) == 1;
        map_of_tiles(&rows, &cols, pixels, pool, one, |rows, cols| call.rectangle(lse, at, rows, cols))
    }
}

/// One call: queries, keys and a in rows of whole vectors.
struct Call<'a> {
    options: Scores<'a>,
    threads: Threads,
    isa: Isa,
    shape: Shape,
    /// D, rounded up to whole vectors.
    width: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    weight: Vec<f32>,
}

impl<'a> Call<'a> {
    fn new(
        additive: &'a AdditiveAttention,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        shape: Shape,
    ) -> Result<Self, Error> {
        let heads = if additive.weight.dim().0 == 1 { 1 } else { shape.heads };
        expect("the additive weight", &[heads, shape.dim], additive.weight.shape())?;
        additive.options.check(&shape)?;
        let width = shape.dim.next_multiple_of(LINE);
        let weight = additive.weight.view().insert_axis(Axis(0)).insert_axis(Axis(0));
        Ok(Call {
            options: Scores::new(&additive.options, &shape),
            threads: additive.options.threads,
            isa: Isa::resolve(additive.options.isa)?,
            shape,
            width,
            q: padded(q, width),
            k: padded(k, width),
            weight: padded(weight, width),
        })
    }

    /// Every query: (b, h, i).
    fn rows(&self) -> Vec<(usize, usize, usize)> {
        triples(self.shape.batch, self.shape.heads, self.shape.queries)
    }

    /// Every key: (b, key head, j).
    fn key_rows(&self) -> Vec<(usize, usize, usize)> {
        triples(self.shape.batch, self.shape.kv_heads, self.shape.keys)
    }

    fn queries_of(&self, b: usize, h: usize) -> &[f32] {
        let size = self.shape.queries * self.width;
        &self.q[(b * self.shape.heads + h) * size..][..size]
    }

    fn keys_of(&self, b: usize, h: usize) -> &[f32] {
        let size = self.shape.keys * self.width;
        &self.k[(b * self.shape.kv_heads + h / self.shape.group()) * size..][..size]
    }

    fn query(&self, b: usize, h: usize, i: usize) -> &[f32] {
        &self.queries_of(b, h)[i * self.width..][..self.width]
    }

    fn key(&self, b: usize, kv: usize, j: usize) -> &[f32] {
        &self.keys_of(b, kv * self.shape.group())[j * self.width..][..self.width]
    }

    fn weight_of(&self, h: usize) -> &[f32] {
        let heads = self.weight.len() / self.width;
        &self.weight[h.min(heads - 1) * self.width..][..self.width]
    }

    /// The keys that query i sees, and its scores on them.
    fn scores(&self, b: usize, h: usize, i: usize) -> (Vec<usize>, Vec<f32>) {
        let seen: Vec<usize> = (0..self.shape.keys).filter(|j| self.options.visible(b, h, i, *j)).collect();
        let scores = self.against(self.query(b, h, i), self.keys_of(b, h), h, &seen);
        (seen, scores)
    }

    /// The queries that see key j, and their scores on it.
    fn scores_of_key(&self, b: usize, h: usize, j: usize) -> (Vec<usize>, Vec<f32>) {
        let seen: Vec<usize> = (0..self.shape.queries).filter(|i| self.options.visible(b, h, *i, j)).collect();
        let scores = self.against(self.key(b, h / self.shape.group(), j), self.queries_of(b, h), h, &seen);
        (seen, scores)
    }

    /// A rectangle of the weights, row by row.
    fn rectangle(
        &self,
        lse: ArrayView3<f32>,
        (b, h): (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Array2<f32> {
        let mut out = Array2::zeros((rows.len(), cols.len()));
        for (i, mut row) in rows.clone().zip(out.rows_mut()) {
            let seen: Vec<usize> = cols.clone().filter(|j| self.options.visible(b, h, i, *j)).collect();
            let scores = self.against(self.query(b, h, i), self.keys_of(b, h), h, &seen);
            seen.iter().zip(scores).for_each(|(j, s)| row[j - cols.start] = weight(s, lse[[b, h, i]]));
        }
        out
    }

    fn against(&self, one: &[f32], many: &[f32], h: usize, seen: &[usize]) -> Vec<f32> {
        let mut scores = vec![0.0; seen.len()];
        dispatch(self.isa, AdditiveScores { one, many, weight: self.weight_of(h), seen, scores: &mut scores });
        scores
    }

    fn gradient(
        &self,
        one: &[f32],
        many: &[f32],
        h: usize,
        seen: &[usize],
        dscores: &[f32],
        (done, dweight): &mut (Vec<f32>, Vec<f32>),
    ) {
        dispatch(self.isa, Gradient { one, many, weight: self.weight_of(h), seen, dscores, done, dweight });
    }

    /// What becomes of each row, in order.
    fn each<R: Send>(
        &self,
        rows: Vec<(usize, usize, usize)>,
        work: impl Fn((usize, usize, usize)) -> R + Send + Sync,
    ) -> Vec<R> {
        // A tanh takes some 20 operations.
        if self.threads.count(10.0 * Shape { value_dim: 0, ..self.shape }.flops()) == 1 {
            rows.into_iter().map(work).collect()
        } else {
            rows.into_par_iter().map(work).collect()
        }
    }
}

/// exp(s − lse); nothing of a row that sees nothing.
fn weight(score: f32, lse: f32) -> f32 {
    if lse == f32::NEG_INFINITY { 0.0 } else { (score - lse).exp() }
}

/// Scores become weights; gives the log-sum-exp.
fn softmax(scores: &mut [f32]) -> f32 {
    let max = scores.iter().fold(f32::NEG_INFINITY, |max, s| max.max(*s));
    if scores.iter().all(|s| *s == f32::NEG_INFINITY) {
        scores.fill(0.0);
        return f32::NEG_INFINITY;
    }
    let lse = max + scores.iter().map(|s| (s - max).exp()).sum::<f32>().ln();
    scores.iter_mut().for_each(|s| *s = (*s - lse).exp());
    lse
}

/// Every row of the last axis, filled up with zeros to `width` values.
fn padded(x: ArrayView4<f32>, width: usize) -> Vec<f32> {
    let mut rows = Vec::with_capacity(x.len().checked_div(x.dim().3).unwrap_or(0) * width);
    for row in x.rows() {
        rows.extend(row);
        rows.resize(rows.len() + width - row.len(), 0.0);
    }
    rows
}

fn fill<'r>(mut array: ArrayViewMut4<f32>, rows: impl Iterator<Item = &'r [f32]>) {
    array.rows_mut().into_iter().zip(rows).for_each(|(mut to, from)| to.assign(&ArrayView1::from(from)));
}

fn triples(batch: usize, heads: usize, tokens: usize) -> Vec<(usize, usize, usize)> {
    (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..tokens).map(move |i| (b, h, i)))).collect()
}
