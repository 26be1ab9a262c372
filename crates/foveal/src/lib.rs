//! Exact attention at hardware speed, and a way to look at all of it.
//!
//! $$ \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d}}\right) V $$
//!
//! ```
//! use foveal::{Attention, Mask, Pool};
//! use ndarray::Array4;
//!
//! let (q, k, v) = ([0.1f32; 3]).map(|x| Array4::from_elem((1, 8, 512, 64), x)).into();
//! let dout = Array4::<f32>::ones((1, 8, 512, 64));
//!
//! let attention = Attention::new().mask(Mask::causal());     // scale defaults to 1/√d
//! let fwd = attention.forward(&q, &k, &v)?;                   // .out [B, H, T, Dv] and .lse [B, H, T]
//! let grads = attention.backward(&q, &k, &v, &fwd, &dout)?;   // .dq, .dk, .dv, and what else is learned
//! let head = attention.head(&q, &k, &fwd.lse, (0, 3))?;       // one head, to look at
//! let tile = head.tile(100..116, 0..64)?;                     // an exact rectangle of its weights
//! let map = head.map(0..512, 0..512, (64, 64), Pool::Max)?;   // a picture of all of them
//! # Ok::<(), foveal::Error>(())
//! ```
//!
//! # What it does
//! - **Exact, in O(n) memory, in both directions.** The n × n matrix of weights is never stored. What is kept of each row
//!   is its log-sum-exp, from which any weight can be had again: w = exp(s − lse). That is how [`Attention::backward`]
//!   works, and how [`Attention::head`] shows any part of the matrix at any zoom.
//! - **Every option everywhere.** [`Mask`]s (causal, window, padding, dense, sparse [`Pattern`]s, and all of them together),
//!   [`Bias`]es (ALiBi, T5, Shaw, Swin, dense) with the gradients of what is learned, softcap, dropout, grouped heads, unequal dimensions and
//!   lengths: in forward, backward, weights, tile, map and decode alike. No combination falls back to an n × n path.
//! - **Fast.** Kernels for AVX-512, AVX2 and any other machine, chosen at run time ([`Isa`]); threads by `rayon`, in the
//!   caller's pool ([`Threads`]).
//! - **Definite.** Results are the same to the bit for any number of threads. A query that sees nothing gives zeros and
//!   lse = −∞. NaN in a visible place spreads, in a hidden one it does not. Bad input is an [`Error`], never a panic.
//!
//! # How it works
//! Softmax needs the maximum and the sum of a whole row before it can weigh the first value. Both can be kept up to date
//! while the keys come in tiles. Let $m$, $\ell$ and $a$ be maximum, sum and weighed values so far:
//!
//! $$ m = \max_j s_j, \qquad \ell = \sum_j e^{s_j - m}, \qquad a = \sum_j e^{s_j - m} v_j $$
//!
//! A further tile has its own $\mu$, and sums taken with the new maximum $n = \max(m, \mu)$. Since
//! $e^{s - n} = e^{m - n} e^{s - m}$, what was there is brought over by one factor:
//!
//! $$ m \leftarrow n, \qquad
//!    \ell \leftarrow e^{m - n} \ell + \sum_{j \in \text{tile}} e^{s_j - n}, \qquad
//!    a \leftarrow e^{m - n} a + \sum_{j \in \text{tile}} e^{s_j - n} v_j $$
//!
//! By induction the three are right for the keys seen so far, and at the end
//! $out = a / \ell$ and $lse = m + \ln \ell$. Both are exact: only the order of the additions is another.
//!
//! Backward starts from $p_{ij} = e^{s_{ij} - lse_i}$. With $\partial p_{ij} / \partial s_{il} = p_{ij} (\delta_{jl} - p_{il})$
//! and $\delta_i = \sum_j p_{ij} (dout_i \cdot v_j) = dout_i \cdot out_i$,
//!
//! $$ dv_j = \sum_i p_{ij} dout_i, \qquad ds_{ij} = p_{ij} (dout_i \cdot v_j - \delta_i) $$
//! $$ dq_i = \text{scale} \sum_j ds_{ij} k_j, \qquad dk_j = \text{scale} \sum_i ds_{ij} q_i $$
//!
//! # Precision
//! Inputs are f32, f16 or bf16 ([`Tensor`]), all arithmetic is f32; |error| ≤ 1e-5 + 5e-6·|exact| against the
//! [`reference`](mod@reference) in f64 for scores below 50. Beyond, a score's own rounding, 6e-8 of it, is an error of all weights
//! of its row. The log-sum-exp is f64, so that weights and gradients computed from it lose nothing more. Weights lie in [0, 1];
//! those below 2⁻¹⁰⁰ are 0.
//!
//! # The family
//! - [`Pattern`]: Longformer, BigBird, the strided and fixed patterns of the Sparse Transformer, Swin's windows, any list of
//!   blocks. They are [`Mask`]s, and exact; time grows with what is visible.
//! - [`LinearAttention`]: O(n) by feature maps, ELU + 1 or [`Favor`] (Performer), with a state of fixed size for generation.
//! - [`fourier_mix`]: FNet's mixing by Fourier transforms, in place of attention.
//! - [`AdditiveAttention`] (Bahdanau) and [`LuongAttention`] (dot, general): attention as it was before the Transformer.
//!
//! # Smaller things
//! [`positional_encoding`], [`Rope`] and [`alibi_slopes`] for positions; [`KvCache`] for generation;
//! [`scaled_dot_product_attention`], [`causal_mask`] and [`padding_mask`] for arrays of two to four axes as a textbook has
//! them.

mod additive;
mod attention;
mod backward;
mod bias;
mod cache;
mod dropout;
mod error;
mod forward;
mod fourier;
mod head_options;
mod kernel;
mod linear;
mod luong;
mod mask;
mod part;
mod pattern;
pub mod reference;
mod results;
mod rope;
mod score;
mod scores;
mod scratch;
mod setters;
mod shape;
mod sinusoidal;
mod tensor;
mod textbook;
mod weights;

pub use additive::{AdditiveAttention, AdditiveGradients};
pub use attention::Attention;
pub use bias::{Bias, Direction, alibi_slopes, t5_bucket};
pub use cache::{KvCache, Precision};
pub use dropout::Dropout;
pub use error::Error;
pub use fourier::{fourier_mix, fourier_mix_backward};
pub use foveal_compute::{Isa, Threads, bf16, f16};
pub use head_options::HeadOptions;
pub use linear::{Favor, FeatureMap, LinearAttention, LinearState};
pub use luong::{LuongAttention, LuongGradients};
pub use mask::{Align, Mask};
pub use ndarray;
pub use part::{Packed, Part};
pub use pattern::{BigBird, Pattern};
pub use results::{Forward, Gradients, GradientsMut, Learned, Saved, Upstream};
pub use rope::{Rope, RopeLayout, RopeScaling, RopeTable};
pub use score::{ScoreFunction, ScoreRow};
pub use scratch::Scratch;
pub use sinusoidal::{add_positional_encoding, positional_encoding};
pub use tensor::{Number, Tensor, TensorMut};
pub use textbook::{Sequences, causal_mask, padding_mask, scaled_dot_product_attention};
pub use weights::{Head, Pool};
