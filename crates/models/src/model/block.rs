//! The block that every model here is a stack of: attention, perhaps attention to another sequence, and an MLP, each with
//! its norm and a way around it.
//!
//! $$ x \leftarrow x + \mathrm{attention}(\mathrm{norm}(x)), \qquad
//!    x \leftarrow x + \mathrm{cross}(\mathrm{norm}(x), m), \qquad
//!    x \leftarrow x + \mathrm{mlp}(\mathrm{norm}(x)) $$
//!
//! or with the norm last, see [`NormOrder`](crate::layer::NormOrder).

use foveal::{Attention, Dropout, KvCache};
use ndarray::{ArcArray2, Array2, s};

use crate::layer::join;
use crate::layer::{
    AttentionRecord, Layer, Memory, Mixer, MultiHeadAttention, Param, ParamMut, Parameters, Residual, Source,
    WeightLoss, add, dropout, fourier, multi_head, residual,
};
use crate::trace::{Kind, Probe, Site};
use crate::{Error, Result};

/// One layer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Block<N, M> {
    /// Attention of the sequence to itself, or what takes its place.
    pub attention: Residual<N, Mixer>,
    /// Attention to another sequence, in the decoder of an encoder-decoder.
    pub cross: Option<Residual<N, MultiHeadAttention>>,
    /// What is done to each token by itself.
    pub mlp: Residual<N, M>,
}

/// The other sequence of a decoder, ready to be attended to, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other<'a> {
    pub memory: &'a Memory,
    pub attention: &'a Attention,
}

/// The other sequence in training: [B·S, D].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    pub memory: &'a ArcArray2<f32>,
    pub attention: &'a Attention,
}

/// What [`Block::backward`] needs.
#[derive(Clone, Debug)]
pub struct Saved<N, M> {
    attention: residual::Saved<N, Mixed>,
    cross: Option<residual::Saved<N, multi_head::Saved>>,
    mlp: residual::Saved<N, M>,
}

impl<N, M> Saved<N, M> {
    /// What cross-attention attended to.
    pub(crate) fn cross(&self) -> Option<&AttentionRecord> {
        self.cross.as_ref().map(|saved| &saved.layer.record)
    }
}

/// State saved by the token mixer.
#[derive(Clone, Debug)]
enum Mixed {
    Attention(Box<multi_head::Saved>),
    /// The sequences, and their lengths where they differ.
    Fourier(usize, Option<Vec<usize>>),
}

/// What [`Block::backward`] gives back.
#[derive(Clone, Debug)]
pub(crate) struct Gradients {
    /// [B·T, D]
    pub dx: Array2<f32>,
    /// The gradient of the other sequence: [B·S, D].
    pub dmemory: Option<Array2<f32>>,
    /// The gradient of a factor on each head's output: [B, H], where there are heads.
    pub dgates: Option<Array2<f32>>,
    /// The same for the heads of cross-attention.
    pub dcross_gates: Option<Array2<f32>>,
}

impl<N: Layer, M: Layer> Parameters for Block<N, M> {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.attention.params(&join(prefix, "attention"), f);
        self.cross.params(&join(prefix, "cross"), f);
        self.mlp.params(&join(prefix, "mlp"), f);
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.attention.params_mut(&join(prefix, "attention"), f);
        self.cross.params_mut(&join(prefix, "cross"), f);
        self.mlp.params_mut(&join(prefix, "mlp"), f);
    }
}

impl<N: Layer, M: Layer> Block<N, M> {
    /// y: [B·T, D] for x: [B·T, D].
    pub(crate) fn infer(
        &self,
        x: Array2<f32>,
        batch: usize,
        (source, attention): (Source, &Attention),
        other: Option<Other>,
        site: Site,
        probe: &mut Probe,
    ) -> Result<Array2<f32>> {
        let x = self.attention.infer(x, |layer, x| match layer {
            Mixer::Attention(layer) => probe.attend(site, layer, x, batch, source, attention),
            Mixer::Fourier => fourier::mix(x, batch, attention.lengths().as_deref()),
        })?;
        let x = match (&self.cross, other) {
            (Some(cross), Some(Other { memory, attention })) => {
                let site = Site { kind: Kind::Cross, ..site };
                let source = Source::Projected(memory);
                cross.infer(x, |layer, x| probe.attend(site, layer, x, batch, source, attention))?
            }
            _ => x,
        };
        self.mlp.infer(x, |layer, x| layer.infer(x))
    }

    /// y: [1, D] for the last token of one sequence, after all of them, x: [T, D]; in a decoder without a second sequence.
    pub(crate) fn infer_last(
        &self,
        x: &Array2<f32>,
        (cache, attention): (&mut KvCache, &Attention),
        site: Site,
        probe: &mut Probe,
    ) -> Result<Array2<f32>> {
        let x = self.attention.infer_last(x, |layer, x| match layer {
            Mixer::Attention(layer) => probe.attend_last(site, layer, x, cache, attention),
            Mixer::Fourier => Ok(fourier::mix(x, 1, None)?.slice(s![x.nrows() - 1.., ..]).to_owned()),
        })?;
        self.mlp.infer(x, |layer, x| layer.infer(x))
    }

    /// [`infer`](Block::infer) for training, with what [`backward`](Block::backward) needs.
    pub(crate) fn forward(
        &self,
        x: &ArcArray2<f32>,
        batch: usize,
        attention: &Attention,
        other: Option<Encoded>,
        drop: Option<Dropout>,
    ) -> Result<residual::With<Saved<N::Saved, M::Saved>>> {
        let with_dropout = |attention: &Attention, place| match dropout::at(drop, place) {
            Some(dropout) => attention.clone().with_dropout(dropout),
            None => attention.clone(),
        };
        let (x, saved_attention) = self.attention.forward(x, batch, dropout::at(drop, 0), |layer, x| match layer {
            Mixer::Attention(layer) => {
                let (y, saved) = layer.forward(x, None, batch, &with_dropout(attention, 1))?;
                Ok((y, Mixed::Attention(Box::new(saved))))
            }
            Mixer::Fourier => {
                let lengths = attention.lengths();
                Ok((fourier::mix(x.view(), batch, lengths.as_deref())?, Mixed::Fourier(batch, lengths)))
            }
        })?;
        let (x, saved_cross) = match (&self.cross, other) {
            (Some(cross), Some(Encoded { memory, attention })) => {
                let (x, saved) = cross.forward(&x, batch, dropout::at(drop, 2), |layer, x| {
                    layer.forward(x, Some(memory), batch, &with_dropout(attention, 3))
                })?;
                (x, Some(saved))
            }
            _ => (x, None),
        };
        let (x, saved_mlp) = self.mlp.forward(&x, batch, dropout::at(drop, 4), |layer, x| layer.forward(x))?;
        Ok((x, Saved { attention: saved_attention, cross: saved_cross, mlp: saved_mlp }))
    }

    /// The gradients of x and of the other sequence, from dy: [B·T, D], with a loss on the weights of a head of
    /// cross-attention.
    pub(crate) fn backward(
        &self,
        saved: &Saved<N::Saved, M::Saved>,
        dy: Array2<f32>,
        loss: Option<WeightLoss>,
        grad: &mut Self,
    ) -> Result<Gradients> {
        let dx = self
            .mlp
            .backward(&saved.mlp, dy, &mut grad.mlp, |layer, saved, dy, grad| layer.backward(saved, dy.into(), grad))?;
        let (mut dmemory, mut dcross_gates) = (None, None);
        let dx = match (&self.cross, &saved.cross, &mut grad.cross) {
            (Some(cross), Some(saved), Some(grad)) => cross.backward(saved, dx, grad, |layer, saved, dy, grad| {
                let gradients = layer.backward_with(saved, dy, loss, grad)?;
                (dmemory, dcross_gates) = (gradients.dmemory, Some(gradients.dgates));
                Ok(gradients.dx)
            })?,
            _ => dx,
        };
        let mut dgates = None;
        let dx = self.attention.backward(&saved.attention, dx, &mut grad.attention, |layer, saved, dy, grad| {
            match (layer, saved, grad) {
                (Mixer::Attention(layer), Mixed::Attention(saved), Mixer::Attention(grad)) => {
                    let gradients = layer.backward(saved, dy, grad)?;
                    dgates = Some(gradients.dgates);
                    Ok(gradients.dx)
                }
                // The transform is its own backward pass.
                (_, Mixed::Fourier(batch, lengths), _) => fourier::mix(dy, *batch, lengths.as_deref()),
                _ => unreachable!("saved and gradient are of the same layer"),
            }
        })?;
        Ok(Gradients { dx, dmemory, dgates, dcross_gates })
    }
}

/// Adds the gradient of the other sequence from one more layer.
pub(crate) fn collect(sum: &mut Option<Array2<f32>>, dmemory: Option<Array2<f32>>) -> Result<(), Error> {
    match (sum.as_mut(), dmemory) {
        (Some(sum), Some(dmemory)) => add(sum, &dmemory),
        (None, dmemory) => {
            *sum = dmemory;
            Ok(())
        }
        (Some(_), None) => Ok(()),
    }
}
