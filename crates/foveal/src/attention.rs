use std::sync::Arc;

use ndarray::{Array3, Array4, ArrayView3, ArrayViewMut3};

use crate::bias::{Bias, Kind};
use crate::cache::KvCache;
use crate::dropout::Dropout;
use crate::forward::Inputs;
use crate::mask::{Align, Mask};
use crate::part::{Lengths, Packed, Part};
use crate::results::{Forward, Gradients, GradientsMut, Learned, Saved, Upstream};
use crate::score::ScoreFunction;
use crate::scores::Scores;
use crate::scratch::Scratch;
use crate::setters::setters;
use crate::shape::{Shape, expect_axes};
use crate::tensor::{Number, Tensor, TensorMut};
use crate::weights::Head;
use crate::{Error, backward, forward, weights};
use foveal_compute::Isa;
use foveal_compute::Threads;

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
/// let (q, kv) = (Array4::<f32>::ones((1, 4, 10, 8)), Array4::<f32>::ones((1, 2, 10, 8)));
/// let attention = Attention::new().mask(Mask::causal());
/// let fwd = attention.forward(&q, &kv, &kv)?;
/// assert_eq!(fwd.out.dim(), (1, 4, 10, 8));
/// // The last token of the first head looks at ten equal keys.
/// assert!((fwd.lse[[0, 0, 9]] - (8.0 / 8f64.sqrt() + 10f64.ln())).abs() < 1e-5);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attention {
    pub(crate) scale: Option<f32>,
    pub(crate) mask: Mask,
    pub(crate) align: Align,
    pub(crate) bias: Bias,
    pub(crate) softcap: Option<f32>,
    pub(crate) function: Option<Arc<dyn ScoreFunction>>,
    pub(crate) sinks: Option<Arc<[f32]>>,
    pub(crate) dropout: Option<Dropout>,
    pub(crate) part: Option<Part>,
    pub(crate) packed: Option<Packed>,
    pub(crate) threads: Threads,
    pub(crate) isa: Option<Isa>,
}

impl Attention {
    /// Softmax attention with scale 1/√D, no mask and no bias.
    pub fn new() -> Self {
        Attention::default()
    }

    setters!();

    /// What q·k is multiplied with. Default: 1/√D.
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// How many keys each sequence of the batch has, where a padding mask says so.
    pub fn lengths(&self) -> Option<Vec<usize>> {
        let (first, others) = self.mask.lengths.split_first()?;
        let mut least = first.to_vec();
        others.iter().for_each(|lengths| least.iter_mut().zip(&**lengths).for_each(|(a, b)| *a = (*a).min(*b)));
        Some(least)
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

    /// Drops weights at random in forward, backward and decode. [`weights`](Attention::weights) and
    /// [`head`](Attention::head) show the weights before dropout, whose rows sum to 1.
    #[must_use]
    pub fn dropout(self, probability: f32, seed: u64) -> Self {
        self.with_dropout(Dropout::new(probability, seed))
    }

    /// The same for a part of a larger batch, which [`Dropout::first`] says the place of.
    #[must_use]
    pub fn with_dropout(mut self, dropout: Dropout) -> Self {
        self.dropout = Some(dropout);
        self
    }

    /// A function of the caller's on the scores, before the bias; see [`ScoreFunction`].
    #[must_use]
    pub fn score(mut self, function: Arc<dyn ScoreFunction>) -> Self {
        self.function = Some(function);
        self
    }

    /// A logit for each query head that takes weight and gives no value, as gpt-oss learns them:
    ///
    /// $$ lse_i = \ln \left( e^{sink} + \sum_j e^{s_{ij}} \right) $$
    ///
    /// A query that sees nothing then has lse = sink, and a zero output. Their gradient is
    /// [`Gradients::dsinks`].
    #[must_use]
    pub fn sinks(mut self, logits: impl Into<Arc<[f32]>>) -> Self {
        self.sinks = Some(logits.into());
        self
    }

    /// Says that calls are a part of a larger one; see [`Part`].
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.part = Some(part);
        self
    }

    /// Says that the arrays of a call hold sequences of different lengths, one after the other; see [`Packed`].
    #[must_use]
    pub fn packed(mut self, sequences: Packed) -> Self {
        self.packed = Some(sequences);
        self
    }

    /// The output and the log-sum-exp of every row, in O(T + S) memory.
    ///
    /// # Errors
    /// If shapes, head counts, lengths or options do not fit together; see [`Error`].
    pub fn forward<'a>(
        &self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
    ) -> Result<Forward, Error> {
        self.forward_as(q, k, v)
    }

    /// [`forward`](Attention::forward) with an output in f32, f16 or bf16, rounded once, at its end.
    ///
    /// ```
    /// use foveal::{Attention, Forward, bf16};
    /// use ndarray::Array4;
    ///
    /// let x = Array4::from_elem((1, 1, 2, 4), bf16::ONE);
    /// let fwd: Forward<bf16> = Attention::new().forward_as(&x, &x, &x)?;
    /// assert_eq!(fwd.out, x);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](Attention::forward).
    pub fn forward_as<'a, T: Number>(
        &self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
    ) -> Result<Forward<T>, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let inputs = Inputs { q, k, v };
        let shape = self.shape(&inputs)?;
        let mut fwd = Forward { out: Array4::from_elem(shape.out(), T::ZERO), lse: Array3::zeros(shape.lse()) };
        let results = (T::target(&mut fwd.out), fwd.lse.view_mut());
        Scratch::lend(|scratch| forward::forward(self, inputs, results, scratch))?;
        Ok(fwd)
    }

    /// [`forward`](Attention::forward) into arrays of the caller's, which it overwrites. With a `scratch` that has seen a
    /// call of this size before, nothing is allocated.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward); also if `out` or `lse` do not fit.
    pub fn forward_into<'a, 'o>(
        &self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
        out: impl Into<TensorMut<'o>>,
        lse: ArrayViewMut3<f64>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        forward::forward(self, Inputs { q, k, v }, (out.into(), lse), scratch)
    }

    /// The gradients of a loss whose gradient in `fwd.out` (and `fwd.lse`) is `upstream`, in O(T + S) memory: the weights are
    /// computed again from q, k and the lse.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward); also if `fwd` or `upstream` do not fit.
    pub fn backward<'a>(
        &self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
        fwd: impl Into<Saved<'a>>,
        upstream: impl Into<Upstream<'a>>,
    ) -> Result<Gradients, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        // Large ones lie on large pages, if the program wants them.
        let zeros = |tensor: &Tensor| foveal_compute::zeros(tensor.dim().into());
        let (mut dq, mut dk, mut dv) = (zeros(&q), zeros(&k), zeros(&v));
        let targets = GradientsMut::set(&mut dq, &mut dk, &mut dv);
        let learned = Scratch::lend(|scratch| self.backward_into(q, k, v, fwd, upstream, targets, scratch))?;
        Ok(Gradients { dq, dk, dv, dbias: learned.dbias, dsinks: learned.dsinks })
    }

    /// [`backward`](Attention::backward) with dq, dk and dv in f32, f16 or bf16, rounded once, at their end.
    ///
    /// # Errors
    /// As [`backward`](Attention::backward).
    pub fn backward_as<'a, T: Number>(
        &self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
        fwd: impl Into<Saved<'a>>,
        upstream: impl Into<Upstream<'a>>,
    ) -> Result<Gradients<T>, Error> {
        let (q, k, v) = (q.into(), k.into(), v.into());
        let zeros = |tensor: &Tensor| Array4::from_elem(tensor.dim(), T::ZERO);
        let (mut dq, mut dk, mut dv) = (zeros(&q), zeros(&k), zeros(&v));
        let targets = GradientsMut::set(T::target(&mut dq), T::target(&mut dk), T::target(&mut dv));
        let learned = Scratch::lend(|scratch| self.backward_into(q, k, v, fwd, upstream, targets, scratch))?;
        Ok(Gradients { dq, dk, dv, dbias: learned.dbias, dsinks: learned.dsinks })
    }

    /// [`backward`](Attention::backward) into arrays of the caller's, or added to what they hold; returns the gradients of
    /// what else is learned. They may have any strides, such as columns of one array that a linear layer has made side by
    /// side:
    ///
    /// ```
    /// use foveal::{Attention, GradientsMut, Scratch};
    /// use ndarray::{Array4, Axis, array};
    ///
    /// let qkv = array![[[[1f32, 0.]], [[0., 1.]], [[3., 4.]]]]; // one head each of q, k and v, one token
    /// let (q, kv) = qkv.view().split_at(Axis(1), 1);
    /// let (k, v) = kv.split_at(Axis(1), 1);
    /// let (attention, dout) = (Attention::new(), array![[[[5f32, 6.]]]]);
    /// let fwd = attention.forward(q, k, v)?;
    /// let mut gradients = Array4::<f32>::ones(qkv.raw_dim());
    /// let (dq, dkv) = gradients.view_mut().split_at(Axis(1), 1);
    /// let (dk, dv) = dkv.split_at(Axis(1), 1);
    /// attention.backward_into(q, k, v, &fwd, &dout, GradientsMut::set(dq, dk, dv), &mut Scratch::new())?;
    /// assert_eq!(gradients, array![[[[0., 0.]], [[0., 0.]], [[5., 6.]]]]); // one key has all the weight
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`backward`](Attention::backward); also if the arrays are not shaped like q, k and v. They are then unchanged.
    #[expect(clippy::too_many_arguments, reason = "what its siblings take, where to put it, and with what")]
    pub fn backward_into<'a>(
        &self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
        fwd: impl Into<Saved<'a>>,
        upstream: impl Into<Upstream<'a>>,
        gradients: GradientsMut,
        scratch: &mut Scratch,
    ) -> Result<Learned, Error> {
        let (q, k, v, fwd, upstream) = (q.into(), k.into(), v.into(), fwd.into(), upstream.into());
        backward::backward(self, Inputs { q, k, v }, (fwd, upstream), gradients, scratch)
    }

    /// The output of the newest queries against everything in `cache`, to which their own keys and values have been
    /// [appended](KvCache::append). The keys are split over the threads and the parts merged by their log-sum-exp.
    ///
    /// # Errors
    /// As [`forward`](Attention::forward).
    pub fn decode<'a>(&self, q: impl Into<Tensor<'a>>, cache: &'a KvCache) -> Result<Forward, Error> {
        cache.attend(self, q.into())
    }

    /// All weights: [B, H, T, S]. For small inputs; otherwise see [`head`](Attention::head). Of packed sequences,
    /// [1, H, ΣT, longest S].
    ///
    /// # Errors
    /// As [`forward`](Attention::forward).
    pub fn weights<'a>(&self, q: impl Into<Tensor<'a>>, k: impl Into<Tensor<'a>>) -> Result<Array4<f32>, Error> {
        weights::weights(self, q.into(), k.into())
    }

    /// One head of one sequence, of which any rectangle of the weights can be asked ([`Head::tile`]), or a picture of them
    /// ([`Head::map`]).
    ///
    /// # Errors
    /// As [`forward`](Attention::forward); also if `lse` does not fit, or there is no such sequence or head.
    pub fn head<'a>(
        &'a self,
        q: impl Into<Tensor<'a>>,
        k: impl Into<Tensor<'a>>,
        lse: impl Into<ArrayView3<'a, f64>>,
        at: (usize, usize),
    ) -> Result<Head<'a>, Error> {
        Head::softmax(self, (q.into(), k.into()), lse.into(), at)
    }

    /// The scale for head dimension `dim`.
    pub(crate) fn scale_for(&self, dim: usize) -> f32 {
        self.scale.unwrap_or_else(|| 1.0 / (dim as f32).sqrt())
    }

    /// The shape of a call, for which all options are checked.
    pub(crate) fn shape(&self, inputs: &Inputs) -> Result<Shape, Error> {
        let shape = Shape::of_call(&inputs.q, &inputs.k, Some(&inputs.v), self.packed.as_ref())?;
        self.check(&shape)?;
        self.check_tokens(&shape, &inputs.q, &[inputs.k, inputs.v])?;
        Ok(shape)
    }

    /// The same without values.
    pub(crate) fn shape_of_scores(&self, q: &Tensor, k: &Tensor) -> Result<Shape, Error> {
        let shape = Shape::of_call(q, k, None, self.packed.as_ref())?;
        self.check(&shape)?;
        self.check_tokens(&shape, q, &[*k])?;
        Ok(shape)
    }

    /// Sequences of keys in pages may be shorter than the longest of them: what is not there must be hidden.
    fn check_tokens(&self, shape: &Shape, q: &Tensor, keys: &[Tensor]) -> Result<(), Error> {
        if q.is_paged() {
            let fits = "queries in one piece";
            return Err(Error::Unfit { what: "attention", option: "queries in pages", fits });
        }
        if !keys.iter().any(Tensor::is_paged) {
            return Ok(());
        }
        let scores = Scores::new(self, shape);
        for batch in 0..shape.batch {
            let length = scores.hull(batch, &(0..shape.queries)).end;
            if let Some(keys) = keys.iter().map(|keys| keys.tokens(batch)).find(|keys| length > *keys) {
                return Err(Error::Length { batch, length, keys });
            }
        }
        Ok(())
    }

    /// Whether the options are sound by themselves and fit the shape.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        if let Some(scale) = self.scale.filter(|scale| !scale.is_finite()) {
            return Err(Error::Value { what: "scale", expected: "a finite number", got: scale.into() });
        }
        if let Some(cap) = self.softcap.filter(|cap| !(cap.is_normal() && *cap > 0.0)) {
            let expected = "a finite number above 0, and not below the smallest normal one, 1.2e-38";
            return Err(Error::Value { what: "softcap", expected, got: cap.into() });
        }
        if let Some(sinks) = &self.sinks {
            expect_axes("the sinks", "[heads], one logit a head", &[shape.heads], &[sinks.len()])?;
        }
        let mut whole = Lengths { packed: self.packed.as_ref(), ..Lengths::of(shape) };
        if let Some(part) = self.part {
            part.check()?;
            if self.packed.is_some() {
                let fits = "one of the two";
                return Err(Error::Unfit { what: "a call of packed sequences", option: "part of a larger call", fits });
            }
            if let Kind::Swin(_) = self.bias.kind {
                part.check_within(shape)?;
            }
            whole.size = part.of;
        }
        self.align.check(shape)?;
        self.mask.check(shape, &whole, &self.align)?;
        self.bias.check(shape, &whole, &self.align)?;
        self.dropout.iter().try_for_each(Dropout::check)
    }
}
