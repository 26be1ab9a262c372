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
//! The exponents are large, so φ̂ = φ·e^(−shift) is what is computed: with a shift of its own for each query, where it
//! cancels in the quotient, and one for all keys.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2};

use crate::dropout::mix64;
use crate::kernel::features::{EluPlusOne, ExpRows};
use crate::kernel::{Isa, dispatch};
use crate::shape::expect;
use crate::threads::Threads;
use crate::{Error, matmul};

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
    /// If there are no features or no dimensions.
    pub fn favor(dim: usize, features: usize, seed: u64) -> Result<Self, Error> {
        Ok(FeatureMap::Favor(Favor::new(dim, features, seed)?))
    }

    /// The number of features for heads of dimension `dim`.
    pub(super) fn width(&self, dim: usize) -> Result<usize, Error> {
        match self {
            FeatureMap::Elu => Ok(dim),
            FeatureMap::Favor(favor) => {
                expect("FAVOR+'s projection", &[favor.features(), dim], favor.projection.shape())?;
                Ok(favor.features())
            }
        }
    }

    /// ln of what the product of two features is to be multiplied with.
    pub(super) fn log_scale(&self) -> f32 {
        match self {
            FeatureMap::Elu => 0.0,
            FeatureMap::Favor(favor) => -(favor.features() as f32).ln(),
        }
    }

    /// φ̂ of each row, and the row's shift.
    pub(super) fn of_queries(&self, isa: Isa, x: ArrayView2<f32>) -> (Array2<f32>, Vec<f32>) {
        match self {
            FeatureMap::Elu => (elu(isa, x), vec![0.0; x.dim().0]),
            FeatureMap::Favor(favor) => {
                let (mut phi, halves) = favor.project(x);
                let tops = tops(&phi);
                exp(isa, &mut phi, &tops);
                (phi, tops.iter().zip(&halves).map(|(top, half)| top - half).collect())
            }
        }
    }

    /// φ̂ of each row with one shift for all, the largest exponent, but no less than `least`; and that shift.
    pub(super) fn of_keys(&self, isa: Isa, x: ArrayView2<f32>, least: f32) -> (Array2<f32>, f32) {
        match self {
            FeatureMap::Elu => (elu(isa, x), 0.0),
            FeatureMap::Favor(favor) => {
                let (mut phi, mut halves) = favor.project(x);
                let (tops, mut shift) = (tops(&phi), least);
                for ((mut row, top), half) in phi.rows_mut().into_iter().zip(tops).zip(&halves) {
                    if (top - half).is_finite() {
                        shift = shift.max(top - half);
                    } else {
                        // Infinity, too, is to spread to whoever sees this key, and to no one else.
                        row.fill(f32::NAN);
                    }
                }
                halves.iter_mut().for_each(|half| *half += shift);
                exp(isa, &mut phi, &halves);
                (phi, shift)
            }
        }
    }

    /// dx ⟵ the gradient in the rows x, from that in their φ̂.
    pub(super) fn backward(
        &self,
        x: ArrayView2<f32>,
        phi: &Array2<f32>,
        mut dphi: Array2<f32>,
        mut dx: ArrayViewMut2<f32>,
    ) {
        match self {
            FeatureMap::Elu => {
                ndarray::Zip::from(&mut dx).and(phi).and(&dphi).for_each(|dx, phi, dphi| *dx = dphi * phi.min(1.0));
            }
            FeatureMap::Favor(favor) => {
                dphi *= phi;
                let scale = favor.scale();
                product(scale, dphi.view(), favor.projection.view(), 0.0, dx.view_mut());
                for ((mut dx, x), dphi) in dx.rows_mut().into_iter().zip(x.rows()).zip(dphi.rows()) {
                    dx.scaled_add(-scale * scale * dphi.sum(), &x);
                }
            }
        }
    }
}

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
    /// If there are no features or no dimensions.
    pub fn new(dim: usize, features: usize, seed: u64) -> Result<Self, Error> {
        if dim == 0 {
            return Err(Error::HeadDim);
        }
        if features == 0 {
            let fits = format!("1 or more; D·ln D = {:.0} is usual", dim as f64 * (dim as f64).ln().max(1.0));
            return Err(Error::Fit { what: "the number of FAVOR+ features", got: 0, fits });
        }
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

    /// w·x for every row and vector, and |x|²/2 for every row.
    fn project(&self, x: ArrayView2<f32>) -> (Array2<f32>, Vec<f32>) {
        let mut products = Array2::zeros((x.dim().0, self.features()));
        let scale = self.scale();
        product(scale, x, self.projection.t(), 0.0, products.view_mut());
        (products, x.rows().into_iter().map(|x| 0.5 * scale * scale * x.dot(&x)).collect())
    }
}

/// c ⟵ alpha·a·b + beta·c, by this thread alone.
pub(super) fn product(alpha: f32, a: ArrayView2<f32>, b: ArrayView2<f32>, beta: f32, c: ArrayViewMut2<f32>) {
    matmul(alpha, a, b, beta, c, Threads::Sequential).expect("shapes fit, and the instruction set is known");
}

fn elu(isa: Isa, x: ArrayView2<f32>) -> Array2<f32> {
    let mut phi: Array2<f32> = CowArray::<f32, Ix2>::from(x).as_standard_layout().into_owned();
    dispatch(isa, EluPlusOne(phi.as_slice_mut().expect("made in standard layout")));
    phi
}

fn exp(isa: Isa, rows: &mut Array2<f32>, shifts: &[f32]) {
    let width = rows.dim().1;
    dispatch(isa, ExpRows { values: rows.as_slice_mut().expect("made in standard layout"), width, shifts });
}

/// The largest value of each row.
fn tops(rows: &Array2<f32>) -> Vec<f32> {
    rows.axis_iter(Axis(0)).map(|row| row.fold(f32::NEG_INFINITY, |max, x| max.max(*x))).collect()
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
