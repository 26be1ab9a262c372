//! IDX files of bytes, in which MNIST keeps its images and digits.
//!
//! ```text
//! 0 0 8 axes:u8   size:u32 ×axes, big-endian   values, one byte each
//! ```

use std::path::Path;

use crate::{Error, Result};

/// The sizes of the axes and the values of an IDX file, given as its bytes; `path` is what errors call it.
///
/// ```
/// let bytes = [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 9];
/// assert_eq!(foveal_models::train::idx("digits".as_ref(), &bytes)?, (vec![2, 1], &[7u8, 9][..]));
/// # Ok::<(), foveal_models::Error>(())
/// ```
///
/// # Errors
/// If it is no such file, or has more or fewer values than its sizes say.
pub fn idx<'a>(path: &Path, bytes: &'a [u8]) -> Result<(Vec<usize>, &'a [u8])> {
    let wrong = |at: &str, problem: String| Error::Format { path: path.to_path_buf(), at: at.into(), problem };
    let [0, 0, 8, axes, rest @ ..] = bytes else {
        return Err(wrong("header", "it is no IDX file of bytes, as MNIST has them".into()));
    };
    let Some((sizes, values)) = rest.split_at_checked(4 * usize::from(*axes)) else {
        return Err(wrong("sizes", format!("{axes} axes, but {} bytes are left", rest.len())));
    };
    let sizes: Vec<usize> = sizes.as_chunks().0.iter().map(|size| u32::from_be_bytes(*size) as usize).collect();
    let count = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    if count != Some(values.len()) {
        return Err(wrong("sizes", format!("{sizes:?}, but there are {} values", values.len())));
    }
    Ok((sizes, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |bytes: &[u8], part: &str| {
            let error = idx(Path::new("x.idx"), bytes).unwrap_err().to_string();
            assert!(error.contains("x.idx") && error.contains(part), "{error}");
        };
        refused(&[], "no IDX file");
        refused(&[0, 0, 13, 1, 0, 0, 0, 1, 5], "no IDX file");
        refused(&[0, 0, 8, 200, 0, 0, 0, 1], "200 axes, but 4 bytes are left");
        refused(&[0, 0, 8, 1, 0, 0, 0, 3, 5], "[3], but there are 1 values");
        refused(&[[0, 0, 8, 3].as_slice(), &[255; 12]].concat(), "but there are 0 values");
    }
}
