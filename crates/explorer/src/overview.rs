//! All heads at a glance: a small picture of each, as codes of 8 bits.
//!
//! Of a long text some rows are computed and no more: for each row of pixels a few queries in the middle of those it stands
//! for. The largest weight of a pixel may then be missed, and the reply says so.

use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Array2;
use rayon::prelude::*;
use serde_json::json;

use crate::asker::Asker;
use crate::fault::{Fault, Text};
use crate::matrix::{Matrix, pooled};
use crate::pool::bounds;
use crate::reply::Reply;
use crate::request::{At, Measure, Pool, SiteKind};
use crate::run::Run;

/// Largest side of a picture.
const PIXELS: usize = 64;
/// Cells of all heads together up to which no row is left out.
const WHOLE: usize = 1 << 28;
/// Rows of all heads together that are computed of a long text.
const ROWS: usize = 1 << 11;
/// Queries that stand for a row of pixels of a long text.
const QUERIES: usize = 4;

/// The pictures of all layers and heads.
///
/// # Errors
/// If there is no such attention or measure.
pub fn overview(run: &Run, kind: SiteKind, measure: Measure, asker: &Asker) -> Result<Reply, Fault> {
    let site = run.site(kind)?;
    let heads: Vec<i64> = if measure == Measure::Rollout { vec![-1] } else { (0..site.heads as i64).collect() };
    let names: Vec<(usize, i64)> =
        site.layers.iter().flat_map(|&layer| heads.iter().map(move |&head| (layer, head))).collect();
    let Some(&(layer, head)) = names.first() else { return Err(Fault::gone(&run.id)) };
    let at = |(layer, head)| At { run: run.id.clone(), site: kind, layer, head };
    let (queries, keys) = Matrix::of(run, &at((layer, head)), measure)?.dim();
    let sampled = measure != Measure::Rollout && queries.saturating_mul(keys).saturating_mul(names.len()) > WHOLE;
    let height = if sampled { (ROWS / names.len()).clamp(16, PIXELS) } else { PIXELS };
    let (height, width) = (height.min(queries), PIXELS.min(keys));
    let done = AtomicUsize::new(0);
    let picture = |&name: &(usize, i64)| -> Result<Array2<f32>, Fault> {
        asker.cancel.check()?;
        let matrix = Matrix::of(run, &at(name), measure)?;
        let picture = match sampled {
            true => sample(&matrix, (height, width), asker)?,
            false => matrix.map(0..queries, 0..keys, (height, width), Pool::Max, &asker.cancel)?,
        };
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        let (share, all) = (n as f64 / names.len() as f64, names.len());
        asker.progress(share, &Text::new(format!("head {n} of {all}"), format!("헤드 {all}개 중 {n}번째")));
        Ok(picture)
    };
    // Rollouts are made one from the other; heads side by side.
    let pictures: Vec<Array2<f32>> = match measure {
        Measure::Rollout => names.iter().map(picture).collect::<Result<_, _>>()?,
        _ => names.par_iter().map(picture).collect::<Result<_, _>>()?,
    };
    let largest = |picture: &Array2<f32>| picture.iter().fold(0.0, |max: f32, x| max.max(*x));
    let max: Vec<f32> = pictures.iter().map(largest).collect();
    let codes = pictures.iter().zip(&max).flat_map(|(picture, max)| picture.iter().map(|x| code(*x, *max))).collect();
    Ok(Reply::new(json!({ "rows": height, "cols": width, "max": max, "sampled": sampled })).with_bytes(codes))
}

/// A picture from some queries of each row of pixels.
fn sample(matrix: &Matrix, (height, width): (usize, usize), asker: &Asker) -> Result<Array2<f32>, Fault> {
    let (queries, keys) = matrix.dim();
    let mut out = Array2::zeros((height, width));
    for (p, mut pixels) in out.outer_iter_mut().enumerate() {
        asker.cancel.check()?;
        let (start, end) = (bounds(queries, height, p), bounds(queries, height, p + 1));
        let first = start + (end - start).saturating_sub(QUERIES) / 2;
        let rows = matrix.tile(first..(first + QUERIES).min(end), 0..keys)?;
        pixels.assign(&pooled(rows.view(), (1, width), Pool::Max).row(0));
    }
    Ok(out)
}

/// √ of the ratio to the largest, from 0 to 254; 255 is NaN.
fn code(value: f32, max: f32) -> u8 {
    if value.is_nan() {
        return 255;
    }
    let ratio = if max > 0.0 { (value / max).clamp(0.0, 1.0) } else { 0.0 };
    (254.0 * ratio.sqrt()).round() as u8
}
