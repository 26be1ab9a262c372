use std::fmt;
use std::path::PathBuf;

/// What can be wrong with a picture. Every variant says what was found, what was expected, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A picture of nothing: no rows, no columns, no panels or no points.
    Empty {
        /// Of what there is nothing.
        what: &'static str,
    },
    /// There must be as many of one thing as of another: labels as rows, points as values.
    Count {
        /// What is counted.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A matrix has another shape than the one it belongs to.
    Shape {
        /// Which matrix.
        what: &'static str,
        /// The shape it must have.
        expected: (usize, usize),
        /// The shape it has.
        got: (usize, usize),
    },
    /// A number that a setting cannot take.
    Value {
        /// Which setting.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it was.
        got: f64,
    },
    /// The name of a file does not end in a known format.
    Format {
        /// The file.
        path: PathBuf,
        /// The endings there are.
        known: &'static [&'static str],
    },
    /// A file cannot be written.
    Io {
        /// Which one.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A picture is too large to be drawn as pixels.
    TooLarge {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// A library that draws or encodes failed; that is a fault of this crate.
    Internal {
        /// What was being done.
        doing: &'static str,
        /// What the library says.
        problem: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty { what } => write!(f, "there are no {what} to draw; give at least one"),
            Error::Count { what, expected, got } => {
                write!(f, "{got} {what}, but there must be {expected}; give one for each")
            }
            Error::Shape { what, expected, got } => write!(
                f,
                "{what} is {} × {}, but must be {} × {} as the matrices beside it",
                got.0, got.1, expected.0, expected.1
            ),
            Error::Value { what, expected, got } => write!(f, "{what} is {got}, expected {expected}"),
            Error::Format { path, known } => write!(
                f,
                "{}: the ending of the name says no known format; end it in .{}",
                path.display(),
                known.join(", .")
            ),
            Error::Io { path, .. } => write!(f, "cannot write {}", path.display()),
            Error::TooLarge { width, height } => {
                write!(f, "the picture would have {width} × {height} pixels; lower the scale, or save it as SVG")
            }
            Error::Internal { doing, problem } => write!(f, "{doing} failed: {problem}; please report this"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
