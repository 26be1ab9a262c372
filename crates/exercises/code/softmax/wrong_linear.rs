pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let sum: f64 = scores.iter().sum();
    scores.iter().map(|score| score / sum).collect()
}
