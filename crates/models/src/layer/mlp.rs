//! The two kinds of MLP between attentions.
//!
//! $$ \text{plain: } y = f(x U^\top + b)\, V^\top + c \qquad\qquad
//!    \text{gated (Shazeer 2020): } y = \left( f(x G^\top) \odot x U^\top \right) V^\top $$
//!
//! ```
//! use foveal_models::layer::{Activation, GatedMlp, Mlp, Parameters, Random};
//! use ndarray::Array2;
//!
//! let (random, x) = (&mut Random::new(1), Array2::<f32>::ones((5, 64)));
//! let gpt2 = Mlp::new(64, 256, Activation::GeluTanh, random);
//! assert_eq!(gpt2.infer(&x)?.dim(), (5, 64));
//! let llama = GatedMlp::new(64, 172, Activation::Silu, random);
//! assert_eq!(llama.infer(&x)?.dim(), (5, 64));
//! assert_eq!(llama.parameter_count(), 3 * 64 * 172);
//! # Ok::<(), foveal_models::Error>(())
//! ```

use ndarray::{ArcArray2, Array2, ArrayView2, CowArray, Ix2};

use super::activation::Slopes;
use super::{Activation, Linear, Random, parameters};
use crate::Error;

/// Linear, activation, linear.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    /// U and b: D → hidden.
    pub up: Linear,
    /// f.
    pub activation: Activation,
    /// V and c: hidden → D.
    pub down: Linear,
}

parameters!(Mlp { up: "up_proj", down: "down_proj" });

/// What [`Mlp::backward`] needs.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The input: [N, D].
    pub x: ArcArray2<f32>,
    /// The slopes of the activation: [N, hidden].
    pub slopes: Slopes,
    /// After the activation: [N, hidden].
    pub active: ArcArray2<f32>,
}

impl Mlp {
    /// Weights from a normal distribution of deviation 0.02, biases of zeros.
    pub fn new(dim: usize, hidden: usize, activation: Activation, random: &mut Random) -> Self {
        Mlp { up: Linear::new(dim, hidden, random), activation, down: Linear::new(hidden, dim, random) }
    }

    /// y: [N, D] for x: [N, D].
    ///
    /// # Errors
    /// If x has another width than the layer.
    pub fn infer<'a>(&self, x: impl Into<ArrayView2<'a, f32>>) -> Result<Array2<f32>, Error> {
        let mut hidden = self.up.forward(x)?;
        self.activation.apply(&mut hidden);
        self.down.forward(&hidden)
    }

    /// The same, with what [`backward`](Mlp::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](Mlp::infer).
    pub fn forward(&self, x: &ArcArray2<f32>) -> Result<(Array2<f32>, Saved), Error> {
        let hidden = self.up.forward(x)?;
        let (active, slopes) = self.activation.forward(hidden);
        let y = self.down.forward(&active)?;
        Ok((y, Saved { x: x.clone(), slopes, active }))
    }

    /// dx: [N, D].
    ///
    /// # Errors
    /// If dy is not shaped like the output.
    pub fn backward<'d>(
        &self,
        saved: &Saved,
        dy: impl Into<CowArray<'d, f32, Ix2>>,
        grad: &mut Mlp,
    ) -> Result<Array2<f32>, Error> {
        let mut dhidden = self.down.backward(&saved.active, &dy.into(), &mut grad.down)?;
        saved.slopes.apply(&mut dhidden)?;
        self.up.backward(&saved.x, &dhidden, &mut grad.up)
    }
}

/// Two linear layers, one of which gates the other, and a third. With SiLU it is called SwiGLU.
#[derive(Clone, Debug, PartialEq)]
pub struct GatedMlp {
    /// G: D → hidden.
    pub gate: Linear,
    /// U: D → hidden.
    pub up: Linear,
    /// f.
    pub activation: Activation,
    /// V: hidden → D.
    pub down: Linear,
}

parameters!(GatedMlp { gate: "gate_proj", up: "up_proj", down: "down_proj" });

/// What [`GatedMlp::backward`] needs.
#[derive(Clone, Debug)]
pub struct GatedSaved {
    /// The input: [N, D].
    pub x: ArcArray2<f32>,
    /// How f(gate)·up moves with gate = x·Gᵀ: [N, hidden].
    pub gate: Slopes,
    /// How it moves with up = x·Uᵀ: [N, hidden].
    pub up: Slopes,
    /// f(gate)·up: [N, hidden].
    pub active: Array2<f32>,
}

impl GatedMlp {
    /// Weights from a normal distribution of deviation 0.02, without biases.
    pub fn new(dim: usize, hidden: usize, activation: Activation, random: &mut Random) -> Self {
        let mut linear = |inputs, outputs| Linear::new(inputs, outputs, random).without_bias();
        GatedMlp { gate: linear(dim, hidden), up: linear(dim, hidden), activation, down: linear(hidden, dim) }
    }

    /// The same with biases of 0.
    pub fn biased(dim: usize, hidden: usize, activation: Activation, random: &mut Random) -> Self {
        let mut linear = |inputs, outputs| Linear::new(inputs, outputs, random);
        GatedMlp { gate: linear(dim, hidden), up: linear(dim, hidden), activation, down: linear(hidden, dim) }
    }

    /// y: [N, D] for x: [N, D].
    ///
    /// # Errors
    /// If x has another width than the layer.
    pub fn infer<'a>(&self, x: impl Into<ArrayView2<'a, f32>>) -> Result<Array2<f32>, Error> {
        let x = x.into();
        let (gate, mut up) = (self.gate.forward(x)?, self.up.forward(x)?);
        self.activation.gate(&gate, &mut up)?;
        self.down.forward(&up)
    }

    /// The same, with what [`backward`](GatedMlp::backward) needs.
    ///
    /// # Errors
    /// As [`infer`](GatedMlp::infer).
    pub fn forward(&self, x: &ArcArray2<f32>) -> Result<(Array2<f32>, GatedSaved), Error> {
        let (gate, up) = (self.gate.forward(x)?, self.up.forward(x)?);
        let (active, gate, up) = self.activation.gate_forward(gate, up)?;
        let y = self.down.forward(&active)?;
        Ok((y, GatedSaved { x: x.clone(), gate, up, active }))
    }

    /// dx: [N, D].
    ///
    /// # Errors
    /// If dy is not shaped like the output.
    pub fn backward<'d>(
        &self,
        saved: &GatedSaved,
        dy: impl Into<CowArray<'d, f32, Ix2>>,
        grad: &mut GatedMlp,
    ) -> Result<Array2<f32>, Error> {
        let mut dup = self.down.backward(&saved.active, &dy.into(), &mut grad.down)?;
        let dgate = saved.gate.backward(&dup)?;
        saved.up.apply(&mut dup)?;
        let mut dx = self.up.backward(&saved.x, &dup, &mut grad.up)?;
        self.gate.backward_onto(&saved.x, &dgate, &mut dx, &mut grad.gate)?;
        Ok(dx)
    }
}
