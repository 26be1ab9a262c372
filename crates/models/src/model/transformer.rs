//! The Transformer (Vaswani 2017): an encoder reads one sequence, and a decoder writes another, attending to what the encoder
//! made of the first.
//!
//! $$ m = \mathrm{norm}(\mathrm{encoder}(\sqrt{D}\, E_s + PE)), \qquad
//!    \mathrm{logits} = \mathrm{norm}(\mathrm{decoder}(\sqrt{D}\, F_t + PE,\ m))\, W^\top $$
//!
//! with sinusoidal positions PE. As in PyTorch's `nn.Transformer`, both stacks end in a norm.

mod config;

use foveal::{Dropout, KvCache, add_positional_encoding};
use ndarray::{ArcArray2, Array2, ArrayView2, Axis};

use super::block::{self, Block, Encoded, Other};
use super::language::HeadGradients;
use super::names::Names;
use super::stack;
use crate::checkpoint::{Checkpoint, Dtype};
use crate::layer::{
    Embedding, Guide, Layer, LayerNorm, Linear, Memory, Mlp, MultiHeadAttention, Place, Projection, Random, Residual,
    Source, dropout, expect, layer_norm, parameters,
};
use crate::trace::{Kind, Probe, Site};
use crate::train::finished;
use crate::{Error, Result};

pub use self::config::{Alignment, TransformerConfig};

/// Its own names.
const NAMES: Names = Names { parts: &[], transposed: &[] };

/// The model.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    config: TransformerConfig,
    /// E: [source vocabulary, D]
    pub source: Embedding,
    /// F: [target vocabulary, D]
    pub target: Embedding,
    /// The blocks that read.
    pub encoder: Vec<Block<LayerNorm, Mlp>>,
    /// Their last norm.
    pub encoder_norm: LayerNorm,
    /// The blocks that write.
    pub decoder: Vec<Block<LayerNorm, Mlp>>,
    /// Their last norm.
    pub decoder_norm: LayerNorm,
    /// What makes the predictions where F does not: [target vocabulary, D].
    pub head: Option<Embedding>,
}

parameters!(Transformer {
    source: "source",
    target: "target",
    encoder: "encoder",
    encoder_norm: "encoder_norm",
    decoder: "decoder",
    decoder_norm: "decoder_norm",
    head: "head",
});

/// Sequences to read, filled up to the longest: [B·S] tokens and B lengths.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// [B·S]; what stands after the end of a sequence is not looked at.
    pub tokens: &'a [u32],
    /// The tokens of each sequence.
    pub lengths: &'a [usize],
}

/// A sequence that is being written: what the decoder remembers of both.
#[derive(Clone, Debug)]
pub struct DecoderState {
    memory: Vec<Memory>,
    /// The tokens of each sequence that was read.
    lengths: Vec<usize>,
    cache: Vec<KvCache>,
}

impl DecoderState {
    /// The number of tokens written so far.
    pub fn len(&self) -> usize {
        self.cache.first().map_or(0, KvCache::len)
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Goes on with these of the sequences, each as often as it is named: what a beam search does.
    ///
    /// # Errors
    /// If there is no such sequence.
    pub fn select(&mut self, sequences: &[usize]) -> Result<()> {
        let limit = self.lengths.len();
        let length = |&start: &usize| {
            let outside = foveal::Error::Range { what: "sequence", start, end: start.saturating_add(1), limit };
            self.lengths.get(start).copied().ok_or(outside)
        };
        self.lengths = sequences.iter().map(length).collect::<Result<_, _>>()?;
        self.cache = self.cache.iter().map(|cache| cache.select(sequences)).collect::<Result<_, _>>()?;
        for Memory { k, v } in &mut self.memory {
            (*k, *v) = (k.select(Axis(0), sequences).into_shared(), v.select(Axis(0), sequences).into_shared());
        }
        Ok(())
    }
}

/// What [`Transformer::backward`] needs.
#[derive(Debug)]
pub struct Saved {
    source: Vec<u32>,
    target: Vec<u32>,
    batch: usize,
    dropout: Option<Dropout>,
    encoder: stack::Saved<LayerNorm, Mlp>,
    encoder_norm: layer_norm::Saved,
    decoder: Vec<block::Saved<layer_norm::Saved, <Mlp as Layer>::Saved>>,
    decoder_norm: layer_norm::Saved,
    hidden: Array2<f32>,
}

impl Transformer {
    /// A model that has learned nothing yet: Xavier's weights, embeddings of deviation 1/√D.
    ///
    /// # Errors
    /// If the width does not divide by the number of heads.
    pub fn new(config: &TransformerConfig, random: &mut Random) -> Result<Self> {
        let &TransformerConfig { width, encoder_layers, decoder_layers, epsilon, .. } = config;
        let deviation = 1.0 / (width.max(1) as f32).sqrt();
        let mut table = |entries| Embedding { weight: random.normal((entries, width), deviation).into() };
        let (source, target) = (table(config.source_vocabulary), table(config.target_vocabulary));
        let head = (!config.tied).then(|| table(config.target_vocabulary));
        let mut stack = |layers, decoder| {
            (0..layers).map(|layer| new_block(config, layer, decoder, random)).collect::<Result<Vec<_>>>()
        };
        Ok(Transformer {
            config: *config,
            source,
            target,
            encoder: stack(encoder_layers, false)?,
            encoder_norm: LayerNorm::new(width, epsilon),
            decoder: stack(decoder_layers, true)?,
            decoder_norm: LayerNorm::new(width, epsilon),
            head,
        })
    }

    /// The model of a checkpoint.
    ///
    /// # Errors
    /// If its configuration makes no sense, or a tensor is absent or has another shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let config = TransformerConfig::read(checkpoint.config())?;
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Transformer::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Transformer::load) reads, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        NAMES.save(folder, &self.config.write(), self, dtype)
    }

    /// Its sizes.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// See [`Model::raise_context`](super::Model::raise_context).
    pub(super) fn raise_context(&mut self, tokens: usize) {
        self.config.context = self.config.context.max(tokens);
    }

    /// The same model, knowing where its cross-attention tells best what each token was made from.
    #[must_use]
    pub fn with_alignment(mut self, alignment: Alignment) -> Self {
        self.config.alignment = Some(alignment);
        self
    }

    /// Reads: a vector for each token, [B·S, D].
    ///
    /// # Errors
    /// [`Error::TokenId`] for a token outside the vocabulary, [`Error::Context`] for a sequence longer than the positions.
    pub fn encode(&self, source: Batch, probe: &mut Probe) -> Result<Array2<f32>> {
        let batch = source.lengths.len();
        let x = self.embed(&self.source, source.tokens, batch, 0)?;
        let x = stack::infer(&self.encoder, x, batch, (Kind::Encoder, &stack::reading(source.lengths)), None, probe)?;
        self.encoder_norm.infer(&x)
    }

    /// Begins to write, from what [`encode`](Transformer::encode) has read.
    ///
    /// # Errors
    /// If `memory` is not what was read of `source`.
    pub fn start(&self, source: Batch, memory: ArrayView2<f32>) -> Result<DecoderState> {
        let batch = source.lengths.len();
        let memory = (self.decoder.iter().filter_map(|block| block.cross.as_ref()))
            .map(|cross| cross.layer.project_memory(memory, batch))
            .collect::<Result<_>>()?;
        let attention = self.decoder.iter().filter_map(|block| block.attention.layer.attention());
        let cache = attention.map(|attention| attention.cache(batch, 0)).collect();
        Ok(DecoderState { memory, lengths: source.lengths.to_vec(), cache })
    }

    /// Goes on writing: the scores of all tokens to come after each of `tokens` [B·T], which follow what was written before:
    /// [B·T, V].
    ///
    /// # Errors
    /// As [`encode`](Transformer::encode).
    pub fn write(&self, tokens: &[u32], state: &mut DecoderState, probe: &mut Probe) -> Result<Array2<f32>> {
        let (batch, start) = (state.lengths.len(), state.len());
        let mut x = self.embed(&self.target, tokens, batch, start)?;
        let (causal, cross) = (stack::causal(), stack::reading(&state.lengths));
        let DecoderState { memory, cache, .. } = state;
        for (layer, block) in self.decoder.iter().enumerate() {
            let other = Other { memory: &memory[layer], attention: &cross };
            let source = (Source::Cache(&mut cache[layer]), &causal);
            x = block.infer(x, batch, source, Some(other), Site { kind: Kind::Decoder, layer }, probe)?;
        }
        self.output().logits(&self.decoder_norm.infer(&x)?)
    }

    fn output(&self) -> &Embedding {
        self.head.as_ref().unwrap_or(&self.target)
    }

    /// √D·E + PE: [B·T, D].
    fn embed(&self, table: &Embedding, tokens: &[u32], batch: usize, start: usize) -> Result<Array2<f32>> {
        let length = tokens.len() / batch.max(1);
        expect("the tokens of all sequences", &[batch * length], &[tokens.len()])?;
        if start + length > self.config.context {
            return Err(Error::Context { tokens: start + length, limit: self.config.context });
        }
        let mut x = table.forward(tokens)?;
        x *= (self.config.width as f32).sqrt();
        let shape = (batch, length, self.config.width);
        let sequences = x.view_mut().into_shape_with_order(shape).expect("made in standard layout");
        add_positional_encoding(sequences, start)?;
        Ok(x)
    }

    /// logits: [B·T, V] for `target` [B·T], as they come before each token of it, and what [`backward`](Transformer::backward)
    /// needs.
    ///
    /// # Errors
    /// As [`encode`](Transformer::encode).
    pub fn forward(&self, source: Batch, target: &[u32], drop: Option<Dropout>) -> Result<(Array2<f32>, Saved)> {
        let batch = source.lengths.len();
        let embed = |table, tokens, place| -> Result<ArcArray2<f32>> {
            let mut x = self.embed(table, tokens, batch, 0)?;
            dropout::at(drop, place).map_or(Ok(()), |dropout| dropout::apply(dropout, batch, &mut x))?;
            Ok(x.into_shared())
        };
        let (reading, causal) = (stack::reading(source.lengths), stack::causal());
        let x = embed(&self.source, source.tokens, 0)?;
        let (x, encoder) = stack::forward(&self.encoder, x, batch, &reading, dropout::at(drop, 1))?;
        let (memory, encoder_norm) = Layer::forward(&self.encoder_norm, &x)?;
        let memory = memory.into_shared();
        let mut x = embed(&self.target, target, 2)?;
        let mut decoder = Vec::with_capacity(self.decoder.len());
        for (layer, block) in self.decoder.iter().enumerate() {
            let other = Encoded { memory: &memory, attention: &reading };
            let drop = dropout::at(drop, 3 + layer as u64);
            let (y, saved) = block.forward(&x, batch, &causal, Some(other), drop)?;
            x = y;
            decoder.push(saved);
        }
        let (hidden, decoder_norm) = Layer::forward(&self.decoder_norm, &x)?;
        let logits = self.output().logits(&hidden)?;
        let (source, target) = (source.tokens.to_vec(), target.to_vec());
        let saved =
            Saved { source, target, batch, dropout: drop, encoder, encoder_norm, decoder, decoder_norm, hidden };
        Ok((logits, saved))
    }

    /// Adds the gradients of all parameters to `grad`; returns those of the heads.
    ///
    /// # Errors
    /// If dlogits is not shaped like the logits.
    pub fn backward(&self, saved: &Saved, dlogits: &Array2<f32>, grad: &mut Self) -> Result<HeadGradients> {
        self.backward_guided(saved, dlogits, None, grad)
    }

    /// The same, with the gradients of a loss on the weights of a head of cross-attention, in this layer, added.
    ///
    /// # Errors
    /// As [`backward`](Transformer::backward); also if the guide does not fit.
    pub fn backward_guided(
        &self,
        saved: &Saved,
        dlogits: &Array2<f32>,
        guide: Option<(usize, Guide)>,
        grad: &mut Self,
    ) -> Result<HeadGradients> {
        let dhidden = match (&self.head, &mut grad.head) {
            (Some(head), Some(dhead)) => head.logits_backward(&saved.hidden, dlogits, dhead)?,
            _ => self.target.logits_backward(&saved.hidden, dlogits, &mut grad.target)?,
        };
        let mut dx = self.decoder_norm.backward(&saved.decoder_norm, dhidden, &mut grad.decoder_norm)?;
        let (mut dmemory, mut dgates) = (None, HeadGradients::default());
        for (layer, (block, saved)) in self.decoder.iter().zip(&saved.decoder).enumerate().rev() {
            let loss = guide.filter(|(guided, _)| *guided == layer).map(|(_, guide)| guide.into());
            let gradients = block.backward(saved, dx, loss, &mut grad.decoder[layer])?;
            finished(&grad.decoder[layer]);
            dgates.extend(gradients.dgates.map(|dgates| (Site { kind: Kind::Decoder, layer }, dgates)));
            dgates.extend(gradients.dcross_gates.map(|dgates| (Site { kind: Kind::Cross, layer }, dgates)));
            block::collect(&mut dmemory, gradients.dmemory)?;
            dx = gradients.dx;
        }
        let drop = |place, dx: &mut _| {
            dropout::at(saved.dropout, place).map_or(Ok(()), |dropout| dropout::apply(dropout, saved.batch, dx))
        };
        drop(2, &mut dx)?;
        self.embed_backward(&self.target, &saved.target, dx, &mut grad.target)?;
        let Some(dmemory) = dmemory else { return Ok(dgates) };
        let dx = self.encoder_norm.backward(&saved.encoder_norm, dmemory, &mut grad.encoder_norm)?;
        let kind = (Kind::Encoder, &mut dgates);
        let mut dx = stack::backward(&self.encoder, &saved.encoder, dx, &mut grad.encoder, kind)?;
        drop(0, &mut dx)?;
        self.embed_backward(&self.source, &saved.source, dx, &mut grad.source)?;
        Ok(dgates)
    }

    fn embed_backward(
        &self,
        table: &Embedding,
        tokens: &[u32],
        mut dx: Array2<f32>,
        grad: &mut Embedding,
    ) -> Result<()> {
        dx *= (self.config.width as f32).sqrt();
        table.backward(tokens, &dx, grad)
    }
}

fn new_block(
    config: &TransformerConfig,
    layer: usize,
    decoder: bool,
    random: &mut Random,
) -> Result<Block<LayerNorm, Mlp>> {
    let &TransformerConfig { width, heads, hidden, activation, order, epsilon, context, attention: family, .. } =
        config;
    let norm = || LayerNorm::new(width, epsilon);
    let new = |random: &mut Random| {
        let (projection, output) = (Linear::xavier(width, 3 * width, random), Linear::xavier(width, width, random));
        MultiHeadAttention::from_parts(Projection::Fused(projection), output, heads, heads)
    };
    let place = Place { layer, causal: decoder, tokens: context, grid: None };
    let own = if decoder { family.of_decoder() } else { family };
    let attention = new(random)?;
    let attention = Residual { norm: norm(), layer: own.mixer(attention, place, random)?, order };
    let cross = if decoder {
        let cross = new(random)?;
        Some(Residual { norm: norm(), layer: family.across().attention(cross, place, random)?, order })
    } else {
        None
    };
    let mlp =
        Mlp { up: Linear::xavier(width, hidden, random), activation, down: Linear::xavier(hidden, width, random) };
    Ok(Block { attention, cross, mlp: Residual { norm: norm(), layer: mlp, order } })
}
