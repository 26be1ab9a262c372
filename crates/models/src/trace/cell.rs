//! The arithmetic of one weight, from q·k to its share of the output.

use ndarray::Array1;

use super::LayerTrace;
use crate::Result;

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
    /// scale·q·k.
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
    /// w·v·W_o: what this key adds to this query's output, \[D\].
    pub share: Array1<f32>,
}

impl LayerTrace {
    /// How the weight of query `i` on key `j` comes about, and what it does.
    ///
    /// # Errors
    /// If there is no such sequence, head, query or key.
    pub fn cell(&self, sequence: usize, head: usize, i: usize, j: usize) -> Result<Cell> {
        let row = foveal::reference::row(&self.attention, &self.q, &self.k, (sequence, head), i)?;
        let limit = row.cells.len();
        let outside = foveal::Error::Range { what: "columns", start: j, end: j.saturating_add(1), limit };
        let cell = row.cells.get(j).ok_or(outside)?;
        let share = self.transformed_key(sequence, head, j)? * cell.weight as f32;
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
            share,
        })
    }
}
