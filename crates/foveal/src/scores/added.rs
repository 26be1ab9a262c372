//! What the options make of a score before the mask: softcap, score function, bias.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::distances::Distances;
use super::{At, Scores};
use crate::attention::Attention;
use crate::bias::{Kind, Swin};
use crate::kernel::rows::KEYS;
use crate::kernel::simd::Simd;
use crate::kernel::{options, precise};
use crate::score::ScoreRow;

impl<'a> Scores<'a> {
    /// Whether a score is more than scale·q·k, the mask aside.
    #[inline(always)]
    pub fn changes(&self) -> bool {
        let Attention { softcap, function, bias, .. } = self.attention;
        softcap.is_some() || function.is_some() || !matches!(bias.kind, Kind::None)
    }

    /// Whether the way back needs the scores as they are before the score function.
    pub fn bends(&self) -> bool {
        self.attention.softcap.is_some() || self.attention.function.is_some()
    }

    pub fn bias(&self) -> &'a Kind {
        &self.attention.bias.kind
    }

    /// Whether the gradient of the bias is wanted.
    pub fn learns_bias(&self) -> bool {
        self.attention.bias.learned && !matches!(self.attention.bias.kind, Kind::None)
    }

    /// Whether ds is collected by what shares a bias: for its gradient, or because the bias depends on q.
    #[inline(always)]
    pub fn collects_bias(&self) -> bool {
        self.learns_bias() || matches!(self.attention.bias.kind, Kind::Shaw(_))
    }

    /// Shaw's table for head h: [distances, D].
    pub fn shaw_table(&self, h: usize) -> Option<ArrayView2<'a, f32>> {
        let attention: &'a Attention = self.attention;
        match &attention.bias.kind {
            Kind::Shaw(table) => {
                let head = if table.dim().0 == 1 { 0 } else { h };
                Some(table.view().index_axis_move(Axis(0), head))
            }
            _ => None,
        }
    }

    /// The number of distances that Shaw's table tells apart; 0 without one.
    pub fn shaw_distances(&self) -> usize {
        match &self.attention.bias.kind {
            Kind::Shaw(table) => table.dim().1,
            _ => 0,
        }
    }

    /// Whether there is a softcap.
    #[inline(always)]
    pub fn caps(&self) -> bool {
        self.attention.softcap.is_some()
    }

    /// Turns a row of scale·q·k, whole vectors long, into cap·tanh(·/cap).
    #[inline(always)]
    pub fn cap<S: Simd>(&self, simd: S, row: &mut [f32]) {
        if let Some(cap) = self.attention.softcap {
            options::cap(simd, row, cap);
        }
    }

    /// Whether gradients of a row with this log-sum-exp are computed from scores in f64; see [`precise`]. A bias that is learned
    /// multiplies their errors, with distances or by summing over all rows, and before a softcap q·k may be much larger than the
    /// score. What a score function makes of them is f32; and of a part of a larger call not all the keys are known.
    #[inline(always)]
    pub fn is_precise(&self, lse: f64) -> bool {
        let Attention { function, part, .. } = self.attention;
        let large = self.learns_bias() || self.caps() || lse.abs() >= precise::LARGE;
        large && lse.abs() < precise::HUGE && function.is_none() && part.is_none()
    }

    /// Applies the score function to the scores of query i on the keys from `first` on.
    #[inline(always)]
    pub fn apply_function(&self, at: At, first: usize, row: &mut [f32]) {
        if let Some(function) = &self.attention.function {
            function.apply(self.row(at, first), row);
        }
    }

    /// ds ⟵ what it is before score function and softcap. `bent` are the scores between the two.
    #[inline(always)]
    pub fn unbend(&self, at: At, first: usize, bent: &[f32], ds: &mut [f32]) {
        if let Some(function) = &self.attention.function {
            function.gradient(self.row(at, first), bent, ds);
            function.backward(self.row(at, first), bent, ds);
        }
        if let Some(cap) = self.attention.softcap {
            ds.iter_mut().zip(bent).for_each(|(ds, s)| *ds *= 1.0 - (s / cap) * (s / cap));
        }
    }

    /// What a score function is told.
    fn row(&self, (b, h, i): At, first: usize) -> ScoreRow {
        ScoreRow {
            batch: b + self.part.batch,
            head: h + self.part.head,
            query: self.query_in_whole(i),
            position: self.position(b, i) + self.part.keys,
            first_key: self.key_in_whole(first),
        }
    }

    /// Adds the bias of query i on the keys from `first` on. `relative` holds Shaw's scale·q·a of this row.
    #[inline(always)]
    pub fn add_bias<S: Simd>(&self, simd: S, at: At, first: usize, relative: &[f32], row: &mut [f32]) {
        let (b, h, i) = at;
        match &self.attention.bias.kind {
            Kind::None => {}
            Kind::Alibi(alibi) => {
                options::subtract_distance(simd, row, alibi.slope(b, h), self.alibi_distance(b, i, first));
            }
            Kind::T5(t5) => {
                let table = t5.by_distance.row(h).to_slice().expect("made in standard layout");
                self.distances(b, i, first, row.len(), table.len()).add(simd, table, row);
            }
            Kind::Shaw(_) => self.distances(b, i, first, row.len(), relative.len()).add(simd, relative, row),
            Kind::Swin(swin) => {
                let table = swin.by_distance.as_slice().expect("made in standard layout");
                let table = &table[h * swin.distances()..(h + 1) * swin.distances()];
                let mut n = 0;
                while n < row.len() {
                    let (entries, distances) = self.swin_row(swin, (b, i), first + n, row.len() - n);
                    distances.add(simd, &table[entries], &mut row[n..n + distances.len]);
                    n += distances.len;
                }
            }
            Kind::Dense(_) => options::add(simd, row, &self.dense_bias(at).expect("it is dense")[first..]),
        }
    }

    /// [`add_bias`](Scores::add_bias) to at most [`KEYS`] scores in f64.
    #[inline(always)]
    pub fn add_bias_to_sums<S: Simd>(&self, simd: S, at: At, first: usize, relative: &[f32], sums: &mut [f64]) {
        match &self.attention.bias.kind {
            Kind::None => {}
            Kind::Alibi(alibi) => {
                let (slope, start) = (f64::from(alibi.slope(at.0, at.1)), self.alibi_distance(at.0, at.2, first));
                let far = |n: usize| (f64::from(start) + n as f64).abs();
                sums.iter_mut().enumerate().for_each(|(n, sum)| *sum -= slope * far(n));
            }
            _ => {
                let mut bias = [0.0; KEYS];
                let bias = &mut bias[..sums.len()];
                self.add_bias(simd, at, first, relative, bias);
                sums.iter_mut().zip(&*bias).for_each(|(sum, bias)| *sum += f64::from(*bias));
            }
        }
    }

    /// How the keys `first..first + len` spread over a table of clipped distances.
    #[inline(always)]
    pub fn distances(&self, b: usize, i: usize, first: usize, len: usize, table: usize) -> Distances {
        Distances::new(first as isize - self.position(b, i), len, table)
    }

    /// How the keys from `first` on, up to the end of their row of the image and at most `len`, spread over a row of Swin's
    /// table; and where that row is.
    #[inline(always)]
    pub fn swin_row(&self, swin: &Swin, (b, i): (usize, usize), first: usize, len: usize) -> (Range<usize>, Distances) {
        let (width, table) = (swin.grid.1, 2 * swin.window.1 - 1);
        // Within the image, as was checked.
        let position = (self.position(b, i) + self.part.keys) as usize;
        let first = self.key_in_whole(first) as usize;
        let (down, right) = (
            (first / width) as isize - (position / width) as isize,
            (first % width) as isize - (position % width) as isize,
        );
        let reach = swin.window.0 as isize - 1;
        let row = (down.clamp(-reach, reach) + reach) as usize;
        (row * table..(row + 1) * table, Distances::new(right, len.min(width - first % width), table))
    }

    /// ALiBi's distance of query i from the keys `first`, `first + 1`, …
    #[inline(always)]
    pub fn alibi_distance(&self, b: usize, i: usize, first: usize) -> f32 {
        (first as isize - self.position(b, i)) as f32
    }
}
