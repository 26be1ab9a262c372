use std::fmt;

use foveal_compute::Isa;

/// What can be wrong with a call. Every variant says what was given, what was expected, and what to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An array's shape does not fit the others.
    Shape {
        /// Which argument.
        what: &'static str,
        /// What its axes mean, such as `"[batch, heads, tokens, dim]"`.
        axes: &'static str,
        /// The shape that would have fitted.
        expected: Vec<usize>,
        /// The shape that came.
        got: Vec<usize>,
    },
    /// The shape of an array that may be shared along axes of length 1 does not fit the others.
    Broadcast {
        /// Which argument.
        what: &'static str,
        /// What its axes mean. The last may not be shared.
        axes: &'static str,
        /// The shape without shared axes that would have fitted.
        full: Vec<usize>,
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
    /// An array that no memory could hold.
    TooLarge {
        /// Which array.
        what: &'static str,
        /// The sizes that were asked for.
        sizes: Vec<usize>,
    },
    /// The instruction set that the caller asked for, with [`Attention::isa`](crate::Attention::isa) or its like, is not on
    /// this machine.
    Isa {
        /// The one asked for.
        wanted: Isa,
        /// The best one there is.
        best: Isa,
    },
    /// The instruction set that the environment variable `FOVEAL_ISA` asks for is not on this machine.
    IsaVariable {
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
    /// What the kernels stand on refuses, for a reason that has no variant here yet.
    Compute(
        /// Why.
        String,
    ),
}

impl From<foveal_compute::Error> for Error {
    fn from(error: foveal_compute::Error) -> Self {
        match error {
            foveal_compute::Error::Isa { wanted, best } => Error::Isa { wanted, best },
            foveal_compute::Error::IsaVariable { wanted, best } => Error::IsaVariable { wanted, best },
            foveal_compute::Error::IsaName { got } => Error::IsaName { got },
            foveal_compute::Error::Shape { what, expected, got } => {
                Error::Shape { what, axes: "[rows, columns]", expected, got }
            }
            other => Error::Compute(other.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { what, axes, expected, got } => write!(
                f,
                "{what} has shape {got:?}, expected {expected:?}; its axes are {axes}: {}",
                way_to(expected, got)
            ),
            Error::Broadcast { what, axes, full, got } => write!(
                f,
                "{what} has shape {got:?}, expected {full:?}; its axes are {axes}: every axis but the last may also have \
                 length 1, and is then shared"
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
            Error::Range { what, start, end, .. } if start > end => {
                write!(f, "{what} {start}..{end} ends before it starts; give the smaller number first")
            }
            Error::Range { what, start, end, limit: 0 } => {
                write!(f, "{what} {start}..{end} does not lie within 0..0: there is nothing to choose from")
            }
            Error::Range { what, start, end, limit } => {
                write!(f, "{what} {start}..{end} does not lie within 0..{limit}; count from 0 to {}", limit - 1)
            }
            Error::Value { what, expected, got } => write!(f, "{what} is {got}, expected {expected}"),
            Error::Fit { what, got, fits } => write!(f, "{what} is {got}; what fits: {fits}"),
            Error::Unfit { what, option, fits } => write!(f, "{what} has no {option}; what fits: {fits}"),
            Error::Pixels { what, pixels, cells: 0 } => {
                write!(f, "{pixels} pixels for no {what}; choose a range with at least one of them")
            }
            Error::Pixels { what, pixels, cells } => write!(
                f,
                "{pixels} pixels for {cells} {what}; ask for 1 to {cells}, each pixel pools at least one cell"
            ),
            Error::TooLarge { what, sizes } => {
                write!(f, "{what} of sizes {sizes:?} does not fit into memory; ask for a smaller one")
            }
            Error::Isa { wanted, best } => write!(
                f,
                "this machine cannot run {wanted} kernels; its best instruction set is {best}: ask for that, or leave the \
                 choice out of the call"
            ),
            Error::IsaVariable { wanted, best } => write!(
                f,
                "FOVEAL_ISA is {wanted}, but this machine's best instruction set is {best}; set it to that, or unset it"
            ),
            Error::IsaName { got } => {
                write!(f, "FOVEAL_ISA is {got:?}; set it to scalar, avx2 or avx512, or unset it")
            }
            Error::Compute(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

/// What makes an array of shape `got` one of shape `expected`.
fn way_to(expected: &[usize], got: &[usize]) -> &'static str {
    let sorted = |shape: &[usize]| {
        let mut shape = shape.to_vec();
        shape.sort_unstable();
        shape
    };
    let values = |shape: &[usize]| shape.iter().map(|size| *size as u128).fold(1, u128::saturating_mul);
    if sorted(expected) == sorted(got) {
        "transpose it"
    } else if values(expected) == values(got) {
        "reshape it"
    } else {
        "compare it with the other arguments"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_shape() {
        let shape = |expected: &[usize], got: &[usize]| {
            let (expected, got) = (expected.to_vec(), got.to_vec());
            Error::Shape { what: "x", axes: "[rows, columns]", expected, got }.to_string()
        };
        let want = "x has shape [3, 2], expected [2, 3]; its axes are [rows, columns]: transpose it";
        assert_eq!(shape(&[2, 3], &[3, 2]), want);
        assert!(shape(&[2, 3], &[6]).ends_with("reshape it"));
        assert!(shape(&[2, 3], &[2, 4]).ends_with("compare it with the other arguments"));
        assert!(shape(&[usize::MAX; 9], &[usize::MAX]).contains("[rows, columns]"));
    }

    #[test]
    fn nothing_is_asked_for_that_cannot_be() {
        let pixels = |pixels, cells| Error::Pixels { what: "rows", pixels, cells }.to_string();
        assert_eq!(pixels(3, 0), "3 pixels for no rows; choose a range with at least one of them");
        assert!(pixels(7, 6).contains("ask for 1 to 6"));
        let range = |start, end, limit| Error::Range { what: "head", start, end, limit }.to_string();
        assert!(range(0, 1, 0).ends_with("there is nothing to choose from"));
        assert!(range(4, 5, 4).ends_with("head 4..5 does not lie within 0..4; count from 0 to 3"));
        assert!(range(5, 2, 4).contains("ends before it starts"));
    }

    #[test]
    fn the_call_and_the_environment_are_told_apart() {
        let (wanted, best) = (Isa::Avx512, Isa::Scalar);
        assert!(!Error::Isa { wanted, best }.to_string().contains("FOVEAL_ISA"));
        assert!(Error::IsaVariable { wanted, best }.to_string().contains("unset it"));
    }
}
