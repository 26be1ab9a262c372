// Softmax over the visible scores alone. Hidden keys get exactly 0; if every key is hidden, all get 0.

pub fn masked_softmax(scores: &[f64], visible: &[bool]) -> Vec<f64> {
    todo!("{} scores, {} of them visible", scores.len(), visible.iter().filter(|v| **v).count())
}
