use std::fmt;

use crate::Isa;

/// What can be wrong with a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A matrix does not fit the others.
    Shape {
        /// Which argument.
        what: &'static str,
        /// The shape that would have fitted.
        expected: Vec<usize>,
        /// The shape that came.
        got: Vec<usize>,
    },
    /// The instruction set that the caller asked for is not on this machine.
    Isa {
        /// The one asked for.
        wanted: Isa,
        /// The best one there is.
        best: Isa,
    },
    /// The instruction set that `FOVEAL_ISA` asks for is not on this machine.
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
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { what, expected, got } => {
                write!(f, "{what} has shape {got:?}, expected {expected:?}; transpose it or check its size")
            }
            Error::Isa { wanted, best } => write!(
                f,
                "this machine cannot run {wanted} kernels; ask for {best}, its best instruction set, or for none in particular"
            ),
            Error::IsaVariable { wanted, best } => write!(
                f,
                "FOVEAL_ISA is {wanted}, which this machine cannot run; set it to {best}, its best instruction set, or unset it"
            ),
            Error::IsaName { got } => {
                write!(f, "FOVEAL_ISA is {got:?}; set it to scalar, avx2 or avx512, or unset it")
            }
        }
    }
}

impl std::error::Error for Error {}

/// `got` must be `expected`.
pub(crate) fn expect(what: &'static str, expected: &[usize], got: &[usize]) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected: expected.to_vec(), got: got.to_vec() }) }
}
