use std::sync::Arc;

use ndarray::{ArcArray, Array2, Array4, Axis, Ix4};

use crate::Error;
use crate::pattern::{Extent, Pattern};
use crate::shape::Shape;

/// Which keys a query may see. `true` always means *visible*.
///
/// Masks combine with [`and`](Mask::and): a key is visible if every part says so. Whole tiles that a mask hides are never
/// computed. Sparse masks (Longformer, BigBird, Swin, any list of blocks) are made of a [`Pattern`]. A query that sees nothing gets a zero output, lse = −∞, and zero gradients.
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
#[derive(Clone, Debug)]
pub struct Mask {
    /// How far to the left and to the right of its own position a query sees; `usize::MAX` is without end.
    pub(crate) left: usize,
    pub(crate) right: usize,
    pub(crate) lengths: Vec<Arc<[usize]>>,
    pub(crate) keep: Vec<ArcArray<bool, Ix4>>,
    /// Each one for all heads, or one a head.
    pub(crate) patterns: Vec<Arc<[Pattern]>>,
}

impl Default for Mask {
    fn default() -> Self {
        Mask { left: usize::MAX, right: usize::MAX, lengths: Vec::new(), keep: Vec::new(), patterns: Vec::new() }
    }
}

impl Mask {
    /// Every query sees every key.
    pub fn none() -> Self {
        Mask::default()
    }

    /// No query sees a key to the right of its own position, as in GPT. See [`Align`] for T ≠ S.
    pub fn causal() -> Self {
        Mask { right: 0, ..Mask::default() }
    }

    /// Each query sees `left` keys before its own position, its own, and `right` keys after it. `usize::MAX` opens a side.
    pub fn window(left: usize, right: usize) -> Self {
        Mask { left, right, ..Mask::default() }
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

    /// What the pattern shows, in all heads.
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
        self.left = self.left.min(other.left);
        self.right = self.right.min(other.right);
        self.lengths.extend(other.lengths);
        self.keep.extend(other.keep);
        self.patterns.extend(other.patterns);
        self
    }

    pub(crate) fn check(&self, shape: &Shape, align: &Align) -> Result<(), Error> {
        for lengths in &self.lengths {
            if lengths.len() != shape.batch {
                return Err(Error::Shape {
                    what: "the padding mask's list of lengths",
                    expected: vec![shape.batch],
                    got: vec![lengths.len()],
                });
            }
            if let Some((batch, &length)) = lengths.iter().enumerate().find(|(_, length)| **length > shape.keys) {
                return Err(Error::Length { batch, length, keys: shape.keys });
            }
        }
        for heads in &self.patterns {
            if heads.len() != 1 && heads.len() != shape.heads {
                let (expected, got) = (vec![shape.heads], vec![heads.len()]);
                return Err(Error::Shape { what: "the mask's list of patterns", expected, got });
            }
            heads.iter().try_for_each(|pattern| align.check_extent("the mask's pattern", pattern.extent(), shape))?;
        }
        self.keep.iter().try_for_each(|keep| shape.check_broadcast("the mask's keep-array", keep.shape()))
    }
}

/// Where the queries stand among the keys when there are not as many of each.
///
/// Query i stands at key position i + offset. Causal and window masks, ALiBi, T5 and Shaw all measure distances from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// The last query stands at the last key: offset S − T. What a decoder with a cache needs.
    #[default]
    Last,
    /// The first query stands at the first key: offset 0. What PyTorch's `is_causal` does.
    First,
    /// Sequence b of the batch has its own offset, for caches filled to different lengths.
    Offsets(Arc<[usize]>),
}

impl Align {
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        match self {
            Align::Offsets(offsets) if offsets.len() != shape.batch => Err(Error::Shape {
                what: "the alignment's list of offsets",
                expected: vec![shape.batch],
                got: vec![offsets.len()],
            }),
            _ => Ok(()),
        }
    }

    /// Whether all queries and keys lie within what something is made for.
    pub(crate) fn check_extent(&self, what: &'static str, extent: Extent, shape: &Shape) -> Result<(), Error> {
        let tokens = match extent {
            Extent::Any => return Ok(()),
            Extent::Within(tokens) if shape.keys <= tokens => tokens,
            Extent::Exactly(tokens) if shape.keys == tokens => tokens,
            Extent::Within(tokens) => {
                let fits = format!("up to {tokens}, the tokens of {what}");
                return Err(Error::Fit { what: "the number of keys", got: shape.keys, fits });
            }
            Extent::Exactly(tokens) => {
                let fits = format!("{tokens}, the tokens of {what}");
                return Err(Error::Fit { what: "the number of keys", got: shape.keys, fits });
            }
        };
        for b in 0..if shape.queries == 0 { 0 } else { shape.batch } {
            let first = self.offset(b, shape.queries, shape.keys);
            if first < 0 {
                let fits = format!("up to {}, as the last query stands at the last key; or Align::First", shape.keys);
                return Err(Error::Fit { what: "the number of queries", got: shape.queries, fits });
            }
            let last = first as usize + (shape.queries - 1);
            if last >= tokens {
                let fits = format!("up to {}, the last token of {what}", tokens.saturating_sub(1));
                return Err(Error::Fit { what: "the position of the last query", got: last, fits });
            }
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
            Align::Offsets(offsets) => offsets[batch].min(isize::MAX as usize / 4) as isize,
        }
    }
}
