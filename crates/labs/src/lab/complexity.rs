//! How work grows with length: attention, a recurrent layer, a convolution.

use foveal::{Attention, Threads};
use foveal_compute::matmul;
use foveal_models::layer::Random;
use foveal_view::{Chart, Steps};
use ndarray::{Array1, Array2, Array4, Axis, s};
use serde_json::json;

use crate::clock;
use crate::number::{grouped, short};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "complexity",
    title: Bilingual {
        en: "Work by length: attention, RNN, CNN", ko: "길이에 따른 계산량: 어텐션, RNN, CNN"
    },
    summary: Bilingual {
        en: "Attention compares all pairs of tokens: twice the tokens, four times the work. \
         A recurrent layer and a convolution only double theirs. What attention gets for it: \
         any two tokens are one step apart, and all of them can be computed at once, while an RNN has to go token by token.",
        ko: "어텐션은 모든 토큰 쌍을 비교하므로 토큰이 2배가 되면 계산량은 4배가 됩니다. 순환층과 합성곱의 계산량은 2배가 될 뿐입니다. \
         그 대신 어텐션에서는 어느 두 토큰이든 한 걸음 거리에 있고 모든 토큰을 한꺼번에 계산할 수 있습니다. 반면 RNN은 토큰을 하나씩 차례로 처리해야 합니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob = Knob::several(
    "tokens",
    Bilingual { en: "Lengths to try", ko: "시험할 길이" },
    &[256, 512, 1024, 2048, 4096],
    16..=16_384,
)
.growth();
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Width", ko: "너비" }, 64, 8..=512);
const SEED: Knob = Knob::seed();

/// Tokens that a convolution sees.
const KERNEL: usize = 3;

/// A layer: its name, its costs as courses write them, and its operations for n tokens of width d.
struct Layer {
    name: Bilingual<&'static str>,
    work: &'static str,
    steps: &'static str,
    path: &'static str,
    operations: fn(f64, f64) -> f64,
}

const LAYERS: [Layer; 3] = [
    Layer {
        name: Bilingual { en: "attention", ko: "어텐션" },
        work: "O(n²·d)",
        steps: "O(1)",
        path: "O(1)",
        operations: |n, d| 4.0 * n * n * d,
    },
    Layer {
        name: Bilingual { en: "RNN", ko: "RNN" },
        work: "O(n·d²)",
        steps: "O(n)",
        path: "O(n)",
        operations: |n, d| 4.0 * n * d * d,
    },
    Layer {
        name: Bilingual { en: "CNN, k = 3", ko: "CNN, k = 3" },
        work: "O(k·n·d²)",
        steps: "O(1)",
        path: "O(n/k)",
        operations: |n, d| 2.0 * KERNEL as f64 * n * d * d,
    },
];

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (lengths, dim) = (knobs.get_several(&TOKENS), knobs.get_one(&DIMS));
    let seed = knobs.get_seed(&SEED);
    let times = measure(&lengths, dim, seed)?;
    let exponents: Vec<f64> = (0..LAYERS.len())
        .map(|layer| clock::exponent(&lengths, &times.iter().map(|times| times[layer]).collect::<Vec<_>>()))
        .collect();

    let mut theory = Table::new([
        text("layer", "층"),
        text("work", "계산량"),
        text("steps in a row", "순차 단계"),
        text("path between tokens", "토큰 사이 경로"),
        text("parallel over tokens", "토큰 병렬 계산"),
        text("measured growth", "측정된 증가"),
    ]);
    for (layer, exponent) in LAYERS.iter().zip(&exponents) {
        let parallel = if layer.steps == "O(1)" { text("yes", "가능") } else { text("no", "불가능") };
        let [work, steps, path] = [layer.work, layer.steps, layer.path].map(Text::from);
        theory.row([layer.name.into(), work, steps, path, parallel, format!("n^{exponent:.2}").into()]);
    }
    let mut head = vec![text("tokens", "토큰")];
    for layer in &LAYERS {
        head.extend(["│".into(), layer.name.into(), text("work", "계산량"), text("time", "시간")]);
    }
    let mut table = Table::new(head).title(text(
        "Milliseconds on one thread │ work and time, as multiples of the row above",
        "스레드 하나에서 측정한 밀리초 │ 바로 윗줄 대비 계산량과 시간의 배수",
    ));
    for (row, &tokens) in lengths.iter().enumerate() {
        let mut cells = vec![grouped(tokens as u128)];
        for (layer, sizes) in LAYERS.iter().enumerate() {
            let work = |tokens: usize| (sizes.operations)(tokens as f64, dim as f64);
            cells.extend(["│".to_owned(), format!("{:.3}", 1e3 * times[row][layer])]);
            cells.extend(match row {
                0 => ["".to_owned(), "".to_owned()],
                _ => {
                    let factor = work(tokens) / work(lengths[row - 1]);
                    let factor = short((100.0 * factor).round() / 100.0);
                    [format!("×{factor}"), format!("×{:.1}", times[row][layer] / times[row - 1][layer])]
                }
            });
        }
        table.row(cells);
    }
    let figures = LAYERS.iter().enumerate().map(|(layer, sizes)| {
        let measured = lengths.iter().zip(&times).map(|(tokens, times)| {
            let operations = (sizes.operations)(*tokens as f64, dim as f64);
            json!({ "tokens": tokens, "operations": operations, "milliseconds": 1e3 * times[layer] })
        });
        json!({
            "layer": sizes.name.en, "work": sizes.work, "steps": sizes.steps, "path": sizes.path,
            "exponent": exponents[layer], "measured": measured.collect::<Vec<_>>(),
        })
    });
    let figures = json!({ "seed": seed, "dim": dim, "kernel": KERNEL, "layers": figures.collect::<Vec<_>>() });
    Report::new(figures).table(theory).table(table).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let chart = Chart::new(tr("tokens", "토큰"), tr("milliseconds", "밀리초")).steps(Steps::Log, Steps::Log);
        let chart = LAYERS.iter().enumerate().fold(chart, |chart, (i, layer)| {
            let points = lengths.iter().zip(&times).map(|(tokens, times)| (*tokens as f64, 1e3 * times[i]));
            chart.series(format!("{}: n^{:.2}", layer.name.get(language), exponents[i]), points.collect::<Vec<_>>())
        });
        Ok(chart
            .title(tr("Measured time by length", "길이에 따른 측정 시간"))
            .note(format!("d = {dim}, {}", tr("one thread", "스레드 하나")))
            .language(language))
    })
}

/// What the layers of one length work on.
struct Inputs {
    /// [n, d]
    x: Array2<f32>,
    /// The same as one head: [1, 1, n, d].
    head: Array4<f32>,
    input: Array2<f32>,
    state: Array2<f32>,
    kernel: [Array2<f32>; KERNEL],
}

impl Inputs {
    fn new(tokens: usize, dim: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let x: Array2<f32> = random.normal((tokens, dim), 1.0);
        let head = x.clone().insert_axis(Axis(0)).insert_axis(Axis(0));
        let mut weight = || random.xavier(dim, dim);
        Inputs { x, head, input: weight(), state: weight(), kernel: std::array::from_fn(|_| weight()) }
    }
}

/// Seconds of the three layers on one thread, for each length.
fn measure(lengths: &[usize], dim: usize, seed: u64) -> Result<Vec<[f64; 3]>> {
    let inputs: Vec<Inputs> = lengths.iter().map(|&tokens| Inputs::new(tokens, dim, seed)).collect();
    let attention = &Attention::new().threads(Threads::Sequential);
    let mut works: Vec<clock::Work> = Vec::new();
    for Inputs { x, head, input, state, kernel } in &inputs {
        works.push(Box::new(move || attention.forward(head, head, head).map(drop).map_err(Into::into)));
        works.push(Box::new(|| recurrent(x, input, state).map(drop)));
        works.push(Box::new(|| convolution(x, kernel).map(drop)));
    }
    let times = clock::fastest(&mut works)?;
    Ok(times.chunks_exact(LAYERS.len()).map(|times| [times[0], times[1], times[2]]).collect())
}

/// hₜ = tanh(W·xₜ + U·hₜ₋₁): each token waits for the one before.
fn recurrent(x: &Array2<f32>, input: &Array2<f32>, state: &Array2<f32>) -> Result<Array2<f32>> {
    let mut out = Array2::zeros(x.raw_dim());
    matmul(1.0, x, input.t(), 0.0, &mut out, Threads::Sequential)?;
    let mut h = Array1::zeros(x.ncols());
    for mut row in out.outer_iter_mut() {
        row += &state.dot(&h);
        row.mapv_inplace(f32::tanh);
        h.assign(&row);
    }
    Ok(out)
}

/// yₜ = Σᵢ Wᵢ·xₜ₊ᵢ₋₁ over three neighbours.
fn convolution(x: &Array2<f32>, kernel: &[Array2<f32>; KERNEL]) -> Result<Array2<f32>> {
    let n = x.nrows();
    let mut out = Array2::zeros(x.raw_dim());
    matmul(1.0, x, kernel[1].t(), 0.0, &mut out, Threads::Sequential)?;
    matmul(1.0, x.slice(s![..n - 1, ..]), kernel[0].t(), 1.0, out.slice_mut(s![1.., ..]), Threads::Sequential)?;
    matmul(1.0, x.slice(s![1.., ..]), kernel[2].t(), 1.0, out.slice_mut(s![..n - 1, ..]), Threads::Sequential)?;
    Ok(out)
}
