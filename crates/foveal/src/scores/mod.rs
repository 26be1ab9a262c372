//! From q·k to the score: softcap, score function, bias and mask, row by row. Everything a kernel needs to know about the options
//! is asked here: what is [visible](visible), and what is [added](added) to the scores.

mod added;
mod distances;
mod visible;

pub(crate) use visible::View;

use crate::attention::Attention;
use crate::kernel::softmax::Unit;
use crate::kernel::source::Source;
use crate::part::{Packed, Part};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The options of one call, for its shape.
///
/// Keys are counted from the first that the call was given, also where it is a [`Part`] of a larger one.
#[derive(Clone, Copy)]
pub(crate) struct Scores<'a> {
    attention: &'a Attention,
    queries: usize,
    keys: usize,
    packed: Option<&'a Packed>,
    part: Part,
    /// Whether keys are read as they lie, where they lie well; see [`Scores::in_place`].
    thin: bool,
    /// What q·k is multiplied with: that of the keys is a power of two, the rest is from 1 to 2.
    pub scale: f32,
    pub key_scale: f32,
    rest: f32,
}

/// A row of scores: sequence, query head, query.
pub(crate) type At = (usize, usize, usize);

impl<'a> Scores<'a> {
    pub fn new(attention: &'a Attention, shape: &Shape) -> Self {
        let (queries, keys) = (shape.queries, shape.keys);
        let part = attention.part.unwrap_or(Part::of(queries, keys));
        let (packed, scale) = (attention.packed.as_ref(), attention.scale_for(shape.dim));
        let key_scale = power_of_two(scale);
        let rest = if key_scale == scale { 1.0 } else { scale / key_scale };
        Scores { attention, queries, keys, packed, part, thin: shape.is_thin(), scale, key_scale, rest }
    }

    /// Whether q·k is computed from these keys as they lie: in all kernels or in none, as weights are computed again from the
    /// log-sum-exp, and a score that is rounded otherwise than it was there is another one.
    #[inline(always)]
    pub fn in_place(&self, k: &Source) -> bool {
        self.thin && k.rows() > 0 && k.lies_well(0..1)
    }

    /// What q·k is still to be multiplied with to become a score.
    #[inline(always)]
    pub fn rest(&self) -> f32 {
        self.rest
    }

    /// What finished scores are counted in. Where options change them, they have been multiplied with the rest of the scale.
    #[inline(always)]
    pub fn unit(&self) -> Unit {
        Unit::new(if self.changes() { 1.0 } else { self.rest })
    }

    /// The queries of sequence b.
    #[inline(always)]
    pub fn queries(&self, b: usize) -> usize {
        self.packed.map_or(self.queries, |packed| packed.queries(b).len())
    }

    /// The keys of sequence b.
    #[inline(always)]
    pub fn keys(&self, b: usize) -> usize {
        self.packed.map_or(self.keys, |packed| packed.keys(b).len())
    }

    /// The most keys of a sequence.
    pub fn most_keys(&self) -> usize {
        self.keys
    }

    /// Where query i stands among the keys.
    #[inline(always)]
    fn position(&self, b: usize, i: usize) -> isize {
        let of = if self.packed.is_some() { (self.queries(b), self.keys(b)) } else { self.part.of };
        i as isize + self.part.queries + self.attention.align.offset(b, of.0, of.1) - self.part.keys
    }

    /// The numbers of query i and of key j in the whole call.
    #[inline(always)]
    fn query_in_whole(&self, i: usize) -> isize {
        i as isize + self.part.queries
    }

    #[inline(always)]
    fn key_in_whole(&self, j: usize) -> isize {
        j as isize + self.part.keys
    }

    /// Where row i of the queries of head h of sequence b lies in an array that is shaped like the queries.
    #[inline(always)]
    pub fn query_row(&self, (b, h, i): At) -> At {
        self.packed.map_or((b, h, i), |packed| (0, h, packed.queries(b).start + i))
    }

    /// The same of row j of the keys of key head h.
    #[inline(always)]
    pub fn key_row(&self, (b, h, j): At) -> At {
        self.packed.map_or((b, h, j), |packed| (0, h, packed.keys(b).start + j))
    }

    /// Head h of sequence b of an array that is shaped like the queries.
    #[inline(always)]
    pub fn query_head<'t>(&self, queries: &Tensor<'t>, b: usize, h: usize) -> Source<'t> {
        self.packed.map_or_else(|| queries.head(b, h), |packed| queries.head_rows(0, h, packed.queries(b)))
    }

    /// Key head h of sequence b of an array that is shaped like the keys.
    #[inline(always)]
    pub fn key_head<'t>(&self, keys: &Tensor<'t>, b: usize, h: usize) -> Source<'t> {
        self.packed.map_or_else(|| keys.head(b, h), |packed| keys.head_rows(0, h, packed.keys(b)))
    }

    /// Whether there is nothing but dropout, sinks, and a mask by distances and lengths.
    pub fn is_plain(&self) -> bool {
        !self.changes() && !self.is_sparse() && self.attention.mask.keep.is_empty()
    }

    /// Whether weights are dropped.
    #[inline(always)]
    pub fn drops(&self) -> bool {
        self.attention.dropout.is_some()
    }

    /// Drops weights of row i, on the keys from `first` on.
    #[inline(always)]
    pub fn drop_weights(&self, (b, h, i): At, first: usize, weights: &mut [f32]) {
        if let Some(dropout) = self.attention.dropout {
            let query = self.query_in_whole(i).cast_unsigned();
            let row = dropout.row(b + self.part.batch, h + self.part.head, query);
            row.apply(self.key_in_whole(first).cast_unsigned(), weights);
        }
    }

    /// The logit of head h that takes weight and gives no value. Parts of a larger call leave it to the merge.
    #[inline(always)]
    pub fn sink(&self, h: usize) -> Option<f32> {
        self.sinks().map(|sinks| sinks[h])
    }

    /// The sinks that this call adds.
    pub fn sinks(&self) -> Option<&'a [f32]> {
        let attention: &'a Attention = self.attention;
        attention.sinks.as_deref().filter(|_| attention.part.is_none())
    }
}

/// The power of two next to a number, towards 0; the number itself where it has none.
fn power_of_two(x: f32) -> f32 {
    if x.is_normal() { f32::from_bits(x.to_bits() & 0xff80_0000) } else { x }
}
