// 소프트맥스: 모두 양수이고 더해서 1이며, 점수가 클수록 큰 가중치입니다.

pub fn softmax(scores: &[f64]) -> Vec<f64> {
    todo!("점수 {}개의 가중치", scores.len())
}
