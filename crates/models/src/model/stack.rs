//! Blocks one after the other: what encoders and decoders without a second sequence are.

use foveal::{Attention, Dropout, KvCache, Mask};
use ndarray::{ArcArray2, Array2, s};

use super::block::{self, Block};
use super::language::HeadGradients;
use crate::layer::{Layer, Source, dropout};
use crate::trace::{Kind, Probe, Site};
use crate::train::finished;
use crate::{Error, Result};

/// Attention to the past alone.
pub(super) fn causal() -> Attention {
    Attention::new().mask(Mask::causal())
}

/// Attention to all of a sequence that is read, and not beyond its end.
pub(super) fn reading(lengths: &[usize]) -> Attention {
    Attention::new().mask(Mask::padding(lengths))
}

/// y: [B·T, D] for x: [B·T, D]. With a cache, one for each block, the tokens follow those that are in it.
pub(super) fn infer<N: Layer, M: Layer>(
    blocks: &[Block<N, M>],
    mut x: Array2<f32>,
    batch: usize,
    (kind, attention): (Kind, &Attention),
    mut cache: Option<&mut [KvCache]>,
    probe: &mut Probe,
) -> Result<Array2<f32>> {
    for (layer, block) in blocks.iter().enumerate() {
        let source = match &mut cache {
            Some(cache) => Source::Cache(&mut cache[layer]),
            None => Source::Own,
        };
        x = block.infer(x, batch, (source, attention), None, Site { kind, layer }, probe)?;
    }
    Ok(x)
}

/// y: [1, D], what becomes of the last token of one sequence, x: [T, D].
pub(super) fn infer_last<N: Layer, M: Layer>(
    blocks: &[Block<N, M>],
    x: Array2<f32>,
    (kind, attention): (Kind, &Attention),
    cache: &mut [KvCache],
    probe: &mut Probe,
) -> Result<Array2<f32>> {
    if x.is_empty() {
        return Err(Error::TooShort { tokens: 0, least: 1 });
    }
    let Some((last, before)) = blocks.split_last() else { return Ok(x.slice(s![x.nrows() - 1.., ..]).to_owned()) };
    let x = infer(before, x, 1, (kind, attention), Some(cache), probe)?;
    let layer = before.len();
    last.infer_last(&x, (&mut cache[layer], attention), Site { kind, layer }, probe)
}

/// What [`backward`] needs.
pub(super) type Saved<N, M> = Vec<block::Saved<<N as Layer>::Saved, <M as Layer>::Saved>>;

/// The same for training.
pub(super) fn forward<N: Layer, M: Layer>(
    blocks: &[Block<N, M>],
    mut x: ArcArray2<f32>,
    batch: usize,
    attention: &Attention,
    drop: Option<Dropout>,
) -> Result<(ArcArray2<f32>, Saved<N, M>)> {
    let mut saved = Vec::with_capacity(blocks.len());
    for (layer, block) in blocks.iter().enumerate() {
        let (y, of_block) = block.forward(&x, batch, attention, None, dropout::at(drop, layer as u64))?;
        x = y;
        saved.push(of_block);
    }
    Ok((x, saved))
}

/// dx: [B·T, D]; the gradients of the heads go to `dgates`.
pub(super) fn backward<N: Layer, M: Layer>(
    blocks: &[Block<N, M>],
    saved: &Saved<N, M>,
    mut dx: Array2<f32>,
    grads: &mut [Block<N, M>],
    (kind, dgates): (Kind, &mut HeadGradients),
) -> Result<Array2<f32>> {
    for (layer, ((block, saved), grad)) in blocks.iter().zip(saved).zip(grads).enumerate().rev() {
        let gradients = block.backward(saved, dx, None, grad)?;
        finished(&*grad);
        dgates.extend(gradients.dgates.map(|dgates| (Site { kind, layer }, dgates)));
        dx = gradients.dx;
    }
    Ok(dx)
}
