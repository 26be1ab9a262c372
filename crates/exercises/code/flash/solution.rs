pub struct Running {
    pub max: f64,
    pub sum: f64,
    pub mix: f64,
}

impl Running {
    pub fn add(&mut self, scores: &[f64], values: &[f64]) {
        let max = scores.iter().fold(self.max, |max, score| max.max(*score));
        let factor = (self.max - max).exp();
        self.sum *= factor;
        self.mix *= factor;
        for (score, value) in scores.iter().zip(values) {
            let e = (score - max).exp();
            self.sum += e;
            self.mix += e * value;
        }
        self.max = max;
    }
}
