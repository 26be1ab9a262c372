// 키가 타일로 나뉘어 오는 동안 한 행에서 담아 두는 것입니다.

pub struct Running {
    pub max: f64, // 지금까지 가장 큰 점수. 처음에는 −∞
    pub sum: f64, // Σ e^(s − max)
    pub mix: f64, // Σ e^(s − max)·v
}

impl Running {
    // 타일 하나 더: 키마다 점수와 값이 하나씩 있습니다.
    pub fn add(&mut self, scores: &[f64], values: &[f64]) {
        todo!("합 {}에 키 {}개, 값 {}개가 더 옵니다", self.sum, scores.len(), values.len())
    }
}
