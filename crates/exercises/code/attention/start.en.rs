// Attention: softmax(Q·Kᵀ/√d)·V. Each row of q is a query, each row of k a key, and the same row of v its value.

pub fn attention(q: &[Vec<f64>], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<Vec<f64>> {
    q.iter().map(|query| attend(query, k, v)).collect()
}

// The output of one query.
fn attend(query: &[f64], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<f64> {
    todo!("{} entries, {} keys, {} values", query.len(), k.len(), v.len())
}
