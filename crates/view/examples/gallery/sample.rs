//! Tokens and weights that look like a model's.

use foveal_view::Language;
use ndarray::Array2;

const ENGLISH: &str = "ROMEO : But soft , what light through yonder window breaks ? It is the east , and Juliet is the sun . Arise , fair sun , and kill";
const KOREAN: &str = "나는 어제 도서관 에서 책 을 읽 었 습니다 . 그 책 은 어텐션 이 무엇 인지 아주 쉽게 설명 하 고 있 었 고 그림 이 많 아서 좋 았";

pub fn tokens(language: Language, count: usize) -> Vec<String> {
    let text = if language == Language::Korean { KOREAN } else { ENGLISH };
    let words: Vec<&str> = text.split(' ').collect();
    let token = |i: usize| match i % words.len() {
        0 => words[0].to_string(),
        k if words[k].chars().all(|c| c.is_ascii_punctuation()) => words[k].to_string(),
        k => format!(" {}", words[k]),
    };
    (0..count).map(token).collect()
}

/// Weights that look like a head's: local, a sink, and a few far links; causal or not.
pub fn weights(rows: usize, cols: usize, head: usize, causal: bool) -> Array2<f32> {
    let mut w = Array2::from_shape_fn((rows, cols), |(i, j)| {
        let noise = ((i * 73 + j * 151 + head * 311) as f32).sin() * 43758.547;
        let noise = noise - noise.floor();
        let at = i as f32 * cols as f32 / rows as f32;
        let near = -(at - j as f32 - (head % 4) as f32).abs() / (0.8 + (head % 3) as f32 * 2.0);
        let sink = if j == 0 { 1.5 - (head % 5) as f32 } else { -3.0 };
        let far = if noise > 0.96 { 2.0 * noise } else { 0.0 };
        (near.max(sink) + far + noise).exp()
    });
    for (i, mut row) in w.outer_iter_mut().enumerate() {
        if causal {
            row.iter_mut().skip(i + 1).for_each(|weight| *weight = 0.0);
        }
        let sum = row.sum();
        row /= sum;
    }
    w
}
