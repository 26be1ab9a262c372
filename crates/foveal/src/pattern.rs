//! Sparse patterns: which keys a position sees, as a union of a few simple pieces.

mod piece;

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use crate::Error;
use crate::dropout::mix64;
use piece::{Grid, Lists, Piece};

pub(crate) use piece::merge;

/// Which keys a query sees by where it stands, sparse enough that most of the matrix is never touched. A [`Mask`] is made of
/// one with [`Mask::pattern`](crate::Mask::pattern), or of one for each head with [`Mask::patterns`](crate::Mask::patterns).
///
/// Patterns know positions: query i stands at key position i + offset, see [`Align`](crate::Align). So a pattern means the same
/// when a whole text is read and when one token is decoded against a cache. They hold for both directions; add
/// [`Mask::causal`](crate::Mask::causal) with [`and`](crate::Mask::and) for a language model. All are exact to the key, and
/// memory and time grow with the tiles in which something is visible.
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
/// [`Mask`]: crate::Mask
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

/// The sizes of [`Pattern::big_bird`], all but `seed` counted in blocks. The default is that of the paper's models: blocks
/// of 64, three in the window, the first and the last global, three at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BigBird {
    /// Tokens per block.
    pub block: usize,
    /// Blocks around its own that a block sees, its own included: an odd number.
    pub window: usize,
    /// Blocks at the start that see all and are seen by all.
    pub global_start: usize,
    /// The same at the end.
    pub global_end: usize,
    /// Blocks that each block sees beside these, drawn at random.
    pub random: usize,
    /// Of the random blocks. Take another one for every layer.
    pub seed: u64,
}

impl Default for BigBird {
    fn default() -> Self {
        BigBird { block: 64, window: 3, global_start: 1, global_end: 1, random: 3, seed: 0 }
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
        let mut pieces = vec![Piece::band(reach, dilation)];
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
        Ok(Pattern { pieces: [Piece::band(stride, 1), Piece::band(usize::MAX, stride)].into(), extent: Extent::Any })
    }

    /// The fixed pattern of the same paper: the block of `stride` tokens that a query stands in, and the last `summary`
    /// tokens of every block, which pass on what their block says. Its tiles are denser than the strided pattern's.
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

    /// BigBird (Zaheer 2020) for up to `tokens` tokens: blocks near each other, global blocks, and random ones.
    ///
    /// ```
    /// use foveal::{BigBird, Pattern};
    /// let sizes = BigBird { block: 1, window: 3, global_start: 1, global_end: 0, random: 1, seed: 1 };
    /// assert_eq!(Pattern::big_bird(8, sizes)?.picture(8), "\
    /// ■ ■ ■ ■ ■ ■ ■ ■
    /// ■ ■ ■ · · · · ■
    /// ■ ■ ■ ■ · ■ · ·
    /// ■ · ■ ■ ■ · · ■
    /// ■ · · ■ ■ ■ ■ ·
    /// ■ · · · ■ ■ ■ ■
    /// ■ · ■ · · ■ ■ ■
    /// ■ · · · ■ · ■ ■
    /// ");
    /// # Ok::<(), foveal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the block is 0, the window even, or there are not as many blocks as each is to see.
    pub fn big_bird(tokens: usize, sizes: BigBird) -> Result<Self, Error> {
        let BigBird { block, window, global_start, global_end, random, seed } = sizes;
        check_block(block)?;
        if window.is_multiple_of(2) {
            let fits = format!("odd, such as {}: as many blocks before a block as after it", window.saturating_add(1));
            return Err(Error::Fit { what: "BigBird's window", got: window, fits });
        }
        let blocks = tokens.div_ceil(block);
        let wanted = [window, global_start, global_end, random].into_iter().fold(0, usize::saturating_add);
        if wanted > blocks && tokens > 0 {
            let fits =
                format!("at most {blocks}, as {tokens} tokens have blocks of {block}; take smaller blocks or fewer");
            return Err(Error::Fit { what: "the number of blocks that a block of BigBird sees", got: wanted, fits });
        }
        let is_global = |n: usize| n < global_start || n >= blocks - global_end;
        let mut drawn = (0..).map(|n: u64| mix64(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
        let rows = (0..blocks).map(|row| {
            if is_global(row) {
                return (0..blocks).collect();
            }
            let near = row.saturating_sub(window / 2)..(row + window / 2 + 1).min(blocks);
            let mut seen: Vec<usize> = near.chain(0..global_start).chain(blocks - global_end..blocks).collect();
            seen.sort_unstable();
            seen.dedup();
            // The n-th of the blocks not seen yet, in place of trying until one is new.
            for _ in 0..random {
                let mut n = (drawn.next().unwrap_or(0) % (blocks - seen.len()) as u64) as usize;
                let place = seen.iter().position(|s| {
                    let free = n < *s;
                    n += usize::from(!free);
                    free
                });
                seen.insert(place.unwrap_or(seen.len()), n);
            }
            seen
        });
        let lists = Lists::new(block, rows.collect::<Vec<Vec<usize>>>())?;
        Ok(Pattern { pieces: [Piece::Lists(lists)].into(), extent: Extent::Within(tokens) })
    }

    /// Swin's windows (Liu 2021) on an image of `grid` = (height, width) tokens, which lie row by row: a token sees those of
    /// its window of `window` = (height, width) tokens. Every second layer moves the windows by `shift`, half a window.
    ///
    /// Swin rolls the image and masks what the roll has put side by side although it is not. What remains visible are
    /// windows that start at the shift, cut off at the borders of the image; here they are just that, and nothing is rolled.
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
                    Some(n) => format!("a multiple of the window's {size}: {} or {}", n * size, (n + 1) * size),
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

    /// Texts of these lengths, one after the other in one sequence: each sees itself and none of the others. So a batch of texts
    /// of different lengths needs no padding.
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
    #[must_use]
    pub fn or(self, other: Pattern) -> Self {
        let pieces = self.pieces.iter().chain(&*other.pieces).cloned().collect();
        let extent = match (self.extent, other.extent) {
            (Extent::Any, other) => other,
            (one, Extent::Any) => one,
            (Extent::Exactly(n), Extent::Exactly(m) | Extent::Within(m)) | (Extent::Within(m), Extent::Exactly(n)) => {
                // If they contradict each other no number of tokens fits, and the call says so.
                if n <= m { Extent::Exactly(n) } else { Extent::Within(m) }
            }
            (Extent::Within(n), Extent::Within(m)) => Extent::Within(n.min(m)),
        };
        Pattern { pieces, extent }
    }

    /// Whether a query that stands at `position` sees `key`.
    pub fn visible(&self, position: usize, key: usize) -> bool {
        isize::try_from(position).is_ok_and(|position| self.sees(position, key))
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

    /// The first position after this one from which on a row may look otherwise, but for moving with its position.
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
