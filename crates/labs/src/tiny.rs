//! A decoder on one page, for the labs that train: what it may attend to is a parameter.
//!
//! x = E[token] + P[position], then for each block x ← x + attention(norm(x)) and x ← x + mlp(norm(x)), and logits = norm(x)·Eᵀ.

use foveal::Attention;
use foveal_models::layer::{
    Activation, Embedding, LayerNorm, Mlp, MultiHeadAttention, NormOrder, Param, ParamMut, Parameters, Random,
    Residual, Source, layer_norm, mlp, multi_head, residual,
};
use foveal_models::{Error, Result};
use ndarray::{ArcArray2, Array2, Array4};

/// D.
pub const WIDTH: usize = 64;
/// Characters that it sees at a time.
pub const CONTEXT: usize = 64;
/// The number of blocks.
const LAYERS: usize = 2;
/// ε of the norms.
const EPSILON: f32 = 1e-5;

/// The model.
#[derive(Clone, Debug)]
pub struct Tiny {
    /// Which tokens see which.
    pub attention: Attention,
    /// E: [V, D]
    tokens: Embedding,
    /// P: [T, D]
    positions: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

#[derive(Clone, Debug)]
struct Block {
    attention: Residual<LayerNorm, MultiHeadAttention>,
    mlp: Residual<LayerNorm, Mlp>,
}

/// What [`Tiny::backward`] needs.
pub struct Saved {
    tokens: Vec<u32>,
    batch: usize,
    blocks: Vec<SavedBlock>,
    norm: layer_norm::Saved,
    hidden: Array2<f32>,
}

struct SavedBlock {
    attention: residual::Saved<layer_norm::Saved, multi_head::Saved>,
    mlp: residual::Saved<layer_norm::Saved, mlp::Saved>,
}

impl Tiny {
    /// A model that has learned nothing yet.
    pub fn new(vocabulary: usize, heads: usize, attention: Attention, random: &mut Random) -> Result<Self> {
        let order = NormOrder::First;
        let norm = || LayerNorm::new(WIDTH, EPSILON);
        let block = |_| -> Result<Block> {
            Ok(Block {
                attention: Residual { norm: norm(), layer: MultiHeadAttention::fused(WIDTH, heads, random)?, order },
                mlp: Residual { norm: norm(), layer: Mlp::new(WIDTH, 4 * WIDTH, Activation::GeluTanh, random), order },
            })
        };
        let blocks = (0..LAYERS).map(block).collect::<Result<_>>()?;
        let tokens = Embedding::new(vocabulary, WIDTH, random);
        let positions = Embedding::new(CONTEXT, WIDTH, random);
        Ok(Tiny { attention, tokens, positions, blocks, norm: norm() })
    }

    fn embed(&self, tokens: &[u32], batch: usize) -> Result<Array2<f32>> {
        let mut x = self.tokens.forward(tokens)?;
        self.positions.add_positions(&mut x, batch, 0)?;
        Ok(x)
    }

    /// The scores of what comes after each token: [B·T, V].
    pub fn infer(&self, tokens: &[u32], batch: usize, attention: &Attention) -> Result<Array2<f32>> {
        let mut x = self.embed(tokens, batch)?;
        for block in &self.blocks {
            x = block.attention.infer(x, |layer, x| Ok(layer.infer(x, batch, Source::Own, attention)?.0))?;
            x = block.mlp.infer(x, |layer, x| layer.infer(x))?;
        }
        self.tokens.logits(&self.norm.infer(&x)?)
    }

    /// The weights of every block on one sequence, [1, H, T, T] each.
    pub fn weights(&self, tokens: &[u32]) -> Result<Vec<Array4<f32>>> {
        let mut x = self.embed(tokens, 1)?;
        let mut all = Vec::new();
        for block in &self.blocks {
            x = block.attention.infer(x, |layer, x| {
                let (y, record) = layer.infer(x, 1, Source::Own, &self.attention)?;
                all.push(record.weights()?);
                Ok(y)
            })?;
            x = block.mlp.infer(x, |layer, x| layer.infer(x))?;
        }
        Ok(all)
    }

    /// [`infer`](Tiny::infer) for training, with what [`backward`](Tiny::backward) needs.
    pub fn forward(&self, tokens: &[u32], batch: usize) -> Result<(Array2<f32>, Saved)> {
        let mut x: ArcArray2<f32> = self.embed(tokens, batch)?.into_shared();
        let mut blocks = Vec::new();
        for block in &self.blocks {
            let attend =
                |layer: &MultiHeadAttention, x: &ArcArray2<f32>| layer.forward(x, None, batch, &self.attention);
            let (y, attention) = block.attention.forward(&x, batch, None, attend)?;
            let (y, mlp) = block.mlp.forward(&y, batch, None, |layer, x| layer.forward(x))?;
            blocks.push(SavedBlock { attention, mlp });
            x = y;
        }
        let (hidden, norm) = self.norm.forward(&x)?;
        let logits = self.tokens.logits(&hidden)?;
        Ok((logits, Saved { tokens: tokens.to_vec(), batch, blocks, norm, hidden }))
    }

    /// Adds the gradients of everything to `grad`.
    pub fn backward(&self, saved: &Saved, dlogits: &Array2<f32>, grad: &mut Tiny) -> Result<()> {
        let dhidden = self.tokens.logits_backward(&saved.hidden, dlogits, &mut grad.tokens)?;
        let mut dx = self.norm.backward(&saved.norm, dhidden, &mut grad.norm)?;
        for ((block, saved), grad) in self.blocks.iter().zip(&saved.blocks).zip(&mut grad.blocks).rev() {
            dx = block
                .mlp
                .backward(&saved.mlp, dx, &mut grad.mlp, |layer, saved, dy, grad| layer.backward(saved, dy, grad))?;
            dx = block.attention.backward(&saved.attention, dx, &mut grad.attention, |layer, saved, dy, grad| {
                Ok::<_, Error>(layer.backward(saved, dy, grad)?.dx)
            })?;
        }
        self.positions.add_positions_backward(&dx, saved.batch, 0, &mut grad.positions)?;
        self.tokens.backward(&saved.tokens, &dx, &mut grad.tokens)
    }
}

impl Parameters for Tiny {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.tokens.params(&format!("{prefix}tokens"), f);
        self.positions.params(&format!("{prefix}positions"), f);
        for (i, block) in self.blocks.iter().enumerate() {
            block.attention.params(&format!("{prefix}{i}.attention"), f);
            block.mlp.params(&format!("{prefix}{i}.mlp"), f);
        }
        self.norm.params(&format!("{prefix}norm"), f);
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.tokens.params_mut(&format!("{prefix}tokens"), f);
        self.positions.params_mut(&format!("{prefix}positions"), f);
        for (i, block) in self.blocks.iter_mut().enumerate() {
            block.attention.params_mut(&format!("{prefix}{i}.attention"), f);
            block.mlp.params_mut(&format!("{prefix}{i}.mlp"), f);
        }
        self.norm.params_mut(&format!("{prefix}norm"), f);
    }
}

#[cfg(test)]
mod tests {
    use foveal::Mask;
    use foveal_models::layer::CrossEntropy;

    use super::*;

    /// Central differences of the loss, for some entries of every parameter.
    #[test]
    fn gradients_are_those_of_finite_differences() {
        let tokens: Vec<u32> = (0..12).map(|i| i * 5 % 7).collect();
        let targets: Vec<u32> = (0..12).map(|i| (i * 3 + 1) % 7).collect();
        for attention in [Attention::new(), Attention::new().mask(Mask::causal())] {
            let model = Tiny::new(7, 4, attention, &mut Random::new(3)).expect("a model");
            let loss = |model: &Tiny| {
                let logits = model.infer(&tokens, 2, &model.attention).expect("logits");
                CrossEntropy::new().forward(&logits, &targets).expect("a loss").mean
            };
            let mut grad = model.zeros_like();
            let (mut logits, saved) = model.forward(&tokens, 2).expect("logits");
            CrossEntropy::new().forward_backward(&mut logits, &targets).expect("a loss");
            model.backward(&saved, &logits, &mut grad).expect("gradients");
            let mut gradients = Vec::new();
            grad.visit("", &mut |name, values| {
                let at = values.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).expect("values").0;
                gradients.push((name.to_owned(), at, values.iter().nth(at).copied().unwrap_or(0.0)));
            });
            for (name, at, gradient) in gradients {
                let moved = |by: f32| {
                    let mut model = model.clone();
                    model.visit_mut("", &mut |other, mut values| {
                        if other == name {
                            values.iter_mut().nth(at).into_iter().for_each(|x| *x += by);
                        }
                    });
                    loss(&model)
                };
                let measured = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                // The gradient of the keys' biases is 0: they move all scores of a row alike.
                assert!(
                    (measured - gradient).abs() < 2e-3 + 0.03 * gradient.abs(),
                    "{name}: {measured} for {gradient}"
                );
            }
        }
    }
}
