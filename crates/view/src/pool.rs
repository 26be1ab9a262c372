//! A large matrix as a small picture: each pixel is the largest value of its block.

use ndarray::{Array2, ArrayView2};

/// The matrix as at most `rows` × `cols` pixels. A block with a NaN among its values is NaN: nothing wrong is pooled away.
pub fn pool(values: ArrayView2<f32>, rows: usize, cols: usize) -> Array2<f32> {
    let (height, width) = values.dim();
    let (rows, cols) = (rows.clamp(1, height), cols.clamp(1, width));
    let cut = |i: usize, parts: usize, whole: usize| i * whole / parts;
    Array2::from_shape_fn((rows, cols), |(i, j)| {
        let mut max = f32::NEG_INFINITY;
        for i in cut(i, rows, height)..cut(i + 1, rows, height) {
            for j in cut(j, cols, width)..cut(j + 1, cols, width) {
                let value = values[[i, j]];
                max = if value.is_nan() || max.is_nan() { f32::NAN } else { max.max(value) };
            }
        }
        max
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_largest_and_what_is_no_number() {
        let values = Array2::from_shape_fn((5, 7), |(i, j)| (i * 7 + j) as f32);
        assert_eq!(pool(values.view(), 9, 9), values);
        assert_eq!(pool(values.view(), 1, 1)[[0, 0]], 34.0);
        assert_eq!(pool(values.view(), 2, 7).row(0), values.row(1));
        let mut broken = values;
        broken[[0, 0]] = f32::NAN;
        let small = pool(broken.view(), 2, 2);
        assert!(small[[0, 0]].is_nan() && small[[1, 1]] == 34.0);
    }
}
