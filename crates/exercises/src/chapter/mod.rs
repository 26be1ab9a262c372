//! The exercises, chapter by chapter. What they need of the engine in common stands here.

mod first;
mod heads;
mod long;
mod masks;
mod models;
mod positions;
mod programs;
mod scale;

pub(crate) use first::FIRST;
pub(crate) use heads::HEADS;
pub(crate) use long::LONG;
pub(crate) use masks::MASKS;
pub(crate) use models::MODELS;
pub(crate) use positions::POSITIONS;
pub(crate) use scale::SCALE;

use foveal::{Attention, Mask};
use foveal_view::{Heatmap, Numbers};
use ndarray::{Array2, ArrayView2, Axis};

use crate::{Language, Result};

/// The weights of q [T, D] on k [S, D], by the engine.
fn weights(attention: &Attention, q: &Array2<f32>, k: &Array2<f32>) -> Result<Array2<f32>> {
    let weights = attention.weights(four(q), four(k))?;
    Ok(weights.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), 0))
}

/// The output of q, k and v, by the engine.
fn output(attention: &Attention, q: &Array2<f32>, k: &Array2<f32>, v: &Array2<f32>) -> Result<Array2<f32>> {
    let out = attention.forward(four(q), four(k), four(v))?.out;
    Ok(out.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), 0))
}

fn four(x: &Array2<f32>) -> ndarray::ArrayView4<'_, f32> {
    x.view().insert_axis(Axis(0)).insert_axis(Axis(0))
}

/// The softmax of each row of scores. Keys that are unit vectors make the queries the scores.
fn softmax(scores: &Array2<f32>, mask: Mask) -> Result<Array2<f32>> {
    weights(&Attention::new().scale(1.0).mask(mask), scores, &Array2::eye(scores.ncols()))
}

/// The softmax along the columns: what a wrong axis gives.
fn softmax_of_columns(scores: ArrayView2<'_, f32>) -> Result<Array2<f32>> {
    Ok(softmax(&scores.t().to_owned(), Mask::none())?.reversed_axes())
}

/// A small matrix as a picture without numbers.
fn picture(values: &Array2<f32>, language: Language) -> Result<Heatmap> {
    let names = |letter: &str, count: usize| (0..count).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
    let map = Heatmap::new(values.clone(), names("q", values.nrows()), names("k", values.ncols()))?;
    Ok(map.numbers(Numbers::Hidden).language(language))
}
