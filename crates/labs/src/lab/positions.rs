//! Attention without positions is blind to order.

use std::collections::BTreeMap;
use std::sync::Arc;

use foveal::{Attention, Bias, Mask, Rope, RopeTable, add_positional_encoding, positional_encoding};
use foveal_models::layer::{MultiHeadAttention, Random, Source};
use foveal_view::{Bars, Compare, Heatmap, Numbers};
use ndarray::{Array2, Axis, s};
use serde_json::json;

use crate::number::{largest_difference, rows};
use crate::{Bilingual, Error, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "positions",
    title: Bilingual {
        en: "Blind to order, unless positions are told", ko: "위치를 알려 주지 않으면 순서를 모릅니다"
    },
    summary: Bilingual {
        en: "Shuffle the tokens, and attention gives the same outputs in shuffled order: \"dog bites man\" and \"man bites dog\" are one to it. \
         Whatever tells positions ends that: sines added to the input, rotated queries and keys (RoPE), a causal mask, since it shows each token only \
         what comes before. A penalty on distance alone (ALiBi) does not tell a sentence from its mirror image, in which all distances are the same: \
         models use it together with a causal mask.",
        ko: "토큰의 순서를 섞으면 어텐션은 똑같은 출력을 섞인 순서대로 내놓습니다. 어텐션은 \"dog bites man\"과 \"man bites dog\"을 구별하지 못합니다. \
         입력에 더하는 사인파, 쿼리와 키의 회전(RoPE)처럼 위치를 알려 주면 달라집니다. 앞에 온 토큰만 보여 주는 인과 마스크도 순서를 알려 줍니다. \
         거리에 따른 감점(ALiBi)만으로는 문장과 그것을 거꾸로 놓은 문장을 구별하지 못합니다. 거리가 모두 같기 때문입니다. 그래서 모델은 ALiBi를 인과 마스크와 함께 씁니다.",
    },
    knobs: &[TOKENS, DIMS, SEED],
    work,
};

const TOKENS: Knob = Knob::one(
    "tokens",
    Bilingual { en: "Tokens; 3 are dog, bites, man", ko: "토큰 수. 3개이면 dog, bites, man" },
    3,
    2..=64,
);
const DIMS: Knob = Knob::one("dims", Bilingual { en: "Width, an even number", ko: "너비(짝수)" }, 16, 2..=1024);
const SEED: Knob = Knob::seed();

/// Who bites whom is a matter of order.
const SENTENCE: [&str; 3] = ["dog", "bites", "man"];
/// Words up to which each has a column of its own.
const NAMED: usize = 6;
/// Positions and dimensions of the encoding that is drawn.
const DRAWN: (usize, usize) = (32, 64);

/// Rounding alone stays below this.
const ROUNDING: f64 = 1e-4;

/// A way to tell positions.
struct Way {
    name: Bilingual<&'static str>,
    sines: bool,
    rope: bool,
    attention: Attention,
}

fn ways() -> [Way; 6] {
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
        way(
            ["ALiBi and causal mask", "ALiBi와 인과 마스크"],
            false,
            false,
            Attention::new().bias(Bias::alibi_with([0.5])).mask(Mask::causal()),
        ),
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
    let (words, order) = sentence(tokens, &mut random);
    let listed: Vec<String> = order.iter().map(|&i| words[i].clone()).collect();
    let (old, new) = (words.join(" "), listed.join(" "));
    let each = if tokens <= NAMED { words.clone() } else { Vec::new() };
    let head = [text("positions told by", "위치를 알려 주는 방법")].into_iter();
    let head = head
        .chain(each.iter().map(|word| Text::from(word.clone())))
        .chain([text("largest", "최대"), text("sees the order", "순서를 아는가")]);
    let mut table = Table::new(head).title(text(
        format!("How much the output of each word differs between “{old}” and “{new}”"),
        format!("“{old}”와 “{new}”에서 단어마다 출력이 다른 정도"),
    ));
    let (mut differences, mut figures, mut compared) = (Vec::new(), Vec::new(), Vec::new());
    for way in ways() {
        let (before, weights) = attend(&layer, &x, &way)?;
        let (after, new_weights) = attend(&layer, &x.select(Axis(0), &order), &way)?;
        // What the outputs would be if only their order had changed.
        let reordered = before.select(Axis(0), &order);
        let difference = largest_difference(&reordered, &after);
        let by_word = order.iter().enumerate().map(|(now, &word)| {
            let difference =
                before.row(word).iter().zip(after.row(now)).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
            (word, f64::from(difference))
        });
        let by_word: BTreeMap<usize, f64> = by_word.collect();
        let size = before.iter().fold(0f32, |max, x| max.max(x.abs()));
        let sees = difference > ROUNDING;
        let answer = if sees { text("yes", "예") } else { text("no", "아니요") };
        let cell = |difference: f64| if difference < ROUNDING { "0".to_owned() } else { format!("{difference:.3}") };
        let cells = by_word.values().take(each.len()).map(|difference| cell(*difference).into());
        table.row([way.name.into()].into_iter().chain(cells).chain([cell(difference).into(), answer]));
        differences.push((way.name, difference as f32));
        let reordered = weights.select(Axis(0), &order).select(Axis(1), &order);
        figures.push(json!({
            "positions": way.name.en, "difference": difference, "by_word": by_word.values().collect::<Vec<_>>(), "size": size, "sees_order": sees,
            "weights_reordered": rows(&reordered), "weights_after": rows(&new_weights),
        }));
        if way.sines {
            compared.push((way.name, reordered, new_weights));
        }
    }
    let figures =
        json!({ "seed": seed, "tokens": tokens, "dim": width, "words": words, "order": order, "ways": figures });
    let encoding = positional_encoding(DRAWN.0, DRAWN.1)?;
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
    report.scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let number = |count: usize| (0..count).map(|i| i.to_string());
        Ok(Heatmap::new(encoding.clone(), number(DRAWN.0), number(DRAWN.1))?
            .axes(tr("Position", "위치"), tr("Dimension", "차원"))
            .measure("PE")
            .numbers(Numbers::Hidden)
            .title(tr("The positional encoding", "위치 인코딩"))
            .note("PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d))")
            .language(language))
    })
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

/// The words, and their new order: the sentence the other way round, or numbered tokens in any other order.
fn sentence(tokens: usize, random: &mut Random) -> (Vec<String>, Vec<usize>) {
    if tokens == SENTENCE.len() {
        return (SENTENCE.map(str::to_owned).to_vec(), vec![2, 1, 0]);
    }
    ((0..tokens).map(|i| i.to_string()).collect(), shuffled(tokens, random))
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
