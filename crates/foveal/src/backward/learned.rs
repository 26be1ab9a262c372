//! The gradients of what is learned beside q, k and v: biases and sinks.

use ndarray::{Array1, Array2, Array3, Array4, ArrayD, ArrayView2, ArrayView3, Axis};

use crate::bias::Kind;
use crate::scores::Scores;
use crate::shape::Shape;

/// The gradient of what the bias was made of, in its shape.
pub fn bias_gradient(
    scores: &Scores,
    shape: &Shape,
    dense: Array4<f32>,
    tables: &Array4<f64>,
    shaw: &Array3<f32>,
) -> Option<ArrayD<f32>> {
    // Sums over chunks and sequences: [H, entries].
    let by_head = || {
        let mut sum = Array2::<f64>::zeros((shape.heads, tables.dim().3));
        for table in tables.axis_iter(Axis(0)) {
            for (head, row) in table.index_axis(Axis(0), 0).rows().into_iter().enumerate() {
                let mut target = sum.row_mut(head % shape.heads);
                target += &row;
            }
        }
        sum
    };
    if !scores.learns_bias() {
        return None;
    }
    let narrow = |x: f64| x as f32;
    match scores.bias() {
        Kind::None => None,
        Kind::Dense(_) => Some(dense.into_dyn()),
        Kind::Alibi(alibi) => {
            // One entry for each sequence and head; the slopes may be shared by the sequences.
            let mut slopes = ArrayD::<f64>::zeros(alibi.shape());
            for table in tables.axis_iter(Axis(0)) {
                for (head, row) in table.index_axis(Axis(0), 0).rows().into_iter().enumerate() {
                    *alibi.entry(&mut slopes, head / shape.heads, head % shape.heads) += row[0];
                }
            }
            Some(slopes.mapv(narrow))
        }
        Kind::T5(t5) => {
            let by_head = by_head();
            let mut table = Array2::<f64>::zeros(t5.table.dim());
            for (entry, bucket) in t5.bucket.iter().enumerate() {
                let mut row = table.row_mut(*bucket);
                row += &by_head.column(entry);
            }
            Some(table.mapv(narrow).into_dyn())
        }
        Kind::Swin(swin) => {
            let (by_head, distances) = (by_head(), swin.distances());
            // From the query to the key there, from the key to the query here.
            let entry = |(distance, h): (usize, usize)| narrow(by_head[[h, distances - 1 - distance]]);
            Some(Array2::from_shape_fn(swin.table.dim(), entry).into_dyn())
        }
        Kind::Shaw(table) => {
            let mut sum = Array3::<f32>::zeros(table.dim());
            for (head, gradient) in shaw.outer_iter().enumerate() {
                let target = if table.dim().0 == 1 { 0 } else { head % shape.heads };
                let mut target = sum.index_axis_mut(Axis(0), target);
                target += &gradient;
            }
            Some(sum.into_dyn())
        }
    }
}

/// The gradient of the sinks. A sink has no value, so its ds is −p·δ.
pub fn sink_gradient(sinks: &[f32], lse: ArrayView3<f64>, delta: ArrayView3<f32>) -> Array1<f32> {
    let of_head = |h: usize| {
        let (lse, delta) = (lse.index_axis(Axis(1), h), delta.index_axis(Axis(1), h));
        // A row of lse −∞ sees nothing, and a sink of −∞ takes nothing from it.
        let rows = lse.iter().zip(delta).filter(|(lse, _)| **lse != f64::NEG_INFINITY);
        rows.map(|(lse, delta)| -(f64::from(sinks[h]) - lse).exp() * f64::from(*delta)).sum::<f64>() as f32
    };
    (0..sinks.len()).map(of_head).collect()
}

/// a·b, where a 0 in `a` means that nothing is to be added, not even 0·NaN.
pub fn product(a: ArrayView2<f32>, b: ArrayView2<f32>) -> Array2<f32> {
    if b.iter().all(|x| x.is_finite()) {
        return a.dot(&b);
    }
    let mut c = Array2::zeros((a.dim().0, b.dim().1));
    for ((i, k), x) in a.indexed_iter().filter(|(_, x)| **x != 0.0) {
        c.row_mut(i).scaled_add(*x, &b.row(k));
    }
    c
}
