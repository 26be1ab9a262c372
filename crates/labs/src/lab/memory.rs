//! The n × n matrix, and attention that never stores it.

use foveal::{Attention, Threads};
use foveal_compute::matmul;
use foveal_models::layer::Random;
use foveal_view::{Chart, Steps};
use ndarray::parallel::prelude::*;
use ndarray::{Array2, Axis};
use serde_json::json;

use crate::memory;
use crate::number::{self, largest_difference, length, tiny};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "memory",
    title: Bilingual { en: "The memory of attention", ko: "어텐션의 메모리" },
    summary: Bilingual {
        en: "Written as in a textbook, attention stores a score for every pair of tokens: twice the tokens, four times the memory. \
         The flash way takes the keys tile by tile and keeps only a running maximum and sum of each row, \
         so its memory grows with n instead of n². The results are the same.",
        ko: "교과서대로 계산하면 어텐션은 모든 토큰 쌍의 점수를 저장하므로, 토큰이 2배가 되면 메모리는 4배가 됩니다. \
         플래시 방식은 키를 타일 단위로 나누어 읽으면서 행마다 최댓값과 합만 갱신하므로, 메모리가 n²이 아니라 n에 비례합니다. \
         결과는 같습니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob =
    Knob::several("tokens", Bilingual { en: "Lengths to try", ko: "시험할 길이" }, &[1024, 4096, 16_384], 16..=MOST);
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Dimensions of a head", ko: "헤드의 차원" }, 64, 1..=256);
const SEED: Knob = Knob::seed();

/// A gigabyte of scores.
const MOST: usize = 16_384;
/// Tokens whose outputs are compared at most.
const COMPARED: usize = 2048;

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (lengths, dim) = (knobs.get_several(&TOKENS), knobs.get_one(&DIMS));
    let seed = knobs.get_seed(&SEED);
    let shown = |bytes: Option<u64>| bytes.map_or_else(|| "–".into(), |bytes| number::bytes(bytes as f64));
    let mut table = Table::new([
        text("tokens", "토큰"),
        text("scores, computed", "점수 행렬, 계산"),
        text("naive, measured", "단순 방식, 측정"),
        text("flash, measured", "플래시 방식, 측정"),
        text("naive ÷ flash", "단순 ÷ 플래시"),
    ])
    .title(text(
        "Bytes allocated beyond q, k and v, at the most; one head, f32",
        "q, k, v를 빼고 한때 할당된 최대 메모리, 헤드 하나, f32",
    ));
    let (mut figures, mut curves) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for &tokens in &lengths {
        let scores = 4 * (tokens as u64).pow(2);
        let [q, k, v] = &inputs(tokens, dim, seed);
        let enough = memory::available().is_none_or(|free| free > scores + scores / 4);
        let naive = if enough { memory::peak(|| naive(q, k, v))? } else { None };
        let flash = memory::peak(|| flash(q, k, v))?;
        let ratio = naive.zip(flash).map_or_else(|| "–".into(), |(n, f)| format!("{:.1}", n as f64 / f.max(1) as f64));
        table.row([length(tokens), number::bytes(scores as f64), shown(naive), shown(flash), ratio]);
        for (curve, bytes) in curves.iter_mut().zip([Some(scores), naive, flash]) {
            curve.extend(bytes.map(|bytes| (tokens as f64, bytes as f64 / f64::from(1 << 20))));
        }
        figures.push(json!({ "tokens": tokens, "score_bytes": scores, "naive_bytes": naive, "flash_bytes": flash }));
    }
    let [scores, naive, flash] = curves;
    let difference = difference(lengths[0], dim, seed)?;
    let compared = length(lengths[0].min(COMPARED));
    let figures = json!({ "seed": seed, "dim": dim, "difference": difference, "lengths": figures });
    let mut report = Report::new(figures).prose(text(
        format!("{compared} tokens, largest difference between the two outputs: {}.", tiny(difference)),
        format!("토큰 {compared}개에서 두 방식의 출력의 최대 차이: {}.", tiny(difference)),
    ));
    if flash.is_empty() {
        report = report.prose(text(
            "This program does not count the memory it allocates.",
            "이 프로그램은 할당하는 메모리를 세지 않습니다.",
        ));
    }
    // The scores are nearly all that the naive way takes: both would be one line.
    let scores = if naive.len() == lengths.len() { Vec::new() } else { scores };
    let curves = [
        (text("naive, measured", "단순 방식, 측정"), naive),
        (text("flash, measured", "플래시 방식, 측정"), flash),
        (text("score matrix, computed", "점수 행렬, 계산"), scores),
    ];
    report.table(table).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let drawn = curves.iter().filter(|(_, points)| !points.is_empty());
        let chart = drawn.fold(Chart::new(tr("tokens", "토큰"), "MB"), |chart, (name, points)| {
            chart.series(name.get(language), points.clone())
        });
        Ok(chart
            .steps(Steps::Log, Steps::Log)
            .title(tr("Memory by length", "길이에 따른 메모리"))
            .note(format!("d_k = {dim}, f32"))
            .language(language))
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
    let [q, k, v] = inputs(tokens.min(COMPARED), dim, seed);
    Ok(largest_difference(&naive(&q, &k, &v)?, &flash(&q, &k, &v)?))
}
