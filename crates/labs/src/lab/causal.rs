//! What a causal mask takes away: the weight on the future.

use foveal::{Align, causal_mask, scaled_dot_product_attention};
use foveal_models::layer::Random;
use foveal_view::{Compare, Panels};
use ndarray::{Array2, ArrayViewD, s};
use serde_json::json;

use crate::number::{rows, single};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "causal",
    title: Bilingual { en: "The causal mask, on and off", ko: "인과 마스크 켜기와 끄기" },
    summary: Bilingual {
        en: "A model that writes from left to right must not look at what it has yet to write. \
         The causal mask makes the scores of later keys −∞ before the softmax, so their weights are exactly 0 \
         and what they had goes to the keys that remain. Without it, every position but the last leaks the future.",
        ko: "왼쪽에서 오른쪽으로 글을 쓰는 모델은 아직 쓰지 않은 부분을 보면 안 됩니다. \
         인과 마스크는 소프트맥스 전에 뒤쪽 키의 점수를 −∞로 바꾸므로 그 가중치는 정확히 0이 되고, 그 몫은 남은 키들이 나누어 갖습니다. \
         마스크가 없으면 마지막을 뺀 모든 위치가 미래를 보게 됩니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob = Knob::one("tokens", Bilingual { en: "Tokens", ko: "토큰 수" }, 6, 1..=64);
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Dimensions of a head", ko: "헤드의 차원" }, 16, 1..=1024);
const SEED: Knob = Knob::seed();

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (tokens, dim) = (knobs.get_one(&TOKENS), knobs.get_one(&DIMS));
    let seed = knobs.get_seed(&SEED);
    let mut random = Random::new(seed);
    let [q, k, v]: [Array2<f32>; 3] = std::array::from_fn(|_| random.normal((tokens, dim), 1.0));
    let weights = |mask: Option<ArrayViewD<bool>>| scaled_dot_product_attention(&q, &k, &v, mask).map(|(_, w)| w);
    let mask = causal_mask(tokens, tokens, &Align::Last)?;
    let (off, on) = (weights(None)?, weights(Some(mask.view().into_dyn()))?);
    let future = |weights: &Array2<f32>, i: usize| weights.slice(s![i, i + 1..]).sum();
    let past = |weights: &Array2<f32>, i: usize| weights.slice(s![i, ..=i]).sum();

    let mut table = Table::new([
        text("position", "위치"),
        text("keys seen", "보이는 키"),
        text("future, mask off", "미래, 마스크 끔"),
        text("future, mask on", "미래, 마스크 켬"),
        text("itself and past, mask on", "자신과 과거, 마스크 켬"),
    ])
    .title(text("Sum of the weights of each position", "위치별 가중치의 합"));
    let mut positions = Vec::new();
    for i in 0..tokens {
        let (without, with, kept) = (future(&off, i), future(&on, i), past(&on, i));
        let exact = |x: f32| if x == 0.0 { "0".to_owned() } else { format!("{x:.5}") };
        table.row([i.to_string(), (i + 1).to_string(), exact(without), exact(with), exact(kept)]);
        positions.push(json!({
            "position": i, "keys": i + 1,
            "future_without": single(without), "future_with": single(with), "past_with": single(kept),
        }));
    }
    let labels: Vec<String> = (0..tokens).map(|i| i.to_string()).collect();
    let figures = json!({
        "seed": seed, "tokens": tokens, "dim": dim, "positions": positions,
        "weights_without": rows(&off), "weights_with": rows(&on),
    });
    Report::new(figures).table(table).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let (off, on) = ((tr("mask off", "마스크 끔"), off.clone()), (tr("mask on", "마스크 켬"), on.clone()));
        Ok(Compare::new(off, on, labels.clone(), labels.clone())?
            .panels(Panels::Both)
            .note(tr("the same queries and keys", "쿼리와 키는 같음"))
            .title(tr("The causal mask, off and on", "인과 마스크를 끄고 켰을 때"))
            .language(language))
    })
}
