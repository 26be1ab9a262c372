//! The same width, cut into more and more heads.

use foveal::{Attention, positional_encoding};
use foveal_models::layer::{Linear, MultiHeadAttention, Parameters, Projection, Random, Source};
use foveal_view::Grid;
use ndarray::{Array2, s};
use serde_json::json;

use crate::clock;
use crate::number::{grouped, rows};
use crate::schooling;
use crate::{Bilingual, Knob, Knobs, Lab, Language, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "heads",
    title: Bilingual {
        en: "One head or many, at the same width", ko: "같은 너비, 하나의 헤드와 여러 헤드"
    },
    summary: Bilingual {
        en: "The width d_model is cut into h heads of d_k = d_model / h dimensions, and each head has weights of its own: \
         it can look elsewhere than the others. The parameters stay 4·d_model² and the multiplications stay the same; \
         only the softmax has h matrices to go over instead of one. At a width of 512 that is nothing beside the products, and 16 heads cost \
         what one does; at 64 the heads become so narrow, down to 4 dimensions, that it shows.",
        ko: "너비 d_model을 차원이 d_k = d_model / h인 헤드 h개로 나누면, 헤드마다 자기만의 가중치로 서로 다른 곳을 볼 수 있습니다. \
         매개변수는 4·d_model²개 그대로이고 곱셈 횟수도 같습니다. 소프트맥스만 행렬 하나가 아니라 h개를 처리합니다. \
         너비가 512이면 이것은 곱셈에 비해 아무것도 아니어서 헤드 16개의 비용이 하나와 같습니다. 너비가 64이면 헤드가 4차원까지 좁아져 차이가 보입니다.",
    },
    knobs: &[DIMS, HEADS, TOKENS, SEED],
    work,
};

const DIMS: Knob = Knob::several("dims", Bilingual { en: "Widths to try", ko: "시험할 너비" }, &[64, 512], 1..=1024);
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

/// A layer, how long it takes in seconds, and the weights of its heads on the first tokens.
struct Measured {
    layer: MultiHeadAttention,
    seconds: f64,
    weights: Vec<Array2<f32>>,
}

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (widths, tokens) = (knobs.get_several(&DIMS), knobs.get_one(&TOKENS));
    let seed = knobs.get_seed(&SEED);
    let mut measured = Vec::new();
    for &width in &widths {
        let mut heads = knobs.get_several(&HEADS);
        if !knobs.has(&HEADS) {
            heads.retain(|heads| width.is_multiple_of(*heads));
        }
        if let Some(refused) = heads.iter().find(|heads| !width.is_multiple_of(**heads)) {
            return Err(schooling::indivisible(width, *refused));
        }
        measured.push((width, measure(width, &heads, tokens, seed)?));
    }
    let (width, first) = &measured[0];
    let odd = (2..).find(|heads| !width.is_multiple_of(*heads)).unwrap_or(3);
    let refusal = schooling::indivisible(*width, odd);
    let mut refused =
        Table::new([text(format!("{odd} heads of {width} dimensions?"), format!("너비 {width}에 헤드 {odd}개?"))]);
    refused.row([Bilingual { en: refusal.message(Language::English), ko: refusal.message(Language::Korean) }]);
    let figures = measured.iter().map(|(width, measured)| figures(*width, measured, tokens)).collect::<Vec<_>>();
    let mut report = Report::new(json!({
        "seed": seed, "tokens": tokens, "widths": figures,
        "refused": { "d_model": width, "heads": odd, "message": refusal.to_string() },
    }));
    for (width, measured) in &measured {
        report = report.table(table(*width, measured, tokens));
    }
    let drawn = first.iter().rev().find(|measured| measured.layer.heads() <= READABLE).unwrap_or(&first[0]);
    let count = drawn.layer.heads();
    let title =
        text(format!("{count} heads, each with weights of its own"), format!("헤드 {count}개, 저마다의 가중치"));
    report.table(refused).scene(|language| {
        let note = ("the first tokens, by a layer that has learned nothing yet", "앞쪽 토큰들, 아직 학습하지 않은 층");
        Ok(Grid::heads(drawn.weights.clone())?
            .title(title.get(language))
            .note(language.choose(note.0, note.1))
            .language(language))
    })
}

fn measure(width: usize, heads: &[usize], tokens: usize, seed: u64) -> Result<Vec<Measured>> {
    let layers = heads.iter().map(|&heads| Ok(layer(width, heads, seed)?)).collect::<Result<Vec<_>>>()?;
    let x = input(tokens, width, seed)?;
    let attention = Attention::new();
    let mut works: Vec<clock::Work> = Vec::new();
    for layer in &layers {
        works.push(Box::new(|| layer.infer(&x, 1, Source::Own, &attention).map(drop).map_err(Into::into)));
    }
    let times = clock::fastest(&mut works)?;
    drop(works);
    let measured = layers.into_iter().zip(times).map(|(layer, seconds)| {
        let (_, record) = layer.infer(x.slice(s![..tokens.min(DRAWN), ..]), 1, Source::Own, &attention)?;
        let weights = record.weights()?;
        let weights = (0..layer.heads()).map(|h| weights.slice(s![0, h, .., ..]).to_owned()).collect();
        Ok(Measured { layer, seconds, weights })
    });
    measured.collect()
}

/// Multiplications and additions of four projections, q·k and p·v.
fn operations(tokens: usize, width: usize) -> u128 {
    (8 * tokens * width * width + 4 * tokens * tokens * width) as u128
}

fn table(width: usize, measured: &[Measured], tokens: usize) -> Table {
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
    let one = measured.first().filter(|measured| measured.layer.heads() == 1);
    for Measured { layer, seconds, .. } in measured {
        table.row([
            layer.heads().to_string(),
            layer.head_dim().to_string(),
            grouped(layer.parameter_count() as u128),
            grouped(operations(tokens, width)),
            format!("{:.1}", 1e6 * seconds),
            one.map_or_else(|| "–".into(), |one| format!("{:.2}", seconds / one.seconds)),
        ]);
    }
    table
}

fn figures(width: usize, measured: &[Measured], tokens: usize) -> serde_json::Value {
    let heads = measured.iter().map(|Measured { layer, seconds, weights }| {
        json!({
            "heads": layer.heads(), "d_k": layer.head_dim(), "parameters": layer.parameter_count(),
            "operations": operations(tokens, width), "microseconds": 1e6 * seconds,
            "weights": weights.iter().map(rows).collect::<Vec<_>>(),
        })
    });
    json!({ "d_model": width, "heads": heads.collect::<Vec<_>>() })
}

/// The layer without biases. The projections are the same for any number of heads, only cut otherwise.
fn layer(width: usize, heads: usize, seed: u64) -> Result<MultiHeadAttention, foveal_models::Error> {
    let mut random = Random::new(seed);
    let mut linear = || Linear::xavier(width, width, &mut random).without_bias();
    let projection = Projection::Separate { q: linear(), k: linear(), v: linear() };
    MultiHeadAttention::from_parts(projection, linear(), heads, heads)
}

/// Random tokens with their positions, so that heads have something to look for.
fn input(tokens: usize, width: usize, seed: u64) -> Result<Array2<f32>, foveal::Error> {
    Ok(Random::new(seed ^ 1).normal((tokens, width), 1.0) + positional_encoding(tokens, width)? * 2.0)
}
