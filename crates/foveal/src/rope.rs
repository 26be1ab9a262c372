//! Rotary position embedding (Su 2021): queries and keys are turned by angles that grow with their position, so that
//! their product depends only on the distance between them.
//!
//! Coordinates are taken in pairs; pair m of D/2 is a point in the plane, and at position p
//!
//! $$ \begin{pmatrix} x'_a \\ x'_b \end{pmatrix} =
//!    \begin{pmatrix} \cos p\theta_m & -\sin p\theta_m \\ \sin p\theta_m & \cos p\theta_m \end{pmatrix}
//!    \begin{pmatrix} x_a \\ x_b \end{pmatrix}, \qquad \theta_m = \text{base}^{-2m/D} $$
//!
//! A rotation's transpose is its inverse, so the gradient is turned back by the same angles.
//!
//! Sines and cosines are computed in f64 (in f32 the angle of position 100,000 would be off by 0.004), once for all heads.
//! Each call computes them anew, O(T·D); a [`RopeTable`] keeps them from call to call.

mod scaling;
mod table;

use ndarray::{Array2, ArrayView2, ArrayViewMut4, s};

use crate::Error;
use crate::shape::expect_axes;

pub use table::RopeTable;

/// Which coordinates make a pair. A checkpoint trained with one of the two gives nonsense with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RopeLayout {
    /// (m, m + dim/2): GPT-NeoX, and Llama and its kin as Hugging Face stores them.
    #[default]
    Halves,
    /// (2m, 2m + 1): GPT-J, and Llama as Meta stores it.
    Interleaved,
}

/// How the angles are changed to reach beyond the length that a model was trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    #[default]
    None,
    /// Positions are divided by the factor (Chen 2023).
    Linear(f64),
    /// "NTK-aware": base ⟵ base·factor^(d/(d − 2)). The slowest pair is slowed by the factor, the fastest not at all.
    Ntk(f64),
    /// As in Llama 3.1: pairs that turn fewer than `low` times within the trained length are slowed by the factor, those
    /// that turn more than `high` times not at all, and those between by degrees.
    Llama3 {
        /// By how much.
        factor: f64,
        /// `low_freq_factor`, 1 in Llama 3.1.
        low: f64,
        /// `high_freq_factor`, 4 in Llama 3.1.
        high: f64,
        /// The length that the model was trained on first.
        trained: usize,
    },
    /// As [`Ntk`](RopeScaling::Ntk) for a text longer than the trained length, by as much as it is longer, and not at all
    /// for others. With a cache, tokens that are in it stay as they were turned when they came.
    Dynamic {
        /// By how much.
        factor: f64,
        /// The length that the model was trained on.
        trained: usize,
    },
    /// YaRN (Peng 2023): pairs that turn fewer than `slow` times within the trained length are slowed by the factor, those
    /// that turn more than `fast` times not at all, and those between by degrees. Models that use it also want an
    /// [`attention_factor`](Rope::attention_factor).
    Yarn {
        /// By how much.
        factor: f64,
        /// `beta_fast`, mostly 32.
        fast: f64,
        /// `beta_slow`, mostly 1.
        slow: f64,
        /// The length that the model was trained on first.
        trained: usize,
        /// Whether the range in between begins and ends with a whole pair.
        whole_pairs: bool,
    },
}

/// Rotary position embedding of the first `dim` coordinates of each head.
///
/// ```
/// use foveal::{Rope, RopeLayout};
/// use ndarray::Array4;
///
/// let rope = Rope::new(64)?.base(500_000.0).layout(RopeLayout::Halves); // as in Llama 3
/// let (mut q, mut k) = (Array4::ones((1, 32, 10, 64)), Array4::ones((1, 8, 10, 64)));
/// rope.rotate(&mut q, 0)?;
/// rope.rotate(&mut k, 0)?;
/// // Backward, the same call on the gradients of the turned arrays gives those of the unturned.
/// rope.rotate_back(&mut q, 0)?;
/// assert!(q.iter().all(|x| (x - 1.0).abs() < 1e-6));
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    dim: usize,
    base: f64,
    scaling: RopeScaling,
    layout: RopeLayout,
    attention_factor: f64,
}

/// Coordinates at most: no head is as large.
const MAX_DIM: usize = 1 << 20;

impl Rope {
    /// Turns the first `dim` coordinates of each head, an even number; the others stay. Base 10,000, layout
    /// [`Halves`](RopeLayout::Halves), no scaling.
    ///
    /// # Errors
    /// If `dim` is odd, 0, or more than 1,048,576.
    pub fn new(dim: usize) -> Result<Self, Error> {
        if dim == 0 || !dim.is_multiple_of(2) || dim > MAX_DIM {
            let fits = "an even number from 2 to the head dimension, which is at most 1,048,576".into();
            return Err(Error::Fit { what: "the number of rotary dimensions", got: dim, fits });
        }
        let (scaling, layout) = (RopeScaling::None, RopeLayout::Halves);
        Ok(Rope { dim, base: 10_000.0, scaling, layout, attention_factor: 1.0 })
    }

    /// The wavelengths grow from 2π to nearly 2π·base tokens.
    #[must_use]
    pub fn base(mut self, base: f64) -> Self {
        self.base = base;
        self
    }

    /// How to reach beyond the trained length.
    #[must_use]
    pub fn scaling(mut self, scaling: RopeScaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Which coordinates make a pair.
    #[must_use]
    pub fn layout(mut self, layout: RopeLayout) -> Self {
        self.layout = layout;
        self
    }

    /// By how much queries and keys are made longer as they are turned; 1 at first. YaRN makes the weights of long texts
    /// sharper with it: the scores grow by its square.
    #[must_use]
    pub fn attention_factor(mut self, factor: f64) -> Self {
        self.attention_factor = factor;
        self
    }

    /// Turns x [B, H, T, D] in place, its tokens at positions `start`, `start` + 1, …
    ///
    /// # Errors
    /// If `dim` is more than D, or the base or a factor is not a finite number above 0.
    pub fn rotate<'a>(&self, x: impl Into<ArrayViewMut4<'a, f32>>, start: usize) -> Result<(), Error> {
        let x = x.into();
        let positions = consecutive(start, x.dim().2);
        self.turn(x, &positions, 1.0)
    }

    /// The backward of [`rotate`](Rope::rotate): turns the gradient of its result, in place, into the gradient of its input.
    /// Without an [`attention_factor`](Rope::attention_factor) it is also its inverse.
    ///
    /// # Errors
    /// As [`rotate`](Rope::rotate).
    pub fn rotate_back<'a>(&self, dx: impl Into<ArrayViewMut4<'a, f32>>, start: usize) -> Result<(), Error> {
        let dx = dx.into();
        let positions = consecutive(start, dx.dim().2);
        self.turn(dx, &positions, -1.0)
    }

    /// [`rotate`](Rope::rotate) with the position of every token given: [B, T], or [1, T] for all sequences alike.
    ///
    /// # Errors
    /// As [`rotate`](Rope::rotate); also if `positions` does not fit.
    pub fn rotate_at<'a, 'p>(
        &self,
        x: impl Into<ArrayViewMut4<'a, f32>>,
        positions: impl Into<ArrayView2<'p, usize>>,
    ) -> Result<(), Error> {
        self.turn(x.into(), &positions.into().mapv(|p| p as f64), 1.0)
    }

    /// The backward of [`rotate_at`](Rope::rotate_at).
    ///
    /// # Errors
    /// As [`rotate_at`](Rope::rotate_at).
    pub fn rotate_back_at<'a, 'p>(
        &self,
        dx: impl Into<ArrayViewMut4<'a, f32>>,
        positions: impl Into<ArrayView2<'p, usize>>,
    ) -> Result<(), Error> {
        self.turn(dx.into(), &positions.into().mapv(|p| p as f64), -1.0)
    }

    /// Turns by `sign` times the angle.
    fn turn(&self, x: ArrayViewMut4<f32>, positions: &Array2<f64>, sign: f32) -> Result<(), Error> {
        let (batch, _, tokens, _) = x.dim();
        self.check(x.dim().3)?;
        let sequences = if positions.dim().0 == 1 { 1 } else { batch };
        expect_axes("the positions", "[batch or 1, tokens]", &[sequences, tokens], positions.shape())?;
        let length = positions.iter().fold(0.0, |most: f64, &position| most.max(position + 1.0)) as usize;
        let angles = self.angles(positions.iter().copied(), length);
        self.turn_by(x, &angles, |b, t| if sequences == 1 { t } else { b * tokens + t }, sign);
        Ok(())
    }

    /// Turns token t of sequence b by `sign` times the angles at `at(b, t)`.
    fn turn_by(&self, mut x: ArrayViewMut4<f32>, angles: &Angles, at: impl Fn(usize, usize) -> usize, sign: f32) {
        let half = self.dim / 2;
        let mut copy = vec![0.0; self.dim];
        for (b, mut heads) in x.outer_iter_mut().enumerate() {
            for mut head in heads.outer_iter_mut() {
                for (t, mut row) in head.outer_iter_mut().enumerate() {
                    let at = at(b, t) * half..(at(b, t) + 1) * half;
                    let (cos, sin) = (&angles.cos[at.clone()], &angles.sin[at]);
                    let mut row = row.slice_mut(s![..self.dim]);
                    if let Some(row) = row.as_slice_mut() {
                        turn_row(row, cos, sin, sign, self.layout);
                    } else {
                        copy.iter_mut().zip(&row).for_each(|(c, x)| *c = *x);
                        turn_row(&mut copy, cos, sin, sign, self.layout);
                        row.iter_mut().zip(&copy).for_each(|(x, c)| *x = *c);
                    }
                }
            }
        }
    }

    /// Those of `positions` in a text of `length` tokens.
    fn angles(&self, positions: impl Iterator<Item = f64>, length: usize) -> Angles {
        let frequencies = self.scaling.frequencies(self.dim, self.base, length);
        let angles = positions.flat_map(|p| frequencies.iter().map(move |f| p * f));
        let by = self.attention_factor;
        let (sin, cos) = angles.map(|angle| ((by * angle.sin()) as f32, (by * angle.cos()) as f32)).unzip();
        Angles { cos, sin }
    }

    /// θ of each pair, scaled: the angle by which it turns from one position to the next. Of a scaling that depends on the
    /// length of the text, that of a text no longer than the trained length.
    ///
    /// ```
    /// use foveal::{Rope, RopeScaling};
    ///
    /// assert_eq!(Rope::new(4)?.frequencies(), [1.0, 0.01]);
    /// assert_eq!(Rope::new(4)?.scaling(RopeScaling::Linear(2.0)).frequencies(), [0.5, 0.005]);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    pub fn frequencies(&self) -> Vec<f64> {
        self.scaling.frequencies(self.dim, self.base, 0)
    }

    fn check(&self, head_dim: usize) -> Result<(), Error> {
        if self.dim > head_dim {
            let fits = format!("at most {head_dim}, the head dimension");
            return Err(Error::Fit { what: "the number of rotary dimensions", got: self.dim, fits });
        }
        self.scaling.check()?;
        for (what, got) in [("the rotary base", self.base), ("the attention factor", self.attention_factor)] {
            if !(got.is_finite() && got > 0.0) {
                return Err(Error::Value { what, expected: "a finite number above 0", got });
            }
        }
        Ok(())
    }
}

/// Cosines and sines, D/2 for each position.
#[derive(Debug, Default)]
struct Angles {
    cos: Vec<f32>,
    sin: Vec<f32>,
}

fn consecutive(start: usize, tokens: usize) -> Array2<f64> {
    Array2::from_shape_fn((1, tokens), |(_, t)| start as f64 + t as f64)
}

fn turn_row(x: &mut [f32], cos: &[f32], sin: &[f32], sign: f32, layout: RopeLayout) {
    let turn = |a: &mut f32, b: &mut f32, cos: f32, sin: f32| {
        let sin = sign * sin;
        (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
    };
    let angles = cos.iter().zip(sin);
    match layout {
        RopeLayout::Halves => {
            let (a, b) = x.split_at_mut(cos.len());
            a.iter_mut().zip(b).zip(angles).for_each(|((a, b), (cos, sin))| turn(a, b, *cos, *sin));
        }
        RopeLayout::Interleaved => {
            let (pairs, _) = x.as_chunks_mut();
            pairs.iter_mut().zip(angles).for_each(|([a, b], (cos, sin))| turn(a, b, *cos, *sin));
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array4, array};

    use super::*;

    fn example(shape: (usize, usize, usize, usize)) -> Array4<f32> {
        Array4::from_shape_fn(shape, |(b, h, t, d)| ((7 * b + 5 * h + 3 * t + 2 * d) as f32).sin())
    }

    fn near(x: &Array4<f32>, y: &Array4<f32>, tolerance: f32) -> bool {
        x.shape() == y.shape() && x.iter().zip(y).all(|(x, y)| (x - y).abs() <= tolerance)
    }

    #[test]
    fn layouts_pair_the_right_coordinates() {
        // At position 1 the first pair turns by 1 radian and the second by 10000^(−1/2) = 0.01.
        let x = array![[[[1., 2., 3., 4., 5.]]]];
        let turned = |a: f64, b: f64, angle: f64| {
            ((a * angle.cos() - b * angle.sin()) as f32, (b * angle.cos() + a * angle.sin()) as f32)
        };
        let (mut halves, mut interleaved) = (x.clone(), x.clone());
        Rope::new(4).unwrap().rotate(&mut halves, 1).unwrap();
        Rope::new(4).unwrap().layout(RopeLayout::Interleaved).rotate(&mut interleaved, 1).unwrap();
        let ((a, c), (b, d)) = (turned(1., 3., 1.), turned(2., 4., 0.01));
        assert!(near(&halves, &array![[[[a, b, c, d, 5.]]]], 1e-6), "{halves}");
        let ((a, b), (c, d)) = (turned(1., 2., 1.), turned(3., 4., 0.01));
        assert!(near(&interleaved, &array![[[[a, b, c, d, 5.]]]], 1e-6), "{interleaved}");
    }

    #[test]
    fn products_depend_on_the_distance_alone() {
        let (q, k) = (example((1, 1, 1, 8)), example((1, 1, 1, 8)) + 0.3);
        for layout in [RopeLayout::Halves, RopeLayout::Interleaved] {
            for scaling in [RopeScaling::None, RopeScaling::Linear(4.0), RopeScaling::Ntk(4.0)] {
                let rope = Rope::new(8).unwrap().layout(layout).scaling(scaling);
                let product = |i, j| {
                    let (mut q, mut k) = (q.clone(), k.clone());
                    rope.rotate(&mut q, i).unwrap();
                    rope.rotate(&mut k, j).unwrap();
                    (q * k).sum()
                };
                assert!((product(9, 2) - product(1007, 1000)).abs() < 1e-5);
                assert!((product(9, 2) - product(9, 5)).abs() > 1e-3);
            }
        }
    }

    #[test]
    fn positions_views_and_the_way_back() {
        let x = example((2, 3, 5, 8));
        let rope = Rope::new(6).unwrap().layout(RopeLayout::Interleaved);
        let mut turned = x.clone();
        rope.rotate(&mut turned, 4).unwrap();
        assert_eq!(turned.slice(s![.., .., .., 6..]), x.slice(s![.., .., .., 6..]));

        // [B, T, H, D] in memory, and D with a stride.
        let mut strided = Array4::zeros((2, 5, 3, 16)).permuted_axes([0, 2, 1, 3]);
        strided.slice_mut(s![.., .., .., ..;2]).assign(&x);
        rope.rotate(strided.slice_mut(s![.., .., .., ..;2]), 4).unwrap();
        assert_eq!(strided.slice(s![.., .., .., ..;2]), turned);

        // The second sequence three tokens further on, by explicit positions.
        let positions = Array2::from_shape_fn((2, 5), |(b, t)| 4 + 3 * b + t);
        let mut own = x.clone();
        rope.rotate_at(&mut own, &positions).unwrap();
        assert_eq!(own.slice(s![0, .., .., ..]), turned.slice(s![0, .., .., ..]));
        let mut further = x.clone();
        rope.rotate(&mut further, 7).unwrap();
        assert_eq!(own.slice(s![1, .., .., ..]), further.slice(s![1, .., .., ..]));

        rope.rotate_back(&mut turned, 4).unwrap();
        rope.rotate_back_at(&mut own, &positions).unwrap();
        assert!(near(&turned, &x, 1e-6) && near(&own, &x, 1e-6));
    }

    #[test]
    fn scaling_changes_the_frequencies_as_it_says() {
        let plain = Rope::new(8).unwrap().frequencies();
        let linear = Rope::new(8).unwrap().scaling(RopeScaling::Linear(4.0)).frequencies();
        let ntk = Rope::new(8).unwrap().scaling(RopeScaling::Ntk(4.0)).frequencies();
        assert!(plain.iter().zip(&linear).all(|(p, l)| (p / l - 4.0).abs() < 1e-12));
        assert_eq!(ntk[0], 1.0);
        assert!((plain[3] / ntk[3] - 4.0).abs() < 1e-12);
        assert_eq!(Rope::new(2).unwrap().scaling(RopeScaling::Ntk(4.0)).frequencies(), [1.0]);
    }

    #[test]
    fn refuses_what_means_nothing() {
        let mut x = example((2, 1, 3, 8));
        let mut refused = |rope: Rope| rope.rotate(&mut x, 0).is_err();
        assert!(refused(Rope::new(10).unwrap()));
        for bad in [0, 5, usize::MAX, usize::MAX - 1] {
            assert!(Rope::new(bad).is_err(), "{bad}");
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(Rope::new(8).unwrap().base(bad)));
            assert!(refused(Rope::new(8).unwrap().scaling(RopeScaling::Linear(bad))));
            assert!(refused(Rope::new(8).unwrap().scaling(RopeScaling::Ntk(bad))));
        }
        assert!(Rope::new(8).unwrap().rotate_at(&mut x, &Array2::zeros((2, 4))).is_err());
        assert!(Rope::new(8).unwrap().rotate_at(&mut x, &Array2::zeros((3, 3))).is_err());
        let mut empty = Array4::zeros((0, 1, 3, 8));
        assert!(Rope::new(8).unwrap().rotate_at(&mut empty, &Array2::zeros((0, 3))).is_ok());
    }
}
