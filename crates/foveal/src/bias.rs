use std::sync::Arc;

use ndarray::{ArcArray, Array2, Array3, Array4, Ix2, Ix3, Ix4};

use crate::Error;
use crate::mask::Align;
use crate::pattern::Extent;
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
    Swin(Swin),
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

/// Swin's table, and what it says for every distance on the image.
#[derive(Clone, Debug)]
pub(crate) struct Swin {
    /// [(2·height − 1)·(2·width − 1), H]
    pub table: ArcArray<f32, Ix2>,
    /// Of a window and of the image: (height, width).
    pub window: (usize, usize),
    pub grid: (usize, usize),
    /// The bias of the key dy rows down and dx columns right is `by_distance[[h, dy + height − 1, dx + width − 1]]`.
    pub by_distance: ArcArray<f32, Ix3>,
}

impl Swin {
    /// The number of distances that the table tells apart.
    pub fn distances(&self) -> usize {
        (2 * self.window.0 - 1) * (2 * self.window.1 - 1)
    }
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

    /// Swin's relative position bias (Liu 2021) on an image of `grid` = (height, width) tokens: one learned number for each
    /// head and each distance (dy, dx) from the key to the query within a `window`, as checkpoints store it:
    ///
    /// $$ b_{ij} = table[(dy + M_h - 1)(2 M_w - 1) + dx + M_w - 1,\ head] $$
    ///
    /// Keys further away than a window reaches, which Swin's [`Pattern`](crate::Pattern::swin) hides, count as its edge. The
    /// gradient is shaped like `table`, [(2·height − 1)·(2·width − 1), H].
    ///
    /// # Errors
    /// If the table has not one row for each distance.
    pub fn swin(table: Array2<f32>, window: (usize, usize), grid: (usize, usize)) -> Result<Self, Error> {
        for size in [window.0, window.1] {
            if size == 0 || size > MAX_RADIUS {
                let fits = "1 to 1,048,576".into();
                return Err(Error::Fit { what: "a side of Swin's window", got: size, fits });
            }
        }
        let (rows, cols) = (2 * window.0 - 1, 2 * window.1 - 1);
        let (distances, heads) = table.dim();
        expect("Swin's table", &[rows.saturating_mul(cols), heads], table.shape())?;
        // The table counts from the key to the query, the kernels from the query to the key.
        let by_distance =
            Array3::from_shape_fn((heads, rows, cols), |(h, y, x)| table[[distances - 1 - (y * cols + x), h]]);
        Ok(Bias(Kind::Swin(Swin { table: table.into_shared(), window, grid, by_distance: by_distance.into_shared() })))
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

    pub(crate) fn check(&self, shape: &Shape, align: &Align) -> Result<(), Error> {
        match &self.0 {
            Kind::None => Ok(()),
            Kind::Alibi(slopes) => expect("ALiBi's slopes", &[shape.heads], &[slopes.len()]),
            Kind::T5(t5) => expect("T5's table", &[t5.table.dim().0, shape.heads], t5.table.shape()),
            Kind::Shaw(table) => {
                let (heads, distances, _) = table.dim();
                let expected = if heads == 1 { 1 } else { shape.heads };
                expect("Shaw's table", &[expected, distances, shape.dim], table.shape())
            }
            Kind::Swin(swin) => {
                expect("Swin's table", &[swin.table.dim().0, shape.heads], swin.table.shape())?;
                let tokens = swin.grid.0.saturating_mul(swin.grid.1);
                align.check_extent("Swin's grid", Extent::Exactly(tokens), shape)
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
