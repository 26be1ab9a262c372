//! One attention layer of a trace.

use std::ops::Range;
use std::sync::Arc;

use foveal::{Pool, Threads, matmul};
use ndarray::{ArcArray, Array1, Array2, Array3, ArrayView2, ArrayView4, Axis, Ix4, concatenate, s};

use super::Kind;
use crate::Result;
use crate::layer::{Attended, Attending, Linear};

/// What one attention layer attended to. The arrays are shared with the run that made them, not copied.
#[derive(Clone, Debug)]
pub struct LayerTrace {
    /// Queries, turned if there is RoPE: [B, H, T, Dh].
    pub q: ArcArray<f32, Ix4>,
    /// Keys, turned if there is RoPE: [B, G, S, Dh].
    pub k: ArcArray<f32, Ix4>,
    /// Values: [B, G, S, Dh].
    pub v: ArcArray<f32, Ix4>,
    /// The log-sum-exp of every row of scores: [B, H, T].
    pub lse: Array3<f32>,
    /// The mechanism and its options: mask, bias, scale.
    pub attending: Attending,
    /// W_o: [D, H·Dh].
    pub output: Arc<Linear>,
}

impl LayerTrace {
    pub(super) fn new(attended: Attended, output: Arc<Linear>) -> Self {
        let Attended { q, k, v, forward, attending, .. } = attended;
        LayerTrace { q, k, v, lse: forward.lse, attending, output }
    }

    /// Runs that followed each other, as one. Self-attention has seen the keys of all of them; cross-attention has the same
    /// keys in each.
    pub(super) fn join(kind: Kind, mut runs: Vec<LayerTrace>) -> Self {
        if runs.len() == 1 {
            return runs.remove(0);
        }
        let tokens = |part: fn(&LayerTrace) -> ArrayView4<f32>| {
            let parts: Vec<_> = runs.iter().map(part).collect();
            concatenate(Axis(2), &parts).expect("runs of the same layer").into_shared()
        };
        let lse: Vec<_> = runs.iter().map(|run| run.lse.view()).collect();
        let (k, v) = match kind {
            Kind::Cross => (runs[0].k.clone(), runs[0].v.clone()),
            Kind::Encoder | Kind::Decoder => (tokens(|run| run.k.view()), tokens(|run| run.v.view())),
        };
        LayerTrace {
            q: tokens(|run| run.q.view()),
            k,
            v,
            lse: concatenate(Axis(2), &lse).expect("runs of the same layer"),
            attending: runs[0].attending.clone(),
            output: runs[0].output.clone(),
        }
    }

    /// B, the sequences.
    pub fn batch(&self) -> usize {
        self.q.dim().0
    }

    /// H, the heads of the queries.
    pub fn heads(&self) -> usize {
        self.q.dim().1
    }

    /// T, the queries.
    pub fn queries(&self) -> usize {
        self.q.dim().2
    }

    /// S, the keys.
    pub fn keys(&self) -> usize {
        self.k.dim().2
    }

    /// All weights of a head: [T, S]. For small inputs; otherwise see [`tile`](Self::tile) and [`map`](Self::map).
    ///
    /// # Errors
    /// If there is no such sequence or head.
    pub fn weights(&self, sequence: usize, head: usize) -> Result<Array2<f32>> {
        self.tile(sequence, head, 0..self.queries(), 0..self.keys())
    }

    /// The weights of queries `rows` on keys `cols`. Nothing else is computed.
    ///
    /// # Errors
    /// If the rectangle does not lie within the matrix of that head.
    pub fn tile(&self, sequence: usize, head: usize, rows: Range<usize>, cols: Range<usize>) -> Result<Array2<f32>> {
        Ok(self.attending.tile((self.q.view(), self.k.view(), self.lse.view()), (sequence, head), rows, cols)?)
    }

    /// The same, pooled to a picture of `pixels = (height, width)`. The matrix itself is never stored.
    ///
    /// # Errors
    /// As [`tile`](Self::tile); also if there are more pixels than cells in either direction.
    pub fn map(
        &self,
        (sequence, head): (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>> {
        let known = (self.q.view(), self.k.view(), self.lse.view());
        Ok(self.attending.map(known, (sequence, head), (rows, cols), pixels, pool)?)
    }

    /// What each key would add to the output if it had all the weight: f(xⱼ) = vⱼ·W_oʰ, [S, D]. The bias of W_o belongs to
    /// no key and is left out; that of the values is part of v.
    ///
    /// # Errors
    /// If there is no such sequence or head.
    pub fn transformed(&self, sequence: usize, head: usize) -> Result<Array2<f32>> {
        let values = self.values(sequence, head)?;
        let mut out = Array2::zeros((values.nrows(), self.output.weight.nrows()));
        matmul(1.0, values, self.output_of(head).reversed_axes(), 0.0, &mut out, Threads::Rayon)?;
        Ok(out)
    }

    /// The values that a head looks up: [S, Dh].
    pub(super) fn values(&self, sequence: usize, head: usize) -> Result<ArrayView2<'_, f32>> {
        // The empty tile checks that sequence and head are there.
        self.tile(sequence, head, 0..0, 0..0)?;
        let group = self.heads() / self.k.dim().1;
        Ok(self.v.slice(s![sequence, head / group, .., ..]))
    }

    /// The columns of W_o that a head goes through: [D, Dh].
    pub(super) fn output_of(&self, head: usize) -> ArrayView2<'_, f32> {
        let dim = self.q.dim().3;
        self.output.weight.slice(s![.., head * dim..(head + 1) * dim])
    }

    /// vⱼ·W_oʰ of one key: \[D\].
    pub(super) fn transformed_key(&self, sequence: usize, head: usize, key: usize) -> Result<Array1<f32>> {
        Ok(self.output_of(head).dot(&self.values(sequence, head)?.row(key)))
    }
}
