//! Attention without positions is blind to order.

use std::sync::Arc;

use foveal::{Attention, Bias, Mask, Rope, RopeTable, add_positional_encoding};
use foveal_models::layer::{MultiHeadAttention, Random, Source};
use foveal_view::{Bars, Compare};
use ndarray::{Array2, Axis, s};
use serde_json::json;

use crate::number::{largest_difference, rows, tiny};
use crate::{Bilingual, Error, Knob, Knobs, Lab, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "positions",
    title: Bilingual {
        en: "Blind to order, unless positions are told", ko: "위치를 알려 주지 않으면 순서를 모릅니다"
    },
    summary: Bilingual {
        en: "Shuffle the tokens, and attention gives the same outputs in shuffled order: \"dog bites man\" and \"man bites dog\" are one to it. \
         Whatever tells positions ends that: sines added to the input, rotated queries and keys (RoPE), a penalty on distance (ALiBi). \
         A causal mask does, too, since it shows each token only what comes before.",
        ko: "토큰의 순서를 섞으면 어텐션은 똑같은 출력을 섞인 순서대로 내놓습니다. 어텐션은 \"dog bites man\"과 \"man bites dog\"을 구별하지 못합니다. \
         입력에 더하는 사인파, 쿼리와 키의 회전(RoPE), 거리에 따른 감점(ALiBi)처럼 위치를 알려 주면 달라집니다. \
         앞에 온 토큰만 보여 주는 인과 마스크도 순서를 알려 줍니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob = Knob::one("tokens", Bilingual { en: "Tokens", ko: "토큰 수" }, 6, 2..=64);
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Width, an even number", ko: "너비(짝수)" }, 16, 2..=1024);
const SEED: Knob = Knob::seed();

/// Rounding alone stays below this.
const ROUNDING: f64 = 1e-4;

/// A way to tell positions.
struct Way {
    name: Bilingual<&'static str>,
    sines: bool,
    rope: bool,
    attention: Attention,
}

fn ways() -> [Way; 5] {
    let way = |[en, ko]: [&'static str; 2], sines, rope, attention| Way {
        name: Bilingual { en, ko },
        sines,
        rope,
        attention,
    };
    [
        way(["none", "없음"], false, false, Attention::new()),
        way(["sines added to the input", "입력에 더한 사인파"], true, false, Attention::new()),
        way(["RoPE", "RoPE"], false, true, Attention::new()),
        way(["ALiBi", "ALiBi"], false, false, Attention::new().bias(Bias::alibi_with([0.5]))),
        way(["causal mask", "인과 마스크"], false, false, Attention::new().mask(Mask::causal())),
    ]
}

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (tokens, width) = (knobs.get_one(&TOKENS), knobs.get_one(&DIMS));
    if !width.is_multiple_of(2) {
        let (less, more) = (width - 1, width + 1);
        return Err(Error::knob(
            format!("--dims {width} is odd, and positions come in pairs of dimensions; take {less} or {more}"),
            format!(
                "--dims {width}은(는) 홀수인데, 위치는 차원 두 개씩 나타냅니다. {less}(이)나 {more}을(를) 쓰십시오"
            ),
        ));
    }
    let seed = knobs.get_seed(&SEED);
    let mut random = Random::new(seed);
    let x: Array2<f32> = random.normal((tokens, width), 1.0);
    let layer = MultiHeadAttention::new(width, 1, &mut random)?;
    let order = shuffled(tokens, &mut random);
    let listed: Vec<String> = order.iter().map(usize::to_string).collect();
    let mut table = Table::new([
        text("positions told by", "위치를 알려 주는 방법"),
        text("largest difference", "최대 차이"),
        text("of outputs up to", "출력의 최대 크기"),
        text("sees the order", "순서를 아는가"),
    ])
    .title(text("New order of the tokens: ", "토큰의 새 순서: ").map(|title| title + &listed.join(" ")));
    let (mut differences, mut figures, mut compared) = (Vec::new(), Vec::new(), Vec::new());
    for way in ways() {
        let (before, weights) = attend(&layer, &x, &way)?;
        let (after, new_weights) = attend(&layer, &x.select(Axis(0), &order), &way)?;
        // What the outputs would be if only their order had changed.
        let reordered = before.select(Axis(0), &order);
        let difference = largest_difference(&reordered, &after);
        let size = before.iter().fold(0f32, |max, x| max.max(x.abs()));
        let sees = difference > ROUNDING;
        let answer = if sees { text("yes", "예") } else { text("no", "아니요") };
        table.row([way.name.into(), tiny(difference).into(), format!("{size:.3}").into(), answer]);
        differences.push((way.name, difference as f32));
        let reordered = weights.select(Axis(0), &order).select(Axis(1), &order);
        figures.push(json!({
            "positions": way.name.en, "difference": difference, "size": size, "sees_order": sees,
            "weights_reordered": rows(&reordered), "weights_after": rows(&new_weights),
        }));
        if way.sines {
            compared.push((way.name, reordered, new_weights));
        }
    }
    let figures = json!({ "seed": seed, "tokens": tokens, "dim": width, "order": order, "ways": figures });
    let mut report = Report::new(figures).table(table).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let names = differences.iter().map(|(name, _)| *name.get(language));
        Ok(Bars::new(differences.iter().map(|(_, x)| *x), names)?
            .measure(tr("largest difference", "최대 차이"))
            .title(tr("Does a new order change the outputs?", "순서를 바꾸면 출력이 달라지는가?"))
            .note(tr(
                "largest difference to the old outputs in the new order",
                "기존 출력을 새 순서로 놓은 것과의 최대 차이",
            ))
            .language(language))
    })?;
    for (name, reordered, after) in compared {
        report = report.scene(|language| {
            let tr = |english, korean| language.choose(english, korean);
            let first = (tr("weights before, reordered", "섞기 전 가중치를 재배열"), reordered.clone());
            let second = (tr("weights after", "섞은 뒤 가중치"), after.clone());
            let title = format!("{}: {}", tr("Shuffled tokens", "섞인 토큰"), name.get(language));
            Ok(Compare::new(first, second, &listed, &listed)?.title(title).language(language))
        })?;
    }
    Ok(report)
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
