pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let max = scores.iter().fold(f64::MIN, |max, score| max.max(*score));
    scores.iter().map(|score| (score - max).exp()).collect()
}
