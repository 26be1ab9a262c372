//! Shapes are checked where a call comes in.

use crate::Error;

/// `got` must be `expected`.
pub fn expect(what: &'static str, expected: &[usize], got: &[usize]) -> Result<(), Error> {
    if expected == got {
        return Ok(());
    }
    let axes = if expected.len() == 1 { "[values]" } else { "[rows, values]" };
    Err(foveal::Error::Shape { what, axes, expected: expected.to_vec(), got: got.to_vec() }.into())
}
