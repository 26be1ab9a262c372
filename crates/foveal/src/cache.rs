use ndarray::{Array4, ArrayView4, Axis, s};

use crate::Error;
use crate::memory::large_pages;
use crate::shape::{check_range, expect};

/// New values from which keys and values are copied side by side.
const SHARED: usize = 1 << 17;

/// Keys and values of all tokens so far, for generating one token after another.
///
/// ```
/// use foveal::{Attention, KvCache, Mask};
/// use ndarray::Array4;
///
/// let attention = Attention::new().mask(Mask::causal());
/// let mut cache = KvCache::new(1, 2, 8, 8); // one sequence, 2 key heads, dimension 8
/// for _ in 0..5 {
///     let (q, k, v) = (Array4::ones((1, 4, 1, 8)), Array4::ones((1, 2, 1, 8)), Array4::ones((1, 2, 1, 8)));
///     cache.append(&k, &v)?;
///     let out = attention.decode(&q, &cache)?.out; // [1, 4, 1, 8]
/// }
/// assert_eq!(cache.len(), 5);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KvCache {
    /// [B, H, capacity, D]: the first `len` tokens are filled.
    k: Array4<f32>,
    v: Array4<f32>,
    len: usize,
}

impl KvCache {
    /// An empty cache for `batch` sequences with `heads` key heads of dimension `dim` and values of dimension `value_dim`.
    pub fn new(batch: usize, heads: usize, dim: usize, value_dim: usize) -> Self {
        KvCache::with_capacity(batch, heads, dim, value_dim, 0)
    }

    /// The same with room for `capacity` tokens, so that appending up to there allocates nothing.
    pub fn with_capacity(batch: usize, heads: usize, dim: usize, value_dim: usize, capacity: usize) -> Self {
        KvCache { k: empty((batch, heads, capacity, dim)), v: empty((batch, heads, capacity, value_dim)), len: 0 }
    }

    /// The number of tokens in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The keys: [B, H, len, D].
    pub fn k(&self) -> ArrayView4<'_, f32> {
        self.k.slice(s![.., .., ..self.len, ..])
    }

    /// The values: [B, H, len, Dv].
    pub fn v(&self) -> ArrayView4<'_, f32> {
        self.v.slice(s![.., .., ..self.len, ..])
    }

    /// Adds the keys and values of new tokens: [B, H, new, D] and [B, H, new, Dv].
    ///
    /// # Errors
    /// If batch, heads or dimensions are not the cache's. The cache is then unchanged.
    pub fn append<'a>(
        &mut self,
        k: impl Into<ArrayView4<'a, f32>>,
        v: impl Into<ArrayView4<'a, f32>>,
    ) -> Result<(), Error> {
        let (k, v) = (k.into(), v.into());
        let (batch, heads, capacity, dim) = self.k.dim();
        let new = k.dim().2;
        expect("the new keys", &[batch, heads, new, dim], k.shape())?;
        expect("the new values", &[batch, heads, new, self.v.dim().3], v.shape())?;
        let len = self.len + new;
        // Who does not work on a thread of a pool may not want one.
        let shared = k.len() + v.len() >= SHARED && rayon::current_thread_index().is_some();
        if len > capacity {
            // Doubling makes the copying cost of n appends O(n) in all.
            let capacity = len.max(2 * capacity);
            (self.k, self.v) = both(shared, || grown(self.k(), capacity), || grown(self.v(), capacity));
        }
        let mut new_k = self.k.slice_mut(s![.., .., self.len..len, ..]);
        let mut new_v = self.v.slice_mut(s![.., .., self.len..len, ..]);
        both(shared, || new_k.assign(&k), || new_v.assign(&v));
        self.len = len;
        Ok(())
    }

    /// A cache of these of its sequences, each as often as it is named.
    ///
    /// # Errors
    /// If there is no such sequence.
    pub fn select(&self, sequences: &[usize]) -> Result<KvCache, Error> {
        let limit = self.k.dim().0;
        for &b in sequences {
            check_range("sequence", &(b..b.saturating_add(1)), limit)?;
        }
        let (k, v) = (self.k.select(Axis(0), sequences), self.v.select(Axis(0), sequences));
        Ok(KvCache { k, v, len: self.len })
    }

    /// Forgets all but the first `len` tokens; does nothing if there are no more than that.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

/// One after the other, or side by side.
fn both<K: Send, V: Send>(shared: bool, keys: impl FnOnce() -> K + Send, values: impl FnOnce() -> V + Send) -> (K, V) {
    if shared { rayon::join(keys, values) } else { (keys(), values()) }
}

/// Room for tokens, which will be read again with each one that comes.
fn empty(dim: (usize, usize, usize, usize)) -> Array4<f32> {
    let room = Array4::zeros(dim);
    room.as_slice().into_iter().for_each(large_pages);
    room
}

fn grown(old: ArrayView4<f32>, capacity: usize) -> Array4<f32> {
    let (batch, heads, len, dim) = old.dim();
    let mut new = empty((batch, heads, capacity, dim));
    new.slice_mut(s![.., .., ..len, ..]).assign(&old);
    new
}
