//! Shapes are checked where a call comes in.

use crate::Error;

/// `got` must be `expected`.
pub fn expect(what: &'static str, expected: &[usize], got: &[usize]) -> Result<(), Error> {
    if expected == got {
        return Ok(());
    }
    Err(foveal::Error::Shape { what, expected: expected.to_vec(), got: got.to_vec() }.into())
}
