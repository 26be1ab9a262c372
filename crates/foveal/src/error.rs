use std::fmt;

use crate::kernel::Isa;

/// What can be wrong with a call. Every variant says what was given, what was expected, and what to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An array's shape does not fit the others.
    Shape {
        /// Which argument.
        what: &'static str,
        /// The shape that would have fitted.
        expected: Vec<usize>,
        /// The shape that came.
        got: Vec<usize>,
    },
    /// The query heads cannot be shared out evenly over the key heads.
    Heads {
        /// Heads of `q`.
        query: usize,
        /// Heads of `k` and `v`.
        key: usize,
    },
    /// The head dimension is zero: there is nothing to compare.
    HeadDim,
    /// A sequence length lies past the end of the keys.
    Length {
        /// Which sequence of the batch.
        batch: usize,
        /// The length that was given.
        length: usize,
        /// The number of keys there are.
        keys: usize,
    },
    /// A rectangle of the weight matrix, or a range of tokens, lies outside what there is.
    Range {
        /// Which range.
        what: &'static str,
        /// Its start.
        start: usize,
        /// Its end (exclusive).
        end: usize,
        /// The end of what there is.
        limit: usize,
    },
    /// A number outside the range in which it means something.
    Value {
        /// Which number.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it was.
        got: f64,
    },
    /// A size that does not fit the others.
    Fit {
        /// Which size.
        what: &'static str,
        /// What it is.
        got: usize,
        /// What would have fitted.
        fits: String,
    },
    /// An option that this kind of attention has no meaning for.
    Unfit {
        /// Which attention.
        what: &'static str,
        /// The option.
        option: &'static str,
        /// What would have fitted.
        fits: &'static str,
    },
    /// More pixels than cells, or none.
    Pixels {
        /// `"rows"` or `"columns"`.
        what: &'static str,
        /// How many pixels were asked for.
        pixels: usize,
        /// How many cells there are.
        cells: usize,
    },
    /// The instruction set that was asked for is not on this machine.
    Isa {
        /// The one asked for.
        wanted: Isa,
        /// The best one there is.
        best: Isa,
    },
    /// `FOVEAL_ISA` names no instruction set.
    IsaName {
        /// Its value.
        got: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { what, expected, got } => write!(
                f,
                "{what} has shape {got:?}, expected {expected:?}; reshape or transpose it to [batch, heads, tokens, dim] order"
            ),
            Error::Heads { query, key } => write!(
                f,
                "{query} query heads cannot be shared evenly by {key} key heads; make the first a multiple of the second"
            ),
            Error::HeadDim => write!(f, "q has head dimension 0; give each head at least one dimension"),
            Error::Length { batch, length, keys } => write!(
                f,
                "sequence {batch} has length {length}, but there are only {keys} keys; lengths run from 0 to {keys}"
            ),
            Error::Range { what, start, end, limit } => {
                write!(f, "{what} {start}..{end} does not lie within 0..{limit}")
            }
            Error::Value { what, expected, got } => write!(f, "{what} is {got}, expected {expected}"),
            Error::Fit { what, got, fits } => write!(f, "{what} is {got}; what fits: {fits}"),
            Error::Unfit { what, option, fits } => write!(f, "{what} has no {option}; what fits: {fits}"),
            Error::Pixels { what, pixels, cells } => write!(
                f,
                "{pixels} pixels for {cells} {what}; ask for 1 to {cells}, each pixel pools at least one cell"
            ),
            Error::Isa { wanted, best } => write!(
                f,
                "this machine cannot run {wanted} kernels; its best instruction set is {best} (unset FOVEAL_ISA to use it)"
            ),
            Error::IsaName { got } => {
                write!(f, "FOVEAL_ISA is {got:?}; set it to scalar, avx2 or avx512, or unset it")
            }
        }
    }
}

impl std::error::Error for Error {}
