use std::ops::Range;

use ndarray::{ArrayView3, ArrayView4};

use crate::Error;
use crate::kernel::small;
use crate::part::Packed;
use crate::results::Forward;
use crate::tensor::Tensor;

/// The sizes of one call, checked once at the public boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// B: sequences.
    pub batch: usize,
    /// H: heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; H is a multiple.
    pub kv_heads: usize,
    /// T: queries.
    pub queries: usize,
    /// S: keys.
    pub keys: usize,
    /// D: numbers per query and key.
    pub dim: usize,
    /// Numbers per value.
    pub value_dim: usize,
    /// Sequences and queries of the arrays themselves: of packed sequences, 1 and those of all.
    pub stored: (usize, usize),
}

impl Shape {
    /// The shape of q [B, H, T, D] against k [B, H/g, S, D].
    pub fn of_scores<A>(q: &ArrayView4<A>, k: &ArrayView4<A>) -> Result<Shape, Error> {
        Shape::new(q.dim().into(), k.dim().into())
    }

    /// The same with v [B, H/g, S, Dv].
    pub fn of<A>(q: &ArrayView4<A>, k: &ArrayView4<A>, v: &ArrayView4<A>) -> Result<Shape, Error> {
        Shape::new(q.dim().into(), k.dim().into())?.with_values(v.dim().into())
    }

    /// The shape of a call of q against k and v, which may be packed sequences.
    pub fn of_call(q: &Tensor, k: &Tensor, v: Option<&Tensor>, packed: Option<&Packed>) -> Result<Shape, Error> {
        let mut shape = Shape::new(q.dim(), k.dim())?;
        if let Some(v) = v {
            shape = shape.with_values(v.dim())?;
        }
        let Some(packed) = packed else { return Ok(shape) };
        if [Some(q), Some(k), v].into_iter().flatten().any(Tensor::is_paged) {
            let fits = "keys and values in one piece, or no packed sequences";
            return Err(Error::Unfit { what: "a call of packed sequences", option: "keys in pages", fits });
        }
        let (queries, keys) = packed.totals();
        for (what, expected, got) in [
            ("the number of sequences of the arrays", 1, shape.batch),
            ("the number of queries", queries, shape.queries),
            ("the number of keys", keys, shape.keys),
        ] {
            if expected != got {
                return Err(Error::Fit { what, got, fits: format!("{expected}, as the packed sequences say") });
            }
        }
        shape.batch = packed.len();
        (shape.queries, shape.keys) = packed.longest();
        Ok(shape)
    }

    fn new([batch, heads, queries, dim]: [usize; 4], k: [usize; 4]) -> Result<Shape, Error> {
        let [_, kv_heads, keys, _] = k;
        if dim == 0 {
            return Err(Error::HeadDim);
        }
        expect("k", &[batch, kv_heads, keys, dim], &k)?;
        let divides = if kv_heads == 0 { heads == 0 } else { heads % kv_heads == 0 };
        if !divides {
            return Err(Error::Heads { query: heads, key: kv_heads });
        }
        let stored = (batch, queries);
        Ok(Shape { batch, heads, kv_heads, queries, keys, dim, value_dim: 0, stored })
    }

    /// The same with values of this shape, [B, H/g, S, Dv].
    fn with_values(mut self, v: [usize; 4]) -> Result<Shape, Error> {
        self.value_dim = v[3];
        expect("v", &[self.batch, self.kv_heads, self.keys, self.value_dim], &v)?;
        Ok(self)
    }

    /// Query heads per key head.
    pub fn group(&self) -> usize {
        self.heads.checked_div(self.kv_heads).unwrap_or(1)
    }

    /// Floating-point operations of the two products of the forward pass.
    pub fn flops(&self) -> f64 {
        [2, self.batch, self.heads, self.queries, self.keys, self.dim + self.value_dim]
            .iter()
            .map(|x| *x as f64)
            .product()
    }

    /// Whether a head is so small that it is best worked on as a whole.
    pub fn is_small(&self) -> bool {
        /// What such a head works with stays in the nearest caches.
        const DIM: usize = 128;
        self.queries.max(self.keys) <= small::TOKENS
            && self.queries.min(self.keys) > 0
            && self.dim.max(self.value_dim) <= DIM
    }

    /// Whether there are so few queries that reading the keys and values is most of the work: then the heads that share a key
    /// head go together.
    pub fn decodes(&self) -> bool {
        /// Rows of a head.
        const QUERIES: usize = 4;
        /// Rows that go together.
        const ROWS: usize = 256;
        let rows = self.queries * self.group();
        self.queries <= QUERIES && (self.is_thin() || (self.group() > 1 && rows <= ROWS))
    }

    /// Whether there are so few rows that packing keys and values would cost more than it saves.
    pub fn is_thin(&self) -> bool {
        /// Rows of all heads that share a key head.
        const ROWS: usize = 8;
        self.queries * self.group() <= ROWS && self.queries <= 4
    }

    /// Numbers of all keys and values.
    pub fn read(&self) -> f64 {
        [self.batch, self.kv_heads, self.keys, self.dim + self.value_dim].iter().map(|x| *x as f64).product()
    }

    /// Shape of the output.
    pub fn out(&self) -> [usize; 4] {
        [self.stored.0, self.heads, self.stored.1, self.value_dim]
    }

    /// Shape of the log-sum-exp.
    pub fn lse(&self) -> [usize; 3] {
        [self.stored.0, self.heads, self.stored.1]
    }

    /// What forward has given back, and the gradient of its output, must be shaped like this call's.
    pub fn check_backward(&self, fwd: &Forward, dout: &ArrayView4<f32>) -> Result<(), Error> {
        expect("the forward output", &self.out(), fwd.out.shape())?;
        expect("lse", &self.lse(), fwd.lse.shape())?;
        expect("dout", &self.out(), dout.shape())
    }

    /// Sequence and head must be there, and the log-sum-exp be that of all rows.
    pub fn check_head_and_lse(&self, lse: &ArrayView3<f64>, at: (usize, usize)) -> Result<(), Error> {
        self.check_head(at)?;
        expect("lse", &self.lse(), lse.shape())
    }

    /// Sequence and head must be there.
    pub fn check_head(&self, (b, h): (usize, usize)) -> Result<(), Error> {
        check_range("sequence", &(b..b.saturating_add(1)), self.batch)?;
        check_range("head", &(h..h.saturating_add(1)), self.heads)
    }

    /// An array over the scores [B, H, T, S] may be shared (length 1) along all axes but the last.
    pub fn check_broadcast(&self, what: &'static str, got: &[usize]) -> Result<(), Error> {
        let full = [self.batch, self.heads, self.queries, self.keys];
        let fits = got.len() == 4 && got[3] == full[3] && (0..3).all(|axis| got[axis] == full[axis] || got[axis] == 1);
        let axes = "[batch, heads, queries, keys]";
        if fits { Ok(()) } else { Err(Error::Broadcast { what, axes, full: full.to_vec(), got: got.to_vec() }) }
    }
}

/// The axes of queries, keys, values, and of whatever is shaped like them.
pub(crate) const HEADS: &str = "[batch, heads, tokens, dim]";

/// An array of attention's own must have the `expected` shape: [`HEADS`], or without the last axis, or a matrix.
pub(crate) fn expect(what: &'static str, expected: &[usize], got: &[usize]) -> Result<(), Error> {
    let axes = match expected.len() {
        4 => HEADS,
        3 => "[batch, heads, tokens]",
        2 => "[rows, columns]",
        _ => "[columns]",
    };
    expect_axes(what, axes, expected, got)
}

/// `got` must be `expected`, an array whose axes mean `axes`.
pub(crate) fn expect_axes(
    what: &'static str,
    axes: &'static str,
    expected: &[usize],
    got: &[usize],
) -> Result<(), Error> {
    if expected == got {
        Ok(())
    } else {
        Err(Error::Shape { what, axes, expected: expected.to_vec(), got: got.to_vec() })
    }
}

/// Memory for an array of these sizes, empty yet; an error if there cannot be so much.
pub(crate) fn room<T>(what: &'static str, sizes: &[usize]) -> Result<Vec<T>, Error> {
    let too_large = || Error::TooLarge { what, sizes: sizes.to_vec() };
    // Arrays without values are limited, too: an axis of length 0 does not make the others countable.
    let values = sizes.iter().filter(|size| **size > 0).try_fold(1usize, |values, size| values.checked_mul(*size));
    let fits = |values: &usize| *values <= isize::MAX as usize / size_of::<T>().max(1);
    let values = values.filter(fits).ok_or_else(too_large)?;
    let mut room = Vec::new();
    if !sizes.contains(&0) {
        room.try_reserve_exact(values).map_err(|_| too_large())?;
    }
    Ok(room)
}

/// `start..end` must lie within `0..limit`.
pub(crate) fn check_range(what: &'static str, range: &Range<usize>, limit: usize) -> Result<(), Error> {
    if range.start <= range.end && range.end <= limit {
        Ok(())
    } else {
        Err(Error::Range { what, start: range.start, end: range.end, limit })
    }
}
