//! BigBird's pattern: near, global and random blocks.

use super::piece::{Lists, Piece};
use super::{Extent, Pattern, check_block};
use crate::Error;
use crate::dropout::mix64;

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

/// Blocks at most: every one of them has a list of those it sees.
const MAX_BLOCKS: usize = 1 << 20;

impl Pattern {
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
    /// If the block is 0, the window even, there are fewer blocks than each is to see, or more than 1,048,576.
    pub fn big_bird(tokens: usize, sizes: BigBird) -> Result<Self, Error> {
        let BigBird { block, window, global_start, global_end, random, seed } = sizes;
        check_block(block)?;
        if window.is_multiple_of(2) {
            let fits = format!("odd, such as {}: as many blocks before a block as after it", window.saturating_add(1));
            return Err(Error::Fit { what: "BigBird's window", got: window, fits });
        }
        let blocks = tokens.div_ceil(block);
        if blocks > MAX_BLOCKS {
            let fits = format!("at most {MAX_BLOCKS}; take blocks of {} or more", tokens.div_ceil(MAX_BLOCKS));
            return Err(Error::Fit { what: "the number of BigBird's blocks", got: blocks, fits });
        }
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
            // The n-th of the blocks not seen yet, instead of drawing until one is new.
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
}
