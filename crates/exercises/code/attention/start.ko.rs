// 어텐션: softmax(Q·Kᵀ/√d)·V. q의 행은 쿼리, k의 행은 키, v의 같은 행은 그 키의 값입니다.

pub fn attention(q: &[Vec<f64>], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<Vec<f64>> {
    q.iter().map(|query| attend(query, k, v)).collect()
}

// 쿼리 하나의 출력.
fn attend(query: &[f64], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<f64> {
    todo!("성분 {}개, 키 {}개, 값 {}개", query.len(), k.len(), v.len())
}
