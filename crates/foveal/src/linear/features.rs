//! Feature maps φ, whose products stand for exp(q·k).
//!
//! **ELU + 1** (Katharopoulos 2020): φ(x) = elu(x) + 1, which is x + 1 above 0 and eˣ below; φ′ = min(φ, 1).
//!
//! **FAVOR+** (Choromanski 2020) estimates the softmax kernel itself. For w normal with covariance I,
//!
//! $$ e^{x \cdot y} = \mathbb{E}_w \Bigl[ e^{w \cdot x - |x|^2/2} \, e^{w \cdot y - |y|^2/2} \Bigr] $$
//!
//! because the product is $e^{w \cdot (x + y)}$ with mean $e^{|x + y|^2/2}$. So with m drawn vectors
//! $\phi(x)_f = m^{-1/2} e^{w_f \cdot x - |x|^2/2}$ for $x = q/d^{1/4}$ and likewise for k. All features are positive, and the
//! error falls as 1/√m. Vectors that are orthogonal to each other, D at a time, give a smaller error than independent ones.
//! $\partial \phi_f / \partial x = \phi_f (w_f - x)$.
//!
//! Both are computed by their logarithms, see `linear/levels.rs`: the exponents of FAVOR+ are large, and eˣ of ELU + 1 small.
//! Gradients pass through the logarithms as well: with dℓ = φ·dφ,
//!
//! $$ dx = \frac{d\ell}{\max(x, 0) + 1} \quad \text{(ELU + 1)}, \qquad
//!    dx = \sum_f d\ell_f (w_f - x) \quad \text{(FAVOR+)} $$

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, CowArray, Ix2, Zip};

use super::levels::Logs;
use crate::dropout::mix64;
use crate::kernel::features::{Bounds, EluPlusOne, Form, Normalise};
use foveal_compute::Supported;

use crate::kernel::dispatch;
use crate::shape::{expect_axes, room};
use foveal_compute::Threads;
use foveal_compute::matmul;

use crate::Error;

/// Which features take the place of exp(q·k).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum FeatureMap {
    /// elu(x) + 1 (Katharopoulos 2020): as many features as dimensions. q·k is not scaled.
    #[default]
    Elu,
    /// Positive orthogonal random features (Performer): an estimate of softmax attention with scale 1/√D.
    Favor(Favor),
}

impl FeatureMap {
    /// [`Favor::new`] as a feature map.
    ///
    /// # Errors
    /// As [`Favor::new`].
    pub fn favor(dim: usize, features: usize, seed: u64) -> Result<Self, Error> {
        Ok(FeatureMap::Favor(Favor::new(dim, features, seed)?))
    }

    /// The number of features for heads of dimension `dim`.
    pub(super) fn width(&self, dim: usize) -> Result<usize, Error> {
        match self {
            FeatureMap::Elu => Ok(dim),
            FeatureMap::Favor(favor) => {
                let axes = "[features, dim]";
                expect_axes("FAVOR+'s projection", axes, &[favor.features(), dim], favor.projection.shape())?;
                Ok(favor.features())
            }
        }
    }

    /// The logarithm of what the product of two features is multiplied by.
    pub(super) fn log_scale(&self) -> f64 {
        match self {
            FeatureMap::Elu => 0.0,
            FeatureMap::Favor(favor) => -(favor.features() as f64).ln(),
        }
    }

    /// ln φ of each row.
    pub(super) fn logs<'a>(&'a self, isa: Supported, x: ArrayView2<'a, f32>) -> Logs<'a> {
        match self {
            FeatureMap::Elu => {
                let x: CowArray<'a, f32, Ix2> =
                    if x.is_standard_layout() { x.into() } else { x.as_standard_layout().into_owned().into() };
                let (least, largest) = dispatch(isa, Bounds(slice(&x)));
                let rows = vec![0.0; x.dim().0];
                Logs::new(self, isa, x, rows, least >= LEAST && largest <= LARGEST)
            }
            FeatureMap::Favor(favor) => {
                let mut products = Array2::zeros((x.dim().0, favor.features()));
                let scale = favor.scale();
                product(scale, x, favor.projection.t(), 0.0, products.view_mut());
                let row = |x| match -0.5 * f64::from(scale) * f64::from(scale) * square(x) {
                    f64::NEG_INFINITY => f64::NAN,
                    finite => finite,
                };
                Logs::new(self, isa, products.into(), x.rows().into_iter().map(row).collect(), false)
            }
        }
    }

    /// What the values of [`Logs`] are.
    pub(super) fn form(&self) -> Form {
        match self {
            FeatureMap::Elu => Form::Elu,
            FeatureMap::Favor(_) => Form::Exp,
        }
    }

    /// ln φ, for which `x` stands.
    pub(super) fn log(&self, x: f32) -> f64 {
        match self.form() {
            Form::Exp => x.into(),
            Form::Elu => f64::from(x.min(0.0)) + f64::from(x.max(0.0)).ln_1p(),
        }
    }

    /// The part of ln φ that grows without end: min(x, 0) of ELU + 1, whose logarithm above 0 is small.
    pub(super) fn exponent(&self, x: f32) -> f32 {
        match self.form() {
            Form::Exp => x,
            Form::Elu => x.min(0.0),
        }
    }

    /// Whether a row of values has neither NaN nor infinite features.
    pub(super) fn is_sound(&self, row: ArrayView1<f32>) -> bool {
        match self.form() {
            Form::Exp => row.iter().all(|x| x.is_finite()),
            Form::Elu => row.iter().all(|x| *x < f32::INFINITY),
        }
    }

    /// dx ⟵ the gradient in the rows x, from that in ln φ.
    pub(super) fn backward(&self, x: ArrayView2<f32>, dlogs: &Array2<f32>, mut dx: ArrayViewMut2<f32>) {
        match self {
            FeatureMap::Elu => {
                // Where x is NaN, dlog is.
                Zip::from(&mut dx).and(x).and(dlogs).for_each(|dx, x, dlog| *dx = dlog / (x.max(0.0) + 1.0));
            }
            FeatureMap::Favor(favor) => {
                let scale = favor.scale();
                product(scale, dlogs.view(), favor.projection.view(), 0.0, dx.view_mut());
                for ((mut dx, x), dlogs) in dx.rows_mut().into_iter().zip(x.rows()).zip(dlogs.rows()) {
                    dx.scaled_add(-scale * scale * dlogs.sum(), &x);
                }
            }
        }
    }
}

/// Between these, ELU + 1 and sums of its products are neither too small nor too large for f32.
const LEAST: f32 = -15.0;
const LARGEST: f32 = 1e9;

/// The random vectors of FAVOR+, shared by all heads.
///
/// ```
/// use foveal::{Favor, FeatureMap, LinearAttention};
/// let favor = Favor::new(64, 256, 1)?; // D = 64, m = 256
/// let linear = LinearAttention::new(FeatureMap::Favor(favor.clone()));
/// let later = linear.features(FeatureMap::Favor(favor.redraw(2))); // in training, every some steps
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Favor {
    /// [m, D]
    projection: ndarray::ArcArray2<f32>,
}

impl Favor {
    /// `features` vectors for heads of dimension `dim`. D·ln D of them are usual; the error falls with their square root.
    ///
    /// # Errors
    /// If there are no features or no dimensions, or no memory could hold them.
    pub fn new(dim: usize, features: usize, seed: u64) -> Result<Self, Error> {
        if dim == 0 {
            return Err(Error::HeadDim);
        }
        if features == 0 {
            let fits = format!("1 or more; D·ln D = {:.0} is usual", dim as f64 * (dim as f64).ln().max(1.0));
            return Err(Error::Fit { what: "the number of FAVOR+ features", got: 0, fits });
        }
        room::<f64>("a matrix of FAVOR+ vectors", &[features, dim])?;
        Ok(Favor { projection: orthogonal(dim, features, seed).into_shared() })
    }

    /// Other vectors, as many.
    #[must_use]
    pub fn redraw(&self, seed: u64) -> Self {
        let (features, dim) = self.projection.dim();
        Favor { projection: orthogonal(dim, features, seed).into_shared() }
    }

    /// The vectors w: [m, D].
    pub fn projection(&self) -> ArrayView2<'_, f32> {
        self.projection.view()
    }

    /// m, the number of features.
    pub fn features(&self) -> usize {
        self.projection.dim().0
    }

    /// x = q·this; D^(−1/4).
    fn scale(&self) -> f32 {
        (self.projection.dim().1 as f32).powf(-0.25)
    }
}

/// c ⟵ alpha·a·b + beta·c, by this thread alone.
pub(super) fn product(alpha: f32, a: ArrayView2<f32>, b: ArrayView2<f32>, beta: f32, c: ArrayViewMut2<f32>) {
    matmul(alpha, a, b, beta, c, Threads::Sequential).expect("shapes fit, and the instruction set is known");
}

/// φ of ELU + 1.
pub(super) fn elu(isa: Supported, x: &CowArray<f32, Ix2>) -> Array2<f32> {
    let mut phi = Array2::zeros(x.dim());
    dispatch(isa, EluPlusOne { from: slice(x), to: phi.as_slice_mut().expect("made in standard layout") });
    phi
}

/// e^(ln φ + level − shift), and the shift of each row; see [`Normalise`].
pub(super) fn normalise(isa: Supported, form: Form, x: &CowArray<f32, Ix2>, levels: &[f32]) -> (Array2<f32>, Vec<f32>) {
    let (mut phi, mut shifts) = (Array2::zeros(x.dim()), vec![0.0; x.dim().0]);
    let to = phi.as_slice_mut().expect("made in standard layout");
    dispatch(isa, Normalise { form, from: slice(x), to, levels, shifts: &mut shifts });
    (phi, shifts)
}

/// |x|², in f64: it is much larger than its difference from one row to another, which is what counts.
fn square(x: ArrayView1<f32>) -> f64 {
    let one = |x: &f32| f64::from(*x) * f64::from(*x);
    let Some(x) = x.to_slice() else { return x.iter().map(one).sum() };
    // Eight sums that do not wait for each other.
    let (eights, rest) = x.as_chunks::<8>();
    let mut sums = [0.0; 8];
    eights.iter().for_each(|eight| sums.iter_mut().zip(eight).for_each(|(sum, x)| *sum += one(x)));
    sums.iter().sum::<f64>() + rest.iter().map(one).sum::<f64>()
}

fn slice<'a>(x: &'a CowArray<f32, Ix2>) -> &'a [f32] {
    x.as_slice().expect("in standard layout")
}

/// Random vectors, each as long as a normal one, and D at a time orthogonal to each other: [m, D].
fn orthogonal(dim: usize, features: usize, seed: u64) -> Array2<f32> {
    let mut counter = mix64(seed);
    let mut uniform = || {
        counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        // In (0, 1): its logarithm is finite.
        ((mix64(counter) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    };
    // Box and Muller.
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let mut directions = Array2::<f64>::zeros((features, dim));
    for n in 0..features {
        // Gram and Schmidt against those before it in its block. Twice: once leaves what rounding puts in.
        let mut row: ndarray::Array1<f64> = (0..dim).map(|_| normal()).collect();
        for _ in 0..2 {
            for other in n - n % dim..n {
                let other = directions.row(other);
                let along = row.dot(&other);
                row.scaled_add(-along, &other);
            }
        }
        let length = row.dot(&row).sqrt();
        directions.row_mut(n).assign(&(row / length.max(f64::MIN_POSITIVE)));
    }
    let mut lengths = (0..features).map(|_| (0..dim).map(|_| normal().powi(2)).sum::<f64>().sqrt());
    for mut row in directions.rows_mut() {
        row *= lengths.next().unwrap_or(1.0);
    }
    directions.mapv(|x| x as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_orthogonal_and_as_long_as_normal_ones() {
        let favor = Favor::new(16, 400, 3).unwrap();
        let w = favor.projection.view();
        let mut squares = 0.0;
        for i in 0..400 {
            for j in i - i % 16..i {
                assert!(w.row(i).dot(&w.row(j)).abs() < 1e-4);
            }
            squares += f64::from(w.row(i).dot(&w.row(i)));
        }
        // The mean of 400 χ² of 16 degrees: 16, give or take √(2·16/400).
        assert!((squares / 400.0 - 16.0).abs() < 3.0 * 0.283, "{}", squares / 400.0);
        assert_ne!(favor.redraw(4).projection, favor.projection);
        assert_eq!(favor.redraw(3).projection, favor.projection);
    }
}
