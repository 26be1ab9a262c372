//! Keys and values of the tokens so far, for generation.

use candle_core::{DType, Error, Result, Tensor, bail};
use foveal::{Attention, KvCache, Precision};

use crate::arrays::Owned;
use crate::operation::tensor;

/// Keys and values of the tokens so far. New ones are appended in place, without copying the old ones.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use foveal_candle::Cache;
/// use foveal_candle::foveal::{Attention, Mask};
///
/// let attention = Attention::new().mask(Mask::causal());
/// let mut cache = Cache::new((1, 2, 64), DType::F32)?; // one sequence, two heads of keys and values
/// for tokens in [10, 1, 1] {
///     let q = Tensor::randn(0f32, 1., (1, 8, tokens, 64), &Device::Cpu)?;
///     let kv = Tensor::randn(0f32, 1., (1, 2, tokens, 64), &Device::Cpu)?;
///     let out = cache.attend(&q, &kv, &kv, &attention)?;
///     assert_eq!(out.dims(), [1, 8, tokens, 64]);
/// }
/// assert_eq!(cache.len(), 12);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache(KvCache);

impl Cache {
    /// An empty cache of (batch, heads of keys and values, dimension), whose keys and values are kept as F32, F16 or BF16.
    ///
    /// # Errors
    /// If the type is another.
    pub fn new((batch, heads, dim): (usize, usize, usize), dtype: DType) -> Result<Self> {
        let precision = match dtype {
            DType::F32 => Precision::F32,
            DType::F16 => Precision::F16,
            DType::BF16 => Precision::Bf16,
            other => bail!("a cache keeps F32, F16 or BF16, not {other:?}"),
        };
        KvCache::new(batch, heads, dim, dim).precision(precision).map(Cache).map_err(Error::wrap)
    }

    /// Appends `k` and `v`, [B, G, T, D], of the tokens that `q`, [B, H, T, D], are the queries of, and gives what these
    /// see of all keys so far, in the type of `q`. It has no gradient, and is not [watched](crate::watch).
    ///
    /// # Errors
    /// As [`attention`](crate::attention); nothing is appended then.
    pub fn attend(&mut self, q: &Tensor, k: &Tensor, v: &Tensor, attention: &Attention) -> Result<Tensor> {
        let before = self.len();
        let forward = {
            let [q, k, v] = &[q, k, v].map(Tensor::storage_and_layout);
            let (q, k, v) = (tensor("q", q)?, tensor("k", k)?, tensor("v", v)?);
            self.0.append(k, v).map_err(Error::wrap)?;
            attention.decode(q, &self.0).inspect_err(|_| self.0.truncate(before)).map_err(Error::wrap)?
        };
        Owned::F32(forward.out).into_tensor().to_dtype(q.dtype())
    }

    /// The number of tokens so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all tokens but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}
