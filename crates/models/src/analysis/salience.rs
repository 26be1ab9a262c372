use std::ops::Range;

use ndarray::ArrayView1;

use crate::Result;
use crate::trace::LayerTrace;

/// How much a head attends to other tokens: the sum, over the queries of these rows, of the largest weight on a token that is
/// neither the query itself nor the first, where attention is left when there is nothing to look at. In attention to another
/// sequence every token counts.
///
/// # Errors
/// If there is no such head or row.
pub fn salience(
    layer: &LayerTrace,
    head: usize,
    cross: bool,
    rows: impl IntoIterator<Item = Range<usize>>,
) -> Result<f32> {
    let other = |i: usize, j: usize| cross || (j != i && j != 0);
    let strongest = |i: usize, row: ArrayView1<f32>| {
        row.iter().enumerate().filter(|(j, _)| other(i, *j)).fold(0.0, |max: f32, (_, w)| max.max(*w))
    };
    let mut sum = 0.0;
    for rows in rows {
        let weights = layer.tile(0, head, rows.clone(), 0..layer.keys())?;
        sum += rows.zip(weights.outer_iter()).map(|(i, row)| strongest(i, row)).sum::<f32>();
    }
    Ok(sum)
}
