// What is kept of a row while its keys come in tiles.

pub struct Running {
    pub max: f64, // the largest score so far; −∞ at the start
    pub sum: f64, // Σ e^(s − max)
    pub mix: f64, // Σ e^(s − max)·v
}

impl Running {
    // One more tile: a score and a value for each of its keys.
    pub fn add(&mut self, scores: &[f64], values: &[f64]) {
        todo!("{} keys come to a sum of {}, {} values", scores.len(), self.sum, values.len())
    }
}
