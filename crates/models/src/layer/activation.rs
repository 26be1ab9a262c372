//! The non-linear functions between linear layers, value by value.
//!
//! $$ \mathrm{GELU}(x) = x\, \Phi(x), \qquad
//!    \mathrm{GELU}_{\tanh}(x) = \tfrac{x}{2} (1 + \tanh u) = x\, \sigma(2u),\ u = \sqrt{2/\pi}\,(x + 0.044715\, x^3) $$
//! $$ \mathrm{SiLU}(x) = x\, \sigma(x), \qquad \mathrm{ReLU}(x) = \max(x, 0), \qquad dx = dy \odot f'(x) $$
//!
//! Φ is the normal distribution function, σ the logistic function. Absolute errors are below 1e-6 for |x| ≤ 10.
//!
//! ```
//! use foveal_models::layer::Activation;
//! use ndarray::array;
//!
//! let mut x = array![[-1.0, 0.0, 1.0]];
//! Activation::Gelu.apply(&mut x);
//! assert!((x[[0, 0]] + 0.158_655).abs() < 1e-6 && x[[0, 1]] == 0.0 && (x[[0, 2]] - 0.841_345).abs() < 1e-6);
//! ```

use ndarray::{ArcArray2, Array2, ArrayView2};
use rayon::prelude::*;

use super::parallel::{self, BLOCK, contiguous, standard, values};
use super::shape::expect;
use super::vector::{exp, sigmoid};
use crate::Error;

/// A function of single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x·Φ(x), exact (BERT, ViT; "gelu").
    Gelu,
    /// GELU by its tanh formula (GPT-2; "gelu_new", "gelu_pytorch_tanh").
    GeluTanh,
    /// x·σ(x) (Llama; "silu", "swish").
    Silu,
    /// max(x, 0) (the first Transformer; "relu").
    Relu,
}

/// Runs `$work` with `$both` bound to a function that gives f(x) and f′(x): one loop is compiled for each function.
macro_rules! with_function {
    ($activation:expr, $both:ident => $work:expr) => {
        match $activation {
            Activation::Gelu => {
                let $both = gelu;
                $work
            }
            Activation::GeluTanh => {
                let $both = gelu_tanh;
                $work
            }
            Activation::Silu => {
                let $both = silu;
                $work
            }
            Activation::Relu => {
                let $both = relu;
                $work
            }
        }
    };
}

impl Activation {
    /// x ⟵ f(x), in place.
    pub fn apply(self, x: &mut Array2<f32>) {
        with_function!(self, both => for_each(x, |x| both(x).0));
    }

    /// f(x), and f′(x) in the place of x: the two share their exponential, and the way back then has none. The slopes of ReLU
    /// are seen from its values.
    pub fn forward(self, mut x: Array2<f32>) -> (ArcArray2<f32>, Slopes) {
        if self == Activation::Relu {
            self.apply(&mut x);
            let y = x.into_shared();
            return (y.clone(), Slopes(SlopeValues::Positive(y)));
        }
        let (dim, blocks) = (x.dim(), contiguous(&mut x).par_chunks_mut(BLOCK));
        let y = with_function!(self, both => parallel::write_new(dim, BLOCK, blocks, |x, y| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    y.write(x.iter_mut().map(|x| {
                        let (value, slope) = both(*x);
                        *x = slope;
                        value
                    }));
                },
            );
        }));
        (y.into_shared(), Slopes(SlopeValues::Each(x)))
    }

    /// up ⟵ f(gate)·up, in place: the middle of a gated MLP.
    ///
    /// # Errors
    /// If the two are not shaped alike.
    pub fn gate<'a>(self, gate: impl Into<ArrayView2<'a, f32>>, up: &mut Array2<f32>) -> Result<(), Error> {
        let gate = standard(gate);
        expect("the gated values", gate.shape(), up.shape())?;
        with_function!(self, both => for_each_with(up, values(&gate), |up, gate| both(gate).0 * up));
        Ok(())
    }

    /// f(gate)·up, with its slopes in the places of gate and up: f′(gate)·up and f(gate).
    ///
    /// # Errors
    /// If the two are not shaped alike.
    pub fn gate_forward(
        self,
        mut gate: Array2<f32>,
        mut up: Array2<f32>,
    ) -> Result<(Array2<f32>, Slopes, Slopes), Error> {
        expect("the gated values", gate.shape(), up.shape())?;
        let (dim, gates) = (gate.dim(), contiguous(&mut gate).par_chunks_mut(BLOCK));
        let blocks = gates.zip(contiguous(&mut up).par_chunks_mut(BLOCK));
        let y = with_function!(self, both => parallel::write_new(dim, BLOCK, blocks, |(gate, up), y| {
            foveal_compute::vectorise(
                #[inline(always)]
                || {
                    y.write(gate.iter_mut().zip(up).map(|(gate, up)| {
                        let ((value, slope), gated) = (both(*gate), *up);
                        (*gate, *up) = (slope * gated, value);
                        value * gated
                    }));
                },
            );
        }));
        Ok((y, Slopes(SlopeValues::Each(gate)), Slopes(SlopeValues::Each(up))))
    }
}

/// What the way back needs: how much each value of the output moves with its input.
#[derive(Clone, Debug)]
pub struct Slopes(SlopeValues);

#[derive(Clone, Debug)]
enum SlopeValues {
    /// A slope for each value.
    Each(Array2<f32>),
    /// 1 where these are positive, and 0 elsewhere.
    Positive(ArcArray2<f32>),
}

/// dy·f′(x), where `of` is a slope.
#[inline(always)]
fn by_slope(dy: f32, of: f32) -> f32 {
    dy * of
}

/// dy·f′(x), where `of` is a value of ReLU.
#[inline(always)]
fn if_positive(dy: f32, of: f32) -> f32 {
    if of > 0.0 { dy } else { 0.0 }
}

impl Slopes {
    fn shape(&self) -> &[usize] {
        match &self.0 {
            SlopeValues::Each(slopes) => slopes.shape(),
            SlopeValues::Positive(y) => y.shape(),
        }
    }

    /// dy ⟵ dy·f′(x), in place: the gradient of x.
    ///
    /// # Errors
    /// If dy is not shaped like x.
    pub fn apply(&self, dy: &mut Array2<f32>) -> Result<(), Error> {
        expect("the gradient of the activation", self.shape(), dy.shape())?;
        match &self.0 {
            SlopeValues::Each(slopes) => for_each_with(dy, values(slopes), by_slope),
            SlopeValues::Positive(y) => for_each_with(dy, values(y), if_positive),
        }
        Ok(())
    }

    /// dy·f′(x), leaving dy.
    ///
    /// # Errors
    /// If dy is not shaped like x.
    pub fn backward(&self, dy: &Array2<f32>) -> Result<Array2<f32>, Error> {
        expect("the gradient of the activation", self.shape(), dy.shape())?;
        Ok(match &self.0 {
            SlopeValues::Each(slopes) => new_with(dy, values(slopes), by_slope),
            SlopeValues::Positive(y) => new_with(dy, values(y), if_positive),
        })
    }
}

/// f(x, y), in a new array.
fn new_with(x: &Array2<f32>, y: &[f32], f: impl Fn(f32, f32) -> f32 + Send + Sync) -> Array2<f32> {
    let x = standard(x);
    let blocks = values(&x).par_chunks(BLOCK).zip(y.par_chunks(BLOCK));
    parallel::write_new(x.dim(), BLOCK, blocks, |(x, y), new| {
        foveal_compute::vectorise(
            #[inline(always)]
            || new.write(x.iter().zip(y).map(|(x, y)| f(*x, *y))),
        );
    })
}

/// x ⟵ f(x).
fn for_each(x: &mut Array2<f32>, f: impl Fn(f32) -> f32 + Send + Sync) {
    parallel::for_each(2 * x.len(), contiguous(x).par_chunks_mut(BLOCK), |x| {
        foveal_compute::vectorise(
            #[inline(always)]
            || x.iter_mut().for_each(|x| *x = f(*x)),
        );
    });
}

/// x ⟵ f(x, y).
fn for_each_with(x: &mut Array2<f32>, y: &[f32], f: impl Fn(f32, f32) -> f32 + Send + Sync) {
    let blocks = contiguous(x).par_chunks_mut(BLOCK).zip(y.par_chunks(BLOCK));
    parallel::for_each(2 * y.len(), blocks, |(x, y)| {
        foveal_compute::vectorise(
            #[inline(always)]
            || x.iter_mut().zip(y).for_each(|(x, y)| *x = f(*x, *y)),
        );
    });
}

/// Φ by Abramowitz and Stegun 7.1.26: for z ≥ 0, 1 − Φ(z) = ½ e^(−z²/2)·P(1 / (1 + p·z/√2)), with an error of 1.5e-7. Taking
/// the tail on either side keeps small values of the left one exact.
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "as published")]
fn gelu(x: f32) -> (f32, f32) {
    const INV_SQRT_TAU: f32 = 0.398_942_28;
    let z = x.abs();
    let bell = exp(-0.5 * x * x);
    let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * z);
    let mut p = 1.061_405_429;
    for c in [-1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592] {
        p = p * t + c;
    }
    let tail = 0.5 * p * t * bell;
    let phi = if x < 0.0 { tail } else { 1.0 - tail };
    (x * phi, phi + x * bell * INV_SQRT_TAU)
}

#[inline(always)]
fn gelu_tanh(x: f32) -> (f32, f32) {
    /// 2·√(2/π)
    const SCALE: f32 = 1.595_769;
    const CUBE: f32 = SCALE * 0.044_715;
    let square = x * x;
    let s = sigmoid(x * (SCALE + CUBE * square));
    let y = x * s;
    (y, s + y * (1.0 - s) * (SCALE + 3.0 * CUBE * square))
}

#[inline(always)]
fn silu(x: f32) -> (f32, f32) {
    let s = sigmoid(x);
    (x * s, s + x * s * (1.0 - s))
}

#[inline(always)]
fn relu(x: f32) -> (f32, f32) {
    // Written so that a NaN stays one.
    if x < 0.0 { (0.0, 0.0) } else { (x, if x > 0.0 { 1.0 } else { 0.0 }) }
}
