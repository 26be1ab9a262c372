//! Fusion-in-Decoder (Izacard and Grave 2020), with a copy head: an encoder reads each passage by itself, together with the
//! question, and a decoder attends to all of them at once.
//!
//! $$ m_k = \mathrm{norm}(\mathrm{encoder}(\sqrt{D}\, (E_{[q; p_k]} + M))), \qquad
//!    h = \mathrm{norm}(\mathrm{decoder}(\sqrt{D}\, E_t,\ [m_1 \mid \dots \mid m_K])), \qquad
//!    p = \mathrm{copy}(h,\ h\, E^\top) $$
//!
//! The encoder's work grows with the number of passages, not with its square. Of each the decoder sees the passage, not the
//! question before it. M are the marks of tokens (see [`reading`](crate::reading)): to which side they belong, and how far
//! they stand on the other side, too. Positions are rotary; the pointer is the first head of the last layer's cross-attention.

mod config;
mod fused;

use std::sync::Arc;

use foveal::{Dropout, Rope, RopeTable};
use ndarray::{Array2, Array3};

pub use self::config::ReaderConfig;
pub use self::fused::{Fused, PassageBatch};
use super::block::{self, Block, Encoded, Other};
use super::names::Names;
use super::stack;
use crate::checkpoint::{Checkpoint, Dtype};
use crate::layer::{
    Activation, CopyHead, CrossEntropy, Embedding, Layer, LayerNorm, Linear, Loss, Memory, Mixture, Mlp,
    MultiHeadAttention, NormOrder, Pointed, PointerGradient, Projection, Random, Residual, Source, dropout, layer_norm,
    parameters,
};
use crate::trace::{Capture, Kind, Probe, Site};
use crate::{Error, Result};

/// The head of the last layer's cross-attention that points.
pub(crate) const POINTER: usize = 0;

/// The model.
#[derive(Clone, Debug, PartialEq)]
pub struct Reader {
    config: ReaderConfig,
    /// E: [V, D], of what is read and of what is written.
    pub tokens: Embedding,
    /// M: [marks, D].
    pub marks: Embedding,
    /// The blocks that read.
    pub encoder: Vec<Block<LayerNorm, Mlp>>,
    /// Their last norm.
    pub encoder_norm: LayerNorm,
    /// The blocks that write.
    pub decoder: Vec<Block<LayerNorm, Mlp>>,
    /// Their last norm.
    pub decoder_norm: LayerNorm,
    /// The gate between writing and copying.
    pub copy: CopyHead,
}

parameters!(Reader {
    tokens: "tokens",
    marks: "marks",
    encoder: "encoder",
    encoder_norm: "encoder_norm",
    decoder: "decoder",
    decoder_norm: "decoder_norm",
    copy: "copy",
});

/// Its own names.
const NAMES: Names = Names { parts: &[], transposed: &[] };

/// What [`Reader::backward`] needs.
#[derive(Debug)]
pub struct Saved {
    read: (Vec<u32>, Vec<u32>),
    written: Vec<u32>,
    fused: Fused,
    encoder: stack::Saved<LayerNorm, Mlp>,
    encoder_norm: layer_norm::Saved,
    decoder: Vec<block::Saved<layer_norm::Saved, <Mlp as Layer>::Saved>>,
    decoder_norm: layer_norm::Saved,
    hidden: Array2<f32>,
    logits: Array2<f32>,
    weights: Array3<f32>,
}

/// Passages that have been read, ready to be attended to.
#[derive(Clone, Debug)]
pub struct ReadPassages {
    /// Of each layer of the decoder.
    memory: Vec<Memory>,
    /// The tokens that the decoder sees, passage after passage.
    pub tokens: Vec<u32>,
}

impl Reader {
    /// A model that has learned nothing yet: Xavier's weights, embeddings of deviation 1/√D.
    ///
    /// # Errors
    /// If the width does not divide by the number of heads, or a head's dimension is odd.
    pub fn new(config: &ReaderConfig, random: &mut Random) -> Result<Self> {
        let &ReaderConfig { width, heads, epsilon, .. } = config;
        let deviation = 1.0 / (width.max(1) as f32).sqrt();
        let mut table = |entries| Embedding { weight: random.normal((entries, width), deviation).into() };
        let (tokens, marks) = (table(config.vocabulary), table(config.marks));
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(Error::HeadWidth { width, heads });
        }
        let rope = Arc::new(RopeTable::new(Rope::new(width / heads)?));
        let mut stack = |layers, decoder| {
            (0..layers).map(|_| new_block(config, &rope, decoder, random)).collect::<Result<Vec<_>>>()
        };
        let (encoder, decoder) = (stack(config.encoder_layers, false)?, stack(config.decoder_layers, true)?);
        let norm = || LayerNorm::new(width, epsilon);
        let copy = CopyHead::new(width, random);
        Ok(Reader {
            config: *config,
            tokens,
            marks,
            encoder,
            encoder_norm: norm(),
            decoder,
            decoder_norm: norm(),
            copy,
        })
    }

    /// The model of a checkpoint.
    ///
    /// # Errors
    /// If its configuration makes no sense, or a tensor is absent or has another shape than that calls for.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let config = ReaderConfig::read(checkpoint.config())?;
        checkpoint.expect_parameters(config.parameters())?;
        let mut model = Reader::new(&config, &mut Random::zeros())?;
        NAMES.load(checkpoint, &mut model)?;
        Ok(model)
    }

    /// Saves it as a folder that [`load`](Reader::load) reads, its numbers as F32, F16 or BF16.
    ///
    /// # Errors
    /// If a file cannot be written; then nothing has changed.
    pub fn save(&self, folder: &std::path::Path, dtype: Dtype) -> Result<()> {
        NAMES.save(folder, &self.config.write(), self, dtype)
    }

    /// The same model for longer passages: rotary positions have no end, though it has learned none beyond its own.
    #[must_use]
    pub fn with_context(mut self, tokens: usize) -> Self {
        self.config.context = tokens;
        self
    }

    /// Its sizes.
    pub fn config(&self) -> &ReaderConfig {
        &self.config
    }

    /// Reads passages, each by itself: a vector for each token that the decoder sees, [B·M, D].
    ///
    /// # Errors
    /// [`Error::TokenId`] for a token outside the vocabulary, [`Error::Context`] for a passage longer than the positions.
    pub fn encode(&self, batch: PassageBatch, probe: &mut Probe) -> Result<Array2<f32>> {
        let fused = batch.fuse(self.config.context)?;
        let (x, passages) = (self.embed(batch.tokens, batch.marks)?, batch.lengths.len());
        let reading = stack::reading(batch.lengths);
        let x = stack::infer(&self.encoder, x, passages, (Kind::Encoder, &reading), None, probe)?;
        Ok(fused.gather(&self.encoder_norm.infer(&x)?))
    }

    /// Makes passages that [`encode`](Reader::encode) has read for one question ready for the decoder: a vector [M, D] and the
    /// token for each place.
    ///
    /// # Errors
    /// If the vectors have another width.
    pub fn fuse(&self, encoded: &Array2<f32>, tokens: Vec<u32>) -> Result<ReadPassages> {
        let cross = self.decoder.iter().filter_map(|block| block.cross.as_ref());
        let memory = cross.map(|cross| cross.layer.project_memory(encoded, 1)).collect::<Result<_>>()?;
        Ok(ReadPassages { memory, tokens })
    }

    /// ln p of all tokens to come after each of `written`, which are all that was written so far: [T, V]. The probe sees
    /// the attention of all of them.
    ///
    /// # Errors
    /// As [`encode`](Reader::encode).
    pub fn write(&self, written: &[u32], passages: &ReadPassages, probe: &mut Probe) -> Result<Array2<f32>> {
        let mut x = self.tokens.forward(written)?;
        x *= self.scale();
        let (causal, cross) = (stack::causal(), stack::reading(&[passages.tokens.len()]));
        let last = self.decoder.len() - 1;
        let mut pointer = None;
        for (layer, block) in self.decoder.iter().enumerate() {
            let other = Other { memory: &passages.memory[layer], attention: &cross };
            let site = Site { kind: Kind::Decoder, layer };
            if layer < last {
                x = block.infer(x, 1, (Source::Own, &causal), Some(other), site, probe)?;
                continue;
            }
            // The last layer's weights are needed, whoever else looks at them.
            let mut own = probe.with_capture(Capture::All);
            x = block.infer(x, 1, (Source::Own, &causal), Some(other), site, &mut own)?;
            let cross = Site { kind: Kind::Cross, layer };
            pointer = Some(own.trace().layer(cross.kind, cross.layer)?.weights(0, POINTER)?);
            probe.absorb(own);
        }
        let hidden = self.decoder_norm.infer(&x)?;
        let weights = pointer.expect("a decoder has a layer").insert_axis(ndarray::Axis(0));
        let pointed = Pointed { weights: weights.view(), tokens: &passages.tokens };
        Ok(self.copy.forward(&hidden, self.tokens.logits(&hidden)?, pointed)?.log_probabilities())
    }

    fn scale(&self) -> f32 {
        (self.config.width as f32).sqrt()
    }

    /// √D·(E + M): [P·S, D].
    fn embed(&self, tokens: &[u32], marks: &[u32]) -> Result<Array2<f32>> {
        let mut x = self.tokens.forward(tokens)?;
        x += &self.marks.forward(marks)?;
        x *= self.scale();
        Ok(x)
    }

    /// Reads the passages of B questions and `written` [B·T], the beginnings of their answers, for training.
    ///
    /// # Errors
    /// As [`encode`](Reader::encode).
    pub fn forward(&self, batch: PassageBatch, written: &[u32], drop: Option<Dropout>) -> Result<Saved> {
        let fused = batch.fuse(self.config.context)?;
        let (passages, questions) = (batch.lengths.len(), batch.counts.len());
        let x = self.embed(batch.tokens, batch.marks)?.into_shared();
        let reading = stack::reading(batch.lengths);
        let (x, encoder) = stack::forward(&self.encoder, x, passages, &reading, dropout::at(drop, 0))?;
        let (encoded, encoder_norm) = Layer::forward(&self.encoder_norm, &x)?;
        let memory = fused.gather(&encoded).into_shared();
        let (cross, causal) = (stack::reading(&fused.lengths), stack::causal());
        let mut x = self.tokens.forward(written)?;
        x *= self.scale();
        let mut x = x.into_shared();
        let mut decoder = Vec::with_capacity(self.decoder.len());
        for (layer, block) in self.decoder.iter().enumerate() {
            let other = Encoded { memory: &memory, attention: &cross };
            let (y, saved) = block.forward(&x, questions, &causal, Some(other), dropout::at(drop, 1 + layer as u64))?;
            x = y;
            decoder.push(saved);
        }
        let (hidden, decoder_norm) = Layer::forward(&self.decoder_norm, &x)?;
        let logits = self.tokens.logits(&hidden)?;
        let record = decoder.last().and_then(block::Saved::cross).expect("a decoder attends to what was read");
        let weights = record.pointer(POINTER)?;
        let (read, written) = ((batch.tokens.to_vec(), batch.marks.to_vec()), written.to_vec());
        Ok(Saved { read, written, fused, encoder, encoder_norm, decoder, decoder_norm, hidden, logits, weights })
    }

    /// The probabilities of what comes next, at every place of what was written.
    ///
    /// # Errors
    /// If what was saved is another model's.
    pub fn mixture<'s>(&self, saved: &'s Saved) -> Result<Mixture<'s>> {
        let pointed = Pointed { weights: saved.weights.view(), tokens: &saved.fused.tokens };
        self.copy.forward(&saved.hidden, saved.logits.clone(), pointed)
    }

    /// The loss on what should have been written, [B·T]; adds the gradients of all parameters to `grad`.
    ///
    /// # Errors
    /// If there is not a target for each place.
    pub fn backward(&self, saved: &Saved, options: &CrossEntropy, targets: &[u32], grad: &mut Self) -> Result<Loss> {
        let (loss, gradients) = self.mixture(saved)?.loss_backward(options, targets)?;
        let mut dhidden = self.tokens.logits_backward(&saved.hidden, &gradients.dlogits, &mut grad.tokens)?;
        dhidden += &self.copy.backward(&saved.hidden, &gradients, &mut grad.copy)?;
        let mut dx = self.decoder_norm.backward(&saved.decoder_norm, dhidden, &mut grad.decoder_norm)?;
        let mut dmemory = None;
        // The last layer comes first, and its cross-attention points.
        let mut pointer = Some(PointerGradient { head: POINTER, dweights: gradients.dweights.view() }.into());
        for (layer, (block, saved)) in self.decoder.iter().zip(&saved.decoder).enumerate().rev() {
            let gradients = block.backward(saved, dx, pointer.take(), &mut grad.decoder[layer])?;
            block::collect(&mut dmemory, gradients.dmemory)?;
            dx = gradients.dx;
        }
        dx *= self.scale();
        self.tokens.backward(&saved.written, &dx, &mut grad.tokens)?;
        let Some(dmemory) = dmemory else { return Ok(loss) };
        let dencoded = saved.fused.scatter(&dmemory, saved.read.0.len());
        let dx = self.encoder_norm.backward(&saved.encoder_norm, dencoded, &mut grad.encoder_norm)?;
        let ignored = &mut Default::default();
        let mut dx = stack::backward(&self.encoder, &saved.encoder, dx, &mut grad.encoder, (Kind::Encoder, ignored))?;
        dx *= self.scale();
        self.marks.backward(&saved.read.1, &dx, &mut grad.marks)?;
        self.tokens.backward(&saved.read.0, &dx, &mut grad.tokens)?;
        Ok(loss)
    }
}

fn new_block(
    config: &ReaderConfig,
    rope: &Arc<RopeTable>,
    decoder: bool,
    random: &mut Random,
) -> Result<Block<LayerNorm, Mlp>> {
    let &ReaderConfig { width, heads, hidden, epsilon, .. } = config;
    let (norm, order) = (|| LayerNorm::new(width, epsilon), NormOrder::First);
    let new = |random: &mut Random| {
        let (projection, output) = (Linear::xavier(width, 3 * width, random), Linear::xavier(width, width, random));
        MultiHeadAttention::from_parts(Projection::Fused(projection), output, heads, heads)
    };
    let attention = Residual { norm: norm(), layer: new(random)?.with_rope(rope).into(), order };
    let cross = match decoder {
        true => Some(Residual { norm: norm(), layer: new(random)?, order }),
        false => None,
    };
    let (up, down) = (Linear::xavier(width, hidden, random), Linear::xavier(hidden, width, random));
    let mlp = Mlp { up, activation: Activation::GeluTanh, down };
    Ok(Block { attention, cross, mlp: Residual { norm: norm(), layer: mlp, order } })
}
