//! Sparse patterns: which keys a position sees, as a union of a few simple pieces.

mod big_bird;
mod piece;

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use crate::Error;
use piece::{Grid, Lists, Piece};

pub use big_bird::BigBird;
pub(crate) use piece::merge;

/// Which keys each position sees, sparse enough that most of the matrix is never touched. [`Mask::pattern`] turns one pattern
/// into a mask for all heads, [`Mask::patterns`] one for each head.
///
/// Patterns speak of positions: query i stands at key position i + offset, see [`Align`](crate::Align). So a pattern means the
/// same when a whole text is read and when one token is decoded against a cache. Patterns look in both directions; for a
/// language model, combine them with [`Mask::causal`] by [`and`](crate::Mask::and). All are exact to the key, and memory and
/// time grow with the number of tiles in which something is visible.
///
/// ```
/// use foveal::{Attention, Mask, Pattern};
/// // Longformer as published: 256 keys to each side, and the first token sees all and is seen by all.
/// let longformer = Attention::new().mask(Mask::pattern(Pattern::longformer(256, 1, &[0])?));
/// // The same for a language model.
/// let causal = Attention::new().mask(Mask::pattern(Pattern::longformer(256, 1, &[0])?).and(Mask::causal()));
/// # Ok::<(), foveal::Error>(())
/// ```
///
/// [`Mask::pattern`]: crate::Mask::pattern
/// [`Mask::patterns`]: crate::Mask::patterns
/// [`Mask::causal`]: crate::Mask::causal
#[derive(Clone, Debug)]
pub struct Pattern {
    pieces: Arc<[Piece]>,
    extent: Extent,
}

/// How many tokens a pattern is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Any number.
    Any,
    /// Up to so many.
    Within(usize),
    /// Just so many keys.
    Exactly(usize),
}

impl Extent {
    /// The numbers of tokens that fit both.
    fn and(self, other: Extent) -> Result<Extent, Error> {
        let contradiction = |got: usize, fits: String| {
            Err(Error::Fit { what: "the number of tokens that one of two joined patterns is made for", got, fits })
        };
        match (self, other) {
            (Extent::Any, extent) | (extent, Extent::Any) => Ok(extent),
            (Extent::Within(n), Extent::Within(m)) => Ok(Extent::Within(n.min(m))),
            (Extent::Exactly(n), Extent::Exactly(m)) if n != m => {
                contradiction(m, format!("{n}, which the other is made for"))
            }
            (Extent::Exactly(n), Extent::Within(m)) | (Extent::Within(m), Extent::Exactly(n)) if n > m => {
                contradiction(n, format!("up to {m}, which the other is made for"))
            }
            (Extent::Exactly(n), _) | (_, Extent::Exactly(n)) => Ok(Extent::Exactly(n)),
        }
    }
}

impl Pattern {
    /// Longformer (Beltagy 2020): `window` keys to each side, `dilation` apart, and the tokens `global`, which see all and are
    /// seen by all. With a dilation of 1 nothing is left out.
    ///
    /// ```
    /// # use foveal::Pattern;
    /// assert_eq!(Pattern::longformer(1, 1, &[0])?.picture(8), "\
    /// ■ ■ ■ ■ ■ ■ ■ ■
    /// ■ ■ ■ · · · · ·
    /// ■ ■ ■ ■ · · · ·
    /// ■ · ■ ■ ■ · · ·
    /// ■ · · ■ ■ ■ · ·
    /// ■ · · · ■ ■ ■ ·
    /// ■ · · · · ■ ■ ■
    /// ■ · · · · · ■ ■
    /// ");
    /// assert_eq!(Pattern::longformer(1, 3, &[])?.picture(8), "\
    /// ■ · · ■ · · · ·
    /// · ■ · · ■ · · ·
    /// · · ■ · · ■ · ·
    /// ■ · · ■ · · ■ ·
    /// · ■ · · ■ · · ■
    /// · · ■ · · ■ · ·
    /// · · · ■ · · ■ ·
    /// · · · · ■ · · ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dilation is 0.
    pub fn longformer(window: usize, dilation: usize, global: &[usize]) -> Result<Self, Error> {
        if dilation == 0 {
            return Err(Error::Fit {
                what: "Longformer's dilation",
                got: 0,
                fits: "1 or more; 1 leaves out nothing".into(),
            });
        }
        let reach = window.saturating_mul(dilation);
        let mut pieces = vec![Piece::Band { reach, step: dilation }];
        if !global.is_empty() {
            let ranges: Arc<[Range<usize>]> =
                piece::merged(global.iter().map(|g| *g..g.saturating_add(1)).collect()).into();
            pieces.extend([Piece::Keys(ranges.clone()), Piece::Queries(ranges)]);
        }
        Ok(Pattern { pieces: pieces.into(), extent: Extent::Any })
    }

    /// The strided pattern of the Sparse Transformer (Child 2019): the `stride` keys to each side, and every `stride`-th key
    /// beyond. With a stride near √n, any key is reached in two layers by O(n·√n) pairs.
    ///
    /// ```
    /// # use foveal::Pattern;
    /// assert_eq!(Pattern::strided(3)?.picture(8), "\
    /// ■ ■ ■ ■ · · ■ ·
    /// ■ ■ ■ ■ ■ · · ■
    /// ■ ■ ■ ■ ■ ■ · ·
    /// ■ ■ ■ ■ ■ ■ ■ ·
    /// · ■ ■ ■ ■ ■ ■ ■
    /// · · ■ ■ ■ ■ ■ ■
    /// ■ · · ■ ■ ■ ■ ■
    /// · ■ · · ■ ■ ■ ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the stride is 0.
    pub fn strided(stride: usize) -> Result<Self, Error> {
        check_stride(stride)?;
        let pieces = [Piece::Band { reach: stride, step: 1 }, Piece::Band { reach: usize::MAX, step: stride }];
        Ok(Pattern { pieces: pieces.into(), extent: Extent::Any })
    }

    /// The fixed pattern of the same paper: the block of `stride` tokens that a query stands in, and the last `summary`
    /// tokens of every block, which summarise it. Its tiles are denser than the strided pattern's.
    ///
    /// ```
    /// # use foveal::Pattern;
    /// assert_eq!(Pattern::fixed(4, 1)?.picture(8), "\
    /// ■ ■ ■ ■ · · · ■
    /// ■ ■ ■ ■ · · · ■
    /// ■ ■ ■ ■ · · · ■
    /// ■ ■ ■ ■ · · · ■
    /// · · · ■ ■ ■ ■ ■
    /// · · · ■ ■ ■ ■ ■
    /// · · · ■ ■ ■ ■ ■
    /// · · · ■ ■ ■ ■ ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the stride is 0, or the summary longer than it.
    pub fn fixed(stride: usize, summary: usize) -> Result<Self, Error> {
        check_stride(stride)?;
        if summary > stride {
            let fits = format!("0 to {stride}, the stride");
            return Err(Error::Fit { what: "the fixed pattern's summary", got: summary, fits });
        }
        let pieces = [Piece::Block { size: stride }, Piece::Periodic { period: stride, from: stride - summary }];
        Ok(Pattern { pieces: pieces.into(), extent: Extent::Any })
    }

    /// Swin's windows (Liu 2021) on an image of `grid` = (height, width) tokens, which lie row by row: a token sees those of
    /// its window of `window` = (height, width) tokens. Every second layer moves the windows by `shift`, half a window.
    ///
    /// Swin rolls the image, and then masks tokens that only the roll has made neighbours. What remains visible are windows
    /// that start at the shift, cut off at the borders of the image; that is what is computed here, without rolling.
    /// The learned bias is [`Bias::swin`](crate::Bias::swin).
    ///
    /// ```
    /// # use foveal::Pattern;
    /// // An image of 2 × 4 tokens, windows of 2 × 2, as they are and moved by (0, 1).
    /// assert_eq!(Pattern::swin((2, 4), (2, 2), (0, 0))?.picture(8), "\
    /// ■ ■ · · ■ ■ · ·
    /// ■ ■ · · ■ ■ · ·
    /// · · ■ ■ · · ■ ■
    /// · · ■ ■ · · ■ ■
    /// ■ ■ · · ■ ■ · ·
    /// ■ ■ · · ■ ■ · ·
    /// · · ■ ■ · · ■ ■
    /// · · ■ ■ · · ■ ■
    /// ");
    /// assert_eq!(Pattern::swin((2, 4), (2, 2), (0, 1))?.picture(8), "\
    /// ■ · · · ■ · · ·
    /// · ■ ■ · · ■ ■ ·
    /// · ■ ■ · · ■ ■ ·
    /// · · · ■ · · · ■
    /// ■ · · · ■ · · ·
    /// · ■ ■ · · ■ ■ ·
    /// · ■ ■ · · ■ ■ ·
    /// · · · ■ · · · ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the window does not divide the grid, or the shift is not smaller than the window.
    pub fn swin(grid: (usize, usize), window: (usize, usize), shift: (usize, usize)) -> Result<Self, Error> {
        for (side, size, shift) in [(grid.0, window.0, shift.0), (grid.1, window.1, shift.1)] {
            if size == 0 || !side.is_multiple_of(size) {
                let fits = match side.checked_div(size) {
                    None => "a window of 1 or more".into(),
                    Some(0) => format!("a multiple of the window's {size}, or a window of at most {side}"),
                    Some(n) => match (n + 1).checked_mul(size) {
                        Some(next) => format!("a multiple of the window's {size}: {} or {next}", n * size),
                        None => format!("a multiple of the window's {size}: {}", n * size),
                    },
                };
                return Err(Error::Fit { what: "a side of Swin's grid", got: side, fits });
            }
            if shift >= size {
                let fits = format!("0 to {}, less than the window; Swin takes {}", size - 1, size / 2);
                return Err(Error::Fit { what: "Swin's shift", got: shift, fits });
            }
        }
        let tokens = grid.0.saturating_mul(grid.1);
        let pieces = [Piece::Grid(Grid { size: grid, window, shift })];
        Ok(Pattern { pieces: pieces.into(), extent: Extent::Exactly(tokens) })
    }

    /// Texts of these lengths, one after the other in one sequence: each sees itself and none of the others, so that a batch
    /// of texts of different lengths needs no padding.
    ///
    /// ```
    /// # use foveal::Pattern;
    /// assert_eq!(Pattern::documents(&[3, 1, 4])?.picture(8), "\
    /// ■ ■ ■ · · · · ·
    /// ■ ■ ■ · · · · ·
    /// ■ ■ ■ · · · · ·
    /// · · · ■ · · · ·
    /// · · · · ■ ■ ■ ■
    /// · · · · ■ ■ ■ ■
    /// · · · · ■ ■ ■ ■
    /// · · · · ■ ■ ■ ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the lengths add up to more than a `usize` holds.
    pub fn documents(lengths: &[usize]) -> Result<Self, Error> {
        let mut tokens = 0usize;
        let mut ends = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let fits = || "less, so that all together can be counted".into();
            let too_long = || Error::Fit { what: "the length of a document", got: length, fits: fits() };
            tokens = tokens.checked_add(length).ok_or_else(too_long)?;
            ends.push(tokens);
        }
        Ok(Pattern { pieces: [Piece::Stretches(ends.into())].into(), extent: Extent::Within(tokens) })
    }

    /// Any list of blocks of `size` × `size`: the queries of block r see the blocks `rows[r]`.
    ///
    /// ```
    /// # use foveal::Pattern;
    /// assert_eq!(Pattern::blocks(2, [vec![0], vec![0, 2], vec![1, 2], vec![3]])?.picture(8), "\
    /// ■ ■ · · · · · ·
    /// ■ ■ · · · · · ·
    /// ■ ■ · · ■ ■ · ·
    /// ■ ■ · · ■ ■ · ·
    /// · · ■ ■ ■ ■ · ·
    /// · · ■ ■ ■ ■ · ·
    /// · · · · · · ■ ■
    /// · · · · · · ■ ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the size is 0, or a block is named that is not there.
    pub fn blocks(size: usize, rows: impl IntoIterator<Item = Vec<usize>>) -> Result<Self, Error> {
        check_block(size)?;
        let rows: Vec<Vec<usize>> = rows.into_iter().collect();
        let tokens = size.saturating_mul(rows.len());
        Ok(Pattern { pieces: [Piece::Lists(Lists::new(size, rows)?)].into(), extent: Extent::Within(tokens) })
    }

    /// Visible where either is.
    ///
    /// ```
    /// # use foveal::Pattern;
    /// let windows = Pattern::swin((4, 4), (2, 2), (0, 0))?.or(Pattern::longformer(0, 1, &[0])?)?;
    /// assert!(windows.visible(15, 0) && !windows.visible(15, 1));
    /// // Made for 16 tokens and for 9: there is no sequence that both fit.
    /// assert!(windows.or(Pattern::swin((3, 3), (3, 3), (0, 0))?).is_err());
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no number of tokens fits both.
    pub fn or(self, other: Pattern) -> Result<Self, Error> {
        let pieces = self.pieces.iter().chain(&*other.pieces).cloned().collect();
        Ok(Pattern { pieces, extent: self.extent.and(other.extent)? })
    }

    /// Whether a query that stands at `position` sees `key`.
    pub fn visible(&self, position: usize, key: usize) -> bool {
        self.sees_at(position as i128, key)
    }

    /// The pattern of `tokens` queries on as many keys, one line each: `■` visible, `·` hidden.
    pub fn picture(&self, tokens: usize) -> String {
        let mut picture = String::new();
        for i in 0..tokens {
            for j in 0..tokens {
                let (space, cell) = (if j == 0 { "" } else { " " }, if self.visible(i, j) { '■' } else { '·' });
                let _ = write!(picture, "{space}{cell}");
            }
            picture.push('\n');
        }
        picture
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// [`visible`](Pattern::visible) for positions before the first key, too: one pair at a time, as defined.
    pub(crate) fn sees(&self, position: isize, key: usize) -> bool {
        self.sees_at(position as i128, key)
    }

    fn sees_at(&self, position: i128, key: usize) -> bool {
        self.pieces.iter().any(|piece| piece.sees(position, key))
    }

    /// Gives the runs of keys within `keys` that any of the positions sees: in any order, and they may overlap. The runs of a
    /// single position are exact; those of several may be wider, never narrower.
    #[inline]
    pub(crate) fn runs(&self, positions: Range<isize>, keys: &Range<usize>, mut give: impl FnMut(Range<usize>)) {
        for piece in &*self.pieces {
            piece.runs(positions.clone(), keys, &mut give);
        }
    }

    /// The first position after this one whose row may differ by more than moving with the position.
    #[inline]
    pub(crate) fn next_break(&self, position: isize) -> isize {
        self.pieces.iter().fold(isize::MAX, |next, piece| next.min(piece.next_break(position)))
    }

    /// Whether every one of the positions, without a break between them, is known to see all of the keys.
    #[inline]
    pub(crate) fn shows_all(&self, positions: &Range<isize>, keys: &Range<usize>) -> bool {
        self.pieces.iter().any(|piece| piece.shows_all(positions, keys))
    }
}

fn check_stride(stride: usize) -> Result<(), Error> {
    if stride > 0 {
        Ok(())
    } else {
        Err(Error::Fit { what: "the stride", got: 0, fits: "1 or more; √n is usual".into() })
    }
}

fn check_block(size: usize) -> Result<(), Error> {
    if size > 0 {
        Ok(())
    } else {
        Err(Error::Fit { what: "the block size", got: 0, fits: "1 or more; 64 is fast".into() })
    }
}
