//! The engine's messages as exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    foveal,
    Error,
    PyValueError,
    "What does not fit together: what was given, what was expected, and what to do."
);

/// As [`Error`], whichever crate it comes from.
pub fn raised(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// An argument of the wrong type.
pub fn wrong_type(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let name = got.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} is of type {name}, expected {expected}"))
}
