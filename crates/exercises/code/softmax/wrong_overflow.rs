pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let exponentials: Vec<f64> = scores.iter().map(|score| score.exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|e| e / sum).collect()
}
