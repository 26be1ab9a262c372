//! The ways out of n²: sparse, linear and Fourier attention beside the exact one, by time, memory and error.

use foveal::{AdditiveAttention, Attention, BigBird, FeatureMap, LinearAttention, Mask, Pattern, Threads, fourier_mix};
use foveal_models::layer::Random;
use foveal_view::{Chart, Steps};
use ndarray::{Array2, Array4, Axis};
use serde_json::json;

use crate::number::{length, megabytes};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, text};
use crate::{clock, memory};

pub const LAB: Lab = Lab {
    name: "family",
    title: Bilingual { en: "The family of attention", ko: "어텐션의 여러 종류" },
    summary: Bilingual {
        en: "Exact attention compares every token with every other by a product q·k. Additive attention (Bahdanau 2014), the oldest of the family, asks \
         a small network instead, vᵀ·tanh(q + k): n² times d evaluations of tanh, which no matrix product can do, so it is the slowest by far \
         and is tried up to 2,048 tokens. Longformer and BigBird leave most pairs out, \
         linear attention and Performer replace the softmax by features that can be summed up once, and FNet mixes by a Fourier \
         transform: their time grows about as n, not as n². What they give up is in the last table: \
         how far their outputs are from exact attention.",
        ko: "정확한 어텐션은 내적 q·k로 모든 토큰을 서로 비교합니다. 가장 오래된 가산(additive) 어텐션(Bahdanau 2014)은 내적 대신 작은 신경망 \
         vᵀ·tanh(q + k)를 씁니다. tanh를 n²·d번 계산해야 하고 행렬 곱으로 바꿀 수 없어 가장 느리므로 토큰 2,048개까지만 시험합니다. Longformer와 BigBird는 대부분의 쌍을 건너뛰고, \
         선형 어텐션과 Performer는 소프트맥스를 한 번만 더하면 되는 특징으로 바꾸며, FNet은 푸리에 변환으로 토큰을 섞습니다. \
         그래서 시간이 n²이 아니라 거의 n에 비례합니다. 그 대가는 마지막 표에 있습니다: 출력이 정확한 어텐션과 얼마나 다른지 보여 줍니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob = Knob::several(
    "tokens",
    Bilingual { en: "Lengths to try", ko: "시험할 길이" },
    &[512, 1024, 2048, 4096, 8192],
    512..=MOST,
)
.growth();
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Dimensions of a head", ko: "헤드의 차원" }, 64, 8..=256);
const SEED: Knob = Knob::seed();

/// One of the family: its name, and the longest input that it is tried on.
struct Member {
    name: &'static str,
    most: usize,
    run: fn(&Inputs) -> Result<Array4<f32>>,
}

const MEMBERS: [Member; 7] = [
    Member { name: "exact", most: MOST, run: |inputs| attend(&Attention::new(), inputs) },
    Member {
        name: "additive",
        most: 2048,
        run: |inputs| {
            let weight = Array2::from_elem((1, inputs.dim()), 1.0 / (inputs.dim() as f32).sqrt());
            Ok(AdditiveAttention::new(weight)?.forward(&inputs.q, &inputs.k, &inputs.v)?.out)
        },
    },
    Member { name: "Longformer", most: MOST, run: |inputs| sparse(&inputs.longformer, inputs) },
    Member { name: "BigBird", most: MOST, run: |inputs| sparse(&inputs.big_bird, inputs) },
    Member { name: "linear", most: MOST, run: |inputs| linear(&FeatureMap::Elu, inputs) },
    Member { name: "Performer", most: MOST, run: |inputs| linear(&inputs.favor, inputs) },
    Member {
        name: "FNet",
        most: MOST,
        run: |inputs| {
            let mixed = fourier_mix(inputs.v.index_axis(Axis(0), 0), Threads::default());
            Ok(mixed.insert_axis(Axis(0)))
        },
    },
];

const MOST: usize = 65_536;
/// Keys to each side in Longformer.
const WINDOW: usize = 128;
/// Tokens of a block in BigBird, which sees eight of them.
const BLOCK: usize = 32;
/// Random features of the Performer.
const FEATURES: usize = 256;
/// How much of a token is that of the one before: neighbours are alike, as in a text.
const MEMORY: f32 = 0.95;

/// How large queries and keys are: scores of about 2 for a token with itself. The error of random features grows with e^score.
const SIZE: f32 = 0.5;

/// One head of n tokens, [1, 1, n, d] each, and what is made once for many runs.
struct Inputs {
    q: Array4<f32>,
    k: Array4<f32>,
    v: Array4<f32>,
    longformer: Pattern,
    big_bird: Pattern,
    favor: FeatureMap,
}

impl Inputs {
    fn new(tokens: usize, dim: usize, seed: u64) -> Result<Self> {
        let mut random = Random::new(seed);
        let mut x: Array2<f32> = random.normal((tokens, dim), 1.0);
        for i in 1..tokens {
            let (before, mut row) = x.multi_slice_mut((ndarray::s![i - 1, ..], ndarray::s![i, ..]));
            row.zip_mut_with(&before, |x, before| *x = (1.0 - MEMORY * MEMORY).sqrt() * *x + MEMORY * before);
        }
        let head = |x: Array2<f32>| x.insert_axis(Axis(0)).insert_axis(Axis(0));
        let x = head(x * SIZE);
        Ok(Inputs {
            q: x.clone(),
            k: x,
            v: head(random.normal((tokens, dim), 1.0)),
            longformer: Pattern::longformer(WINDOW, 1, &[0])?,
            big_bird: Pattern::big_bird(tokens, BigBird { block: BLOCK, seed, ..BigBird::default() })?,
            favor: FeatureMap::favor(dim, FEATURES, seed)?,
        })
    }

    fn tokens(&self) -> usize {
        self.q.dim().2
    }

    fn dim(&self) -> usize {
        self.q.dim().3
    }
}

fn attend(attention: &Attention, inputs: &Inputs) -> Result<Array4<f32>> {
    Ok(attention.forward(&inputs.q, &inputs.k, &inputs.v)?.out)
}

fn sparse(pattern: &Pattern, inputs: &Inputs) -> Result<Array4<f32>> {
    attend(&Attention::new().mask(Mask::pattern(pattern.clone())), inputs)
}

fn linear(features: &FeatureMap, inputs: &Inputs) -> Result<Array4<f32>> {
    Ok(LinearAttention::new(features.clone()).forward(&inputs.q, &inputs.k, &inputs.v)?.out)
}

/// |c·got − exact| / |exact| for the factor c that makes it smallest: the size of FNet's outputs, say, means nothing.
fn error(got: &Array4<f32>, exact: &Array4<f32>) -> f64 {
    let product =
        |x: &Array4<f32>, y: &Array4<f32>| -> f64 { x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum() };
    let cosine = product(got, exact) / (product(got, got) * product(exact, exact)).sqrt();
    (1.0 - cosine * cosine).max(0.0).sqrt()
}

/// What is tried.
struct Run {
    lengths: Vec<usize>,
    dim: usize,
    seed: u64,
}

/// What was measured of a member at one length.
struct Measured {
    tokens: usize,
    seconds: f64,
    bytes: Option<u64>,
    error: f64,
}

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (lengths, dim) = (knobs.get_several(&TOKENS), knobs.get_one(&DIMS));
    let seed = knobs.get_seed(&SEED);
    let measured = measure(&lengths, dim, seed)?;
    let exponents: Vec<f64> = (measured.iter())
        .map(|rows| {
            let (lengths, times): (Vec<_>, Vec<_>) = rows.iter().map(|row| (row.tokens, row.seconds)).unzip();
            clock::exponent(&lengths, &times)
        })
        .collect();
    report(&Run { lengths, dim, seed }, &measured, &exponents)
}

/// All members that go up to each length.
fn measure(lengths: &[usize], dim: usize, seed: u64) -> Result<Vec<Vec<Measured>>> {
    let inputs = lengths.iter().map(|&tokens| Inputs::new(tokens, dim, seed)).collect::<Result<Vec<_>>>()?;
    let runs: Vec<(usize, &Inputs)> = (inputs.iter())
        .flat_map(|inputs| (0..MEMBERS.len()).map(move |member| (member, inputs)))
        .filter(|(member, inputs)| inputs.tokens() <= MEMBERS[*member].most)
        .collect();
    let mut works: Vec<clock::Work> = Vec::new();
    for &(member, inputs) in &runs {
        works.push(Box::new(move || (MEMBERS[member].run)(inputs).map(drop)));
    }
    let times = clock::fastest(&mut works)?;
    let mut all: Vec<Vec<Measured>> = MEMBERS.iter().map(|_| Vec::new()).collect();
    let mut exact = None;
    for ((member, inputs), seconds) in runs.into_iter().zip(times) {
        let (out, tokens) = ((MEMBERS[member].run)(inputs)?, inputs.tokens());
        if member == 0 {
            exact = Some(out.clone());
        }
        let error = exact.as_ref().map_or(0.0, |exact| error(&out, exact));
        let bytes = memory::peak(|| (MEMBERS[member].run)(inputs))?;
        all[member].push(Measured { tokens, seconds, bytes, error });
    }
    Ok(all)
}

fn report(run: &Run, measured: &[Vec<Measured>], exponents: &[f64]) -> Result<Report> {
    let Run { lengths, dim, seed } = run;
    let head = || [text("tokens", "토큰")].into_iter().chain(MEMBERS.iter().map(|member| member.name.into()));
    let table = |title: Text, cell: &dyn Fn(&Measured) -> String| {
        let mut table = Table::new(head()).title(title);
        for &tokens in lengths {
            let row = measured.iter().map(|rows| rows.iter().find(|row| row.tokens == tokens));
            let cells = row.map(|row| row.map_or_else(|| "–".to_owned(), cell));
            table.row([length(tokens)].into_iter().chain(cells));
        }
        table
    };
    let mut time = table(text("Milliseconds", "밀리초"), &|row| format!("{:.2}", 1e3 * row.seconds));
    let growth = exponents.iter().map(|exponent| format!("n^{exponent:.2}").into());
    time.row([text("growth", "증가")].into_iter().chain(growth));
    let memory = table(text("Megabytes beyond q, k and v", "q, k, v를 뺀 메모리(MB)"), &|row| {
        row.bytes.map_or_else(|| "–".into(), |bytes| megabytes(bytes as f64))
    });
    let error = table(
        text(
            "Distance from exact attention, up to a factor: 0 is the same, 1 has nothing in common",
            "정확한 어텐션과의 거리(크기 차이는 무시): 0이면 같고 1이면 공통점이 없음",
        ),
        &|row| if row.error < 5e-4 { "0".into() } else { format!("{:.3}", row.error) },
    );
    let figures = MEMBERS.iter().zip(measured).zip(exponents).map(|((member, rows), exponent)| {
        let rows = rows.iter().map(|row| {
            json!({ "tokens": row.tokens, "milliseconds": 1e3 * row.seconds, "bytes": row.bytes, "error": row.error })
        });
        json!({ "name": member.name, "exponent": exponent, "measured": rows.collect::<Vec<_>>() })
    });
    let figures = json!({
        "seed": seed, "dim": dim, "window": WINDOW, "block": BLOCK, "features": FEATURES,
        "members": figures.collect::<Vec<_>>(),
    });
    Report::new(figures).table(time).table(memory).table(error).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let chart = Chart::new(tr("tokens", "토큰"), tr("milliseconds", "밀리초")).steps(Steps::Log, Steps::Log);
        let chart = MEMBERS.iter().zip(measured).zip(exponents).fold(chart, |chart, ((member, rows), exponent)| {
            let points = rows.iter().map(|row| (row.tokens as f64, 1e3 * row.seconds));
            chart.series(format!("{}: n^{exponent:.2}", member.name), points.collect::<Vec<_>>())
        });
        Ok(chart
            .title(tr("Time by length", "길이에 따른 시간"))
            .note(format!("d = {dim}, ±{WINDOW}, {FEATURES} {}", tr("features", "특징")))
            .language(language))
    })
}
