//! Norm-based attention (Kobayashi 2020): not only how strongly a key is looked at, but how much is there to be seen.
//!
//! $$ f_h(x_j) = v_j^h W_o^h, \qquad \text{head: } \lVert A^h_{ij} f_h(x_j) \rVert, \qquad
//!    \text{layer: } \Bigl\lVert \sum_h A^h_{ij} f_h(x_j) \Bigr\rVert $$
//!
//! The bias of the values is part of f, that of the output is not.

use ndarray::{Array1, Array2, Array3, s};

use crate::Result;
use crate::trace::LayerTrace;

/// ‖A f(x)‖ of one head: [T, S].
///
/// # Errors
/// If there is no such sequence or head.
pub fn of_head(layer: &LayerTrace, sequence: usize, head: usize) -> Result<Array2<f32>> {
    Ok(layer.weights(sequence, head)? * &of_keys(layer, sequence, head)?)
}

/// Keys that are transformed together: 1,024 rows of width 4,096 are 16 MiB.
const KEYS: usize = 1024;

/// ‖f(x)‖ of every key of one head, \[S\]: what a weight is multiplied with.
///
/// # Errors
/// As [`of_head`].
pub fn of_keys(layer: &LayerTrace, sequence: usize, head: usize) -> Result<Array1<f32>> {
    let mut norms = Vec::with_capacity(layer.keys());
    for start in (0..layer.keys()).step_by(KEYS) {
        let transformed = layer.transformed_keys(sequence, head, start..(start + KEYS).min(layer.keys()))?;
        norms.extend(transformed.outer_iter().map(|f| f.dot(&f).sqrt()));
    }
    Ok(norms.into())
}

/// ‖Σ A f(x)‖ over all heads: [T, S].
///
/// The sum is taken where it is small. With the products G of the heads' vectors at key j,
///
/// $$ \Bigl\lVert \sum_h A^h_{ij} f_h(x_j) \Bigr\rVert^2 = \sum_{h,g} A^h_{ij} A^g_{ij} G^{hg}_j, \qquad
///    G^{hg}_j = f_h(x_j) \cdot f_g(x_j) $$
///
/// # Errors
/// If there is no such sequence.
pub fn of_layer(layer: &LayerTrace, sequence: usize) -> Result<Array2<f32>> {
    let (heads, keys) = (layer.heads(), layer.keys());
    let transformed = (0..heads).map(|head| layer.transformed(sequence, head)).collect::<Result<Vec<_>>>()?;
    let products =
        Array3::from_shape_fn((keys, heads, heads), |(j, h, g)| transformed[h].row(j).dot(&transformed[g].row(j)));
    let mut weights = Array3::zeros((heads, layer.queries(), keys));
    for head in 0..heads {
        weights.slice_mut(s![head, .., ..]).assign(&layer.weights(sequence, head)?);
    }
    Ok(Array2::from_shape_fn((layer.queries(), keys), |(i, j)| {
        let (a, g) = (weights.slice(s![.., i, j]), products.slice(s![j, .., ..]));
        // A sum of squares that rounding may have taken just below 0.
        a.dot(&g.dot(&a)).max(0.0).sqrt()
    }))
}
