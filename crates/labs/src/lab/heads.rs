//! The same width, cut into more and more heads.

use foveal::{Attention, positional_encoding};
use foveal_models::layer::{Linear, MultiHeadAttention, Parameters, Projection, Random, Source};
use foveal_view::Grid;
use ndarray::{Array2, s};
use serde_json::json;

use crate::clock;
use crate::number::{grouped, rows};
use crate::{Bilingual, Error, Knob, Knobs, Lab, Language, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "heads",
    title: Bilingual {
        en: "One head or many, at the same width", ko: "같은 너비, 하나의 헤드와 여러 헤드"
    },
    summary: Bilingual {
        en: "The width d_model is cut into h heads of d_k = d_model / h dimensions, and each head has weights of its own: \
         it can look elsewhere than the others. The parameters stay 4·d_model² and the multiplications stay the same; \
         only the softmax has h matrices to go over instead of one.",
        ko: "너비 d_model을 차원이 d_k = d_model / h인 헤드 h개로 나누면, 헤드마다 자기만의 가중치로 서로 다른 곳을 볼 수 있습니다. \
         매개변수는 4·d_model²개 그대로이고 곱셈 횟수도 같습니다. 소프트맥스만 행렬 하나가 아니라 h개를 처리합니다.",
    },
    knobs: &[DIMS, HEADS, TOKENS, SEED],
    work,
};

const DIMS: Knob = Knob::one("dims", Bilingual { en: "Width of the model", ko: "모델의 너비" }, 64, 1..=1024);
const HEADS: Knob = Knob::several(
    "heads",
    Bilingual { en: "Numbers of heads to try", ko: "시험할 헤드 수" },
    &[1, 2, 4, 8, 16],
    1..=64,
);
const TOKENS: Knob = Knob::one("tokens", Bilingual { en: "Tokens", ko: "토큰 수" }, 64, 1..=2048);
const SEED: Knob = Knob::seed();

/// Tokens of the picture at most.
const DRAWN: usize = 24;
/// Heads of the picture, if there is a choice.
const READABLE: usize = 8;

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (width, tokens) = (knobs.get_one(&DIMS), knobs.get_one(&TOKENS));
    let mut heads = knobs.get_several(&HEADS);
    if !knobs.has(&HEADS) {
        heads.retain(|heads| width.is_multiple_of(*heads));
    }
    let seed = knobs.get_seed(&SEED);
    if let Some(refused) = heads.iter().find(|heads| !width.is_multiple_of(**heads)) {
        let fit: Vec<String> = (1..=64).filter(|h| width.is_multiple_of(*h)).map(|h: usize| h.to_string()).collect();
        let (why, fit) = (refusal(width, *refused), fit.join(", "));
        return Err(Error::knob(
            format!("{why}; heads that fit: {fit}"),
            format!("너비 {width}은(는) 헤드 {refused}개로 나누어떨어지지 않습니다. 가능한 헤드 수: {fit}"),
        ));
    }
    let layers = heads.iter().map(|&heads| Ok(layer(width, heads, seed)?)).collect::<Result<Vec<_>>>()?;
    let x = input(tokens, width, seed)?;
    let attention = Attention::new();
    let mut works: Vec<clock::Work> = Vec::new();
    for layer in &layers {
        works.push(Box::new(|| layer.infer(&x, 1, Source::Own, &attention).map(drop).map_err(Into::into)));
    }
    let times = clock::fastest(&mut works)?;
    drop(works);

    // Four projections, q·k and p·v.
    let operations = (8 * tokens * width * width + 4 * tokens * tokens * width) as u128;
    let counted = grouped(tokens as u128);
    let mut table = Table::new([
        text("heads", "헤드 수"),
        "d_k".into(),
        text("parameters", "매개변수"),
        text("matrix FLOP", "행렬 FLOP"),
        text("measured µs", "측정 시간 µs"),
        text("times one head", "헤드 하나 대비"),
    ])
    .title(text(format!("d_model = {width}, {counted} tokens"), format!("d_model = {width}, 토큰 {counted}개")));
    let mut figures = Vec::new();
    for (layer, time) in layers.iter().zip(&times) {
        let ratio = time / times[0];
        table.row([
            layer.heads().to_string(),
            layer.head_dim().to_string(),
            grouped(layer.parameter_count() as u128),
            grouped(operations),
            format!("{:.1}", 1e6 * time),
            if layers[0].heads() == 1 { format!("{ratio:.2}") } else { "–".into() },
        ]);
        let (_, record) = layer.infer(x.slice(s![..tokens.min(DRAWN), ..]), 1, Source::Own, &attention)?;
        let weights = record.weights()?;
        let weights: Vec<Array2<f32>> =
            (0..layer.heads()).map(|h| weights.slice(s![0, h, .., ..]).to_owned()).collect();
        figures.push((layer, *time, weights));
    }
    let odd = (2..).find(|heads| !width.is_multiple_of(*heads)).unwrap_or(3);
    let mut refused =
        Table::new([text(format!("{odd} heads of {width} dimensions?"), format!("너비 {width}에 헤드 {odd}개?"))]);
    refused.row([refusal(width, odd)]);

    let drawn = figures.iter().rev().find(|(layer, ..)| layer.heads() <= READABLE);
    let (layer, _, drawn) = drawn.unwrap_or(&figures[0]);
    let count = layer.heads();
    let title =
        text(format!("{count} heads, each with weights of its own"), format!("헤드 {count}개, 저마다의 가중치"));
    let draw = |language: Language| {
        let note = ("the first tokens, by a layer that has learned nothing yet", "앞쪽 토큰들, 아직 학습하지 않은 층");
        Ok(Grid::heads(drawn.clone())?
            .title(title.get(language))
            .note(language.choose(note.0, note.1))
            .language(language))
    };
    let figures = figures.iter().map(|(layer, time, weights)| {
        json!({
            "heads": layer.heads(), "d_k": layer.head_dim(), "parameters": layer.parameter_count(),
            "operations": operations, "microseconds": 1e6 * time,
            "weights": weights.iter().map(rows).collect::<Vec<_>>(),
        })
    });
    let figures = json!({
        "seed": seed, "d_model": width, "tokens": tokens, "heads": figures.collect::<Vec<_>>(),
        "refused": { "heads": odd, "message": refusal(width, odd) },
    });
    Report::new(figures).table(table).table(refused).scene(draw)
}

/// The layer without biases. The projections are the same for any number of heads, only cut otherwise.
fn layer(width: usize, heads: usize, seed: u64) -> Result<MultiHeadAttention, foveal_models::Error> {
    let mut random = Random::new(seed);
    let mut linear = || Linear::xavier(width, width, &mut random).without_bias();
    let projection = Projection::Separate { q: linear(), k: linear(), v: linear() };
    MultiHeadAttention::from_parts(projection, linear(), heads, heads)
}

/// What the layer says to a number of heads that does not fit.
fn refusal(width: usize, heads: usize) -> String {
    let refused = MultiHeadAttention::new(width, heads, &mut Random::zeros());
    refused.err().map(|error| error.to_string()).unwrap_or_default()
}

/// Random tokens with their positions, so that heads have something to look for.
fn input(tokens: usize, width: usize, seed: u64) -> Result<Array2<f32>, foveal::Error> {
    Ok(Random::new(seed ^ 1).normal((tokens, width), 1.0) + positional_encoding(tokens, width)? * 2.0)
}
