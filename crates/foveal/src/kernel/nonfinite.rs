//! NaN and ∞ in a right operand whose rows are not seen by all.
//!
//! A hidden weight is an exact 0, but 0·NaN is NaN. So where some pairs of a tile may be hidden, its values that are not finite
//! are taken out, with 0 in their place, and each is added by hand to the rows that see it. A row that sees none of them gets
//! the same sums in the same order as without them, to the bit: 0·0 is what 0·x is for any finite x.

use super::gemm::{PANEL, Right};
use super::pack;
use super::simd::Simd;

/// A value that is not finite.
#[derive(Clone, Copy, Debug)]
pub struct Stray {
    /// Counted from the first packed row.
    pub row: usize,
    pub column: usize,
    pub value: f32,
}

/// Takes the values that are not finite out of `rows` rows packed by [`pack::rows`], and lists them in order.
#[inline(always)]
pub fn take_out<S: Simd>(_: S, packed: &mut [f32], rows: usize, columns: usize, strays: &mut Vec<Stray>) {
    strays.clear();
    if pack::all_finite(packed) {
        return;
    }
    let width = PANEL * S::LANES;
    for row in 0..rows {
        for column in 0..columns {
            let value = &mut packed[column / width * width * rows + row * width + column % width];
            if !value.is_finite() {
                strays.push(Stray { row, column, value: *value });
                *value = 0.0;
            }
        }
    }
}

/// A tile that was packed as rows, without its strays.
#[inline(always)]
pub fn right<S: Simd>(_: S, packed: &[f32], rows: usize, columns: usize) -> Right<'_> {
    let width = PANEL * S::LANES;
    Right { data: &packed[..columns.div_ceil(width) * width * rows], panel: width * rows, step: width }
}
