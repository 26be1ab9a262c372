use std::sync::Arc;

use ndarray::{ArcArray, Array1, Array2, Array3, Array4, ArrayD, Axis, Ix2, Ix3, Ix4};

use crate::Error;
use crate::mask::Align;
use crate::part::Lengths;
use crate::pattern::Extent;
use crate::shape::{Shape, check_range, expect_axes, room};

/// What is added to the scores before the softmax.
///
/// $$ s_{ij} = \mathrm{softcap}(\text{scale} \cdot q_i \cdot k_j) + b_{ij} $$
///
/// Distances are measured from where the query stands: see [`Align`](crate::Align). All kinds have gradients:
/// [`Gradients::dbias`](crate::Gradients::dbias) is shaped like the array that the bias was made from.
///
/// ```
/// use foveal::{Attention, Bias, Mask};
/// let bloom = Attention::new().mask(Mask::causal()).bias(Bias::alibi(112)?);
/// # Ok::<(), foveal::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bias {
    pub(crate) kind: Kind,
    /// Whether its gradient is wanted.
    pub(crate) learned: bool,
}

impl From<Kind> for Bias {
    fn from(kind: Kind) -> Self {
        Bias { kind, learned: true }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    None,
    /// −slope·|distance|
    Alibi(Alibi),
    T5(T5),
    Swin(Swin),
    /// scale·q·a, with one vector a for each clipped distance: [1 or H, 2·radius + 1, D].
    Shaw(ArcArray<f32, Ix3>),
    /// [1 or B, 1 or H, 1 or T, S]
    Dense(ArcArray<f32, Ix4>),
}

/// ALiBi's slopes.
#[derive(Clone, Debug)]
pub(crate) struct Alibi {
    /// [1 or B, H]
    slopes: ArcArray<f32, Ix2>,
    /// Whether they were given with an axis for the sequences.
    per_sequence: bool,
}

impl Alibi {
    /// The slope of head h in sequence b.
    #[inline(always)]
    pub fn slope(&self, b: usize, h: usize) -> f32 {
        self.slopes[[if self.slopes.dim().0 == 1 { 0 } else { b }, h]]
    }

    /// The same, checked.
    pub fn slope_at(&self, b: usize, h: usize) -> Result<f32, Error> {
        let (sequences, heads) = self.slopes.dim();
        check_range("sequence", &(b..b.saturating_add(1)), if sequences == 1 { usize::MAX } else { sequences })?;
        check_range("head", &(h..h.saturating_add(1)), heads)?;
        Ok(self.slope(b, h))
    }

    /// The shape in which the slopes were given, and in which their gradient is given back.
    pub fn shape(&self) -> &[usize] {
        &self.slopes.shape()[usize::from(!self.per_sequence)..]
    }

    /// The entry for head h of sequence b in an array of that shape.
    pub fn entry<'a, A>(&self, array: &'a mut ArrayD<A>, b: usize, h: usize) -> &'a mut A {
        let place = [if self.slopes.dim().0 == 1 { 0 } else { b }, h];
        &mut array[&place[usize::from(!self.per_sequence)..]]
    }
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

/// What the axes of Swin's table mean.
const SWIN_AXES: &str = "[(2·height − 1)·(2·width − 1), heads]";

/// The furthest distance that T5's or Shaw's tables tell apart.
const MAX_RADIUS: usize = 1 << 20;

impl Bias {
    /// Nothing.
    pub fn none() -> Self {
        Bias::default()
    }

    /// ALiBi (Press 2021) with the usual [slopes](alibi_slopes): b = −slope·|i − j|. They are not learned, and have no gradient.
    ///
    /// # Errors
    /// If no memory could hold the slopes of so many heads.
    pub fn alibi(heads: usize) -> Result<Self, Error> {
        Ok(Bias::alibi_with(alibi_slopes(heads)?).constant())
    }

    /// The same bias, whose gradient is not wanted: the way back is then faster, by a third for biases by distance.
    #[must_use]
    pub fn constant(mut self) -> Self {
        self.learned = false;
        self
    }

    /// ALiBi with slopes of your own, one a head. Their gradient has shape \[H\].
    pub fn alibi_with(slopes: impl Into<Arc<[f32]>>) -> Self {
        let slopes = Array1::from(slopes.into().to_vec()).insert_axis(Axis(0)).into_shared();
        Kind::Alibi(Alibi { slopes, per_sequence: false }).into()
    }

    /// ALiBi with slopes of your own for every sequence: [B, H], or [1, H] for all sequences alike. Their gradient has the
    /// same shape.
    ///
    /// ```
    /// use foveal::{Attention, Bias};
    /// use ndarray::{Array4, array};
    ///
    /// let x = Array4::<f32>::ones((2, 1, 3, 4));
    /// // The second sequence does not mind distances.
    /// let attention = Attention::new().bias(Bias::alibi_per_sequence(array![[0.5], [0.0]]));
    /// let fwd = attention.forward(&x, &x, &x)?;
    /// assert!(fwd.lse[[0, 0, 0]] < fwd.lse[[1, 0, 0]]);
    /// let grads = attention.backward(&x, &x, &x, &fwd, &x)?;
    /// assert_eq!(grads.dbias.unwrap().shape(), [2, 1]);
    /// # Ok::<(), foveal::Error>(())
    /// ```
    pub fn alibi_per_sequence(slopes: Array2<f32>) -> Self {
        Kind::Alibi(Alibi { slopes: slopes.into_shared(), per_sequence: true }).into()
    }

    /// T5's relative position bias: `table[[bucket, head]]`, the bucket chosen by distance as [`t5_bucket`] does.
    ///
    /// # Errors
    /// If there are too few buckets, or `max_distance` does not lie beyond the buckets of single distances.
    pub fn t5(table: Array2<f32>, direction: Direction, max_distance: usize) -> Result<Self, Error> {
        let (buckets, heads) = table.dim();
        check_buckets(direction, buckets, max_distance)?;
        if max_distance > MAX_RADIUS {
            let expected = "at most 1,048,576";
            return Err(Error::Value { what: "T5's max_distance", expected, got: max_distance as f64 });
        }
        let radius = max_distance as isize;
        let bucket: Arc<[usize]> = (-radius..=radius).map(|d| bucket_of(d, direction, buckets, max_distance)).collect();
        let by_distance = Array2::from_shape_fn((heads, bucket.len()), |(h, d)| table[[bucket[d], h]]);
        Ok(Kind::T5(T5 { table: table.into_shared(), bucket, by_distance: by_distance.into_shared() }).into())
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
        expect_axes("Swin's table", SWIN_AXES, &[rows.saturating_mul(cols), heads], table.shape())?;
        // The table counts from the key to the query, the kernels from the query to the key.
        let by_distance =
            Array3::from_shape_fn((heads, rows, cols), |(h, y, x)| table[[distances - 1 - (y * cols + x), h]]);
        Ok(Kind::Swin(Swin { table: table.into_shared(), window, grid, by_distance: by_distance.into_shared() }).into())
    }

    /// Relative positions in the keys (Shaw 2018): b = scale·qᵢ·a\[clip(j − i)\], with one learned vector for each distance
    /// from −radius to radius. `table` is [1 or H, 2·radius + 1, D]; the first axis shares it between the heads.
    ///
    /// # Errors
    /// If the number of distances is not odd.
    pub fn shaw(table: Array3<f32>) -> Result<Self, Error> {
        let distances = table.dim().1;
        if distances.is_multiple_of(2) || distances > 2 * MAX_RADIUS + 1 {
            let expected = "odd, one for each distance from −radius to radius, and at most 2,097,153";
            return Err(Error::Value { what: "the number of Shaw distances", expected, got: distances as f64 });
        }
        let table = if table.is_standard_layout() { table } else { table.as_standard_layout().into_owned() };
        Ok(Kind::Shaw(table.into_shared()).into())
    }

    /// Any numbers: [1 or B, 1 or H, 1 or T, S], shared along the axes of length 1. −∞ and `f32::MIN`, which some use
    /// for it, hide a key as a mask does.
    pub fn dense(bias: Array4<f32>) -> Self {
        let bias = if bias.is_standard_layout() { bias } else { bias.as_standard_layout().into_owned() };
        Kind::Dense(bias.into_shared()).into()
    }

    pub(crate) fn check(&self, shape: &Shape, whole: &Lengths, align: &Align) -> Result<(), Error> {
        match &self.kind {
            Kind::None => Ok(()),
            Kind::Alibi(alibi) => {
                let sequences = if alibi.slopes.dim().0 == 1 { 1 } else { shape.batch };
                let (axes, from) =
                    if alibi.per_sequence { ("[batch or 1, heads]", 0) } else { ("[heads], one slope a head", 1) };
                expect_axes("ALiBi's slopes", axes, &[sequences, shape.heads][from..], alibi.shape())
            }
            Kind::T5(t5) => {
                expect_axes("T5's table", "[buckets, heads]", &[t5.table.dim().0, shape.heads], t5.table.shape())
            }
            Kind::Shaw(table) => {
                let (heads, distances, _) = table.dim();
                let expected = if heads == 1 { 1 } else { shape.heads };
                let axes = "[heads or 1, distances, dim]";
                expect_axes("Shaw's table", axes, &[expected, distances, shape.dim], table.shape())
            }
            Kind::Swin(swin) => {
                expect_axes("Swin's table", SWIN_AXES, &[swin.table.dim().0, shape.heads], swin.table.shape())?;
                let tokens = swin.grid.0.saturating_mul(swin.grid.1);
                align.check_extent("Swin's grid", Extent::Exactly(tokens), whole)
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
/// next lower power of two, followed by every other slope of the next higher one.
///
/// ```
/// assert_eq!(foveal::alibi_slopes(8)?[..3], [0.5, 0.25, 0.125]);
/// assert_eq!(foveal::alibi_slopes(12)?.len(), 12);
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// # Errors
/// If no memory could hold so many.
pub fn alibi_slopes(heads: usize) -> Result<Vec<f32>, Error> {
    let mut slopes = room("a list of ALiBi's slopes", &[heads])?;
    let sequence = |n: usize| (1..=n).map(move |k| (-8.0 * k as f64 / n as f64).exp2() as f32);
    match heads {
        0 => {}
        _ if heads.is_power_of_two() => slopes.extend(sequence(heads)),
        _ => {
            let lower = 1 << heads.ilog2();
            slopes.extend(sequence(lower).chain(sequence(2 * lower).step_by(2)).take(heads));
        }
    }
    Ok(slopes)
}

/// T5's bucket of distance j − i: one bucket for each short distance, then ranges that grow logarithmically up to
/// `max_distance`, and one bucket for everything beyond.
///
/// ```
/// use foveal::{Direction, t5_bucket};
/// assert_eq!(t5_bucket(-3, Direction::Backward, 32, 128)?, 3);
/// assert_eq!(t5_bucket(-5000, Direction::Backward, 32, 128)?, 31);
/// assert!(t5_bucket(-3, Direction::Both, 3, 128).is_err()); // one bucket for each direction is too few
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// # Errors
/// If there are too few buckets, or `max_distance` does not lie beyond the buckets of single distances.
pub fn t5_bucket(distance: isize, direction: Direction, buckets: usize, max_distance: usize) -> Result<usize, Error> {
    check_buckets(direction, buckets, max_distance)?;
    Ok(bucket_of(distance, direction, buckets, max_distance))
}

/// The buckets of one direction: at least one of a single distance, and one of a range that ends beyond these.
fn check_buckets(direction: Direction, buckets: usize, max_distance: usize) -> Result<(), Error> {
    let one_way = if direction == Direction::Both { buckets / 2 } else { buckets };
    if one_way < 2 {
        let expected = "at least 2 in each direction";
        return Err(Error::Value { what: "the number of T5 buckets", expected, got: buckets as f64 });
    }
    if max_distance <= one_way / 2 {
        let expected = "more than half the buckets of one direction";
        return Err(Error::Value { what: "T5's max_distance", expected, got: max_distance as f64 });
    }
    Ok(())
}

/// [`t5_bucket`] of sizes that [`check_buckets`] has passed.
fn bucket_of(distance: isize, direction: Direction, buckets: usize, max_distance: usize) -> usize {
    let (first, buckets) = match direction {
        Direction::Both if distance > 0 => (buckets / 2, buckets / 2),
        Direction::Both => (0, buckets / 2),
        Direction::Backward => (0, buckets),
    };
    let distance = match direction {
        Direction::Backward if distance > 0 => 0,
        _ => distance.unsigned_abs(),
    };
    let exact = buckets / 2;
    if distance < exact {
        return first + distance;
    }
    // f32 as in the original: at the borders between ranges f64 would decide otherwise for some sizes.
    let share = (distance as f32 / exact as f32).ln() / ((max_distance as f64 / exact as f64).ln() as f32);
    first + exact.saturating_add((share * (buckets - exact) as f32) as usize).min(buckets - 1)
}
