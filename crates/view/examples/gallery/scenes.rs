//! Every scene.

use foveal_view::{Bars, Chart, Compare, Error, Grid, Heatmap, Language, Lines, Map, Patches, Scene, Steps};
use ndarray::Array2;

use crate::sample::{tokens, weights};

pub fn scenes(language: Language, count: usize) -> Result<Vec<(&'static str, Scene)>, Error> {
    let ko = language == Language::Korean;
    let say = |en: &'static str, ko_text: &'static str| if ko { ko_text } else { en };
    let t = tokens(language, count);
    let causal = weights(count, count, 2, true);
    let note = say("gallery · layer 3 · head 2", "갤러리 · 3층 · 헤드 2");
    let source: Vec<String> = tokens(Language::English, count * 4 / 3 + 1);
    let heads: Vec<_> = (0..12).map(|h| weights(count, count, h, true)).collect();
    let layers: Vec<Vec<_>> =
        (0..6).map(|l| (0..8).map(|h| weights(count, count, l * 5 + h, l % 2 == 0)).collect()).collect();
    let named = |h: usize| (format!("{} {h}", say("Head", "헤드")), weights(count, count, h, false));
    let query = count * 2 / 3;
    Ok(vec![
        (
            "heatmap",
            Heatmap::new(causal.clone(), t.clone(), t.clone())?
                .title(say("Causal self-attention", "인과적 셀프 어텐션"))
                .note(note)
                .language(language)
                .into(),
        ),
        (
            "alignment",
            Heatmap::alignment(weights(count, source.len(), 0, false), t.clone(), source)?
                .title(say("Cross-attention", "교차 어텐션: 번역의 정렬"))
                .language(language)
                .into(),
        ),
        (
            "bars",
            Bars::of_row(&causal, query, t.clone())?
                .token(query)
                .title(say("What one token attends to", "한 토큰이 보는 곳"))
                .note(note)
                .language(language)
                .into(),
        ),
        ("heads", Grid::heads(heads)?.title(say("All heads of layer 3", "3층의 모든 헤드")).language(language).into()),
        (
            "layers",
            Grid::layers(layers)?.title(say("All layers and heads", "모든 층과 헤드")).language(language).into(),
        ),
        (
            "lines",
            Lines::new(causal.clone(), t.clone(), t.clone())?
                .title(say("One head", "한 헤드"))
                .language(language)
                .into(),
        ),
        (
            "lines-heads",
            Lines::heads((0..3).map(named).collect(), t.clone(), t.clone())?
                .token(query)
                .title(say("Three heads, one token", "세 헤드, 한 토큰"))
                .language(language)
                .into(),
        ),
        (
            "compare",
            Compare::new(
                (say("before", "전"), weights(count, count, 2, true)),
                (say("after", "후"), weights(count, count, 3, true)),
                t.clone(),
                t,
            )?
            .title(say("Before and after training", "훈련 전과 후"))
            .language(language)
            .into(),
        ),
    ])
}

pub fn charts() -> Result<Vec<(&'static str, Scene)>, Error> {
    let loss = |rate: f64, floor: f64| {
        (0..=200).map(move |i| {
            let step = f64::from(i) * 10.0;
            (step, floor + 3.2 * (-step / rate).exp() + 0.05 * (step / 37.0).sin())
        })
    };
    let power = |c: f64, p: f64| (7..=14).map(move |e| (2f64.powi(e), c * 2f64.powi(e).powf(p)));
    let digit = Array2::from_shape_fn((28, 28), |(i, j)| {
        let (y, x) = (i as f32 - 13.5, j as f32 - 13.5);
        let ring = ((x * 1.4).hypot(y) - 9.0).abs();
        (1.4 - ring / 1.6).clamp(0.0, 1.0)
    });
    let patch = |k: usize| Array2::from_shape_fn((7, 7), |(i, j)| weights(49, 49, k, false)[[24, i * 7 + j]]);
    let map = Array2::from_shape_fn((512, 512), |(i, j)| {
        if j > i {
            return 0.0;
        }
        let (d, noise) = ((i - j) as f32, (((i * 73 + j * 151) as f32).sin() * 43758.547).fract().abs());
        let sink = if j < 3 { 0.6 } else { 0.0 };
        let stripe = if j % 61 == 7 { 0.05 } else { 0.0 };
        (0.5 * (-d / 9.0).exp() + sink + stripe + 0.0008) * (0.3 + 0.7 * noise)
    });
    Ok(vec![
        (
            "chart-loss",
            Chart::new("step", "loss")
                .series("training", loss(300.0, 1.4))
                .series("validation", loss(340.0, 1.62))
                .title("Training loss")
                .note("a small GPT on Shakespeare")
                .into(),
        ),
        (
            "chart-scaling",
            Chart::new("토큰 수", "초")
                .series("단순한 방법", power(2e-9, 2.0))
                .series("foveal", power(3.1e-10, 2.0))
                .series("선형 어텐션", power(4e-7, 1.0))
                .steps(Steps::Log, Steps::Log)
                .title("길이에 따른 시간")
                .language(Language::Korean)
                .into(),
        ),
        (
            "map",
            Map::new(map.clone(), 0..16_384, 0..16_384)?
                .title("16,384 tokens")
                .note("layer 7 · head 3 · each pixel is the largest of 32 × 32 weights")
                .into(),
        ),
        ("map-linear", Map::new(map, 0..16_384, 0..16_384)?.steps(Steps::Linear).title("16,384 tokens").into()),
        (
            "patches",
            Patches::grey(&digit, patch(1))?.query(3, 3).title("Attention over an image").note("7 × 7 patches").into(),
        ),
        (
            "patches-heads",
            Patches::grey(&digit, patch(0))?
                .name("헤드 0")
                .and("헤드 1", patch(1))?
                .and("헤드 2", patch(2))?
                .and("헤드 3", patch(3))?
                .title("이미지 위의 어텐션")
                .language(Language::Korean)
                .into(),
        ),
    ])
}
