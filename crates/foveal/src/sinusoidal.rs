//! The positions of "Attention Is All You Need": a sine and a cosine for each of D/2 wavelengths.
//!
//! $$ PE_{p,2i} = \sin\left(p / 10000^{2i/D}\right), \qquad PE_{p,2i+1} = \cos\left(p / 10000^{2i/D}\right) $$
//!
//! The wavelengths grow from 2π to 10000·2π tokens. For every distance there is one rotation that turns each PE(p) into
//! PE(p + distance), which makes relative positions easy to learn; [`Rope`](crate::Rope) rotates queries and keys themselves.

use ndarray::{Array2, ArrayViewMut, Dimension};

use crate::Error;
use crate::shape::{expect_axes, room};

/// The encodings of positions 0 to `tokens` − 1: [tokens, dim]. An odd `dim` ends with a sine that has no cosine.
///
/// ```
/// use foveal::positional_encoding;
///
/// let pe = positional_encoding(50, 8)?;
/// assert_eq!(pe.row(0).to_vec(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
/// assert!((pe[[1, 0]] - 1f32.sin()).abs() < 1e-7);
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// # Errors
/// If no memory could hold them.
pub fn positional_encoding(tokens: usize, dim: usize) -> Result<Array2<f32>, Error> {
    encoding_from(0, tokens, dim)
}

/// Adds the encodings of positions `start`, `start` + 1, … to embeddings: [T, D], [B, T, D], or with more axes before
/// these. In a sequence that begins here, `start` is 0; when generating with a cache it is the length of the cache.
///
/// # Errors
/// If `x` has fewer than two axes.
///
/// ```
/// use foveal::{add_positional_encoding, positional_encoding};
/// use ndarray::{Array3, s};
///
/// let mut x = Array3::zeros((2, 10, 16));
/// add_positional_encoding(&mut x, 0)?;
/// assert_eq!(x.slice(s![1, .., ..]), positional_encoding(10, 16)?);
/// # Ok::<(), foveal::Error>(())
/// ```
pub fn add_positional_encoding<'a, D: Dimension>(
    x: impl Into<ArrayViewMut<'a, f32, D>>,
    start: usize,
) -> Result<(), Error> {
    let mut x = x.into();
    let &[.., tokens, dim] = x.shape() else {
        return expect_axes("the embeddings", "[…, tokens, dim]", &[1, x.len()], x.shape());
    };
    x += &encoding_from(start, tokens, dim)?;
    Ok(())
}

/// In f64: at position 100,000 an angle in f32 would be off by 0.004.
fn encoding_from(start: usize, tokens: usize, dim: usize) -> Result<Array2<f32>, Error> {
    let mut encodings = room("a table of encodings", &[tokens, dim])?;
    if tokens > 0 {
        let frequency = |i: usize| 10000f64.powf(-2.0 * i as f64 / dim as f64);
        let frequencies: Vec<f64> = (0..dim.div_ceil(2)).map(frequency).collect();
        for t in 0..tokens {
            encodings.extend((0..dim).map(|d| {
                let angle = (start as f64 + t as f64) * frequencies[d / 2];
                (if d % 2 == 0 { angle.sin() } else { angle.cos() }) as f32
            }));
        }
    }
    Ok(Array2::from_shape_vec((tokens, dim), encodings).expect("as many as tokens times dim"))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, Array4, s};

    use super::*;

    #[test]
    fn follows_the_formula_in_even_and_odd_dims() {
        for dim in [1, 2, 5, 6] {
            let pe = positional_encoding(30, dim).unwrap();
            assert_eq!(pe.dim(), (30, dim));
            for ((p, d), &got) in pe.indexed_iter() {
                let angle = p as f64 / 10000f64.powf((2 * (d / 2)) as f64 / dim as f64);
                let want = if d % 2 == 0 { angle.sin() } else { angle.cos() };
                assert!((f64::from(got) - want).abs() < 1e-7, "dim {dim}, ({p}, {d}): {got} for {want}");
            }
        }
        assert_eq!(positional_encoding(0, 4).unwrap().dim(), (0, 4));
        assert_eq!(positional_encoding(4, 0).unwrap().dim(), (4, 0));
    }

    #[test]
    fn starts_where_it_is_told_and_is_shared_by_the_axes_before() {
        let mut x = Array4::ones((2, 3, 4, 6));
        add_positional_encoding(&mut x, 7).unwrap();
        let want = positional_encoding(11, 6).unwrap().slice_move(s![7.., ..]) + 1.0;
        assert!(x.outer_iter().all(|b| b.outer_iter().all(|h| h == want)));
        let mut y = Array2::ones((4, 6));
        add_positional_encoding(y.view_mut(), 7).unwrap();
        assert_eq!(y, want);
        assert!(add_positional_encoding(&mut Array1::zeros(6), 0).is_err());
    }
}
