//! Forward: one block of query rows against a range of keys.
//!
//! Softmax over a row needs the row's maximum m and the sum ℓ of exp(s − m) before it can weigh the values. Taking the
//! keys in tiles, both can be kept up to date instead. If (m, ℓ, a) describe the keys so far, with a = Σ exp(s − m)·v, then
//! after another tile with maximum m′ and the sums ℓ′, a′ taken with the new maximum m″ = max(m, m′):
//!
//! ```text
//! m ⟵ m″        ℓ ⟵ exp(m − m″)·ℓ + ℓ′        a ⟵ exp(m − m″)·a + a′
//! ```
//!
//! since exp(s − m″) = exp(m − m″)·exp(s − m). At the end out = a/ℓ and lse = m + ln ℓ. Nothing n × n is ever stored:
//!
//! ```text
//! for each tile of 256 keys that some row sees    (see `plan.rs`)
//!   pack K as columns, scaled, and V as rows       once for the block's up to 480 rows
//!   for each group of 12 rows
//!     S ⟵ Q·Kᵀ over the keys the group sees        12 × 256, in L1
//!     softcap, bias, mask                          row by row, only where they change something
//!     m, ℓ, and S ⟵ exp(S − m)
//!     a ⟵ a + S·V
//! out ⟵ a/ℓ
//! ```
//!
//! A hidden weight is an exact 0, but 0·NaN is NaN: where a tile is partly hidden and its values are not all finite, S·V
//! is summed over the visible pairs one by one.

use std::ops::Range;

use ndarray::ArrayView4;

use super::gemm::{Left, MAX_ROWS, Out, PANEL, Right, Store};
use super::matrix::{Matrix, Rows};
use super::rows::{self, Block, KEYS, STRIDE};
use super::simd::Simd;
use super::{Kernel, pack, softmax};
use crate::scores::{Scores, View};
use crate::scratch::{LINE, Slot};

/// Rows up to which the values are read as they lie, if they lie well: packing them would not pay.
const FEW: usize = 4 * MAX_ROWS;

/// One block of rows against the keys `keys`.
pub struct Forward<'a> {
    pub q: &'a ArrayView4<'a, f32>,
    pub k: Matrix<'a>,
    pub v: Matrix<'a>,
    pub scores: Scores<'a>,
    pub block: Block,
    pub keys: Range<usize>,
    /// Whether there are so few rows that packing the keys would cost more than it saves.
    pub thin: bool,
    pub slot: &'a mut Slot,
    pub out: Rows<'a>,
    pub lse: Rows<'a>,
    /// Where the block's sequence lies in `out` and `lse`.
    pub out_b: usize,
}

/// The parts of the scratch for blocks of `n` rows.
pub fn parts(scores: &Scores, n: usize, dim: usize, value_dim: usize) -> [usize; 8] {
    let wide = value_dim.next_multiple_of(2 * LINE);
    let keys = KEYS.min(scores.keys().next_multiple_of(2 * LINE));
    [
        n * dim,
        n * wide,
        keys * dim,
        keys * wide,
        MAX_ROWS.min(n) * STRIDE,
        (1 + LINE) * n,
        n * rows::shaw_width(scores),
        (scores.shaw_distances().next_multiple_of(2 * LINE) * dim).max(dim),
    ]
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Forward { q, k, v, scores, block, keys, thin, slot, out, lse, out_b } = self;
        let (n, dim, wide) = (block.len(), k.cols(), v.cols().next_multiple_of(S::LANES));
        let Slot { memory, plan } = slot;
        let [q_copy, acc, k_packed, v_packed, s, state, relative, table] = memory.cut(parts(&scores, n, dim, v.cols()));
        let q = rows::gather(q, &block, q_copy);
        rows::relative(simd, &scores, &block, q, table, relative);
        let (max, sum) = state.split_at_mut(n);
        max.fill(f32::NEG_INFINITY);
        sum.fill(0.0);
        acc.fill(0.0);

        // Groups of the same size, rather than whole ones and a small rest.
        let size = n.div_ceil(n.div_ceil(S::ROWS).max(1)).max(1);
        plan.make(&scores, &block, size, &keys);
        while let Some(tile) = plan.next_tile::<S>(&scores, &block, 0, KEYS) {
            let in_place = v.block(tile.clone()).filter(|_| n <= FEW && v.cols().is_multiple_of(S::LANES));
            let values = match in_place {
                Some(data) => Right { data, panel: PANEL * S::LANES, step: v.cols() },
                None => pack::rows(simd, v, tile.clone(), 1.0, v_packed),
            };
            // No closure here: it would be compiled without the instruction set.
            let keys = if thin { None } else { Some(pack::columns(simd, k, tile.clone(), scores.scale, k_packed)) };
            let mut finite = None;
            for part in plan.parts() {
                let group = part.rows.clone();
                let r0 = group.start;
                match keys {
                    None => {
                        let q = &q[r0 * dim..group.end * dim];
                        rows::thin_products(simd, q, k, scores.scale, part, table, s);
                    }
                    Some(keys) => {
                        // Packing the next tile must not wait for memory: each group asks for its share of it.
                        let ahead = tile.end + r0 * KEYS / n..tile.end + group.end * KEYS / n;
                        k.prefetch(simd, ahead.clone());
                        v.prefetch(simd, ahead);
                        let left = Left { data: &q[r0 * dim..], row: dim, step: 1 };
                        let s = Out { data: s, row: STRIDE };
                        rows::products(simd, left, group.len(), keys, tile.start, part, s);
                    }
                }

                let span = part.len.next_multiple_of(S::LANES);
                let mut tile_max = [f32::NEG_INFINITY; MAX_ROWS];
                for r in group.clone() {
                    let row = &mut s[(r - r0) * STRIDE..][..span];
                    rows::finish(simd, &scores, &block, r, part, rows::relative_row(&scores, relative, r), row, None);
                    tile_max[r - r0] = softmax::largest(simd, row);
                }
                for r in group.clone() {
                    let (old, new) = (max[r], max[r].max(tile_max[r - r0]));
                    max[r] = new;
                    // Before the first visible key there is nothing to bring over.
                    if new > old && old > f32::NEG_INFINITY {
                        softmax::scale(simd, &mut sum[r * S::LANES..(r + 1) * S::LANES], old - new);
                        softmax::scale(simd, &mut acc[r * wide..(r + 1) * wide], old - new);
                    }
                }
                for r in group.clone() {
                    let row = &mut s[(r - r0) * STRIDE..][..span];
                    softmax::exp(simd, row, max[r], &mut sum[r * S::LANES..(r + 1) * S::LANES]);
                    let (h, i) = block.at(r);
                    if let Some(dropout) = scores.dropout(block.b, h, i) {
                        dropout.apply(part.first, &mut row[..part.len]);
                    }
                }

                if wide == 0 {
                    continue;
                }
                let skip = part.first - tile.start;
                let acc = &mut acc[r0 * wide..];
                if part.view == View::Partial && finite.is_none() {
                    finite = Some(pack::all_finite(values.data));
                }
                if part.view == View::Partial && finite == Some(false) {
                    for r in group.clone() {
                        let (h, i) = block.at(r);
                        for j in (0..part.len).filter(|j| scores.visible(block.b, h, i, part.first + j)) {
                            let weight = s[(r - r0) * STRIDE + j];
                            (0..v.cols()).for_each(|d| acc[(r - r0) * wide + d] += weight * v.get(part.first + j, d));
                        }
                    }
                } else {
                    let weights = Left { data: s, row: STRIDE, step: 1 };
                    let values = Right { data: &values.data[skip * values.step..], ..values };
                    if group.len() == 1 && in_place.is_some() {
                        simd.gemm_row((wide / S::LANES, part.len), s, values, acc);
                    } else {
                        let size = (group.len(), wide / S::LANES, part.len);
                        simd.gemm(size, weights, values, Out { data: acc, row: wide }, Store::Add);
                    }
                }
            }
        }

        for r in 0..n {
            sum[r] = softmax::total(simd, &sum[r * S::LANES..(r + 1) * S::LANES]);
        }
        let sum = &sum[..n];
        max.iter_mut()
            .zip(sum)
            .for_each(|(max, sum)| *max = if *sum == 0.0 { f32::NEG_INFINITY } else { *max + ln(*sum) });
        for r in 0..n {
            let acc = &mut acc[r * wide..][..wide];
            softmax::multiply(simd, acc, if sum[r] == 0.0 { 0.0 } else { 1.0 / sum[r] });
        }
        // SAFETY: each row belongs to one block, and each block to one task.
        unsafe {
            let together = block.heads.len() == 1 && wide == v.cols();
            match out.block(out_b, block.heads.start, block.rows.clone()).filter(|_| together) {
                Some(rows) => rows.copy_from_slice(&acc[..n * wide]),
                None => (0..n).for_each(|r| out.write(block.place(out_b, r), 0, &acc[r * wide..][..v.cols()])),
            }
            (0..n).for_each(|r| lse.write(block.place(out_b, r), 0, &max[r..=r]));
        }
    }
}

/// ln x for positive x, branch-free so that loops over it vectorise: error below 1e-7·max(1, |ln x|). NaN stays.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    // x = m·2ᵉ with m in [√½, √2); ln m = 2 artanh t with t = (m − 1)/(m + 1), |t| < 0.172.
    let bits = x.to_bits();
    let e = (bits.wrapping_sub(0x3f35_04f3) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((e as u32) << 23));
    let t = (m - 1.0) / (m + 1.0);
    let y = t * t;
    let artanh = t + t * y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * (1.0 / 7.0 + y * (1.0 / 9.0))));
    let value = e as f32 * std::f32::consts::LN_2 + 2.0 * artanh;
    if x < f32::INFINITY { value } else { x }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ln_is_exact_to_an_ulp() {
        let mut x = 1e-3f32;
        while x < 1e9 {
            let want = f64::from(x).ln();
            let error = (f64::from(super::ln(x)) - want).abs();
            assert!(error <= 1.2e-7 * want.abs().max(1.0), "ln {x}: error {error:e}");
            x *= 1.000_37;
        }
        assert!(super::ln(f32::NAN).is_nan());
        assert_eq!(super::ln(f32::INFINITY), f32::INFINITY);
    }
}
