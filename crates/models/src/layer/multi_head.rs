//! Multi-head attention (Vaswani 2017): the layer around the engine.
//!
//! $$ \mathrm{MHA}(x, m) = [\,o_1 \mid \dots \mid o_H\,]\, W_o^\top + b_o, \qquad
//!    o_h = \mathrm{softmax}\!\left( \tfrac{1}{\sqrt{D_h}}\, q_h k_{g(h)}^\top + \text{mask and bias} \right) v_{g(h)} $$
//!
//! with q from x, and k and v from m: x itself in self-attention, the other sequence in cross-attention. With G < H key
//! heads, each serves a group of H / G query heads. Masks, biases and the rest come with the [`Attention`] of each call.
//!
//! ```
//! use foveal::{Attention, Mask};
//! use foveal_models::layer::{MultiHeadAttention, Parameters, Random, Source};
//! use ndarray::Array2;
//!
//! let layer = MultiHeadAttention::new(64, 8, &mut Random::new(1))?;
//! assert_eq!(layer.parameter_count(), 4 * (64 * 64 + 64));
//! let x = Array2::ones((2 * 5, 64)); // two sequences of five tokens
//! let causal = Attention::new().mask(Mask::causal());
//! let (y, record) = layer.infer(&x, 2, Source::Own, &causal)?;
//! assert_eq!(y.dim(), (10, 64));
//! assert_eq!(record.weights()?.dim(), (2, 8, 5, 5));
//! # Ok::<(), foveal_models::Error>(())
//! ```

use std::ops::Range;
use std::sync::Arc;

use foveal::{Attention, Forward, KvCache, Rope, RopeTable, Tensor};
use ndarray::{ArcArray, ArcArray2, Array2, Array3, Array4, ArrayView2, ArrayViewMut4, Axis, Ix4, s};

use super::parallel::values;
pub use super::record::{AttentionRecord, Gradients, Memory, Saved, Source};
use super::shape::expect;
use super::{Linear, Mechanism, Projection, Random, WeightLoss, parameters};
use crate::Error;

/// Queries, keys and values by [`Projection`], attention by the engine, and the output by a linear layer.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiHeadAttention {
    /// W_q, W_k and W_v.
    pub projection: Projection,
    /// W_o: [D, H·Dh], shared with those who look at what it makes of the heads.
    pub output: Arc<Linear>,
    /// Turns queries and keys of self-attention by their positions. Positions in two different sequences cannot be
    /// compared, so cross-attention leaves them as they are.
    pub rope: Option<Arc<RopeTable>>,
    /// What stands between queries and keys and the heads' outputs: softmax attention, or another of the family.
    pub mechanism: Mechanism,
    heads: usize,
    key_heads: usize,
    head_dim: usize,
}

parameters!(MultiHeadAttention { projection: "", output: "o_proj", mechanism: "mechanism" });

impl MultiHeadAttention {
    /// As in the first Transformer: `heads` heads of dimension d_model / heads, Xavier's weights, biases of zeros.
    ///
    /// # Errors
    /// If d_model does not divide by the number of heads.
    pub fn new(d_model: usize, heads: usize, random: &mut Random) -> Result<Self, Error> {
        let mut linear = || Linear::xavier(d_model, d_model, random);
        let projection = Projection::Separate { q: linear(), k: linear(), v: linear() };
        MultiHeadAttention::from_parts(projection, linear(), heads, heads)
    }

    /// As in GPT-2: queries, keys and values by one layer, weights of deviation 0.02.
    ///
    /// # Errors
    /// If d_model does not divide by the number of heads.
    pub fn fused(d_model: usize, heads: usize, random: &mut Random) -> Result<Self, Error> {
        let projection = Projection::Fused(Linear::new(d_model, 3 * d_model, random));
        MultiHeadAttention::from_parts(projection, Linear::new(d_model, d_model, random), heads, heads)
    }

    /// As in Llama: `key_heads` heads of keys and values serve `heads` heads of queries; no biases, weights of deviation
    /// 0.02, RoPE on all of d_model / heads dimensions.
    ///
    /// # Errors
    /// If d_model does not divide by the number of heads, or that by the number of key heads.
    pub fn grouped(d_model: usize, heads: usize, key_heads: usize, random: &mut Random) -> Result<Self, Error> {
        let dim = d_model / heads.max(1);
        let mut linear = |inputs, outputs| Linear::new(inputs, outputs, random).without_bias();
        let (q, k, v) = (linear(d_model, d_model), linear(d_model, key_heads * dim), linear(d_model, key_heads * dim));
        let output = linear(d_model, d_model);
        let layer = MultiHeadAttention::from_parts(Projection::Separate { q, k, v }, output, heads, key_heads)?;
        Ok(layer.with_rope(&Arc::new(RopeTable::new(Rope::new(dim)?))))
    }

    /// From weights that exist already, without RoPE.
    ///
    /// # Errors
    /// If the rows of the weights do not divide by the numbers of heads, or do not fit each other.
    pub fn from_parts(projection: Projection, output: Linear, heads: usize, key_heads: usize) -> Result<Self, Error> {
        let width = output.weight.ncols();
        if heads == 0 || width == 0 || !width.is_multiple_of(heads) {
            return Err(Error::HeadWidth { width, heads });
        }
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            return Err(foveal::Error::Heads { query: heads, key: key_heads }.into());
        }
        let head_dim = width / heads;
        let key_width = key_heads * head_dim;
        match &projection {
            Projection::Fused(qkv) => {
                expect("the fused projection", &[width + 2 * key_width, qkv.weight.ncols()], &qkv.weight.shape())?;
            }
            Projection::Separate { q, k, v } => {
                expect("the projection of the queries", &[width, q.weight.ncols()], &q.weight.shape())?;
                expect("the projection of the keys", &[key_width, k.weight.ncols()], &k.weight.shape())?;
                expect("the projection of the values", &[key_width, k.weight.ncols()], &v.weight.shape())?;
            }
        }
        for part in projection.parts().into_iter().chain([&output]) {
            if let Some(bias) = &part.bias {
                expect("the bias of a projection", &[part.weight.nrows()], bias.shape())?;
            }
        }
        let (output, mechanism) = (Arc::new(output), Mechanism::default());
        Ok(MultiHeadAttention { projection, output, rope: None, mechanism, heads, key_heads, head_dim })
    }

    /// The same with another mechanism than softmax attention.
    #[must_use]
    pub fn with_mechanism(self, mechanism: Mechanism) -> Self {
        MultiHeadAttention { mechanism, ..self }
    }

    /// The same with rotary positions, whose table many layers may share.
    #[must_use]
    pub fn with_rope(self, rope: &Arc<RopeTable>) -> Self {
        MultiHeadAttention { rope: Some(rope.clone()), ..self }
    }

    /// H, the heads of the queries.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// G, the heads of keys and values.
    pub fn key_heads(&self) -> usize {
        self.key_heads
    }

    /// Dh, the dimension of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// An empty cache for `batch` sequences, with room for `capacity` tokens if there is so much memory; else it grows as it is
    /// filled.
    pub fn cache(&self, batch: usize, capacity: usize) -> KvCache {
        let dim = self.head_dim;
        KvCache::with_capacity(batch, self.key_heads, dim, dim, capacity)
            .unwrap_or_else(|_| KvCache::new(batch, self.key_heads, dim, dim))
    }

    /// The keys and values of a sequence that many calls will attend to: [B·S, Dm].
    ///
    /// # Errors
    /// If it has another width than the weights, or cannot be cut into `batch` sequences.
    pub fn project_memory<'a>(&self, memory: impl Into<ArrayView2<'a, f32>>, batch: usize) -> Result<Memory, Error> {
        let kv = self.projection.forward(memory.into(), &self.key_columns())?;
        let kv = self.heads_of(kv, batch)?.into_shared();
        let (g, part) = (self.key_heads, |range: Range<usize>| head_range(&kv, range));
        Ok(Memory { k: part(0..g), v: part(g..2 * g) })
    }

    /// Adds the keys and values of tokens that nobody asks for more of, x: [B·T, D], to a cache.
    ///
    /// # Errors
    /// If x has another width than the weights, or cannot be cut into `batch` sequences. The cache is then as it was.
    pub fn remember<'a>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        batch: usize,
        cache: &mut KvCache,
    ) -> Result<(), Error> {
        let (g, kv) = (self.key_heads, self.projection.forward(x.into(), &self.key_columns())?);
        let mut kv = self.heads_of(kv, batch)?;
        if let Some(rope) = &self.rope {
            rope.rotate(kv.slice_mut(s![.., ..g, .., ..]), cache.len())?;
        }
        Ok(cache.append(kv.slice(s![.., ..g, .., ..]), kv.slice(s![.., g.., .., ..]))?)
    }

    /// y: [B·T, D] for x: [B·T, D], and what was attended to, which costs nothing to get and may be dropped.
    ///
    /// # Errors
    /// If shapes or options do not fit; see [`foveal::Error`].
    pub fn infer<'a>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        batch: usize,
        source: Source,
        attention: &Attention,
    ) -> Result<(Array2<f32>, AttentionRecord), Error> {
        let record = self.attend(x, batch, source, attention)?;
        Ok((self.join(&record)?, record))
    }

    /// The heads' outputs side by side, through W_o: [B·T, D].
    ///
    /// # Errors
    /// If they are not those of this layer.
    pub fn join(&self, record: &AttentionRecord) -> Result<Array2<f32>, Error> {
        self.output.forward(rows_of(&record.forward.out))
    }

    /// [`infer`](MultiHeadAttention::infer) without a cache, with what [`backward`](MultiHeadAttention::backward) needs.
    /// `memory` makes it cross-attention.
    ///
    /// # Errors
    /// As [`infer`](MultiHeadAttention::infer).
    pub fn forward(
        &self,
        x: &ArcArray2<f32>,
        memory: Option<&ArcArray2<f32>>,
        batch: usize,
        attention: &Attention,
    ) -> Result<(Array2<f32>, Saved), Error> {
        let source = memory.map_or(Source::Own, |memory| Source::Memory(memory.view()));
        let (y, record) = self.infer(x, batch, source, attention)?;
        Ok((y, Saved { input: x.clone(), memory: memory.cloned(), record }))
    }

    /// The gradients of x and of the other sequence.
    ///
    /// # Errors
    /// If dy is not shaped like the output.
    pub fn backward<'d>(
        &self,
        saved: &Saved,
        dy: impl Into<ArrayView2<'d, f32>>,
        grad: &mut MultiHeadAttention,
    ) -> Result<Gradients, Error> {
        self.backward_with(saved, dy, None, grad)
    }

    /// The same where a loss looks at the weights of one head themselves.
    ///
    /// # Errors
    /// As [`backward`](MultiHeadAttention::backward); also if that loss does not fit the head.
    pub fn backward_with<'d>(
        &self,
        saved: &Saved,
        dy: impl Into<ArrayView2<'d, f32>>,
        loss: Option<WeightLoss>,
        grad: &mut MultiHeadAttention,
    ) -> Result<Gradients, Error> {
        let AttentionRecord { q, k, v, forward, attention, .. } = &saved.record;
        let dout = self.output.backward(rows_of(&forward.out), dy, Arc::make_mut(&mut grad.output))?;
        let (x, b, h, g) = (saved.input.view(), q.dim().0, self.heads, self.key_heads);
        let dgates = gate_gradients(rows_of(&forward.out), &dout, (b, h));
        let dout = self.heads_of(dout, b)?;
        let engine = |mut dq: ArrayViewMut4<f32>, dkv: ArrayViewMut4<f32>| -> Result<_, Error> {
            let (mut dk, dv) = dkv.split_at(Axis(1), g);
            let into = (dq.view_mut(), dk.view_mut(), dv);
            let dbias = attention.backward_into((q.view(), k.view(), v.view()), forward, dout.view(), into)?;
            loss.map_or(Ok(()), |loss| loss.backward(&saved.record, dq, dk))?;
            Ok(dbias)
        };
        // The engine writes where the projections will read: [B, T, heads, Dh] in memory.
        let columns = |rows: usize, columns: &Range<usize>| self.heads_of(Array2::zeros((rows, columns.len())), b);
        let (dx, dmemory, mut dbias) = if let Some(memory) = &saved.memory {
            let (of_q, of_kv) = (self.query_columns(), self.key_columns());
            let (mut dq, mut dkv) = (columns(x.nrows(), &of_q)?, columns(memory.nrows(), &of_kv)?);
            let dbias = engine(dq.view_mut(), dkv.view_mut())?;
            let dx = self.projection.backward(x, &of_q, rows_of(&dq), &mut grad.projection)?;
            let dmemory = self.projection.backward(memory.view(), &of_kv, rows_of(&dkv), &mut grad.projection)?;
            (dx, Some(dmemory), dbias)
        } else {
            let all = 0..self.projection.width();
            let mut dqkv = columns(x.nrows(), &all)?;
            let (dq, dkv) = dqkv.view_mut().split_at(Axis(1), h);
            let dbias = engine(dq, dkv)?;
            if let Some(rope) = &self.rope {
                rope.rotate_back(dqkv.slice_mut(s![.., ..h + g, .., ..]), 0)?;
            }
            (self.projection.backward(x, &all, rows_of(&dqkv), &mut grad.projection)?, None, dbias)
        };
        if let Some(dlearned) = &mut grad.mechanism.learned {
            dbias.take().iter().for_each(|dbias| *dlearned += dbias);
        }
        Ok(Gradients { dx, dmemory, dbias, dgates })
    }

    /// The first half of [`infer`](MultiHeadAttention::infer): the heads' outputs, not yet through W_o.
    ///
    /// # Errors
    /// As [`infer`](MultiHeadAttention::infer).
    pub fn attend<'a>(
        &self,
        x: impl Into<ArrayView2<'a, f32>>,
        batch: usize,
        source: Source,
        attention: &Attention,
    ) -> Result<AttentionRecord, Error> {
        let x = x.into();
        let (h, g) = (self.heads, self.key_heads);
        let start = match &source {
            Source::Cache(cache) => cache.len(),
            _ => 0,
        };
        let (q, Memory { k, v }) = match &source {
            Source::Own | Source::Cache(_) => {
                let qkv = self.projection.forward(x, &(0..self.projection.width()))?;
                let mut qkv = self.heads_of(qkv, batch)?;
                if let Some(rope) = &self.rope {
                    rope.rotate(qkv.slice_mut(s![.., ..h + g, .., ..]), start)?;
                }
                let qkv = qkv.into_shared();
                let part = |range: Range<usize>| head_range(&qkv, range);
                (part(0..h), Memory { k: part(h..h + g), v: part(h + g..h + 2 * g) })
            }
            Source::Memory(memory) => (self.queries(x, batch)?, self.project_memory(*memory, batch)?),
            Source::Projected(memory) => (self.queries(x, batch)?, (*memory).clone()),
        };
        let attention = self.mechanism.with(attention)?;
        let (b, _, t, _) = q.dim();
        // The engine writes where W_o will read: [B, T, H, Dh] in memory.
        let mut out = self.heads_of(Array2::zeros((b * t, h * self.head_dim)), b)?;
        let mut lse = Array3::zeros((b, h, t));
        let mut run =
            |k: Tensor, v: Tensor| attention.forward_into(((&q).into(), k, v), out.view_mut(), lse.view_mut());
        match source {
            Source::Cache(cache) => {
                cache.append(&k, &v)?;
                // A call that is refused leaves the cache as it was.
                run(cache.k(), cache.v()).inspect_err(|_| cache.truncate(start))?;
            }
            _ => run((&k).into(), (&v).into())?,
        }
        Ok(AttentionRecord { q, k, v, forward: Forward { out, lse }, attention, start })
    }

    fn queries(&self, x: ArrayView2<f32>, batch: usize) -> Result<ArcArray<f32, Ix4>, Error> {
        Ok(self.heads_of(self.projection.forward(x, &self.query_columns())?, batch)?.into_shared())
    }

    fn query_columns(&self) -> Range<usize> {
        0..self.heads * self.head_dim
    }

    fn key_columns(&self) -> Range<usize> {
        self.heads * self.head_dim..self.projection.width()
    }

    /// [B·T, heads·Dh] as [B, heads, T, Dh], without moving a value.
    fn heads_of(&self, rows: Array2<f32>, batch: usize) -> Result<Array4<f32>, Error> {
        let (n, width) = rows.dim();
        let tokens = n / batch.max(1);
        expect("the tokens of all sequences", &[batch * tokens, width], &[n, width])?;
        let dim = (batch, tokens, width / self.head_dim, self.head_dim);
        let heads = rows.into_shape_with_order(dim).expect("made in standard layout, with whole heads");
        Ok(heads.permuted_axes([0, 2, 1, 3]))
    }
}

/// The gradient of a factor on each head's output, Σ dout·out over its tokens: [B, H] from [B·T, H·Dh].
fn gate_gradients(out: ArrayView2<f32>, dout: &Array2<f32>, (b, h): (usize, usize)) -> Array2<f32> {
    let (width, sequence) = (out.ncols(), out.len() / b.max(1));
    let (out, dout) = (out.to_slice().expect("rows"), values(dout));
    let mut dgates = Array2::zeros((b, h));
    for (n, mut dgates) in dgates.outer_iter_mut().enumerate() {
        let (out, dout) = (&out[n * sequence..(n + 1) * sequence], &dout[n * sequence..(n + 1) * sequence]);
        let mut columns = vec![0.0; width];
        foveal_compute::vectorise(
            #[inline(always)]
            || {
                for (out, dout) in out.chunks_exact(width).zip(dout.chunks_exact(width)) {
                    columns.iter_mut().zip(out).zip(dout).for_each(|((sum, out), dout)| *sum += out * dout);
                }
            },
        );
        dgates
            .iter_mut()
            .zip(columns.chunks_exact(width / h))
            .for_each(|(dgate, columns)| *dgate = columns.iter().sum());
    }
    dgates
}

/// Some heads of an array [B, heads, T, Dh], sharing its values.
fn head_range(all: &ArcArray<f32, Ix4>, range: Range<usize>) -> ArcArray<f32, Ix4> {
    all.clone().slice_move(s![.., range, .., ..])
}

/// Heads [B, H, T, Dh], but [B, T, H, Dh] in memory, as rows: [B·T, H·Dh].
fn rows_of(out: &Array4<f32>) -> ArrayView2<'_, f32> {
    let (b, h, t, dim) = out.dim();
    out.view().permuted_axes([0, 2, 1, 3]).into_shape_with_order((b * t, h * dim)).expect("[B, T, H, Dh] in memory")
}
