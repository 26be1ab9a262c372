// Softmax: positive weights that add up to 1, larger for larger scores.

pub fn softmax(scores: &[f64]) -> Vec<f64> {
    todo!("the weights of these {} scores", scores.len())
}
