//! AdamW (Loshchilov 2017): Adam with weight decay beside the gradient, not in it.
//!
//! $$ m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2 $$
//! $$ p \leftarrow p - \eta \lambda p - \frac{\eta}{1 - \beta_1^t} \cdot \frac{m}{\sqrt{v / (1 - \beta_2^t)} + \varepsilon} $$
//!
//! Matrices decay, vectors do not: the gain of a norm or a bias has no reason to be small.

use ndarray::ArrayViewMutD;
use rayon::prelude::*;

use crate::layer::Parameters;

/// ε.
const EPSILON: f32 = 1e-8;
/// Numbers per task: what is loaded stays in the first two caches.
const TASK: usize = 1 << 14;

/// The optimiser's memory, m and v, shaped like the model.
#[derive(Clone, Debug)]
pub struct AdamW<M> {
    pub(super) m: M,
    pub(super) v: M,
    pub(super) t: u64,
}

/// What a step is made with.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// η.
    pub learning_rate: f32,
    /// β₁ and β₂.
    pub betas: (f32, f32),
    /// λ.
    pub weight_decay: f32,
}

impl<M: Parameters + Clone> AdamW<M> {
    /// Before the first step.
    pub fn new(model: &M) -> Self {
        AdamW { m: model.zeros_like(), v: model.zeros_like(), t: 0 }
    }

    /// Applies one step along `scale` times the gradients, and zeroes the gradients in the same pass.
    pub fn step(&mut self, model: &mut M, grad: &mut M, scale: f32, rates: Rates) {
        self.t += 1;
        let (b1, b2) = rates.betas;
        let correct = |beta: f32| (1.0 - f64::from(beta).powf(self.t as f64)) as f32;
        let (rate, root) = (rates.learning_rate / correct(b1), 1.0 / correct(b2).sqrt());
        let decays = decays(model);
        let (m, v) = (slices_mut(&mut self.m), slices_mut(&mut self.v));
        let tensors = slices_mut(model).into_iter().zip(slices_mut(grad)).zip(m).zip(v);
        let mut tasks = Vec::new();
        for ((((p, g), m), v), decay) in tensors.zip(decays) {
            let keep = if decay { 1.0 - rates.learning_rate * rates.weight_decay } else { 1.0 };
            let chunks = p.chunks_mut(TASK).zip(g.chunks_mut(TASK)).zip(m.chunks_mut(TASK)).zip(v.chunks_mut(TASK));
            tasks.extend(chunks.map(|(((p, g), m), v)| (p, g, m, v, keep)));
        }
        tasks.into_par_iter().for_each(|(p, g, m, v, keep)| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
                        let scaled = scale * std::mem::take(g);
                        *m = b1 * *m + (1.0 - b1) * scaled;
                        *v = b2 * *v + (1.0 - b2) * scaled * scaled;
                        *p = *p * keep - rate * *m / (v.sqrt() * root + EPSILON);
                    }
                },
            );
        });
    }
}

fn decays<M: Parameters>(model: &M) -> Vec<bool> {
    let mut decays = Vec::new();
    model.params("", &mut |_, param| decays.push(param.shape().len() >= 2));
    decays
}

/// The numbers of every parameter, as they lie in memory.
pub(super) fn slices_mut<M: Parameters>(model: &mut M) -> Vec<&mut [f32]> {
    let mut slices = Vec::new();
    model.visit_mut("", &mut |_, parameter: ArrayViewMutD<f32>| {
        slices.push(parameter.into_slice_memory_order().expect(WHOLE));
    });
    slices
}

const WHOLE: &str = "a parameter is an array of its own, without gaps";
