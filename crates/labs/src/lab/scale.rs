//! Why scores are divided by √d_k.

use foveal::Attention;
use foveal_models::layer::Random;
use foveal_view::{Chart, Steps};
use ndarray::{Array4, ArrayView1, Axis};
use serde_json::{Value, json};

use crate::number::{grouped, tiny};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "scale",
    title: Bilingual { en: "Why scores are divided by √d_k", ko: "점수를 √d_k로 나누는 이유" },
    summary: Bilingual {
        en: "If the entries of q and k have variance 1, then q·k has variance d_k: the wider the heads, the larger the scores. \
         Softmax then gives nearly all weight to one key, and its gradient Σ w(1 − w) goes to 0, so nothing can be learned. \
         Dividing by √d_k brings the variance back to 1, whatever d_k is. The table has the median over the queries of the largest weight, \
         and of the smallest the median with the range that 90 % of the queries fall in.",
        ko: "q와 k의 각 성분의 분산이 1이면 내적 q·k의 분산은 d_k가 됩니다. 즉, 헤드의 차원이 클수록 점수도 커집니다. \
         그러면 소프트맥스가 거의 모든 가중치를 한 키에 몰아주고, 기울기 Σ w(1 − w)가 0에 가까워져 학습이 멈춥니다. \
         √d_k로 나누면 d_k와 관계없이 분산이 다시 1이 됩니다. 표에는 쿼리들에 대한 최대 가중치의 중앙값과, \
         최소 가중치의 중앙값 및 쿼리의 90 %가 들어가는 범위가 있습니다.",
    },
    knobs: &[DIMS, TOKENS, SEED],
    work,
};

const DIMS: Knob =
    Knob::several("dims", Bilingual { en: "Dimensions to try", ko: "시험할 차원" }, &[4, 16, 64, 256], 1..=2048);
const TOKENS: Knob = Knob::one("tokens", Bilingual { en: "Keys of each query", ko: "쿼리마다의 키 수" }, 16, 2..=64);
const SEED: Knob = Knob::seed();

/// Queries of each dimension, in batches so that few of them are in memory.
const BATCH: usize = 100;
const BATCHES: usize = 20;

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (dims, keys) = (knobs.get_several(&DIMS), knobs.get_one(&TOKENS));
    let seed = knobs.get_seed(&SEED);
    let measured = dims.iter().map(|&dim| Ok((dim, measure(dim, keys, seed)?))).collect::<Result<Vec<_>>>()?;

    let head = || {
        Table::new([
            "d_k".into(),
            text("variance", "분산"),
            text("largest weight", "최대 가중치"),
            text("smallest: 5 %", "최소 가중치: 5 %"),
            text("median", "중앙값"),
            text("95 %", "95 %"),
            text("gradient Σ w(1 − w)", "기울기 Σ w(1 − w)"),
        ])
    };
    let mut tables = [
        head().title(text("Scores q·k as they are", "점수 q·k 그대로")),
        head().title(text("Scores q·k ÷ √d_k", "점수 q·k ÷ √d_k")),
    ];
    for (dim, ways) in &measured {
        for (table, way) in tables.iter_mut().zip(ways) {
            table.row([
                grouped(*dim as u128),
                format!("{:.2}", way.variance),
                tiny(way.largest),
                tiny(way.smallest[0]),
                tiny(way.smallest[1]),
                tiny(way.smallest[2]),
                tiny(way.gradient),
            ]);
        }
    }
    let curve = |way: usize, of: fn(&Way) -> f64| {
        measured.iter().map(move |(dim, ways)| (*dim as f64, of(&ways[way]))).collect::<Vec<_>>()
    };
    let queries = grouped((BATCH * BATCHES) as u128);
    let note = text(format!("{queries} queries, {keys} keys each"), format!("쿼리 {queries}개, 쿼리마다 키 {keys}개"));
    let figures = measured
        .iter()
        .map(|(dim, [raw, scaled])| json!({ "d_k": dim, "raw": raw.figures(), "scaled": scaled.figures() }));
    let [raw, scaled] = tables;
    let figures =
        json!({ "seed": seed, "queries": BATCH * BATCHES, "keys": keys, "dims": figures.collect::<Vec<_>>() });
    Report::new(figures).table(raw).table(scaled).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        Ok(Chart::new("d_k", tr("over queries", "쿼리들에 대해"))
            .series(tr("largest weight, q·k", "최대 가중치, q·k"), curve(0, |way| way.largest))
            .series(tr("gradient, q·k", "기울기, q·k"), curve(0, |way| way.gradient))
            .series(tr("largest weight, ÷ √d_k", "최대 가중치, ÷ √d_k"), curve(1, |way| way.largest))
            .series(tr("gradient, ÷ √d_k", "기울기, ÷ √d_k"), curve(1, |way| way.gradient))
            .steps(Steps::Log, Steps::Linear)
            .from_zero()
            .title(tr("Softmax with and without √d_k", "√d_k가 있을 때와 없을 때의 소프트맥스"))
            .note(note.get(language))
            .language(language))
    })
}

/// What softmax makes of scores of one size. Of weights, medians and quantiles over the queries: a mean of the smallest would be
/// that of the few queries whose scores happen to lie close together.
struct Way {
    /// Mean over the queries.
    variance: f64,
    /// Median.
    largest: f64,
    /// Its 5 % quantile, median and 95 % quantile.
    smallest: [f64; 3],
    /// The trace of the softmax's derivative, Σ w(1 − w).
    gradient: f64,
}

impl Way {
    fn figures(&self) -> Value {
        let Way { variance, largest, smallest, gradient } = self;
        let [low, median, high] = smallest;
        json!({
            "variance": variance, "largest": largest, "smallest": median, "smallest_quantiles": [low, high],
            "gradient": gradient,
        })
    }
}

/// Without and with the division, on the same random queries and keys.
fn measure(dim: usize, keys: usize, seed: u64) -> Result<[Way; 2]> {
    let mut random = Random::new(seed);
    let mut ways = [Seen::default(), Seen::default()];
    for _ in 0..BATCHES {
        // Every query has keys of its own.
        let q: Array4<f32> = random.normal((BATCH, 1, 1, dim), 1.0);
        let k: Array4<f32> = random.normal((BATCH, 1, keys, dim), 1.0);
        for (way, scale) in ways.iter_mut().zip([1.0, 1.0 / (dim as f64).sqrt()]) {
            let products = q.outer_iter().zip(k.outer_iter()).flat_map(|(q, k)| {
                let (q, k) = (q.index_axis_move(Axis(0), 0), k.index_axis_move(Axis(0), 0));
                k.outer_iter().map(|k| scale * dot(q.row(0), k)).collect::<Vec<_>>()
            });
            // The mean is known to be 0.
            way.variance += products.map(|x| x * x).sum::<f64>() / keys as f64;
            let weights = Attention::new().scale(scale as f32).weights(&q, &k)?;
            for row in weights.rows() {
                way.largest.push(f64::from(row.fold(0f32, |max, w| max.max(*w))));
                way.smallest.push(f64::from(row.fold(1f32, |min, w| min.min(*w))));
                way.gradient += row.iter().map(|w| f64::from(*w) * (1.0 - f64::from(*w))).sum::<f64>();
            }
        }
    }
    let queries = (BATCH * BATCHES) as f64;
    Ok(ways.map(|way| Way {
        variance: way.variance / queries,
        largest: quantile(way.largest, [0.5])[0],
        smallest: quantile(way.smallest, [0.05, 0.5, 0.95]),
        gradient: way.gradient / queries,
    }))
}

/// What is collected over the queries.
#[derive(Default)]
struct Seen {
    variance: f64,
    largest: Vec<f64>,
    smallest: Vec<f64>,
    gradient: f64,
}

/// Quantiles, each an element of the sample.
fn quantile<const N: usize>(mut sample: Vec<f64>, shares: [f64; N]) -> [f64; N] {
    sample.sort_by(f64::total_cmp);
    shares.map(|share| sample[((sample.len() - 1) as f64 * share).round() as usize])
}

fn dot(q: ArrayView1<f32>, k: ArrayView1<f32>) -> f64 {
    q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum()
}
