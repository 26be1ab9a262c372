//! Pooled pictures of whole heads: small ones of all heads, and for long texts larger ones that a page shows before it has
//! computed anything.
//!
//! ```text
//! code = round(254·√(value / max)); 255 is NaN
//! ```

use foveal::Pool;
use ndarray::{Array2, Axis};

use super::layer::{Data, Layer, failed, scaled};
use crate::Error;
use crate::pool::pool;
use crate::scale::maximum;

/// Sides of the small pictures.
pub(super) const SMALL: usize = 48;
/// Sides of the pictures that long texts begin with.
pub(super) const LARGE: usize = 512;
/// Beyond this many tokens a text is long: a browser computes the map of fewer at once.
pub(super) const LONG: usize = 2048;

/// Each head pooled to at most `side` pixels a side; weights times norms, if these are given.
pub(super) fn of_layer(layer: &Layer, side: usize, norms: Option<&Array2<f32>>) -> Result<Vec<Array2<f32>>, Error> {
    let (rows, cols) = layer.size();
    let one = |number: usize| -> Result<Array2<f32>, Error> {
        let norms = norms.map(|norms| norms.row(number));
        let scores = match &layer.data {
            Data::Weights(heads) => return Ok(pool(scaled(heads[number].view(), norms).view(), side, side)),
            Data::Scores(scores) => scores,
        };
        let (attention, q, k) = scores.head(number);
        let lse = scores.lse.row(number).insert_axis(Axis(0)).insert_axis(Axis(0));
        let head = attention.head(q, k, lse, (0, 0)).map_err(failed)?;
        // Norms scale columns: a picture with a column for each key is scaled, then pooled.
        let wide = if norms.is_some() { cols } else { side.min(cols) };
        let picture = head.map(0..rows, 0..cols, (side.min(rows), wide), Pool::Max).map_err(failed)?;
        Ok(if norms.is_some() { pool(scaled(picture.view(), norms).view(), side, side) } else { picture })
    };
    (0..layer.heads()).map(one).collect()
}

/// Pictures as codes, one after another, and the largest value of each.
#[derive(Default)]
pub(super) struct Pictures {
    pub codes: Vec<u8>,
    pub max: Vec<f32>,
}

impl Pictures {
    pub fn of(pictures: &[Array2<f32>]) -> Self {
        let mut coded = Pictures::default();
        coded.extend(pictures);
        coded
    }

    pub fn extend(&mut self, pictures: &[Array2<f32>]) {
        for picture in pictures {
            let max = maximum(picture) as f32;
            self.max.push(max);
            self.codes.extend(picture.iter().map(|&value| code(value, max)));
        }
    }
}

fn code(value: f32, max: f32) -> u8 {
    match value {
        v if v.is_nan() => 255,
        v if max > 0.0 => ((v / max).max(0.0).sqrt() * 254.0).round().min(254.0) as u8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use foveal::{Attention, Mask};
    use ndarray::{Array3, Array4};

    use super::*;

    #[test]
    fn pictures_of_scores_are_those_of_their_weights() {
        let numbers = |n: usize| Array4::from_shape_fn((1, 2, n, 4), |(_, h, i, d)| ((h + 3 * i + 7 * d) as f32).sin());
        let (q, k) = (numbers(60), numbers(60) * 2.0);
        let attention = Attention::new().mask(Mask::causal());
        let forward = attention.forward(&q, &k, &k).unwrap();
        let weights = attention.weights(&q, &k).unwrap();
        let options = (0..2).map(|h| attention.head_options((0, h), (60, 60, 4)).unwrap().unwrap()).collect();
        let one = |x: &Array4<f32>| -> Array3<f32> { x.index_axis(Axis(0), 0).to_owned() };
        let lse = forward.lse.index_axis(Axis(0), 0).to_owned();
        let scores = Layer::scores(one(&q), one(&k), lse, options).unwrap();
        let dense =
            Layer::weights((0..2).map(|h| weights.index_axis(Axis(0), 0).index_axis(Axis(0), h).to_owned()).collect())
                .unwrap();
        let norms = Array2::from_shape_fn((2, 60), |(h, j)| 1.0 + (h + j) as f32);
        for norms in [None, Some(&norms)] {
            let pictures = |layer| Pictures::of(&of_layer(layer, 13, norms).unwrap());
            let (a, b) = (pictures(&scores), pictures(&dense));
            assert_eq!((a.codes.len(), a.max.len()), (2 * 13 * 13, 2));
            assert!(a.codes.iter().zip(&b.codes).all(|(a, b)| a.abs_diff(*b) <= 1));
        }
    }

    #[test]
    fn codes_keep_what_is_no_number() {
        assert_eq!([code(0.0, 0.5), code(0.125, 0.5), code(0.5, 0.5), code(f32::NAN, 0.5)], [0, 127, 254, 255]);
        assert_eq!(code(0.0, 0.0), 0);
    }
}
