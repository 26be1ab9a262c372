use std::sync::Arc;

use ndarray::{ArcArray, Array2, Array4, Axis, Ix4};

use crate::Error;
use crate::part::Lengths;
use crate::pattern::{Extent, Pattern};
use crate::shape::{Shape, expect_axes};

/// Which keys a query may see. `true` always means *visible*.
///
/// Masks combine with [`and`](Mask::and): a key is visible if every part says so. Whole tiles that a mask hides are never
/// computed. Sparse masks (Longformer, BigBird, Swin, any list of blocks) are made from a [`Pattern`]. A query that sees
/// nothing gets a zero output, lse = −∞, and zero gradients.
///
/// With as many queries as keys, the causal mask is the lower triangle. Otherwise [`Align`] says where the queries
/// stand. For 2 queries on 5 keys and for 5 queries on 2 keys (`■` visible, `·` hidden):
///
/// ```text
///                       2 × 5          5 × 2
/// none                  ■ ■ ■ ■ ■      ■ ■
///                       ■ ■ ■ ■ ■      ■ ■  (five times)
///
/// causal, Align::Last   ■ ■ ■ ■ ·      · ·
///                       ■ ■ ■ ■ ■      · ·
///                                      · ·
///                                      ■ ·
///                                      ■ ■
///
/// causal, Align::First  ■ · · · ·      ■ ·
///                       ■ ■ · · ·      ■ ■
///                                      ■ ■
///                                      ■ ■
///                                      ■ ■
///
/// window(1, 0), Last    · · ■ ■ ·      · ·
///                       · · · ■ ■      · ·
///                                      · ·
///                                      ■ ·
///                                      ■ ■
///
/// window(1, 1), First   ■ ■ · · ·      ■ ■
///                       ■ ■ ■ · ·      ■ ■
///                                      · ■
///                                      · ·
///                                      · ·
///
/// padding([3])          ■ ■ ■ · ·      (with 2 keys the length is at most 2)
///                       ■ ■ ■ · ·
///
/// padding([1])          ■ · · · ·      ■ ·
///                       ■ · · · ·      ■ ·  (five times)
/// ```
///
/// ```
/// use foveal::Mask;
/// // Mistral's: the last 4,096 tokens, in a batch of two sequences of different lengths.
/// let mask = Mask::window(4095, 0).and(Mask::padding([9000, 7500]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// How far to the left and to the right of its own position a query sees; without end if `None`.
    pub(crate) left: Option<usize>,
    pub(crate) right: Option<usize>,
    pub(crate) lengths: Vec<Arc<[usize]>>,
    pub(crate) keep: Vec<ArcArray<bool, Ix4>>,
    /// Each one for all heads, or one a head.
    pub(crate) patterns: Vec<Arc<[Pattern]>>,
}

impl Mask {
    /// Every query sees every key.
    pub fn none() -> Self {
        Mask::default()
    }

    /// No query sees a key to the right of its own position, as in GPT. See [`Align`] for T ≠ S.
    pub fn causal() -> Self {
        Mask::window(None, 0)
    }

    /// Each query sees `left` keys before its own position, its own, and `right` keys after it. `None` leaves a side open.
    ///
    /// ```
    /// use foveal::Mask;
    /// let near = Mask::window(4095, 0); // Mistral's
    /// let causal = Mask::window(None, 0); // the same as Mask::causal()
    /// let ahead = Mask::window(None, 3); // everything before, and three keys ahead
    /// ```
    pub fn window(left: impl Into<Option<usize>>, right: impl Into<Option<usize>>) -> Self {
        Mask { left: left.into(), right: right.into(), ..Mask::default() }
    }

    /// In sequence b of the batch only the first `lengths[b]` keys are visible.
    pub fn padding(lengths: impl Into<Arc<[usize]>>) -> Self {
        Mask { lengths: vec![lengths.into()], ..Mask::default() }
    }

    /// Key j of sequence b is visible where `keep[[b, j]]` is true.
    pub fn keys(keep: Array2<bool>) -> Self {
        Mask::dense(keep.insert_axis(Axis(1)).insert_axis(Axis(1)))
    }

    /// Key j is visible to query i where `keep[[b, h, i, j]]` is true. Axes 0 to 2 may have length 1: they are then shared
    /// by all sequences, heads or queries.
    pub fn dense(keep: Array4<bool>) -> Self {
        let keep = if keep.is_standard_layout() { keep } else { keep.as_standard_layout().into_owned() };
        Mask { keep: vec![keep.into_shared()], ..Mask::default() }
    }

    /// A key is visible where the pattern shows it, in all heads.
    pub fn pattern(pattern: Pattern) -> Self {
        Mask { patterns: vec![[pattern].into()], ..Mask::default() }
    }

    /// A pattern for each head.
    pub fn patterns(heads: impl Into<Arc<[Pattern]>>) -> Self {
        Mask { patterns: vec![heads.into()], ..Mask::default() }
    }

    /// Visible where both are.
    #[must_use]
    pub fn and(mut self, other: Mask) -> Self {
        // An open side is wider than any other.
        let narrower = |one: Option<usize>, other: Option<usize>| one.into_iter().chain(other).min();
        self.left = narrower(self.left, other.left);
        self.right = narrower(self.right, other.right);
        self.lengths.extend(other.lengths);
        self.keep.extend(other.keep);
        self.patterns.extend(other.patterns);
        self
    }

    pub(crate) fn check(&self, shape: &Shape, whole: &Lengths, align: &Align) -> Result<(), Error> {
        for lengths in &self.lengths {
            let what = "the padding mask's list of lengths";
            expect_axes(what, "[batch], one length a sequence", &[shape.batch], &[lengths.len()])?;
            for (batch, &length) in lengths.iter().enumerate() {
                let (_, keys) = whole.size(batch);
                if length > keys {
                    return Err(Error::Length { batch, length, keys });
                }
            }
        }
        for heads in &self.patterns {
            if heads.len() != 1 {
                let axes = "[heads], one pattern a head, or a single one for all heads";
                expect_axes("the mask's list of patterns", axes, &[shape.heads], &[heads.len()])?;
            }
            heads.iter().try_for_each(|pattern| align.check_extent("the mask's pattern", pattern.extent(), whole))?;
        }
        self.keep.iter().try_for_each(|keep| shape.check_broadcast("the mask's keep-array", keep.shape()))
    }
}

/// Where the queries stand among the keys when there are not as many of each.
///
/// Query i stands at key position i + offset. Causal and window masks, ALiBi, T5 and Shaw all measure distances from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Align {
    /// The last query stands at the last key: offset S − T. What a decoder with a cache needs.
    #[default]
    Last,
    /// The first query stands at the first key: offset 0. What PyTorch's `is_causal` does.
    First,
    /// Sequence b of the batch has its own offset, for caches filled to different lengths.
    Offsets(Arc<[isize]>),
}

/// No array is as long: sums of two of these do not overflow.
const FAR: isize = isize::MAX / 4;

impl Align {
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        match self {
            Align::Offsets(offsets) => {
                let axes = "[batch], one offset a sequence";
                expect_axes("the alignment's list of offsets", axes, &[shape.batch], &[offsets.len()])
            }
            _ => Ok(()),
        }
    }

    /// Checks that all queries and keys of each sequence lie within the tokens that `what` was made for.
    pub(crate) fn check_extent(&self, what: &'static str, extent: Extent, whole: &Lengths) -> Result<(), Error> {
        (0..whole.count).try_for_each(|b| self.check_sequence(what, extent, b, whole.size(b)))
    }

    fn check_sequence(
        &self,
        what: &'static str,
        extent: Extent,
        b: usize,
        (queries, keys): (usize, usize),
    ) -> Result<(), Error> {
        let tokens = match extent {
            Extent::Any => return Ok(()),
            Extent::Within(tokens) if keys <= tokens => tokens,
            Extent::Exactly(tokens) if keys == tokens => tokens,
            Extent::Within(tokens) => {
                let fits = format!("up to {tokens}, the tokens of {what}");
                return Err(Error::Fit { what: "the number of keys", got: keys, fits });
            }
            Extent::Exactly(tokens) => {
                let fits = format!("{tokens}, the tokens of {what}");
                return Err(Error::Fit { what: "the number of keys", got: keys, fits });
            }
        };
        if queries == 0 {
            return Ok(());
        }
        let first = self.offset(b, queries, keys);
        if first < 0 {
            let fits = format!("up to {keys}, as the last query stands at the last key; or Align::First");
            return Err(Error::Fit { what: "the number of queries", got: queries, fits });
        }
        let last = first as usize + (queries - 1);
        if last >= tokens {
            let fits = match tokens {
                0 => format!("none, as {what} has no tokens"),
                _ => format!("up to {}, the last token of {what}", tokens - 1),
            };
            return Err(Error::Fit { what: "the position of the last query", got: last, fits });
        }
        Ok(())
    }

    /// The offset of sequence b.
    #[inline]
    pub(crate) fn offset(&self, batch: usize, queries: usize, keys: usize) -> isize {
        match self {
            Align::Last => keys as isize - queries as isize,
            Align::First => 0,
            // An offset beyond any array means the same as one at its end.
            Align::Offsets(offsets) => offsets[batch].clamp(-FAR, FAR),
        }
    }
}
