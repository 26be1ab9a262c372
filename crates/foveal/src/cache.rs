//! Keys and values of all tokens so far, for generating one token after another.

mod pages;
mod store;

use std::ops::Range;

use ndarray::Axis;

use self::pages::Pages;
use self::store::Store;
use crate::Error;
use crate::attention::Attention;
use crate::mask::{Align, Mask};
use crate::results::Forward;
use crate::shape::{check_range, expect, room};
use crate::tensor::Tensor;

/// Keys and values of all tokens so far, for generating one token after another.
///
/// ```
/// use foveal::{Attention, KvCache, Mask};
/// use ndarray::Array4;
///
/// let attention = Attention::new().mask(Mask::causal());
/// let mut cache = KvCache::new(1, 2, 8, 8); // one sequence, 2 key heads, dimension 8
/// for _ in 0..5 {
///     let (q, kv) = (Array4::<f32>::ones((1, 4, 1, 8)), Array4::<f32>::ones((1, 2, 1, 8)));
///     cache.append(&kv, &kv)?;
///     let out = attention.decode(&q, &cache)?.out; // [1, 4, 1, 8]
/// }
/// assert_eq!(cache.len(), 5);
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// The sequences of a batch may have different lengths: each can be [appended to](KvCache::append_to) and
/// [cut](KvCache::truncate_sequence) on its own, and [`Attention::decode`] has the newest query of each stand at its own end.
///
/// Stored [in 16 bits](KvCache::precision), a cache takes half the memory, and a token reads half as much. In
/// [pages](KvCache::paged), sequences of any lengths share one store, as in vLLM.
#[derive(Clone, Debug)]
pub struct KvCache {
    /// [B, H, capacity, D], or [pages, H, tokens of a page, D].
    k: Store,
    v: Store,
    /// Of each sequence.
    lengths: Vec<usize>,
    pages: Option<Pages>,
}

/// What a [`KvCache`] stores its numbers in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// IEEE's half precision: 11 bits, up to 65,504.
    F16,
    /// The upper half of an f32: 8 bits, the range of f32.
    Bf16,
}

impl KvCache {
    /// An empty cache for `batch` sequences with `heads` key heads of dimension `dim` and values of dimension `value_dim`.
    pub fn new(batch: usize, heads: usize, dim: usize, value_dim: usize) -> Self {
        KvCache::of_room(batch, heads, (dim, value_dim), 0)
    }

    /// The same with room for `capacity` tokens, so that appending up to there allocates nothing.
    ///
    /// # Errors
    /// If there cannot be so much memory.
    pub fn with_capacity(
        batch: usize,
        heads: usize,
        dim: usize,
        value_dim: usize,
        capacity: usize,
    ) -> Result<Self, Error> {
        for dim in [dim, value_dim] {
            room::<f32>("the room of a cache", &[batch, heads, capacity, dim])?;
        }
        Ok(KvCache::of_room(batch, heads, (dim, value_dim), capacity))
    }

    fn of_room(batch: usize, heads: usize, (dim, value_dim): (usize, usize), capacity: usize) -> Self {
        let store = |dim| Store::new(Precision::F32, [batch, heads, capacity, dim]);
        KvCache { k: store(dim), v: store(value_dim), lengths: vec![0; batch], pages: None }
    }

    /// An empty cache whose sequences share `pages` pages of `page` tokens each, and take one when they need it.
    ///
    /// ```
    /// use foveal::{Attention, KvCache, Precision};
    /// use ndarray::Array4;
    ///
    /// // 70 pages of 16 tokens for two sequences with 8 key heads of dimension 64.
    /// let mut cache = KvCache::paged(70, 16, 2, 8, 64, 64)?.precision(Precision::Bf16)?;
    /// let (long, short) = (Array4::<f32>::ones((1, 8, 1000, 64)), Array4::<f32>::ones((1, 8, 20, 64)));
    /// cache.append_to(0, &long, &long)?;
    /// cache.append_to(1, &short, &short)?;
    /// // 1,000 tokens take 63 pages, and 20 take 2.
    /// assert_eq!((cache.lengths(), cache.free_pages()), (&[1000, 20][..], 70 - 65));
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a page holds no token, or there cannot be so much memory.
    pub fn paged(
        pages: usize,
        page: usize,
        batch: usize,
        heads: usize,
        dim: usize,
        value_dim: usize,
    ) -> Result<Self, Error> {
        if page == 0 {
            let fits = "1 or more; a multiple of 16 is read fastest".into();
            return Err(Error::Fit { what: "the number of tokens of a page", got: 0, fits });
        }
        for dim in [dim, value_dim] {
            room::<f32>("the pages of a cache", &[pages, heads, page, dim])?;
        }
        let store = |dim| Store::new(Precision::F32, [pages, heads, page, dim]);
        let (k, v) = (store(dim), store(value_dim));
        Ok(KvCache { k, v, lengths: vec![0; batch], pages: Some(Pages::new(pages, page, batch)) })
    }

    /// The same cache, storing its numbers so. What comes in is rounded to that.
    ///
    /// # Errors
    /// If there are tokens in it already.
    pub fn precision(mut self, precision: Precision) -> Result<Self, Error> {
        if !self.is_empty() {
            let fits = "0: choose the precision of a cache before it is filled".into();
            return Err(Error::Fit { what: "the number of tokens in the cache", got: self.len(), fits });
        }
        (self.k, self.v) = (Store::new(precision, self.k.dim()), Store::new(precision, self.v.dim()));
        Ok(self)
    }

    /// The number of tokens in it, of the longest sequence.
    pub fn len(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// The number of tokens of each sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pages that no sequence uses; 0 of a cache without pages.
    pub fn free_pages(&self) -> usize {
        self.pages.as_ref().map_or(0, Pages::free)
    }

    /// The keys: [B, H, len, D]. Beyond the length of a sequence they mean nothing.
    pub fn k(&self) -> Tensor<'_> {
        self.tensor(&self.k)
    }

    /// The values: [B, H, len, Dv].
    pub fn v(&self) -> Tensor<'_> {
        self.tensor(&self.v)
    }

    fn tensor<'a>(&'a self, store: &'a Store) -> Tensor<'a> {
        match &self.pages {
            None => store.tokens(0..self.len()),
            Some(pages) => store.tokens(0..pages.size()).in_pages(pages.tables(), &self.lengths),
        }
    }

    /// Adds the keys and values of new tokens, as many to every sequence: [B, H, new, D] and [B, H, new, Dv].
    ///
    /// # Errors
    /// If batch, heads or dimensions are not the cache's, or there are no pages left. The cache is then unchanged.
    pub fn append<'a>(&mut self, k: impl Into<Tensor<'a>>, v: impl Into<Tensor<'a>>) -> Result<(), Error> {
        let (k, v) = (k.into(), v.into());
        self.check(&k, &v, self.lengths.len())?;
        let new = k.dim()[2];
        self.make_room(0..self.lengths.len(), new)?;
        if self.lengths.is_empty() {
            return Ok(());
        }
        if self.pages.is_none() && self.lengths.iter().all(|length| *length == self.lengths[0]) {
            store::write_both((&mut self.k, &mut self.v), (&k, &v), self.lengths[0]);
            self.lengths.iter_mut().for_each(|length| *length += new);
        } else {
            (0..self.lengths.len()).for_each(|b| self.write(b, (&k, &v), b));
        }
        Ok(())
    }

    /// Adds the keys and values of new tokens to one sequence: [1, H, new, D] and [1, H, new, Dv].
    ///
    /// # Errors
    /// As [`append`](KvCache::append); also if there is no such sequence.
    pub fn append_to<'a>(
        &mut self,
        sequence: usize,
        k: impl Into<Tensor<'a>>,
        v: impl Into<Tensor<'a>>,
    ) -> Result<(), Error> {
        let (k, v) = (k.into(), v.into());
        check_range("sequence", &(sequence..sequence.saturating_add(1)), self.lengths.len())?;
        self.check(&k, &v, 1)?;
        self.make_room(sequence..sequence + 1, k.dim()[2])?;
        self.write(sequence, (&k, &v), 0);
        Ok(())
    }

    fn check(&self, k: &Tensor, v: &Tensor, batch: usize) -> Result<(), Error> {
        if k.is_paged() || v.is_paged() {
            let fits = "arrays in one piece, such as `to_f32` makes";
            return Err(Error::Unfit { what: "appending to a cache", option: "tokens in pages", fits });
        }
        let ([_, heads, _, dim], [.., value_dim], new) = (self.k.dim(), self.v.dim(), k.dim()[2]);
        expect("the new keys", &[batch, heads, new, dim], &k.dim())?;
        expect("the new values", &[batch, heads, new, value_dim], &v.dim())
    }

    /// Makes room for `new` tokens more of each of these sequences.
    fn make_room(&mut self, sequences: Range<usize>, new: usize) -> Result<(), Error> {
        if let Some(pages) = &mut self.pages {
            return pages.take(sequences.map(|b| (b, self.lengths[b] + new)));
        }
        let need = self.lengths[sequences].iter().max().map_or(0, |length| length + new);
        let capacity = self.k.dim()[2];
        if need > capacity {
            // Doubling makes the copying cost of n appends O(n) in all.
            let capacity = need.max(2 * capacity);
            let used = self.len();
            store::both(self.k.len() + self.v.len(), || self.k.grow(used, capacity), || self.v.grow(used, capacity));
        }
        Ok(())
    }

    /// Writes the tokens of sequence `from` of k and v at the end of sequence b, for which there is room.
    fn write(&mut self, b: usize, (k, v): (&Tensor, &Tensor), from: usize) {
        let (start, new) = (self.lengths[b], k.dim()[2]);
        match &self.pages {
            None => {
                self.k.write((b, start), k, (from, 0..new));
                self.v.write((b, start), v, (from, 0..new));
            }
            Some(pages) => {
                for (page, at, tokens) in pages.places(b, start, new) {
                    self.k.write((page, at), k, (from, tokens.clone()));
                    self.v.write((page, at), v, (from, tokens));
                }
            }
        }
        self.lengths[b] += new;
    }

    /// A cache of these of its sequences, each as often as it is named.
    ///
    /// # Errors
    /// If there is no such sequence, or the cache has pages, which sequences do not share.
    pub fn select(&self, sequences: &[usize]) -> Result<KvCache, Error> {
        if self.pages.is_some() {
            let fits = "a cache in one piece";
            return Err(Error::Unfit { what: "selecting sequences of a cache", option: "pages", fits });
        }
        for &b in sequences {
            check_range("sequence", &(b..b.saturating_add(1)), self.lengths.len())?;
        }
        let (k, v) = (self.k.select(Axis(0), sequences), self.v.select(Axis(0), sequences));
        Ok(KvCache { k, v, lengths: sequences.iter().map(|b| self.lengths[*b]).collect(), pages: None })
    }

    /// Forgets all but the first `len` tokens of every sequence; does nothing to one that has no more than that.
    pub fn truncate(&mut self, len: usize) {
        (0..self.lengths.len()).for_each(|b| self.cut(b, len));
    }

    /// The same for one sequence.
    ///
    /// # Errors
    /// If there is no such sequence.
    pub fn truncate_sequence(&mut self, sequence: usize, len: usize) -> Result<(), Error> {
        check_range("sequence", &(sequence..sequence.saturating_add(1)), self.lengths.len())?;
        self.cut(sequence, len);
        Ok(())
    }

    fn cut(&mut self, b: usize, len: usize) {
        self.lengths[b] = self.lengths[b].min(len);
        if let Some(pages) = &mut self.pages {
            pages.release(b, self.lengths[b]);
        }
    }

    /// [`Attention::decode`].
    pub(crate) fn attend(&self, attention: &Attention, q: Tensor) -> Result<Forward, Error> {
        let alike = self.lengths.iter().all(|length| *length == self.lengths[0]);
        if alike {
            return attention.forward(q, self.k(), self.v());
        }
        // The last query of each sequence stands at its own last key.
        let queries = q.dim()[2] as isize;
        let offsets: Vec<isize> = self.lengths.iter().map(|length| *length as isize - queries).collect();
        let own = attention.clone().and_mask(Mask::padding(self.lengths.clone()));
        let own = if attention.align == Align::Last { own.align(Align::Offsets(offsets.into())) } else { own };
        own.forward(q, self.k(), self.v())
    }
}
