pub fn masked_softmax(scores: &[f64], visible: &[bool]) -> Vec<f64> {
    let seen = || scores.iter().zip(visible).filter(|(_, visible)| **visible).map(|(score, _)| *score);
    let max = seen().fold(f64::MIN, f64::max);
    let sum: f64 = seen().map(|score| (score - max).exp()).sum();
    let weight = |(score, visible): (&f64, &bool)| if *visible { (score - max).exp() / sum } else { 0.0 };
    scores.iter().zip(visible).map(weight).collect()
}
