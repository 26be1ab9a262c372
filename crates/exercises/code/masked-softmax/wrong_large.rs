pub fn masked_softmax(scores: &[f64], visible: &[bool]) -> Vec<f64> {
    let scores: Vec<f64> = scores.iter().zip(visible).map(|(s, v)| if *v { *s } else { s - 1e9 }).collect();
    let max = scores.iter().fold(f64::NEG_INFINITY, |max, score| max.max(*score));
    let exponentials: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|e| e / sum).collect()
}
