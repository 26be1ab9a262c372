use std::ops::Range;

use ndarray::{Array2, Array3, Array4, ArrayD, ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4};

use crate::bias::Bias;
use crate::cache::KvCache;
use crate::dropout::Dropout;
use crate::kernel::Isa;
use crate::mask::{Align, Mask};
use crate::scratch::Scratch;
use crate::shape::Shape;
use crate::threads::Threads;
use crate::weights::Pool;
use crate::{Error, backward, forward, weights};

/// Attention and its options. Made once, used on any arrays.
///
/// $$ out_i = \sum_j w_{ij} v_j, \qquad w_{ij} = e^{s_{ij} - lse_i}, \qquad
///    s_{ij} = \mathrm{softcap}(\text{scale} \cdot q_i \cdot k_j) + b_{ij}, \qquad
///    lse_i = \ln \sum_j e^{s_{ij}} $$
///
/// Arrays are `[batch, heads, tokens, dim]` views with any strides, so other layouts need only `permuted_axes`. If `k` and
/// `v` have fewer heads than `q`, each of theirs serves a group of query heads (grouped and multi-query attention). The
/// value dimension may differ from that of queries and keys, and the number of queries from that of keys.
///
/// ```
/// use foveal::{Attention, Mask};
/// use ndarray::Array4;
///
/// let (q, k, v) = (Array4::ones((1, 4, 10, 8)), Array4::ones((1, 2, 10, 8)), Array4::ones((1, 2, 10, 8)));
/// let attention = Attention::new().mask(Mask::causal());
/// let fwd = attention.forward(&q, &k, &v)?;
/// assert_eq!(fwd.out.dim(), (1, 4, 10, 8));
/// // The last token of the first head looks at ten equal keys.
/// assert!((fwd.lse[[0, 0, 9]] - (8.0 / 8f32.sqrt() + 10f32.ln())).abs() < 1e-5);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attention {
    pub(crate) scale: Option<f32>,
    pub(crate) mask: Mask,
    pub(crate) align: Align,
    pub(crate) bias: Bias,
    pub(crate) softcap: Option<f32>,
    pub(crate) dropout: Option<Dropout>,
    pub(crate) threads: Threads,
    pub(crate) isa: Option<Isa>,
}

/// What [`Attention::forward`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// [B, H, T, Dv]
    pub out: Array4<f32>,
    /// ln Σⱼ exp sᵢⱼ: [B, H, T]. With it any weight can be computed by itself; −∞ where a query sees nothing.
    pub lse: Array3<f32>,
}

/// What [`Attention::backward`] gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// Shaped like q.
    pub dq: Array4<f32>,
    /// Shaped like k.
    pub dk: Array4<f32>,
    /// Shaped like v.
    pub dv: Array4<f32>,
    /// Shaped like what the [`Bias`] was made of: slopes, table, or dense array. `None` if there is no bias.
    pub dbias: Option<ArrayD<f32>>,
}

impl Attention {
    /// Softmax attention with scale 1/√D, no mask and no bias.
    pub fn new() -> Self {
        Attention::default()
    }

    /// What q·k is multiplied with. Default: 1/√D.
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Which keys a query may see.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// Also this mask: a key is visible if both say so.
    #[must_use]
    pub fn and_mask(mut self, mask: Mask) -> Self {
        self.mask = self.mask.and(mask);
        self
    }

    /// How many keys each sequence of the batch has, where a padding mask says so.
    pub fn lengths(&self) -> Option<Vec<usize>> {
        let (first, others) = self.mask.lengths.split_first()?;
        let mut least = first.to_vec();
        others.iter().for_each(|lengths| least.iter_mut().zip(&**lengths).for_each(|(a, b)| *a = (*a).min(*b)));
        Some(least)
    }

    /// Checks that nothing but mask, alignment, threads, instruction set and dropout is chosen, for kinds of attention in
    /// which the rest has no meaning.
    pub(crate) fn expect_plain(&self, what: &'static str) -> Result<(), Error> {
        let fits = "masks, and no scale, bias or softcap";
        let unfit = |option| Err(Error::Unfit { what, option, fits });
        match self {
            Attention { scale: Some(_), .. } => unfit("scale"),
            Attention { softcap: Some(_), .. } => unfit("softcap"),
            Attention { bias, .. } if !matches!(bias.0, crate::bias::Kind::None) => unfit("bias"),
            _ => Ok(()),
        }
    }

    /// Where the queries stand among the keys if T ≠ S. Default: the last query at the last key.
    #[must_use]
    pub fn align(mut self, align: Align) -> Self {
        self.align = align;
        self
    }

    /// What is added to the scores.
    #[must_use]
    pub fn bias(mut self, bias: Bias) -> Self {
        self.bias = bias;
        self
    }

    /// Keeps scaled scores within ±cap: s ⟵ cap·tanh(s/cap), before the bias, as in Gemma 2.
    #[must_use]
    pub fn softcap(mut self, cap: f32) -> Self {
        self.softcap = Some(cap);
        self
    }

    /// Drops weights at random in forward, backward and decode. [`weights`](Attention::weights), [`tile`](Attention::tile)
    /// and [`map`](Attention::map) show the weights before dropout, whose rows sum to 1.
    #[must_use]
    pub fn dropout(mut self, probability: f32, seed: u64) -> Self {
        self.dropout = Some(Dropout { probability, seed });
        self
    }

    /// Who does the work.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Forces an instruction set, for tests and comparisons.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// The output and the log-sum-exp of every row, in O(T + S) memory.
    ///
    /// # Errors
    /// If shapes, head counts, lengths or options do not fit together; see [`Error`].
    pub fn forward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Forward, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let shape = Shape::of(&q, &k, &v)?;
        let mut fwd = Forward { out: Array4::zeros(shape.out()), lse: Array3::zeros(shape.lse()) };
        Scratch::lend(|scratch| forward::forward(self, q, k, v, fwd.out.view_mut(), fwd.lse.view_mut(), scratch))?;
        Ok(fwd)
    }

    /// [`forward`](Attention::forward) into arrays of the caller's, which it overwrites. With a `scratch` that has seen a
    /// call of this size before, nothing is allocated.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward); also if `out` or `lse` do not fit.
    pub fn forward_into<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        out: ArrayViewMut4<f32>,
        lse: ArrayViewMut3<f32>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        forward::forward(self, q.into(), k.into(), v.into(), out, lse, scratch)
    }

    /// The gradients of a loss whose gradient in `fwd.out` is `dout`, in O(T + S) memory: the weights are computed again
    /// from q, k and `fwd.lse`.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward); also if `fwd` or `dout` do not fit.
    pub fn backward<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
        fwd: &Forward,
        dout: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Gradients, Error> {
        let qkv = (q.into(), k.into(), v.into());
        Scratch::lend(|scratch| backward::backward(self, qkv, fwd, dout.into(), scratch))
    }

    /// [`backward`](Attention::backward) into arrays of the caller's, dq, dk and dv, which it overwrites; returns the gradient
    /// of the bias. They may have any strides, such as columns of one array that a linear layer has made side by side:
    ///
    /// ```
    /// use foveal::{Attention, Scratch};
    /// use ndarray::{Array4, Axis, array};
    ///
    /// let qkv = array![[[[1., 0.]], [[0., 1.]], [[3., 4.]]]]; // one head each of q, k and v, one token
    /// let (q, kv) = qkv.view().split_at(Axis(1), 1);
    /// let (k, v) = kv.split_at(Axis(1), 1);
    /// let (attention, dout) = (Attention::new(), array![[[[5., 6.]]]]);
    /// let fwd = attention.forward(q, k, v)?;
    /// let mut gradients = Array4::ones(qkv.raw_dim());
    /// let (dq, dkv) = gradients.view_mut().split_at(Axis(1), 1);
    /// let (dk, dv) = dkv.split_at(Axis(1), 1);
    /// attention.backward_into((q, k, v), &fwd, &dout, (dq, dk, dv), &mut Scratch::new())?;
    /// assert_eq!(gradients, array![[[[0., 0.]], [[0., 0.]], [[5., 6.]]]]); // one key has all the weight
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`backward`](Attention::backward); also if the arrays are not shaped like q, k and v. They are then unchanged.
    pub fn backward_into<'a>(
        &self,
        qkv: (ArrayView4<f32>, ArrayView4<f32>, ArrayView4<f32>),
        fwd: &Forward,
        dout: impl Into<ArrayView4<'a, f32>>,
        gradients: (ArrayViewMut4<f32>, ArrayViewMut4<f32>, ArrayViewMut4<f32>),
        scratch: &mut Scratch,
    ) -> Result<Option<ArrayD<f32>>, Error> {
        backward::backward_into(self, qkv, fwd, dout.into(), gradients, false, scratch)
    }

    /// The output of the newest queries against everything in `cache`, to which their own keys and values have been
    /// [appended](KvCache::append). The keys are split over the threads and the parts merged by their log-sum-exp.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward).
    pub fn decode<'a>(&self, q: impl Into<ArrayView4<'a, f32>>, cache: &'a KvCache) -> Result<Forward, Error> {
        self.forward(q, cache.k(), cache.v())
    }

    /// All weights: [B, H, T, S]. For small inputs; otherwise see [`tile`](Attention::tile) and [`map`](Attention::map).
    ///
    /// # Errors
    /// As [`forward`](Attention::forward).
    pub fn weights<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<Array4<f32>, Error> {
        weights::weights(self, q.into(), k.into())
    }

    /// The weights of queries `rows` on keys `cols`, in sequence and head `at`. Nothing else is computed.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward); also if the rectangle does not lie within the matrix.
    pub fn tile<'a>(
        &self,
        q: impl Into<ArrayView4<'a, f32>>,
        k: impl Into<ArrayView4<'a, f32>>,
        lse: impl Into<ArrayView3<'a, f32>>,
        at: (usize, usize),
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Array2<f32>, Error> {
        weights::tile(self, q.into(), k.into(), lse.into(), at, rows, cols)
    }

    /// A picture of the weights of queries `rows` on keys `cols`, in sequence and head `at`, pooled to
    /// `pixels = (height, width)`. The matrix itself is never stored.
    ///
    /// # Errors
    /// As [`tile`](Attention::tile); also if there are more pixels than cells in either direction.
    #[expect(clippy::too_many_arguments, reason = "a rectangle of a head of a batch, and what to make of it")]
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
        weights::map(self, q.into(), k.into(), lse.into(), at, rows, cols, pixels, pool)
    }

    /// The scale for head dimension `dim`.
    pub(crate) fn scale_for(&self, dim: usize) -> f32 {
        self.scale.unwrap_or_else(|| 1.0 / (dim as f32).sqrt())
    }

    /// Whether the options are sound by themselves and fit the shape.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        if let Some(scale) = self.scale.filter(|scale| !scale.is_finite()) {
            return Err(Error::Value { what: "scale", expected: "a finite number", got: scale.into() });
        }
        if let Some(cap) = self.softcap.filter(|cap| !(cap.is_finite() && *cap > 0.0)) {
            return Err(Error::Value { what: "softcap", expected: "a finite number above 0", got: cap.into() });
        }
        self.align.check(shape)?;
        self.mask.check(shape, &self.align)?;
        self.bias.check(shape, &self.align)?;
        self.dropout.iter().try_for_each(Dropout::check)
    }
}
