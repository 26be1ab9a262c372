use std::sync::Arc;

use ndarray::{ArcArray, Array2, Array3, Array4, Ix2, Ix3, Ix4};

use crate::Error;
use crate::shape::{Shape, expect};

/// What is added to the scores before the softmax.
///
/// $$ s_{ij} = \mathrm{softcap}(\text{scale} \cdot q_i \cdot k_j) + b_{ij} $$
///
/// Distances are measured from where the query stands: see [`Align`](crate::Align). All kinds have gradients:
/// [`Gradients::dbias`](crate::Gradients::dbias) is shaped like the array that the bias was made of.
///
/// ```
/// use foveal::{Attention, Bias, Mask};
/// let bloom = Attention::new().mask(Mask::causal()).bias(Bias::alibi(112));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bias(pub(crate) Kind);

#[derive(Clone, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    None,
    /// −slope·|distance|; one slope a head.
    Alibi(Arc<[f32]>),
    T5(T5),
    /// scale·q·a, with one vector a for each clipped distance: [1 or H, 2·radius + 1, D].
    Shaw(ArcArray<f32, Ix3>),
    /// [1 or B, 1 or H, 1 or T, S]
    Dense(ArcArray<f32, Ix4>),
}

/// T5's table, and what it says for every distance.
#[derive(Clone, Debug)]
pub(crate) struct T5 {
    /// [buckets, H]
    pub table: ArcArray<f32, Ix2>,
    /// The bucket of distance d is `bucket[clip(d) + radius]`.
    pub bucket: Arc<[usize]>,
    /// The bias of distance d is `by_distance[[h, clip(d) + radius]]`.
    pub by_distance: ArcArray<f32, Ix2>,
}

/// The furthest distance that T5's or Shaw's tables tell apart.
const MAX_RADIUS: usize = 1 << 20;

impl Bias {
    /// Nothing.
    pub fn none() -> Self {
        Bias::default()
    }

    /// ALiBi (Press 2021) with the usual [slopes](alibi_slopes): b = −slope·|i − j|.
    pub fn alibi(heads: usize) -> Self {
        Bias::alibi_with(alibi_slopes(heads))
    }

    /// ALiBi with slopes of your own, one a head. Their gradient has shape \[H\].
    pub fn alibi_with(slopes: impl Into<Arc<[f32]>>) -> Self {
        Bias(Kind::Alibi(slopes.into()))
    }

    /// T5's relative position bias: `table[[bucket, head]]`, the bucket chosen by distance as [`t5_bucket`] does.
    ///
    /// # Errors
    /// If there are too few buckets, or `max_distance` does not lie beyond the buckets of single distances.
    pub fn t5(table: Array2<f32>, direction: Direction, max_distance: usize) -> Result<Self, Error> {
        let (buckets, heads) = table.dim();
        let one_way = if direction == Direction::Both { buckets / 2 } else { buckets };
        if one_way < 2 {
            return Err(Error::Value {
                what: "the number of T5 buckets",
                expected: "at least 2 in each direction",
                got: buckets as f64,
            });
        }
        if max_distance <= one_way / 2 || max_distance > MAX_RADIUS {
            let expected = "more than half the buckets of one direction, and at most 1,048,576";
            return Err(Error::Value { what: "T5's max_distance", expected, got: max_distance as f64 });
        }
        let radius = max_distance as isize;
        let bucket: Arc<[usize]> = (-radius..=radius).map(|d| t5_bucket(d, direction, buckets, max_distance)).collect();
        let by_distance = Array2::from_shape_fn((heads, bucket.len()), |(h, d)| table[[bucket[d], h]]);
        Ok(Bias(Kind::T5(T5 { table: table.into_shared(), bucket, by_distance: by_distance.into_shared() })))
    }

    /// Relative positions in the keys (Shaw 2018): b = scale·qᵢ·a\[clip(j − i)\], with one learned vector for each distance
    /// from −radius to radius. `table` is [1 or H, 2·radius + 1, D]; the first axis shares it between the heads.
    ///
    /// # Errors
    /// If the number of distances is not odd.
    pub fn shaw(table: Array3<f32>) -> Result<Self, Error> {
        let distances = table.dim().1;
        if distances.is_multiple_of(2) || distances > 2 * MAX_RADIUS + 1 {
            let expected = "odd: one vector for each distance from −radius to radius";
            return Err(Error::Value { what: "the number of Shaw distances", expected, got: distances as f64 });
        }
        let table = if table.is_standard_layout() { table } else { table.as_standard_layout().into_owned() };
        Ok(Bias(Kind::Shaw(table.into_shared())))
    }

    /// Any numbers: [1 or B, 1 or H, 1 or T, S], shared along the axes of length 1. −∞ and `f32::MIN`, which some use
    /// for it, hide a key as a mask does.
    pub fn dense(bias: Array4<f32>) -> Self {
        let bias = if bias.is_standard_layout() { bias } else { bias.as_standard_layout().into_owned() };
        Bias(Kind::Dense(bias.into_shared()))
    }

    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        match &self.0 {
            Kind::None => Ok(()),
            Kind::Alibi(slopes) => expect("ALiBi's slopes", &[shape.heads], &[slopes.len()]),
            Kind::T5(t5) => expect("T5's table", &[t5.table.dim().0, shape.heads], t5.table.shape()),
            Kind::Shaw(table) => {
                let (heads, distances, _) = table.dim();
                let expected = if heads == 1 { 1 } else { shape.heads };
                expect("Shaw's table", &[expected, distances, shape.dim], table.shape())
            }
            Kind::Dense(bias) => shape.check_broadcast("the bias", bias.shape()),
        }
    }
}

/// Whether a T5 bias tells keys after the query from keys before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Keys before and after the query have buckets of their own (an encoder).
    Both,
    /// Keys after the query count as distance 0 (a decoder, which masks them anyway).
    Backward,
}

/// ALiBi's slopes: the geometric sequence 2^(−8/n), 2^(−16/n), … for a power of two n; for other counts the sequence of the
/// next lower power of two, filled up with every other slope of the next higher one.
///
/// ```
/// assert_eq!(foveal::alibi_slopes(8)[..3], [0.5, 0.25, 0.125]);
/// assert_eq!(foveal::alibi_slopes(12).len(), 12);
/// ```
pub fn alibi_slopes(heads: usize) -> Vec<f32> {
    let sequence = |n: usize| (1..=n).map(move |k| (-8.0 * k as f64 / n as f64).exp2() as f32);
    match heads {
        0 => Vec::new(),
        _ if heads.is_power_of_two() => sequence(heads).collect(),
        _ => {
            let lower = 1 << heads.ilog2();
            sequence(lower).chain(sequence(2 * lower).step_by(2)).take(heads).collect()
        }
    }
}

/// T5's bucket of distance j − i: one bucket for each short distance, then ranges that grow logarithmically up to
/// `max_distance`, beyond which there is one bucket for all.
pub fn t5_bucket(distance: isize, direction: Direction, buckets: usize, max_distance: usize) -> usize {
    let (first, buckets) = match direction {
        Direction::Both if distance > 0 => (buckets / 2, buckets / 2),
        Direction::Both => (0, buckets / 2),
        Direction::Backward => (0, buckets),
    };
    let distance = match direction {
        Direction::Both => distance.unsigned_abs(),
        Direction::Backward => (-distance).max(0).unsigned_abs(),
    };
    let exact = buckets / 2;
    if distance < exact {
        return first + distance;
    }
    // f32 as in the original: at the borders between ranges f64 would decide otherwise for some sizes.
    let share = (distance as f32 / exact as f32).ln() / ((max_distance as f64 / exact as f64).ln() as f32);
    first + (exact + (share * (buckets - exact) as f32) as usize).min(buckets - 1)
}
