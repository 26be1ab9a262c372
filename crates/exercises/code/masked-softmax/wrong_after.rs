pub fn masked_softmax(scores: &[f64], visible: &[bool]) -> Vec<f64> {
    let max = scores.iter().fold(f64::NEG_INFINITY, |max, score| max.max(*score));
    let exponentials: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().zip(visible).map(|(e, v)| if *v { e / sum } else { 0.0 }).collect()
}
