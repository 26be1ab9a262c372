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
//!   pack K as columns, scaled, and V as rows       once for the block's up to 1,032 rows
//!   for each group of 12 rows
//!     S ⟵ Q·Kᵀ over the span the group sees        12 × 256, in L1
//!     softcap, score function, bias, mask          row by row, only where they change something
//!     m, ℓ, and S ⟵ exp(S − m)
//!     a ⟵ a + S·V
//! a sink σ, if there is one: a further key with score σ and no value
//! out ⟵ a/ℓ
//! ```
//!
//! A few rows (decoding) read keys and values as they lie: packing them would cost more than it saves.

use std::ops::Range;

use foveal_compute::scratch::{LINE, Memory};

use super::gemm::{Left, MAX_ROWS, Out, PANEL, Right, Store};
use super::matrix::Rows;
use super::nonfinite::{self, Stray};
use super::plan::Span;
use super::rows::{self, Block, KEYS, STRIDE, TileKeys};
use super::simd::Simd;
use super::softmax::Unit;
use super::source::Source;
use super::{Kernel, softmax};
use crate::scores::{At, Scores, View};
use crate::scratch::Slot;
use crate::tensor::{Output, Tensor};

/// Rows up to which the values are read as they lie, if they lie well: packing them would not pay.
const FEW: usize = 4 * MAX_ROWS;

/// One block of rows against the keys `keys`.
pub struct Forward<'a> {
    pub q: Tensor<'a>,
    pub k: Source<'a>,
    pub v: Source<'a>,
    pub scores: Scores<'a>,
    pub block: Block,
    pub keys: Range<usize>,
    pub slot: &'a mut Slot,
    pub results: Results<'a>,
}

/// Where the rows go.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    pub out: Output<'a>,
    pub lse: Rows<'a, f64>,
    /// Of results over a part of the keys, which are merged later: the sequence that they are written as. Sinks are left out.
    pub partial: Option<usize>,
}

impl Results<'_> {
    #[inline(always)]
    fn place(&self, scores: &Scores, (b, h, i): At) -> At {
        self.partial.map_or_else(|| scores.query_row((b, h, i)), |b| (b, h, i))
    }
}

/// Working memory for a block of rows.
struct Workspace<'w> {
    /// Queries, where they do not lie well.
    q: &'w mut [f32],
    /// Packed keys and values of a tile.
    k: &'w mut [f32],
    v: &'w mut [f32],
    /// Scores of a group.
    s: &'w mut [f32],
    /// Shaw's table, packed; or one key, where it does not lie well.
    table: &'w mut [f32],
    state: State<'w>,
}

/// What is known of every row so far.
struct State<'w> {
    max: &'w mut [f32],
    /// A vector for each row.
    sum: &'w mut [f32],
    /// Rows of `wide` values.
    acc: &'w mut [f32],
    wide: usize,
    /// Shaw's scale·q·a.
    relative: &'w mut [f32],
}

/// The lengths of the parts of [`Workspace`], for blocks of `n` rows.
pub fn memory(scores: &Scores, n: usize, dim: usize, value_dim: usize) -> [usize; 9] {
    let wide = value_dim.next_multiple_of(2 * LINE);
    let keys = KEYS.min(scores.most_keys().next_multiple_of(2 * LINE));
    [
        n * dim,
        keys * dim,
        keys * wide,
        MAX_ROWS.min(n) * STRIDE,
        (scores.shaw_distances().next_multiple_of(2 * LINE) * dim).max(dim),
        n,
        LINE * n,
        n * wide,
        n * rows::shaw_width(scores),
    ]
}

impl<'w> Workspace<'w> {
    fn cut(memory: &'w mut Memory, lengths: [usize; 9], wide: usize) -> Self {
        let [q, k, v, s, table, max, sum, acc, relative] = memory.cut(lengths);
        max.fill(f32::NEG_INFINITY);
        sum.fill(0.0);
        acc.fill(0.0);
        Workspace { q, k, v, s, table, state: State { max, sum, acc, wide, relative } }
    }
}

/// The values of a tile.
#[derive(Clone, Copy)]
enum Values<'t> {
    /// As a right operand, packed or as they lie.
    Operand(Right<'t>),
    /// To be read as they lie, in vectors.
    InPlace(Source<'t>),
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Forward { q, k, v, scores, block, keys, slot, results } = self;
        let (n, dim, value_dim) = (block.len(), k.cols(), v.cols());
        let Slot { memory: slot_memory, plan } = slot;
        let wide = value_dim.next_multiple_of(S::LANES);
        let Workspace { q: q_copy, k: k_packed, v: v_packed, s, table, mut state } =
            Workspace::cut(slot_memory, memory(&scores, n, dim, value_dim), wide);
        let mut strays = std::mem::take(&mut plan.strays);
        let (scale, rest) = rows::query_scale(&scores, &k);
        let q = rows::gather(simd, &q, (&scores, &block), scale, q_copy);
        rows::relative(simd, (&scores, &block), (q, rest), table, state.relative);
        let thin = scores.in_place(&k);

        // Groups of the same size, rather than whole ones and a small rest.
        let size = n.div_ceil(n.div_ceil(S::ROWS).max(1)).max(1);
        plan.make(&scores, &block, size, &keys);
        while let Some(tile) = plan.next_tile::<S>(&scores, &block, 0, KEYS) {
            let hides = plan.spans().iter().any(|span| span.view == View::Partial);
            let sound = !hides || thin && v.is_finite(tile.clone());
            let values = if thin && sound && v.lies_well(tile.clone()) {
                strays.clear();
                Values::InPlace(v)
            } else {
                Values::Operand(operand(simd, v, &tile, n <= FEW, hides, (&mut *v_packed, &mut strays)))
            };
            let keys = TileKeys::new(simd, &scores, k, &tile, k_packed);
            for span in plan.spans() {
                let r0 = span.rows.start;
                if !thin {
                    // Packing the next tile must not wait for memory: each group asks for its share of it.
                    let ahead = tile.end + r0 * KEYS / n..tile.end + span.rows.end * KEYS / n;
                    k.prefetch(simd, ahead.clone());
                    v.prefetch(simd, ahead);
                }
                keys.multiply(simd, &q[r0 * dim..], dim, span, Out { data: s, row: STRIDE });
                softmax(simd, &scores, &block, span, s, &mut state);
                if wide > 0 {
                    add_values(simd, (values, thin), &tile, span, s, &mut state);
                    add_strays(&scores, &block, &tile, (span, &strays), s, &mut state);
                }
            }
        }
        plan.strays = strays;
        write(simd, &scores, &block, value_dim, state, results);
    }
}

/// The values of a tile as a right operand. Where some pairs are hidden, values that are not finite are taken out of it.
#[inline(always)]
fn operand<'t, S: Simd>(
    simd: S,
    v: Source<'t>,
    tile: &Range<usize>,
    few: bool,
    hides: bool,
    (packed, strays): (&'t mut [f32], &mut Vec<Stray>),
) -> Right<'t> {
    strays.clear();
    let columns = v.cols();
    if !hides
        && few
        && columns.is_multiple_of(S::LANES)
        && let Some(data) = v.block(tile.clone())
    {
        return Right { data, panel: PANEL * S::LANES, step: columns };
    }
    v.packed_rows(simd, tile.clone(), 1.0, packed);
    if hides {
        let len = columns.next_multiple_of(PANEL * S::LANES) * tile.len();
        nonfinite::take_out(simd, &mut packed[..len], tile.len(), columns, strays);
    }
    nonfinite::right(simd, packed, tile.len(), columns)
}

/// Softcap, score function, bias and mask; the new maximum of each row; S ⟵ exp(S − m) and its sum; dropout.
#[inline(always)]
fn softmax<S: Simd>(simd: S, scores: &Scores, block: &Block, span: &Span, s: &mut [f32], state: &mut State) {
    let State { max, sum, acc, wide, relative } = state;
    let unit = scores.unit();
    let (r0, whole) = (span.rows.start, span.len.next_multiple_of(S::LANES));
    let mut tile_max = [f32::NEG_INFINITY; MAX_ROWS];
    for r in span.rows.clone() {
        let row = &mut s[(r - r0) * STRIDE..][..whole];
        let relative = rows::relative_row(scores, relative, r);
        rows::finish(simd, scores, block.at(r), (span, relative), row, None);
        tile_max[r - r0] = softmax::largest(simd, row);
    }
    for r in span.rows.clone() {
        let (old, new) = (max[r], max[r].max(tile_max[r - r0]));
        max[r] = new;
        // Before the first visible key there is nothing to bring over.
        if new > old && old > f32::NEG_INFINITY {
            softmax::scale(simd, &mut sum[r * S::LANES..(r + 1) * S::LANES], old - new, unit);
            softmax::scale(simd, &mut acc[r * *wide..(r + 1) * *wide], old - new, unit);
        }
    }
    for r in span.rows.clone() {
        let row = &mut s[(r - r0) * STRIDE..][..whole];
        softmax::exp(simd, row, max[r], &mut sum[r * S::LANES..(r + 1) * S::LANES], unit);
        scores.drop_weights(block.at(r), span.first, &mut row[..span.len]);
    }
}

/// a ⟵ a + S·V. Of few rows, the sums go on from tile to tile and from page to page, however the values are read.
#[inline(always)]
fn add_values<S: Simd>(
    simd: S,
    (values, thin): (Values, bool),
    tile: &Range<usize>,
    span: &Span,
    s: &[f32],
    state: &mut State,
) {
    let wide = state.wide;
    let weights = Left { data: s, row: STRIDE, step: 1 };
    let acc = Out { data: &mut state.acc[span.rows.start * wide..], row: wide };
    match values {
        Values::InPlace(v) => {
            v.add_product(simd, span.rows.len(), weights, span.first..span.first + span.len, acc);
        }
        Values::Operand(values) => {
            let values = Right { data: &values.data[(span.first - tile.start) * values.step..], ..values };
            let store = if thin { Store::Continue } else { Store::Add };
            simd.gemm((span.rows.len(), wide / S::LANES, span.len), weights, values, acc, store);
        }
    }
}

/// What was taken out of the values, for the rows that see it.
#[inline(always)]
fn add_strays(
    scores: &Scores,
    block: &Block,
    tile: &Range<usize>,
    (span, strays): (&Span, &[Stray]),
    s: &[f32],
    state: &mut State,
) {
    let keys = span.first..span.first + span.len;
    for stray in strays.iter().filter(|stray| keys.contains(&(tile.start + stray.row))) {
        let key = tile.start + stray.row;
        for r in span.rows.clone().filter(|r| scores.visible(block.at(*r), key)) {
            let weight = s[(r - span.rows.start) * STRIDE + key - span.first];
            state.acc[r * state.wide + stray.column] += weight * stray.value;
        }
    }
}

/// out = a/ℓ and lse = m + ln ℓ, with a sink's weight in ℓ.
#[inline(always)]
fn write<S: Simd>(simd: S, scores: &Scores, block: &Block, value_dim: usize, state: State, results: Results) {
    let State { max, sum, acc, wide, .. } = state;
    let n = block.len();
    for r in 0..n {
        sum[r] = softmax::total(simd, &sum[r * S::LANES..(r + 1) * S::LANES]);
    }
    for r in 0..n {
        let at = block.at(r);
        let sink = scores.sink(at.1).filter(|_| results.partial.is_none());
        let ended = End::new(max[r], sum[r], sink, scores.unit());
        let acc = &mut acc[r * wide..][..wide];
        softmax::multiply(simd, acc, ended.factor);
        // SAFETY: each row belongs to one block, and each block to one task.
        unsafe {
            results.out.write(results.place(scores, at), &acc[..value_dim]);
            results.lse.update(results.place(scores, at), 0, &[ended.lse], |_, lse| lse);
        }
    }
}

/// What becomes of a row at its end.
pub struct End {
    /// What a is multiplied with.
    pub factor: f32,
    pub lse: f64,
}

impl End {
    /// Of a row with maximum m and sum ℓ, and a sink.
    #[inline(always)]
    pub fn new(max: f32, sum: f32, sink: Option<f32>, unit: Unit) -> End {
        End::with_log(max, sum, ln(sum), sink, unit)
    }

    /// The same where ln ℓ is known.
    #[inline(always)]
    pub fn with_log(max: f32, sum: f32, log: f32, sink: Option<f32>, unit: Unit) -> End {
        // Nothing visible, or nothing that weighs anything.
        let none = sum == 0.0;
        let (max, log) = (unit.score(max), f64::from(log));
        let Some(sink) = sink.map(f64::from) else {
            let lse = if none { f64::NEG_INFINITY } else { max + log };
            return End { factor: if none { 0.0 } else { 1.0 / sum }, lse };
        };
        if none {
            return End { factor: 0.0, lse: sink };
        }
        let top = if sink > max { sink } else { max };
        let own = (max - top).exp();
        let all = own * f64::from(sum) + (sink - top).exp();
        End { factor: (own / all) as f32, lse: top + all.ln() }
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
