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
//! `linear/backward.rs`, the features in `linear/features.rs`.

mod backward;
mod features;
mod forward;
mod state;
mod sums;
mod weights;

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, Array3, Array4, ArrayView3, ArrayView4};

use crate::attention::{Forward, Gradients};
use crate::kernel::Isa;
use crate::shape::{Shape, expect};
use crate::threads::Threads;
use crate::weights::Pool;
use crate::{Align, Attention, Error, Mask};

pub use features::{Favor, FeatureMap};
pub use state::LinearState;

/// Linear attention and its options, in the manner of [`Attention`]: the same arrays, the same results, the
/// same names. It is another function than softmax attention; with [`FeatureMap::favor`] an estimate of it.
///
/// ```
/// use foveal::{FeatureMap, LinearAttention, Pool};
/// use ndarray::Array4;
///
/// let (q, k, v) = (Array4::ones((1, 2, 100, 16)), Array4::ones((1, 2, 100, 16)), Array4::ones((1, 2, 100, 16)));
/// let linear = LinearAttention::new(FeatureMap::Elu).causal();
/// let fwd = linear.forward(&q, &k, &v)?;
/// let grads = linear.backward(&q, &k, &v, &fwd, &v)?;
/// let tile = linear.tile(&q, &k, &fwd.lse, (0, 1), 40..50, 0..100)?; // the weights that it amounts to
/// assert!((tile[[0, 3]] - 1.0 / 41.0).abs() < 1e-6);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinearAttention {
    features: FeatureMap,
    causal: bool,
    lengths: Option<Arc<[usize]>>,
    threads: Threads,
    isa: Option<Isa>,
}

impl LinearAttention {
    /// Every query sees every key, through these features.
    pub fn new(features: FeatureMap) -> Self {
        LinearAttention { features, causal: false, lengths: None, threads: Threads::default(), isa: None }
    }

    /// With the masks of `options`, and run as they say. There are no weights to drop at random, so dropout is left out.
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
    /// [`Error::Unfit`] if there is another mask than causal and padding ones, another alignment than the last query at
    /// the last key, or a scale, bias or softcap.
    pub fn with_options(features: FeatureMap, options: &Attention) -> Result<Self, Error> {
        let what = "linear attention";
        options.expect_plain(what)?;
        let Mask { left, right, keep, patterns, .. } = &options.mask;
        let causal = *right == 0;
        if *left != usize::MAX || !(causal || *right == usize::MAX) || !keep.is_empty() || !patterns.is_empty() {
            let fits = "causal and padding masks, as its sums over the keys cannot leave any out";
            return Err(Error::Unfit { what, option: "window, pattern or keep-array", fits });
        }
        if options.align != Align::Last {
            return Err(Error::Unfit { what, option: "other alignment", fits: "Align::Last" });
        }
        let lengths = options.lengths().map(Into::into);
        Ok(LinearAttention { features, causal, lengths, threads: options.threads, isa: options.isa })
    }

    /// No query sees a key to the right of its own position. The last query stands at the last key.
    #[must_use]
    pub fn causal(mut self) -> Self {
        self.causal = true;
        self
    }

    /// In sequence b of the batch only the first `lengths[b]` keys are visible.
    #[must_use]
    pub fn padding(mut self, lengths: impl Into<Arc<[usize]>>) -> Self {
        self.lengths = Some(lengths.into());
        self
    }

    /// Other features, such as [`Favor::redraw`] makes.
    #[must_use]
    pub fn features(mut self, features: FeatureMap) -> Self {
        self.features = features;
        self
    }

    /// Who does the work.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Forces an instruction set for the features, for tests and comparisons.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// The output, and for each row lseᵢ = ln Σⱼ φ(qᵢ)·φ(kⱼ), with which any weight can be computed by itself.
    ///
    /// # Errors
    /// If shapes, head counts, lengths or features do not fit together; see [`Error`].
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
        expect("the forward output", &shape.out(), fwd.out.shape())?;
        expect("lse", &shape.lse(), fwd.lse.shape())?;
        expect("dout", &shape.out(), dout.shape())?;
        Ok(self.call(shape)?.backward(q, k, v, fwd, dout))
    }

    /// The sums over no tokens yet, to [`step`](LinearAttention::step) from: `heads` key heads of dimension `dim`.
    ///
    /// # Errors
    /// If the features are made for another dimension.
    pub fn state(&self, batch: usize, heads: usize, dim: usize, value_dim: usize) -> Result<LinearState, Error> {
        Ok(LinearState::new([batch, heads, self.features.width(dim)?, value_dim + 1]))
    }

    /// The output of the newest tokens, which see everything that `state` has seen, each other up to their own position, and
    /// themselves. They are then part of `state`, whose size does not change.
    ///
    /// ```
    /// use foveal::{FeatureMap, LinearAttention};
    /// use ndarray::Array4;
    ///
    /// let linear = LinearAttention::new(FeatureMap::Elu);
    /// let mut state = linear.state(1, 2, 8, 8)?; // one sequence, 2 key heads, dimension 8
    /// for _ in 0..5 {
    ///     let (q, k, v) = (Array4::ones((1, 4, 1, 8)), Array4::ones((1, 2, 1, 8)), Array4::ones((1, 2, 1, 8)));
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
        let call = LinearAttention { causal: true, lengths: None, ..self.clone() };
        let call = call.call(shape)?;
        expect("the state", &[shape.batch, shape.kv_heads, call.width, shape.value_dim + 1], &state.dim())?;
        Ok(call.step(q, k, v, state))
    }

    /// The weights that linear attention amounts to, wᵢⱼ = φ(qᵢ)·φ(kⱼ) / Σ: [B, H, T, S]. For small inputs; otherwise see
    /// [`tile`](LinearAttention::tile) and [`map`](LinearAttention::map).
    ///
    /// # Errors
    /// As [`forward`](LinearAttention::forward).
    pub fn weights<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Array4<f32>, Error> {
        let (q, k) = (q.into(), k.into());
        self.call(Shape::of_scores(&q, &k)?)?.weights(q, k)
    }

    /// The weights of queries `rows` on keys `cols`, in sequence and head `at`. Nothing else is computed.
    ///
    /// # Errors
    /// As [`forward`](LinearAttention::forward); also if the rectangle does not lie within the matrix.
    pub fn tile<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, Error> {
        let (q, k) = (q.into(), k.into());
        self.call(Shape::of_scores(&q, &k)?)?.tile(q, k, lse.into(), at, rows, cols)
    }

    /// A picture of the weights of queries `rows` on keys `cols`, in sequence and head `at`, pooled to
    /// `pixels = (height, width)`. The matrix itself is never stored.
    ///
    /// # Errors
    /// As [`tile`](LinearAttention::tile); also if there are more pixels than cells in either direction.
    #[expect(clippy::too_many_arguments, reason = "as Attention::map")]
    pub fn map<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
        pixels: (usize, usize),
        pool: Pool,
    ) -> Result<Array2<f32>, Error> {
        let (q, k) = (q.into(), k.into());
        self.call(Shape::of_scores(&q, &k)?)?.map(q, k, lse.into(), at, rows, cols, pixels, pool)
    }

    /// The options for one shape, checked.
    fn call(&self, shape: Shape) -> Result<Call<'_>, Error> {
        if let Some(lengths) = &self.lengths {
            Mask::padding(lengths.clone()).check(&shape, &Align::Last)?;
        }
        let width = self.features.width(shape.dim)?;
        // The products choose for themselves: a wrong FOVEAL_ISA must be found before.
        Isa::resolve(None)?;
        let isa = Isa::resolve(self.isa)?;
        let (features, lengths) = (&self.features, self.lengths.as_deref());
        Ok(Call { features, causal: self.causal, lengths, threads: self.threads, isa, shape, width })
    }
}

/// One call.
struct Call<'a> {
    features: &'a FeatureMap,
    causal: bool,
    lengths: Option<&'a [usize]>,
    threads: Threads,
    isa: Isa,
    shape: Shape,
    /// m, the number of features.
    width: usize,
}

impl Call<'_> {
    /// The keys of sequence b that are visible at all.
    fn keys(&self, b: usize) -> usize {
        self.lengths.map_or(self.shape.keys, |lengths| lengths[b])
    }

    /// Where query i stands among the keys is i + this.
    fn offset(&self) -> isize {
        self.shape.keys as isize - self.shape.queries as isize
    }

    /// Zeros, and the log-sum-exp of rows that see nothing.
    fn nothing(&self) -> Forward {
        Forward { out: Array4::zeros(self.shape.out()), lse: Array3::from_elem(self.shape.lse(), f32::NEG_INFINITY) }
    }
}
