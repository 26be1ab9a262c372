//! One call of additive attention: which pairs are visible, and their scores, row by row.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView3, ArrayView4, ArrayViewMut4, Axis};
use rayon::prelude::*;

use super::{AdditiveAttention, WEIGHT, WEIGHT_AXES};
use crate::kernel::additive::{Gradient, Scores as AdditiveScores};
use foveal_compute::{Isa, Supported};

use crate::kernel::dispatch;
use crate::scores::Scores;
use crate::shape::{Shape, expect_axes};
use crate::{Error, Threads};
use foveal_compute::scratch::LINE;

/// One call: queries, keys and a in rows of whole vectors.
pub(super) struct Call<'a> {
    options: Scores<'a>,
    threads: Threads,
    isa: Supported,
    pub shape: Shape,
    /// D, rounded up to whole vectors.
    pub width: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    weight: Vec<f32>,
}

impl<'a> Call<'a> {
    pub fn new(
        additive: &'a AdditiveAttention,
        q: ArrayView4<f32>,
        k: ArrayView4<f32>,
        shape: Shape,
    ) -> Result<Self, Error> {
        let heads = if additive.weight.dim().0 == 1 { 1 } else { shape.heads };
        expect_axes(WEIGHT, WEIGHT_AXES, &[heads, shape.dim], additive.weight.shape())?;
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
    pub fn rows(&self) -> Vec<(usize, usize, usize)> {
        triples(self.shape.batch, self.shape.heads, self.shape.queries)
    }

    /// Every key: (b, key head, j).
    pub fn key_rows(&self) -> Vec<(usize, usize, usize)> {
        triples(self.shape.batch, self.shape.kv_heads, self.shape.keys)
    }

    pub fn queries_of(&self, b: usize, h: usize) -> &[f32] {
        let size = self.shape.queries * self.width;
        &self.q[(b * self.shape.heads + h) * size..][..size]
    }

    pub fn keys_of(&self, b: usize, h: usize) -> &[f32] {
        let size = self.shape.keys * self.width;
        &self.k[(b * self.shape.kv_heads + h / self.shape.group()) * size..][..size]
    }

    pub fn query(&self, b: usize, h: usize, i: usize) -> &[f32] {
        &self.queries_of(b, h)[i * self.width..][..self.width]
    }

    pub fn key(&self, b: usize, kv: usize, j: usize) -> &[f32] {
        &self.keys_of(b, kv * self.shape.group())[j * self.width..][..self.width]
    }

    fn weight_of(&self, h: usize) -> &[f32] {
        let heads = self.weight.len() / self.width;
        &self.weight[h.min(heads - 1) * self.width..][..self.width]
    }

    /// The keys that query i sees, and its scores on them.
    pub fn scores(&self, b: usize, h: usize, i: usize) -> (Vec<usize>, Vec<f32>) {
        let seen: Vec<usize> = (0..self.shape.keys).filter(|j| self.options.visible((b, h, i), *j)).collect();
        let scores = self.against(self.query(b, h, i), self.keys_of(b, h), h, &seen);
        (seen, scores)
    }

    /// The queries that see key j, and their scores on it.
    pub fn scores_of_key(&self, b: usize, h: usize, j: usize) -> (Vec<usize>, Vec<f32>) {
        let seen: Vec<usize> = (0..self.shape.queries).filter(|i| self.options.visible((b, h, *i), j)).collect();
        let scores = self.against(self.key(b, h / self.shape.group(), j), self.queries_of(b, h), h, &seen);
        (seen, scores)
    }

    /// A rectangle of the weights, row by row.
    pub fn rectangle(
        &self,
        lse: ArrayView3<f64>,
        (b, h): (usize, usize),
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Array2<f32> {
        let mut out = Array2::zeros((rows.len(), cols.len()));
        for (i, mut row) in rows.clone().zip(out.rows_mut()) {
            let seen: Vec<usize> = cols.clone().filter(|j| self.options.visible((b, h, i), *j)).collect();
            let scores = self.against(self.query(b, h, i), self.keys_of(b, h), h, &seen);
            seen.iter().zip(scores).for_each(|(j, s)| row[j - cols.start] = weight(s, lse[[b, h, i]] as f32));
        }
        out
    }

    fn against(&self, one: &[f32], many: &[f32], h: usize, seen: &[usize]) -> Vec<f32> {
        let mut scores = vec![0.0; seen.len()];
        dispatch(self.isa, AdditiveScores { one, many, weight: self.weight_of(h), seen, scores: &mut scores });
        scores
    }

    pub fn gradient(
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

    /// Whether so many pairs, a product, are too few to share them out over threads.
    pub fn is_small(&self, pairs: &[usize]) -> bool {
        // A tanh takes some 20 operations.
        let operations = [20, self.width].iter().chain(pairs).map(|x| *x as f64).product();
        self.threads.count(operations) == 1
    }

    /// The results of `work` on each row, in order.
    pub fn each<R: Send>(
        &self,
        rows: Vec<(usize, usize, usize)>,
        work: impl Fn((usize, usize, usize)) -> R + Send + Sync,
    ) -> Vec<R> {
        let Shape { batch, heads, queries, keys, .. } = self.shape;
        if self.is_small(&[batch, heads, queries, keys]) {
            rows.into_iter().map(work).collect()
        } else {
            rows.into_par_iter().map(work).collect()
        }
    }
}

/// exp(s − lse), at most 1 whatever lse is; 0 in a row that sees nothing.
pub(super) fn weight(score: f32, lse: f32) -> f32 {
    if lse == f32::NEG_INFINITY { 0.0 } else { (score - lse).exp().clamp(0.0, 1.0) }
}

/// Scores become weights; gives the log-sum-exp.
pub(super) fn softmax(scores: &mut [f32]) -> f32 {
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

pub(super) fn fill<'r>(mut array: ArrayViewMut4<f32>, rows: impl Iterator<Item = &'r [f32]>) {
    array.rows_mut().into_iter().zip(rows).for_each(|(mut to, from)| to.assign(&ArrayView1::from(from)));
}

fn triples(batch: usize, heads: usize, tokens: usize) -> Vec<(usize, usize, usize)> {
    (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..tokens).map(move |i| (b, h, i)))).collect()
}
