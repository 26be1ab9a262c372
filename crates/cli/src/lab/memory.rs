//! The n × n matrix, and attention that never stores it.

use anyhow::{Result, bail};
use foveal::{Attention, Threads};
use foveal_compute::matmul;
use foveal_models::layer::Random;
use foveal_view::{Chart, Steps};
use ndarray::parallel::prelude::*;
use ndarray::{Array2, Axis};
use serde_json::json;

use super::knobs::{self, Knob};
use super::number::{largest_difference, length, megabytes, tiny};
use super::{Experiment, alone};
use crate::arguments::Lab;
use crate::language::Language;
use crate::report::Report;
use crate::table::Table;

pub const EXPERIMENT: Experiment = Experiment {
    name: "memory",
    title: ["The memory of attention", "어텐션의 메모리"],
    description: [
        "Written as in a textbook, attention stores a score for every pair of tokens: twice the tokens, four times the memory. \
         The flash way takes the keys tile by tile and keeps only a running maximum and sum of each row, \
         so its memory grows with n instead of n². The results are the same.",
        "교과서대로 계산하면 어텐션은 모든 토큰 쌍의 점수를 저장하므로, 토큰이 2배가 되면 메모리는 4배가 됩니다. \
         플래시 방식은 키를 타일 단위로 나누어 읽으면서 행마다 최댓값과 합만 갱신하므로, 메모리가 n²이 아니라 n에 비례합니다. \
         결과는 같습니다.",
    ],
    knobs: &[Knob::Tokens, Knob::Dims, Knob::Seed],
    run,
};

/// A gigabyte of scores.
const MOST: usize = 16_384;

fn run(lab: &Lab, language: Language) -> Result<Report> {
    let lengths = knobs::some(Knob::Tokens, &lab.tokens, &[1024, 4096, 16_384], 16..=MOST)?;
    let dim = knobs::one(Knob::Dims, &lab.dims, 64, 1..=256)?;
    let seed = lab.seed.unwrap_or(1);
    if let Some(way) = &lab.alone {
        let inputs = |real: bool| Ok(inputs(if real { lengths[0] } else { 64 }, dim, seed));
        return match way.as_str() {
            "naive" => alone::count(inputs, |[q, k, v]| naive(q, k, v)),
            "flash" => alone::count(inputs, |[q, k, v]| flash(q, k, v)),
            _ => bail!("there are two ways: naive and flash"),
        };
    }
    let tr = |english, korean| language.of(english, korean);
    let megabytes_of = |bytes: Option<u64>| bytes.map_or_else(|| "–".into(), |bytes| megabytes(bytes as f64));
    let mut table = Table::new([
        tr("tokens", "토큰"),
        tr("scores, computed", "점수 행렬, 계산"),
        tr("naive, measured", "단순 방식, 측정"),
        tr("flash, measured", "플래시 방식, 측정"),
        tr("naive ÷ flash", "단순 ÷ 플래시"),
    ])
    .title(tr("Megabytes beyond q, k and v; one head, f32", "q, k, v를 뺀 메모리(MB), 헤드 하나, f32"));
    let (mut figures, mut curves) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for &tokens in &lengths {
        let scores = 4 * (tokens as u64).pow(2);
        let enough = alone::available().is_none_or(|free| free > scores + scores / 4);
        let naive = if enough { alone::measured("memory", "naive", tokens, dim, seed) } else { None };
        let flash = alone::measured("memory", "flash", tokens, dim, seed);
        let ratio = naive.zip(flash).map_or_else(|| "–".into(), |(n, f)| format!("{:.0}", n as f64 / f.max(1) as f64));
        table.row([length(tokens), megabytes(scores as f64), megabytes_of(naive), megabytes_of(flash), ratio]);
        for (curve, bytes) in curves.iter_mut().zip([Some(scores), naive, flash]) {
            curve.extend(bytes.map(|bytes| (tokens as f64, bytes as f64 / f64::from(1 << 20))));
        }
        figures.push(json!({ "tokens": tokens, "score_bytes": scores, "naive_bytes": naive, "flash_bytes": flash }));
    }
    let [scores, naive, flash] = curves;
    let difference = difference(lengths[0], dim, seed)?;
    let mut notes = vec![format!(
        "{} {}: {}.",
        length(lengths[0]),
        tr("tokens, largest difference between the two outputs", "토큰에서 두 방식의 출력의 최대 차이"),
        tiny(difference)
    )];
    if naive.is_empty() && flash.is_empty() {
        let unknown = (
            "This system does not tell how much memory a program uses.",
            "이 시스템에서는 프로그램의 메모리 사용량을 알 수 없습니다.",
        );
        notes.push(tr(unknown.0, unknown.1).to_owned());
    }
    // The scores are nearly all that the naive way takes: both would be one line.
    let scores = if naive.len() == lengths.len() { Vec::new() } else { scores };
    let curves = [
        (tr("naive, measured", "단순 방식, 측정"), naive),
        (tr("flash, measured", "플래시 방식, 측정"), flash),
        (tr("score matrix, computed", "점수 행렬, 계산"), scores),
    ];
    let scene = curves
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .fold(Chart::new(tr("tokens", "토큰"), "MB"), |chart, (name, points)| chart.series(name, points))
        .steps(Steps::Log, Steps::Log)
        .title(tr("Memory by length", "길이에 따른 메모리"))
        .note(format!("d_k = {dim}, f32"))
        .language(language.into());
    Ok(Report {
        notes,
        tables: vec![table],
        scenes: vec![scene.into()],
        figures: json!({ "seed": seed, "dim": dim, "difference": difference, "lengths": figures }),
        ..Report::default()
    })
}

fn inputs(tokens: usize, dim: usize, seed: u64) -> [Array2<f32>; 3] {
    let mut random = Random::new(seed);
    std::array::from_fn(|_| random.normal((tokens, dim), 1.0))
}

/// softmax(Q·Kᵀ/√d)·V with all n × n scores in memory.
fn naive(q: &Array2<f32>, k: &Array2<f32>, v: &Array2<f32>) -> Result<Array2<f32>> {
    let mut weights = Array2::zeros((q.nrows(), k.nrows()));
    matmul(1.0 / (q.ncols() as f32).sqrt(), q, k.t(), 0.0, &mut weights, Threads::Rayon)?;
    weights.axis_iter_mut(Axis(0)).into_par_iter().for_each(|mut row| {
        let max = row.fold(f32::NEG_INFINITY, |max, s| max.max(*s));
        row.mapv_inplace(|s| (s - max).exp());
        let sum = row.sum();
        row.mapv_inplace(|w| w / sum);
    });
    let mut out = Array2::zeros((q.nrows(), v.ncols()));
    matmul(1.0, &weights, v, 0.0, &mut out, Threads::Rayon)?;
    Ok(out)
}

/// The engine, which keeps no scores.
fn flash(q: &Array2<f32>, k: &Array2<f32>, v: &Array2<f32>) -> Result<Array2<f32>> {
    let [q, k, v] = [q, k, v].map(|x| x.view().insert_axis(Axis(0)).insert_axis(Axis(0)));
    let fwd = Attention::new().forward(q, k, v)?;
    Ok(fwd.out.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), 0))
}

fn difference(tokens: usize, dim: usize, seed: u64) -> Result<f64> {
    let [q, k, v] = inputs(tokens.min(2048), dim, seed);
    Ok(largest_difference(&naive(&q, &k, &v)?, &flash(&q, &k, &v)?))
}
