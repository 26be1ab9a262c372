//! The arithmetic of one weight, from q·k to its share of the output.

use foveal::reference::{self, Row, row};
use ndarray::{Array1, Axis, s};

use super::LayerTrace;
use crate::layer::BoundAttention;
use crate::{Error, Result};

/// Every step on the way to one weight and from it to the output, in f64:
///
/// $$ q \cdot k \;\to\; \text{scale} \cdot q \cdot k \;\to\; s \;\to\; e^{s - m} \;\to\;
///    w = \frac{e^{s - m}}{\sum_j e^{s_j - m}} \;\to\; w\, v\, W_o $$
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// q·k.
    pub product: f64,
    /// scale.
    pub scale: f64,
    /// scale·q·k. In linear and additive attention the score itself, which comes about otherwise.
    pub scaled: f64,
    /// s: after softcap and bias; −∞ where a mask hides the key.
    pub score: f64,
    /// Whether the query may see the key.
    pub visible: bool,
    /// m, the largest score of the row.
    pub max: f64,
    /// e^(s − m), or 0 where hidden.
    pub exp: f64,
    /// Σ e^(sⱼ − m) over the row.
    pub sum: f64,
    /// w. 0 in a row that sees nothing.
    pub weight: f64,
    /// ‖v·W_o‖: how much there is to be seen at this key; none in a trace without values or W_o.
    pub norm: Option<f32>,
    /// w·v·W_o: what this key adds to this query's output, \[D\]; none in a trace without values or W_o.
    pub share: Option<Array1<f32>>,
}

impl LayerTrace {
    /// How the weight of query `i` on key `j` comes about, and what it does.
    ///
    /// # Errors
    /// If there is no such sequence, head, query or key.
    pub fn cell(&self, sequence: usize, head: usize, i: usize, j: usize) -> Result<Cell> {
        let row = match &self.attention {
            BoundAttention::Softmax(attention) => {
                row(attention, self.q.to_f32().view(), self.k.to_f32().view(), (sequence, head), i)?
            }
            _ => self.row(sequence, head, i)?,
        };
        let limit = row.cells.len();
        let outside = foveal::Error::Range { what: "columns", start: j, end: j.saturating_add(1), limit };
        let cell = row.cells.get(j).ok_or(outside)?;
        let (share, norm) = match self.transformed_keys(sequence, head, j..j + 1) {
            Err(Error::NotTraced { .. }) => (None, None),
            transformed => {
                let f = transformed?.index_axis_move(Axis(0), 0);
                let norm = f.dot(&f).sqrt();
                (Some(f * cell.weight as f32), Some(norm))
            }
        };
        Ok(Cell {
            product: cell.product,
            scale: row.scale,
            scaled: cell.scaled,
            score: cell.score,
            visible: cell.visible,
            max: row.max,
            exp: cell.exp,
            sum: row.sum,
            weight: cell.weight,
            norm,
            share,
        })
    }

    /// The same steps where the score is not scale·q·k: it is then what its weight says, s = ln w + lse.
    fn row(&self, sequence: usize, head: usize, i: usize) -> Result<Row> {
        let weights = self.tile(sequence, head, i..i.saturating_add(1), 0..self.keys())?;
        let (lse, group) = (self.lse[[sequence, head, i]], self.heads() / self.k.dim().1);
        let (q, k) = (self.q.to_f32(), self.k.to_f32());
        let q = q.slice(s![sequence, head, i, ..]);
        let cells = weights.iter().enumerate().map(|(j, &weight)| {
            let product = f64::from(q.dot(&k.slice(s![sequence, head / group, j, ..])));
            let (weight, score) = (f64::from(weight), f64::from(weight).ln() + lse);
            reference::Cell { product, scaled: score, score, visible: weight > 0.0, exp: 0.0, weight }
        });
        let mut row = Row { scale: 1.0, max: f64::NEG_INFINITY, sum: 0.0, cells: cells.collect() };
        row.max = row.cells.iter().fold(row.max, |max, cell| max.max(cell.score));
        row.cells.iter_mut().filter(|cell| cell.visible).for_each(|cell| cell.exp = (cell.score - row.max).exp());
        row.sum = row.cells.iter().map(|cell| cell.exp).sum();
        Ok(row)
    }
}
