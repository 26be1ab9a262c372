// 보이는 점수만의 소프트맥스입니다. 가린 키는 정확히 0이고, 모두 가려져 있으면 모두 0입니다.

pub fn masked_softmax(scores: &[f64], visible: &[bool]) -> Vec<f64> {
    todo!("점수 {}개, 그 가운데 {}개가 보입니다", scores.len(), visible.iter().filter(|v| **v).count())
}
