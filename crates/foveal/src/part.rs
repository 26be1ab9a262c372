//! Calls that are a part of a larger one, and calls of several sequences without padding.

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array1, Array3, s};

use crate::attention::Attention;
use crate::backward::{check_given, sink_gradient};
use crate::results::{Forward, Saved, Upstream};
use crate::shape::{Shape, expect};
use crate::{Error, forward};

/// Where the queries and keys of a call stand in a larger call that it is a part of.
///
/// Masks by distance and length, patterns, biases by distance, score functions and dropout are then those of the whole, so that
/// parts over the keys, [merged](crate::Attention::merge), equal the whole. Arrays (keep-masks, dense biases, slopes and tables
/// of heads) are cut by the caller, as q, k and v are. A part leaves learned sinks to the merge, and their gradient to
/// [`sink_gradient`](crate::Attention::sink_gradient).
///
/// ```
/// use foveal::{Attention, Mask, Part};
/// use ndarray::{Array4, s};
///
/// let x = Array4::<f32>::from_shape_fn((1, 1, 8, 4), |(_, _, i, d)| ((3 * i + d) % 5) as f32);
/// let attention = Attention::new().mask(Mask::causal());
/// let whole = attention.forward(&x, &x, &x)?;
/// let parts = [0..5, 5..8].map(|keys| {
///     let part = attention.clone().part(Part { keys: keys.start as isize, ..Part::of(8, 8) });
///     let kv = x.slice(s![.., .., keys, ..]);
///     part.forward(&x, kv, kv)
/// });
/// let merged = attention.merge(&[parts[0].clone()?, parts[1].clone()?])?;
/// assert!(merged.out.iter().zip(&whole.out).all(|(a, b)| (a - b).abs() < 1e-5));
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The place of the first query in the whole.
    pub queries: isize,
    /// The place of the first key in the whole.
    pub keys: isize,
    /// The place of the first sequence in the whole.
    pub batch: usize,
    /// The place of the first query head in the whole.
    pub head: usize,
    /// T and S of the whole.
    pub of: (usize, usize),
}

impl Part {
    /// The beginning of a whole of so many queries and keys.
    pub fn of(queries: usize, keys: usize) -> Part {
        Part { queries: 0, keys: 0, batch: 0, head: 0, of: (queries, keys) }
    }

    /// No array reaches so far: sums of a few of these do not overflow.
    const FAR: isize = isize::MAX / 16;

    pub(crate) fn check(&self) -> Result<(), Error> {
        let far = |x: usize| isize::try_from(x).map_or(isize::MAX, |x| x);
        for (what, place) in [
            ("the place of the first query", self.queries),
            ("the place of the first key", self.keys),
            ("the number of queries of the whole", far(self.of.0)),
            ("the number of keys of the whole", far(self.of.1)),
            ("the place of the first sequence", far(self.batch)),
            ("the place of the first head", far(self.head)),
        ] {
            if !(-Part::FAR..=Part::FAR).contains(&place) {
                let expected = "a number that an array could have";
                return Err(Error::Value { what, expected, got: place as f64 });
            }
        }
        Ok(())
    }

    /// For what is made for the tokens of the whole alone: whether all queries and keys of the part are among these.
    pub(crate) fn check_within(&self, shape: &Shape) -> Result<(), Error> {
        for (what, first, count, of) in [
            ("the place of the first query", self.queries, shape.queries, self.of.0),
            ("the place of the first key", self.keys, shape.keys, self.of.1),
        ] {
            // Neither is further than FAR, as was checked.
            if first < 0 || first.unsigned_abs().saturating_add(count) > of {
                let expected =
                    "one from which all of the part lies within the whole, for Swin's bias is made for no other token";
                return Err(Error::Value { what, expected, got: first as f64 });
            }
        }
        Ok(())
    }
}

impl Attention {
    /// Joins results of the same queries over different [parts](Part) of the keys, and adds the [sinks](Attention::sinks), once:
    /// with lse = ln Σ exp lseₚ, out = Σ exp(lseₚ − lse)·outₚ.
    ///
    /// # Errors
    /// If the parts are not of the same shape, or there is none.
    pub fn merge(&self, parts: &[Forward]) -> Result<Forward, Error> {
        let first = parts.first().ok_or_else(|| Error::Fit {
            what: "the number of parts",
            got: 0,
            fits: "1 or more: their results are joined".into(),
        })?;
        let mut merged = first.clone();
        for part in parts {
            expect("the output of a part", first.out.shape(), part.out.shape())?;
            expect("lse", &first.out.shape()[..3], part.lse.shape())?;
        }
        let (_, heads, ..) = first.out.dim();
        if let Some(sinks) = &self.sinks {
            expect("the sinks", &[heads], &[sinks.len()])?;
        }
        let mut row = vec![0.0; first.out.dim().3];
        for ((b, h, i), lse) in merged.lse.indexed_iter_mut() {
            let part = |p: usize| (parts[p].lse[[b, h, i]], parts[p].out.slice(s![b, h, i, ..]));
            *lse = forward::merge_row(parts.len(), part, self.sinks.as_ref().map(|sinks| sinks[h]), &mut row);
            merged.out.slice_mut(s![b, h, i, ..]).assign(&ndarray::ArrayView1::from(&row));
        }
        Ok(merged)
    }

    /// The gradient of the [sinks](Attention::sinks), \[H\], from [merged](Attention::merge) results: that of the parts leaves it
    /// out, since each of them would add it again. It is a sum over queries, so that each set of queries is asked for once, and
    /// the answers are added. `None` without sinks.
    ///
    /// ```
    /// use foveal::{Attention, Part};
    /// use ndarray::{Array4, s};
    ///
    /// let x = Array4::<f32>::from_shape_fn((1, 1, 6, 4), |(_, _, i, d)| ((3 * i + d) % 5) as f32);
    /// let attention = Attention::new().sinks([0.5]);
    /// let whole = attention.forward(&x, &x, &x)?;
    /// let want = attention.backward(&x, &x, &x, &whole, &x)?.dsinks.unwrap();
    ///
    /// let part = |keys: std::ops::Range<usize>| {
    ///     let kv = x.slice(s![.., .., keys.clone(), ..]);
    ///     attention.clone().part(Part { keys: keys.start as isize, ..Part::of(6, 6) }).forward(&x, kv, kv)
    /// };
    /// let merged = attention.merge(&[part(0..2)?, part(2..6)?])?;
    /// let dsinks = attention.sink_gradient(&merged, &x)?.unwrap();
    /// assert!((dsinks[0] - want[0]).abs() < 1e-5);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the arrays are not shaped like the output, or there is not a sink for each head.
    pub fn sink_gradient<'a>(
        &self,
        merged: impl Into<Saved<'a>>,
        upstream: impl Into<Upstream<'a>>,
    ) -> Result<Option<Array1<f32>>, Error> {
        let (saved, upstream) = (merged.into(), upstream.into());
        let dim = saved.out.dim();
        check_given(&saved, &upstream, &dim)?;
        let Some(sinks) = &self.sinks else { return Ok(None) };
        expect("the sinks", &[dim[1]], &[sinks.len()])?;
        let (out, dout) = (saved.out.to_f32(), upstream.dout.to_f32());
        let mut delta = Array3::zeros((dim[0], dim[1], dim[2]));
        for (at, delta) in delta.indexed_iter_mut() {
            let (out, dout) = (out.slice(s![at.0, at.1, at.2, ..]), dout.slice(s![at.0, at.1, at.2, ..]));
            let products = dout.iter().zip(out).map(|(x, y)| f64::from(*x) * f64::from(*y));
            *delta = (products.sum::<f64>() - upstream.dlse.map_or(0.0, |dlse| f64::from(dlse[at]))) as f32;
        }
        Ok(Some(sink_gradient(sinks, saved.lse, delta.view())))
    }
}

/// Sequences of different lengths, one after the other without padding: queries [1, H, ΣT, D], keys and values
/// [1, G, ΣS, D].
///
/// Alignment, masks, biases and dropout are each sequence's own: the result is that of separate calls. Arrays over the scores
/// (keep-masks, dense biases) are [1 or B, 1 or H, 1 or longest T, longest S], of which each sequence uses the beginning.
///
/// ```
/// use foveal::{Attention, Mask, Packed};
/// use ndarray::Array4;
///
/// // Sequences of 3, 0 and 5 tokens.
/// let packed = Packed::new([0, 3, 3, 8], [0, 3, 3, 8])?;
/// let x = Array4::<f32>::ones((1, 4, 8, 16));
/// let fwd = Attention::new().mask(Mask::causal()).packed(packed).forward(&x, &x, &x)?;
/// assert_eq!(fwd.out, x);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    queries: Arc<[usize]>,
    keys: Arc<[usize]>,
}

impl Packed {
    /// From where each sequence starts among the queries and among the keys, and where the last one ends: B + 1 numbers each,
    /// from 0 on, none smaller than the one before. (FlashAttention's `cu_seqlens`.)
    ///
    /// # Errors
    /// If they are not such.
    pub fn new(queries: impl Into<Arc<[usize]>>, keys: impl Into<Arc<[usize]>>) -> Result<Self, Error> {
        let (queries, keys) = (queries.into(), keys.into());
        for (what, starts) in [("the starts of the queries", &queries), ("the starts of the keys", &keys)] {
            if starts.first() != Some(&0) {
                let fits = "0 first, then where each sequence ends".to_owned();
                return Err(Error::Fit { what, got: starts.first().copied().unwrap_or(0), fits });
            }
            if let Some(pair) = starts.windows(2).find(|pair| pair[1] < pair[0]) {
                let fits = format!("{} or more, as no sequence ends before it starts", pair[0]);
                return Err(Error::Fit { what, got: pair[1], fits });
            }
        }
        if queries.len() != keys.len() {
            let fits = format!("{}, as of the queries", queries.len() - 1);
            return Err(Error::Fit { what: "the number of sequences of the keys", got: keys.len() - 1, fits });
        }
        Ok(Packed { queries, keys })
    }

    /// From the length of each sequence, for queries and keys alike.
    ///
    /// # Errors
    /// If there are more tokens than can be counted.
    pub fn of_lengths(lengths: &[usize]) -> Result<Self, Error> {
        let mut starts = vec![0usize];
        for length in lengths {
            let last = starts[starts.len() - 1];
            let what = "the number of tokens of all sequences";
            let too_many = || Error::Fit { what, got: usize::MAX, fits: "what an array can hold".into() };
            starts.push(last.checked_add(*length).ok_or_else(too_many)?);
        }
        Packed::new(starts.clone(), starts)
    }

    /// How many sequences there are.
    pub fn len(&self) -> usize {
        self.queries.len() - 1
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The queries of sequence b.
    ///
    /// # Panics
    /// If there is no such sequence.
    pub fn queries(&self, b: usize) -> Range<usize> {
        self.queries[b]..self.queries[b + 1]
    }

    /// The keys of sequence b.
    ///
    /// # Panics
    /// If there is no such sequence.
    pub fn keys(&self, b: usize) -> Range<usize> {
        self.keys[b]..self.keys[b + 1]
    }

    /// All queries and all keys.
    pub(crate) fn totals(&self) -> (usize, usize) {
        (self.queries[self.len()], self.keys[self.len()])
    }

    /// The most queries and the most keys of a sequence.
    pub(crate) fn longest(&self) -> (usize, usize) {
        let longest = |starts: &[usize]| starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        (longest(&self.queries), longest(&self.keys))
    }
}

/// The number of queries and keys of each sequence of a call, of the whole where it is a part of one.
#[derive(Clone, Copy)]
pub(crate) struct Lengths<'a> {
    pub count: usize,
    /// Of each that is not packed.
    pub size: (usize, usize),
    pub packed: Option<&'a Packed>,
}

impl Lengths<'_> {
    /// Those of a call that is a whole by itself.
    pub fn of(shape: &Shape) -> Self {
        Lengths { count: shape.batch, size: (shape.queries, shape.keys), packed: None }
    }

    /// Queries and keys of sequence b.
    pub fn size(&self, b: usize) -> (usize, usize) {
        self.packed.map_or(self.size, |packed| (packed.queries(b).len(), packed.keys(b).len()))
    }
}
