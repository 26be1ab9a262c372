//! Attention as courses write it: plain arrays in, output and weights out, with one sequence, a batch, or a batch of
//! heads.
//!
//! $$ \mathrm{attention}(Q, K, V) = \mathrm{softmax}\left( \frac{QK^\top}{\sqrt{d_k}} \right) V $$
//!
//! These functions run on [`Attention`] and add nothing to it. Masks are arrays of `bool`, and `true` always means
//! *visible*: some courses and libraries mark the hidden positions instead.

use ndarray::{Array, Array2, Array4, ArrayView, ArrayView4, ArrayViewD, Axis, Dimension, Ix2, Ix3, Ix4, s};

use crate::mask::{Align, Mask};
use crate::shape::room;
use crate::{Attention, Error};

/// The output and the weights.
///
/// | one sequence | batch | batch of heads |
/// |---|---|---|
/// | q [T, D], k [S, D], v [S, Dv] | q [B, T, D], … | q [B, H, T, D], … |
/// | weights [T, S] | weights [B, T, S] | weights [B, H, T, S] |
///
/// The mask is either [T, S], for all sequences and heads alike, or has as many axes as the weights, of which all but
/// the last may have length 1 and are then shared. So a [`padding_mask`] [B, S] goes in as [B, 1, S] with a batch, and
/// as [B, 1, 1, S] with heads. A query that sees nothing gets a zero output and zero weights.
///
/// # Errors
/// If the shapes do not fit together.
///
/// The example to compute by hand. Row 0: scores [2, 0, 1], scaled by 1/√4: [1, 0, 0.5].
/// ```
/// use foveal::scaled_dot_product_attention;
/// use ndarray::{ArrayView1, array};
///
/// let q = array![[1., 0., 1., 0.], [0., 1., 0., 1.], [1., 1., 0., 0.]];
/// let v = array![[1., 2., 3., 4.], [5., 6., 7., 8.], [9., 10., 11., 12.]];
/// let (out, weights) = scaled_dot_product_attention(&q, &q, &v, None)?;
///
/// let near = |row: ArrayView1<f32>, want: &[f32]| row.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-5);
/// assert!(near(weights.row(0), &[0.50648, 0.18632, 0.30720]));
/// assert!(near(out.row(0), &[4.20286, 5.20286, 6.20286, 7.20286]));
/// # Ok::<(), foveal::Error>(())
/// ```
#[expect(clippy::type_complexity, reason = "a pair, as in the courses")]
pub fn scaled_dot_product_attention<'a, D: Sequences>(
    q: impl Into<ArrayView<'a, f32, D>>,
    k: impl Into<ArrayView<'a, f32, D>>,
    v: impl Into<ArrayView<'a, f32, D>>,
    mask: Option<ArrayViewD<bool>>,
) -> Result<(Array<f32, D>, Array<f32, D>), Error> {
    let (q, k, v) = (D::lift(q.into()), D::lift(k.into()), D::lift(v.into()));
    let (batch, heads, queries, _) = q.dim();
    let keys = k.dim().2;
    let attention = match mask {
        Some(mask) => Attention::new().mask(Mask::dense(keep::<D>(mask, [batch, heads, queries, keys])?)),
        None => Attention::new(),
    };
    let fwd = attention.forward(q, k, v)?;
    let mut weights = Array4::zeros((batch, heads, queries, keys));
    for b in 0..batch {
        for h in 0..heads {
            let tile = attention.head(q, k, &fwd.lse, (b, h))?.tile(0..queries, 0..keys)?;
            weights.slice_mut(s![b, h, .., ..]).assign(&tile);
        }
    }
    Ok((D::lower(fwd.out), D::lower(weights)))
}

/// The mask of a language model, [queries, keys]: no query sees a key after its own position.
///
/// [`Align`] says where the queries stand if there are not as many queries as keys. Of [`Align::Offsets`] the first
/// counts, 0 if there is none: this is the mask of one sequence.
///
/// ```
/// use foveal::{Align, causal_mask, scaled_dot_product_attention};
/// use ndarray::array;
///
/// let mask = causal_mask(3, 3, &Align::Last)?;
/// assert_eq!(mask, array![[true, false, false], [true, true, false], [true, true, true]]);
///
/// let x = array![[1., 0.], [0., 1.], [1., 1.]];
/// let (_, weights) = scaled_dot_product_attention(&x, &x, &x, Some(mask.view().into_dyn()))?;
/// assert_eq!(weights.row(0).to_vec(), [1., 0., 0.]); // no weight on the future: exactly 0
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// # Errors
/// If no memory could hold it.
pub fn causal_mask(queries: usize, keys: usize, align: &Align) -> Result<Array2<bool>, Error> {
    let room = room("a causal mask", &[queries, keys])?;
    let offset = match align {
        Align::Offsets(offsets) if offsets.is_empty() => 0,
        _ => align.offset(0, queries, keys),
    };
    Ok(filled(room, (queries, keys), |i, j| j as isize <= i as isize + offset))
}

/// The mask of a batch of sequences of different lengths, padded to `keys`: [B, keys], `true` for the real tokens.
///
/// # Errors
/// If a length is more than `keys`, or no memory could hold the mask.
///
/// ```
/// use foveal::padding_mask;
/// use ndarray::array;
///
/// let mask = padding_mask(&[3, 1], 4)?;
/// assert_eq!(mask, array![[true, true, true, false], [true, false, false, false]]);
/// # Ok::<(), foveal::Error>(())
/// ```
pub fn padding_mask(lengths: &[usize], keys: usize) -> Result<Array2<bool>, Error> {
    match lengths.iter().enumerate().find(|(_, length)| **length > keys) {
        Some((batch, &length)) => Err(Error::Length { batch, length, keys }),
        None => {
            let room = room("a padding mask", &[lengths.len(), keys])?;
            Ok(filled(room, (lengths.len(), keys), |b, j| j < lengths[b]))
        }
    }
}

/// A matrix of what `visible` says of every row and column, in `room` for as many.
fn filled(mut room: Vec<bool>, (rows, cols): (usize, usize), visible: impl Fn(usize, usize) -> bool) -> Array2<bool> {
    if cols > 0 {
        (0..rows).for_each(|i| room.extend((0..cols).map(|j| visible(i, j))));
    }
    Array2::from_shape_vec((rows, cols), room).expect("as many as rows times columns")
}

/// The numbers of axes that these functions take: 2, 3 or 4.
pub trait Sequences: Dimension + sealed::Axes {}

impl Sequences for Ix2 {}
impl Sequences for Ix3 {}
impl Sequences for Ix4 {}

mod sealed {
    use super::*;

    pub trait Axes: Dimension {
        /// What the axes of the weights mean.
        const SCORES: &str;
        /// Of the sizes [B, H, T, S] those of these axes.
        fn of_scores(full: [usize; 4]) -> Vec<usize>;
        /// [tokens, dim] or [B, tokens, dim] to [B, H, tokens, dim].
        fn lift<A>(x: ArrayView<A, Self>) -> ArrayView4<A>;
        /// Back from there.
        fn lower<A: Clone>(x: Array4<A>) -> Array<A, Self>;
    }

    impl Axes for Ix2 {
        const SCORES: &str = "[queries, keys]";

        fn of_scores(full: [usize; 4]) -> Vec<usize> {
            full[2..].to_vec()
        }

        fn lift<A>(x: ArrayView<A, Ix2>) -> ArrayView4<A> {
            x.insert_axis(Axis(0)).insert_axis(Axis(0))
        }

        fn lower<A: Clone>(x: Array4<A>) -> Array<A, Ix2> {
            x.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), 0)
        }
    }

    impl Axes for Ix3 {
        const SCORES: &str = "[batch, queries, keys]";

        fn of_scores(full: [usize; 4]) -> Vec<usize> {
            vec![full[0], full[2], full[3]]
        }

        fn lift<A>(x: ArrayView<A, Ix3>) -> ArrayView4<A> {
            x.insert_axis(Axis(1))
        }

        fn lower<A: Clone>(x: Array4<A>) -> Array<A, Ix3> {
            x.index_axis_move(Axis(1), 0)
        }
    }

    impl Axes for Ix4 {
        const SCORES: &str = "[batch, heads, queries, keys]";

        fn of_scores(full: [usize; 4]) -> Vec<usize> {
            full.to_vec()
        }

        fn lift<A>(x: ArrayView<A, Ix4>) -> ArrayView4<A> {
            x
        }

        fn lower<A: Clone>(x: Array4<A>) -> Array<A, Ix4> {
            x
        }
    }
}

/// The mask with four axes, from [T, S] or from the axes of the weights.
fn keep<D: Sequences>(mask: ArrayViewD<bool>, full: [usize; 4]) -> Result<Array4<bool>, Error> {
    let got = mask.shape().to_vec();
    let lifted = match mask.clone().into_dimensionality::<Ix2>() {
        Ok(mask) => <Ix2 as sealed::Axes>::lift(mask).to_owned(),
        Err(_) => match mask.into_dimensionality::<D>() {
            Ok(mask) => D::lift(mask).to_owned(),
            Err(_) => {
                let full = D::of_scores(full);
                return Err(Error::Broadcast { what: "the mask", axes: D::SCORES, full, got });
            }
        },
    };
    Ok(lifted)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, stack};

    use super::sealed::Axes;
    use super::*;

    fn example(shape: (usize, usize, usize, usize), phase: f32) -> Array4<f32> {
        Array4::from_shape_fn(shape, |(b, h, t, d)| ((7 * b + 5 * h + 3 * t + 2 * d) as f32 + phase).sin())
    }

    #[test]
    fn all_numbers_of_axes_agree() {
        let (q, k, v) = (example((2, 3, 4, 8), 0.0), example((2, 3, 6, 8), 1.0), example((2, 3, 6, 5), 2.0));
        let mask = causal_mask(4, 6, &Align::Last).unwrap();
        let mask = || Some(mask.view().into_dyn());
        let (out, weights) = scaled_dot_product_attention(&q, &k, &v, mask()).unwrap();
        assert_eq!((out.dim(), weights.dim()), ((2, 3, 4, 5), (2, 3, 4, 6)));
        for b in 0..2 {
            let at = |x: &Array4<f32>| x.slice(s![b, .., .., ..]).to_owned();
            let batch = scaled_dot_product_attention(&at(&q), &at(&k), &at(&v), mask()).unwrap();
            assert_eq!(batch, (at(&out), at(&weights)));
            for h in 0..3 {
                let at = |x: &Array4<f32>| x.slice(s![b, h, .., ..]).to_owned();
                let one = scaled_dot_product_attention(&at(&q), &at(&k), &at(&v), mask()).unwrap();
                assert_eq!(one, (at(&out), at(&weights)));
            }
        }
    }

    #[test]
    fn masks_are_shared_along_axes_of_length_one() {
        let x = example((2, 1, 4, 8), 0.0).index_axis_move(Axis(1), 0);
        let padding = padding_mask(&[4, 2], 4).unwrap();
        let shared = padding.clone().insert_axis(Axis(1)).into_dyn();
        let (out, weights) = scaled_dot_product_attention(&x, &x, &x, Some(shared.view())).unwrap();
        assert!(weights.slice(s![1, .., 2..]).iter().all(|&w| w == 0.0));
        assert!(weights.sum_axis(Axis(2)).iter().all(|sum| (sum - 1.0).abs() < 1e-5));

        let full: Array3<bool> = stack![Axis(1), padding, padding, padding, padding];
        let same = scaled_dot_product_attention(&x, &x, &x, Some(full.view().into_dyn())).unwrap();
        assert_eq!(same, (out, weights));

        let nothing = Array2::from_elem((4, 4), false).into_dyn();
        let (out, weights) = scaled_dot_product_attention(&x, &x, &x, Some(nothing.view())).unwrap();
        assert!(out.iter().chain(&weights).all(|&x| x == 0.0));
    }

    #[test]
    fn says_what_does_not_fit() {
        let x = example((1, 1, 4, 8), 0.0).index_axis_move(Axis(0), 0);
        let four = Array4::from_elem((1, 1, 4, 4), true).into_dyn();
        let error = scaled_dot_product_attention(&x, &x, &x, Some(four.view())).unwrap_err();
        let (axes, full, got) = ("[batch, queries, keys]", vec![1, 4, 4], vec![1, 1, 4, 4]);
        assert_eq!(error, Error::Broadcast { what: "the mask", axes, full, got });
        let narrow = Array2::from_elem((4, 3), true).into_dyn();
        assert!(scaled_dot_product_attention(&x, &x, &x, Some(narrow.view())).is_err());
        assert_eq!(padding_mask(&[2, 5], 4), Err(Error::Length { batch: 1, length: 5, keys: 4 }));
    }

    #[test]
    fn causal_masks_are_those_of_the_engine() {
        for (queries, keys) in [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0)] {
            let (q, k) = (example((1, 1, queries, 8), 0.0), example((1, 1, keys, 8), 1.0));
            for align in [Align::Last, Align::First, Align::Offsets([1].into())] {
                let weights = Attention::new().mask(Mask::causal()).align(align.clone()).weights(&q, &k).unwrap();
                assert_eq!(
                    causal_mask(queries, keys, &align).unwrap(),
                    Ix2::lower(weights).mapv(|w| w > 0.0),
                    "{align:?}"
                );
            }
            let none = Align::Offsets([].into());
            assert_eq!(causal_mask(queries, keys, &none).unwrap(), causal_mask(queries, keys, &Align::First).unwrap());
        }
    }
}
