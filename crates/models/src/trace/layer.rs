//! One attention layer of a trace.

use std::ops::Range;
use std::sync::Arc;

use foveal::{Pool, Threads};
use foveal_compute::matmul;
use ndarray::{Array2, Array3, ArrayView2, ArrayView3, Axis, CowArray, Ix2, concatenate, s};

use super::{Kind, TraceArray};
use crate::layer::{AttentionRecord, BoundAttention, Linear, Weight};
use crate::{Error, Result};

/// What one attention layer attended to. The arrays are shared with the run that made them, not copied.
#[derive(Clone, Debug)]
pub struct LayerTrace {
    /// [B, H, T, Dh]
    pub(super) q: TraceArray,
    /// [B, G, S, Dh]
    pub(super) k: TraceArray,
    /// [B, G, S, Dv]
    pub(super) v: Option<TraceArray>,
    /// [B, H, T]
    pub(super) lse: Array3<f64>,
    pub(super) attention: BoundAttention,
    /// W_o: [D, H·Dv].
    pub(super) output: Option<Arc<Linear>>,
}

impl LayerTrace {
    pub(super) fn new(record: AttentionRecord, output: Arc<Linear>) -> Self {
        let AttentionRecord { q, k, v, forward, attention, .. } = record;
        let (v, output) = (Some(v.into()), Some(output));
        LayerTrace { q: q.into(), k: k.into(), v, lse: forward.lse, attention, output }
    }

    /// Runs that followed each other, as one. Self-attention has seen the keys of all of them; cross-attention has the same
    /// keys in each.
    pub(super) fn join(kind: Kind, mut runs: Vec<LayerTrace>) -> Self {
        if runs.len() == 1 {
            return runs.remove(0);
        }
        let tokens = |part: fn(&LayerTrace) -> Option<&TraceArray>| -> Option<TraceArray> {
            let parts: Vec<_> = runs.iter().map(part).collect::<Option<_>>()?;
            Some(TraceArray::join(&parts))
        };
        let lse: Vec<_> = runs.iter().map(|run| run.lse.view()).collect();
        let (k, v) = match kind {
            Kind::Cross => (Some(runs[0].k.clone()), runs[0].v.clone()),
            Kind::Encoder | Kind::Decoder => (tokens(|run| Some(&run.k)), tokens(|run| run.v.as_ref())),
        };
        LayerTrace {
            q: tokens(|run| Some(&run.q)).expect("every run has queries"),
            k: k.expect("every run has keys"),
            v,
            lse: concatenate(Axis(2), &lse).expect("runs of the same layer"),
            attention: runs[0].attention.clone(),
            output: runs[0].output.clone(),
        }
    }

    /// Queries, turned if there is RoPE: [B, H, T, Dh].
    pub fn q(&self) -> &TraceArray {
        &self.q
    }

    /// Keys, turned if there is RoPE: [B, G, S, Dh].
    pub fn k(&self) -> &TraceArray {
        &self.k
    }

    /// Values: [B, G, S, Dv]; none in a trace that was made without them.
    pub fn v(&self) -> Option<&TraceArray> {
        self.v.as_ref()
    }

    /// The log-sum-exp of every row of scores: [B, H, T].
    pub fn lse(&self) -> ArrayView3<'_, f64> {
        self.lse.view()
    }

    /// The attention that was used, with its options: mask, bias, scale.
    pub fn attention(&self) -> &BoundAttention {
        &self.attention
    }

    /// W_o: [D, H·Dv]; none in a trace that was made without it.
    pub fn output(&self) -> Option<&Weight> {
        self.output.as_ref().map(|output| &output.weight)
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
        Ok(self.attention.tile((self.q.view(), self.k.view(), self.lse.view()), (sequence, head), rows, cols)?)
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
        Ok(self.attention.map(known, (sequence, head), (rows, cols), pixels, pool)?)
    }

    /// What each key would add to the output if it had all the weight: f(xⱼ) = vⱼ·W_oʰ, [S, D]. The bias of W_o belongs to
    /// no key and is left out; that of the values is part of v.
    ///
    /// # Errors
    /// If there is no such sequence or head, or the trace was made without values or W_o.
    pub fn transformed(&self, sequence: usize, head: usize) -> Result<Array2<f32>> {
        self.transformed_keys(sequence, head, 0..self.keys())
    }

    /// The same of some keys: [keys, D].
    ///
    /// # Errors
    /// As [`transformed`](Self::transformed); also if there are no such keys.
    pub fn transformed_keys(&self, sequence: usize, head: usize, keys: Range<usize>) -> Result<Array2<f32>> {
        let (values, output) = (self.values(sequence, head)?, self.output_of(head)?);
        let limit = values.nrows();
        if keys.start > keys.end || keys.end > limit {
            return Err(foveal::Error::Range { what: "keys", start: keys.start, end: keys.end, limit }.into());
        }
        let mut out = Array2::zeros((keys.len(), output.nrows()));
        matmul(1.0, values.slice(s![keys, ..]), output.reversed_axes(), 0.0, &mut out, Threads::Rayon)?;
        Ok(out)
    }

    /// The values that a head looks up: [S, Dv].
    pub(super) fn values(&self, sequence: usize, head: usize) -> Result<CowArray<'_, f32, Ix2>> {
        // The empty tile checks that sequence and head are there.
        self.tile(sequence, head, 0..0, 0..0)?;
        let v = self.v.as_ref().ok_or(Error::NotTraced { part: "values" })?;
        let group = self.heads() / self.k.dim().1;
        let TraceArray::F32(v) = v else {
            return Ok(v.to_f32().slice(s![sequence, head / group, .., ..]).to_owned().into());
        };
        Ok(v.slice(s![sequence, head / group, .., ..]).into())
    }

    /// The columns of W_o that a head goes through: [D, Dv].
    pub(super) fn output_of(&self, head: usize) -> Result<ArrayView2<'_, f32>> {
        let output = self.output.as_ref().ok_or(Error::NotTraced { part: "output" })?;
        let dim = self.v.as_ref().ok_or(Error::NotTraced { part: "values" })?.dim().3;
        Ok(output.weight.slice(s![.., head * dim..(head + 1) * dim]))
    }
}
