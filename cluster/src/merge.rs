//! Joining results of the same queries over different keys.

use ndarray::{ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Zip};

/// Joins the results over further keys with those so far, [B, H, T, Dv] and [B, H, T]. −∞ is the lse of a row that has seen
/// nothing, and has an output of zeros.
pub(crate) fn merge_rows(
    (mut out, mut lse): (ArrayViewMut4<f32>, ArrayViewMut3<f64>),
    (part_out, part_lse): (ArrayView4<f32>, ArrayView3<f64>),
) {
    let rows = Zip::from(out.lanes_mut(ndarray::Axis(3))).and(&mut lse);
    rows.and(part_out.lanes(ndarray::Axis(3))).and(part_lse).for_each(|mut out, lse, part_out, &part_lse| {
        if part_lse == f64::NEG_INFINITY {
            return;
        }
        if *lse == f64::NEG_INFINITY {
            (*lse, _) = (part_lse, out.assign(&part_out));
            return;
        }
        // NaN spreads: it is neither larger nor smaller.
        let (max, min) = if part_lse > *lse { (part_lse, *lse) } else { (*lse, part_lse) };
        let joined = max + (min - max).exp().ln_1p();
        let (before, new) = ((*lse - joined).exp() as f32, (part_lse - joined).exp() as f32);
        out.zip_mut_with(&part_out, |x, y| *x = before * *x + new * y);
        *lse = joined;
    });
}

/// Adds a logit for each head that takes weight and gives no value.
pub(crate) fn merge_sinks((mut out, mut lse): (ArrayViewMut4<f32>, ArrayViewMut3<f64>), sinks: &[f32]) {
    for ((_, h, _), (mut out, lse)) in
        lse.indexed_iter_mut().zip(out.lanes_mut(ndarray::Axis(3))).map(|((at, lse), out)| (at, (out, lse)))
    {
        let sink = f64::from(sinks[h]);
        if sink == f64::NEG_INFINITY {
            continue;
        }
        if *lse == f64::NEG_INFINITY {
            *lse = sink;
            continue;
        }
        let (max, min) = if sink > *lse { (sink, *lse) } else { (*lse, sink) };
        let joined = max + (min - max).exp().ln_1p();
        let before = (*lse - joined).exp() as f32;
        out.mapv_inplace(|x| before * x);
        *lse = joined;
    }
}
