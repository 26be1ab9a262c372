use ndarray::ArrayView4;

use crate::Error;

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
}

impl Shape {
    /// The shape of q [B, H, T, D] against k [B, H/g, S, D].
    pub fn of_scores<A>(q: &ArrayView4<A>, k: &ArrayView4<A>) -> Result<Shape, Error> {
        let (batch, heads, queries, dim) = q.dim();
        let (_, kv_heads, keys, _) = k.dim();
        if dim == 0 {
            return Err(Error::HeadDim);
        }
        expect("k", &[batch, kv_heads, keys, dim], k.shape())?;
        let divides = if kv_heads == 0 { heads == 0 } else { heads % kv_heads == 0 };
        if !divides {
            return Err(Error::Heads { query: heads, key: kv_heads });
        }
        Ok(Shape { batch, heads, kv_heads, queries, keys, dim, value_dim: 0 })
    }

    /// The same with v [B, H/g, S, Dv].
    pub fn of<A>(q: &ArrayView4<A>, k: &ArrayView4<A>, v: &ArrayView4<A>) -> Result<Shape, Error> {
        let mut shape = Shape::of_scores(q, k)?;
        shape.value_dim = v.dim().3;
        expect("v", &[shape.batch, shape.kv_heads, shape.keys, shape.value_dim], v.shape())?;
        Ok(shape)
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
        const TOKENS: usize = 64;
        const DIM: usize = 128;
        self.queries.max(self.keys) <= TOKENS && self.queries.min(self.keys) > 0 && self.dim.max(self.value_dim) <= DIM
    }

    /// Numbers of all keys and values.
    pub fn read(&self) -> f64 {
        [self.batch, self.kv_heads, self.keys, self.dim + self.value_dim].iter().map(|x| *x as f64).product()
    }

    /// Shape of the output.
    pub fn out(&self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.value_dim]
    }

    /// Shape of the log-sum-exp.
    pub fn lse(&self) -> [usize; 3] {
        [self.batch, self.heads, self.queries]
    }

    /// A rectangle of the weights of sequence and head `at` must lie within them.
    pub fn check_rectangle(
        &self,
        (b, h): (usize, usize),
        rows: &std::ops::Range<usize>,
        cols: &std::ops::Range<usize>,
    ) -> Result<(), Error> {
        check_range("sequence", &(b..b.saturating_add(1)), self.batch)?;
        check_range("head", &(h..h.saturating_add(1)), self.heads)?;
        check_range("rows", rows, self.queries)?;
        check_range("columns", cols, self.keys)
    }

    /// An array over the scores [B, H, T, S] may be shared (length 1) along all axes but the last.
    pub fn check_broadcast(&self, what: &'static str, got: &[usize]) -> Result<(), Error> {
        let full = [self.batch, self.heads, self.queries, self.keys];
        let fits = got.len() == 4 && got[3] == full[3] && (0..3).all(|axis| got[axis] == full[axis] || got[axis] == 1);
        if fits { Ok(()) } else { Err(Error::Shape { what, expected: full.to_vec(), got: got.to_vec() }) }
    }
}

/// `got` must be `expected`.
pub(crate) fn expect(what: &'static str, expected: &[usize], got: &[usize]) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected: expected.to_vec(), got: got.to_vec() }) }
}

/// `start..end` must lie within `0..limit`.
pub(crate) fn check_range(what: &'static str, range: &std::ops::Range<usize>, limit: usize) -> Result<(), Error> {
    if range.start <= range.end && range.end <= limit {
        Ok(())
    } else {
        Err(Error::Range { what, start: range.start, end: range.end, limit })
    }
}
