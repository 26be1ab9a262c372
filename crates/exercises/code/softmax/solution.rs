pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let max = scores.iter().fold(f64::MIN, |max, score| max.max(*score));
    let exponentials: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|e| e / sum).collect()
}
