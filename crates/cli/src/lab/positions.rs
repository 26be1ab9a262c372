//! Attention without positions is blind to order.

use std::sync::Arc;

use anyhow::{Result, bail};
use foveal::{Attention, Bias, Mask, Rope, RopeTable, add_positional_encoding};
use foveal_models::layer::{MultiHeadAttention, Random, Source};
use foveal_view::{Bars, Compare};
use ndarray::{Array2, Axis, s};
use serde_json::json;

use super::Experiment;
use super::knobs::{self, Knob};
use super::number::{largest_difference, rows, tiny};
use crate::arguments::Lab;
use crate::language::Language;
use crate::report::Report;
use crate::table::Table;

pub const EXPERIMENT: Experiment = Experiment {
    name: "positions",
    title: ["Blind to order, unless positions are told", "위치를 알려 주지 않으면 순서를 모릅니다"],
    description: [
        "Shuffle the tokens, and attention gives the same outputs in shuffled order: \"dog bites man\" and \"man bites dog\" are one to it. \
         Whatever tells positions ends that: sines added to the input, rotated queries and keys (RoPE), a penalty on distance (ALiBi). \
         A causal mask does, too, since it shows each token only what comes before.",
        "토큰의 순서를 섞으면 어텐션은 똑같은 출력을 섞인 순서대로 내놓습니다. 어텐션은 \"dog bites man\"과 \"man bites dog\"을 구별하지 못합니다. \
         입력에 더하는 사인파, 쿼리와 키의 회전(RoPE), 거리에 따른 감점(ALiBi)처럼 위치를 알려 주면 달라집니다. \
         앞에 온 토큰만 보여 주는 인과 마스크도 순서를 알려 줍니다.",
    ],
    knobs: &[Knob::Tokens, Knob::Dims, Knob::Seed],
    run,
};

/// Rounding alone stays below this.
const ROUNDING: f64 = 1e-4;

/// A way to tell positions.
struct Way {
    name: [&'static str; 2],
    sines: bool,
    rope: bool,
    attention: Attention,
}

fn ways() -> [Way; 5] {
    let way = |name, sines, rope, attention| Way { name, sines, rope, attention };
    [
        way(["none", "없음"], false, false, Attention::new()),
        way(["sines added to the input", "입력에 더한 사인파"], true, false, Attention::new()),
        way(["RoPE", "RoPE"], false, true, Attention::new()),
        way(["ALiBi", "ALiBi"], false, false, Attention::new().bias(Bias::alibi_with([0.5]))),
        way(["causal mask", "인과 마스크"], false, false, Attention::new().mask(Mask::causal())),
    ]
}

fn run(lab: &Lab, language: Language) -> Result<Report> {
    let tokens = knobs::one(Knob::Tokens, &lab.tokens, 6, 2..=64)?;
    let width = knobs::one(Knob::Dims, &lab.dims, 16, 2..=1024)?;
    if !width.is_multiple_of(2) {
        bail!("--dims {width} is odd, and positions come in pairs of dimensions; take {} or {}", width - 1, width + 1);
    }
    let seed = lab.seed.unwrap_or(1);
    let mut random = Random::new(seed);
    let x: Array2<f32> = random.normal((tokens, width), 1.0);
    let layer = MultiHeadAttention::new(width, 1, &mut random)?;
    let order = shuffled(tokens, &mut random);
    let tr = |english, korean| language.of(english, korean);
    let listed: Vec<String> = order.iter().map(usize::to_string).collect();
    let mut table = Table::new([
        tr("positions told by", "위치를 알려 주는 방법"),
        tr("largest difference", "최대 차이"),
        tr("of outputs up to", "출력의 최대 크기"),
        tr("sees the order", "순서를 아는가"),
    ])
    .title(format!("{} {}", tr("New order of the tokens:", "토큰의 새 순서:"), listed.join(" ")));
    let (mut differences, mut figures, mut scenes) = (Vec::new(), Vec::new(), Vec::new());
    for way in ways() {
        let name = super::of(language, way.name);
        let (before, weights) = attend(&layer, &x, &way)?;
        let (after, new_weights) = attend(&layer, &x.select(Axis(0), &order), &way)?;
        // What the outputs would be if only their order had changed.
        let reordered = before.select(Axis(0), &order);
        let difference = largest_difference(&reordered, &after);
        let size = before.iter().fold(0f32, |max, x| max.max(x.abs()));
        let sees = difference > ROUNDING;
        let answer = if sees { tr("yes", "예") } else { tr("no", "아니요") };
        table.row([name.to_owned(), tiny(difference), format!("{size:.3}"), answer.to_owned()]);
        differences.push((name, difference as f32));
        let reordered = weights.select(Axis(0), &order).select(Axis(1), &order);
        figures.push(json!({
            "positions": way.name[0], "difference": difference, "size": size, "sees_order": sees,
            "weights_reordered": rows(&reordered), "weights_after": rows(&new_weights),
        }));
        if way.sines {
            let first = (tr("weights before, reordered", "섞기 전 가중치를 재배열"), reordered);
            let second = (tr("weights after", "섞은 뒤 가중치"), new_weights);
            let title = format!("{}: {name}", tr("Shuffled tokens", "섞인 토큰"));
            scenes.push(Compare::new(first, second, &listed, &listed)?.title(title).language(language.into()).into());
        }
    }
    let bars = Bars::new(differences.iter().map(|(_, x)| *x), differences.iter().map(|(name, _)| *name))?
        .measure(tr("largest difference", "최대 차이"))
        .title(tr("Does a new order change the outputs?", "순서를 바꾸면 출력이 달라지는가?"))
        .note(tr(
            "largest difference to the old outputs in the new order",
            "기존 출력을 새 순서로 놓은 것과의 최대 차이",
        ))
        .language(language.into());
    scenes.insert(0, bars.into());
    let figures = json!({ "seed": seed, "tokens": tokens, "dim": width, "order": order, "ways": figures });
    Ok(Report { tables: vec![table], scenes, figures, ..Report::default() })
}

/// The outputs, [T, D], and the weights, [T, T].
fn attend(layer: &MultiHeadAttention, x: &Array2<f32>, way: &Way) -> Result<(Array2<f32>, Array2<f32>)> {
    let mut x = x.clone();
    if way.sines {
        add_positional_encoding(&mut x, 0)?;
    }
    let mut layer = layer.clone();
    if way.rope {
        layer = layer.clone().with_rope(&Arc::new(RopeTable::new(Rope::new(layer.head_dim())?)));
    }
    let (y, record) = layer.infer(&x, 1, Source::Own, &way.attention)?;
    Ok((y, record.weights()?.slice(s![0, 0, .., ..]).to_owned()))
}

/// Another order than the old one.
fn shuffled(tokens: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tokens).collect();
    for i in (1..tokens).rev() {
        order.swap(i, random.below(i + 1));
    }
    if order.is_sorted() {
        order.reverse();
    }
    order
}
