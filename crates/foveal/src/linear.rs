//! Linear attention: the softmax's kernel exp(q·k) replaced by a product of features φ(q)·φ(k), so that the sums over the keys
//! can be done once for all queries (Katharopoulos 2020, Choromanski 2020).
//!
//! $$ out_i = \frac{\sum_j \bigl(\phi(q_i) \cdot \phi(k_j)\bigr) v_j}{\sum_j \phi(q_i) \cdot \phi(k_j)}
//!          = \frac{\phi(q_i)^\top \sum_j \phi(k_j) v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)} $$
//!
//! With V⁺ = [V, 1] both sums are one matrix of m × (Dv + 1) values, whatever the number of keys:
//!
//! $$ S = \sum_j \phi(k_j)\, v_j^{+\top}, \qquad num_i = \phi(q_i)^\top S, \qquad out_i = \frac{num_i[..D_v]}{num_i[D_v]} $$
//!
//! Time and memory are O(n), not O(n²). How this becomes matrix products is in `linear/forward.rs` and
//! `linear/backward.rs`, the features in `linear/features.rs`, and how they fit into f32 in `linear/levels.rs`.

mod backward;
mod chunk;
mod features;
mod forward;
mod levels;
mod state;
mod sums;
mod tokens;
mod weights;

use ndarray::{Array3, Array4, ArrayView3, ArrayView4};

use crate::results::{Forward, Gradients};
use crate::setters::setters;
use crate::shape::{Shape, expect, expect_axes};
use crate::weights::Head;
use crate::{Align, Attention, Error, Mask};
use foveal_compute::{Isa, Supported};

pub use features::{Favor, FeatureMap};
pub use state::LinearState;

/// Linear attention and its options, in the manner of [`Attention`]: the same arrays, the same results, the
/// same names. It is another function than softmax attention; with [`FeatureMap::favor`] an estimate of it.
///
/// A sum over keys cannot leave one out for a single query. So the masks that it takes are causal ones and those that hide a key
/// from all queries: [`Mask::causal`], [`Mask::padding`], [`Mask::keys`], [`Mask::window`] with an open left side, and all of them
/// together.
///
/// ```
/// use foveal::{FeatureMap, LinearAttention, Mask};
/// use ndarray::Array4;
///
/// let (q, k, v) = (Array4::<f32>::ones((1, 2, 100, 16)), Array4::<f32>::ones((1, 2, 100, 16)), Array4::<f32>::ones((1, 2, 100, 16)));
/// let linear = LinearAttention::new(FeatureMap::Elu).mask(Mask::causal());
/// let fwd = linear.forward(&q, &k, &v)?;
/// let grads = linear.backward(&q, &k, &v, &fwd, &v)?;
/// let tile = linear.head(&q, &k, &fwd.lse, (0, 1))?.tile(40..50, 0..100)?; // the weights that it amounts to
/// assert!((tile[[0, 3]] - 1.0 / 41.0).abs() < 1e-6);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinearAttention {
    features: FeatureMap,
    /// Mask, alignment, threads and instruction set.
    options: Attention,
}

impl LinearAttention {
    /// Every query sees every key, through these features.
    pub fn new(features: FeatureMap) -> Self {
        LinearAttention { features, options: Attention::new() }
    }

    /// With the masks and the alignment of `options`, and run as they say. There are no weights to drop at random, so dropout
    /// is left out.
    ///
    /// ```
    /// use foveal::{Attention, FeatureMap, LinearAttention, Mask};
    /// let seen = Attention::new().mask(Mask::causal().and(Mask::padding([9, 7])));
    /// let linear = LinearAttention::with_options(FeatureMap::Elu, &seen)?;
    /// let window = Attention::new().mask(Mask::window(4, 0));
    /// assert!(LinearAttention::with_options(FeatureMap::Elu, &window).is_err()); // sums cannot forget
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unfit`] if there is a mask that it cannot take, or a scale, bias or softcap.
    pub fn with_options(features: FeatureMap, options: &Attention) -> Result<Self, Error> {
        let options = options.plain(WHAT)?;
        check_mask(&options.mask)?;
        Ok(LinearAttention { features, options })
    }

    setters!(options);

    /// Other features, such as [`Favor::redraw`] makes.
    #[must_use]
    pub fn features(mut self, features: FeatureMap) -> Self {
        self.features = features;
        self
    }

    /// The output, and for each row lseᵢ = ln Σⱼ φ(qᵢ)·φ(kⱼ), with which any weight can be computed by itself.
    ///
    /// # Errors
    /// If shapes, head counts, lengths, features or the mask do not fit together; see [`Error`].
    pub fn forward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Forward, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let call = self.call(Shape::of(&q, &k, &v)?)?;
        Ok(call.forward(q, k, v))
    }

    /// The gradients of a loss whose gradient in `fwd.out` is `dout`.
    ///
    /// # Errors
    /// As [`forward`](LinearAttention::forward); also if `fwd` or `dout` do not fit.
    pub fn backward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        fwd: &Forward,
        dout: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Gradients, Error> {
        let (q, k, v, dout) = (q.into(), k.into(), v.into(), dout.into());
        let shape = Shape::of(&q, &k, &v)?;
        shape.check_backward(fwd, &dout)?;
        Ok(self.call(shape)?.backward(q, k, v, fwd, dout))
    }

    /// The sums over no tokens yet, to [`step`](LinearAttention::step) from: `heads` key heads of dimension `dim`.
    ///
    /// # Errors
    /// If the features are made for another dimension, or no memory could hold the state.
    pub fn state(&self, batch: usize, heads: usize, dim: usize, value_dim: usize) -> Result<LinearState, Error> {
        LinearState::new([batch, heads, self.features.width(dim)?, value_dim.saturating_add(1)])
    }

    /// The output of the newest tokens, which see everything that `state` has seen, each other up to their own position, and
    /// themselves, whatever the mask. They are then part of `state`, whose size does not change.
    ///
    /// ```
    /// use foveal::{FeatureMap, LinearAttention};
    /// use ndarray::Array4;
    ///
    /// let linear = LinearAttention::new(FeatureMap::Elu);
    /// let mut state = linear.state(1, 2, 8, 8)?; // one sequence, 2 key heads, dimension 8
    /// for _ in 0..5 {
    ///     let (q, k, v) = (Array4::<f32>::ones((1, 4, 1, 8)), Array4::<f32>::ones((1, 2, 1, 8)), Array4::<f32>::ones((1, 2, 1, 8)));
    ///     let out = linear.step(&q, &k, &v, &mut state)?.out; // [1, 4, 1, 8]
    /// }
    /// assert_eq!(state.len(), 5);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](LinearAttention::forward); also if there are not as many queries as keys, or the state was made for
    /// other shapes. The state is then unchanged.
    pub fn step<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        state: &mut LinearState,
    ) -> Result<Forward, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let shape = Shape::of(&q, &k, &v)?;
        expect("q of new tokens", &[shape.batch, shape.heads, shape.keys, shape.dim], q.shape())?;
        let causal = self.clone().mask(Mask::causal()).align(Align::Last);
        let call = causal.call(shape)?;
        let (axes, width) = ("[batch, key heads, features, dim of v + 1]", shape.value_dim + 1);
        expect_axes("the state", axes, &[shape.batch, shape.kv_heads, call.width, width], &state.dim())?;
        Ok(call.step(q, k, v, state))
    }

    /// The weights that linear attention amounts to, wᵢⱼ = φ(qᵢ)·φ(kⱼ) / Σ: [B, H, T, S]. For small inputs; otherwise see
    /// [`head`](LinearAttention::head).
    ///
    /// # Errors
    /// As [`forward`](LinearAttention::forward).
    pub fn weights<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Array4<f32>, Error> {
        let (q, k) = (q.into(), k.into());
        Ok(self.call(Shape::of_scores(&q, &k)?)?.weights(q, k))
    }

    /// One head of one sequence, of which any rectangle of the weights can be asked ([`Head::tile`]), or a picture of them
    /// ([`Head::map`]).
    ///
    /// # Errors
    /// As [`forward`](LinearAttention::forward); also if `lse` does not fit, or there is no such sequence or head.
    pub fn head<'a>(
        &'a self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f64>>,
        at: (usize, usize),
    ) -> Result<Head<'a>, Error> {
        let (q, k, lse) = (q.into(), k.into(), lse.into());
        let call = self.call(Shape::of_scores(&q, &k)?)?;
        call.shape.check_head_and_lse(&lse, at)?;
        let (size, threads) = ((call.shape.queries, call.shape.keys), self.options.threads);
        Ok(Head::of_tiles(size, threads, Box::new(move |rows, cols| call.tile(q, k, lse, at, rows, cols))))
    }

    /// The options for one shape, checked.
    fn call(&self, shape: Shape) -> Result<Call<'_>, Error> {
        check_mask(&self.options.mask)?;
        self.options.check(&shape)?;
        let width = self.features.width(shape.dim)?;
        // The products choose for themselves: a wrong FOVEAL_ISA must be found before.
        Isa::resolve(None)?;
        let isa = Isa::resolve(self.options.isa)?;
        Ok(Call { features: &self.features, options: &self.options, isa, shape, width })
    }
}

/// In messages.
const WHAT: &str = "linear attention";

/// Whether a mask hides a key from all queries, or from those before it.
fn check_mask(mask: &Mask) -> Result<(), Error> {
    let fits =
        "causal masks, and those that hide a key from all queries, as its sums over the keys cannot leave out one";
    let unfit = |option| Err(Error::Unfit { what: WHAT, option, fits });
    if mask.left.is_some() {
        unfit("window with an end to the left")
    } else if !mask.patterns.is_empty() {
        unfit("sparse pattern")
    } else if mask.keep.iter().any(|keep| (keep.dim().1, keep.dim().2) != (1, 1)) {
        unfit("keep-array with an axis for heads or queries")
    } else {
        Ok(())
    }
}

/// One call.
struct Call<'a> {
    features: &'a FeatureMap,
    options: &'a Attention,
    isa: Supported,
    shape: Shape,
    /// m, the number of features.
    width: usize,
}

impl Call<'_> {
    /// Whether queries see a part of the keys only, by where they stand.
    fn is_causal(&self) -> bool {
        self.options.mask.right.is_some()
    }

    /// Zeros, and the log-sum-exp of rows that see nothing.
    fn nothing(&self) -> Forward {
        Forward { out: Array4::zeros(self.shape.out()), lse: Array3::from_elem(self.shape.lse(), f64::NEG_INFINITY) }
    }
}
