//! The exercises that are programs. Mistaken programs are part of this one: what they answer is had by running them.

use foveal::{Align, Attention, Mask, causal_mask};
use foveal_labs::{Bilingual, Text, text};
use foveal_models::layer::Random;
use ndarray::{Array2, Axis};

use super::{four, output, softmax};
use crate::code::{Case, Code, Mistaken};
use crate::number::{list, wide};
use crate::{Result, Task};

macro_rules! programs {
    ($($module:ident: $folder:literal, $file:literal;)*) => {$(
        #[allow(clippy::all, unused, reason = "as learners write")]
        mod $module {
            mod answer {
                include!(concat!("../../code/", $folder, "/", $file));
            }
            mod run_it {
                include!(concat!("../../code/", $folder, "/run.rs"));
            }
            pub const TEXT: &str = include_str!(concat!("../../code/", $folder, "/", $file));
            pub fn run(case: &[f64]) -> Vec<f64> {
                run_it::run(case)
            }
        }
    )*};
}

programs! {
    softmax_overflow: "softmax", "wrong_overflow.rs";
    softmax_unnormalised: "softmax", "wrong_unnormalised.rs";
    softmax_linear: "softmax", "wrong_linear.rs";
    attention_unscaled: "attention", "wrong_unscaled.rs";
    attention_by_keys: "attention", "wrong_by_keys.rs";
    attention_by_d: "attention", "wrong_by_d.rs";
    attention_axis: "attention", "wrong_axis.rs";
    causal_inverted: "causal", "wrong_inverted.rs";
    causal_first: "causal", "wrong_first.rs";
    causal_strict: "causal", "wrong_strict.rs";
    masked_large: "masked-softmax", "wrong_large.rs";
    masked_nan: "masked-softmax", "wrong_nan.rs";
    masked_after: "masked-softmax", "wrong_after.rs";
    masked_inverted: "masked-softmax", "wrong_inverted.rs";
    flash_unscaled: "flash", "wrong_unscaled.rs";
    flash_overflow: "flash", "wrong_overflow.rs";
    flash_mix: "flash", "wrong_mix.rs";
    engine_open: "engine", "wrong_open.rs";
    engine_unscaled: "engine", "wrong_unscaled.rs";
}

macro_rules! code {
    ($folder:literal, $engine:literal, $cases:expr, [$(($name:literal, $module:ident, $why:expr)),* $(,)?]) => {{
        let cases: Vec<Case> = $cases;
        let mistakes = vec![$(Mistaken {
            name: $name,
            program: $module::TEXT,
            answers: cases.iter().map(|case| $module::run(&case.input)).collect(),
            why: $why,
        }),*];
        Code {
            start: Bilingual {
                en: include_str!(concat!("../../code/", $folder, "/start.en.rs")),
                ko: include_str!(concat!("../../code/", $folder, "/start.ko.rs")),
            },
            solution: include_str!(concat!("../../code/", $folder, "/solution.rs")),
            run: include_str!(concat!("../../code/", $folder, "/run.rs")),
            engine: $engine,
            cases,
            mistakes,
        }
    }};
}

fn row(scores: &[f64]) -> Array2<f32> {
    Array2::from_shape_fn((1, scores.len()), |(_, j)| scores[j] as f32)
}

pub(super) fn softmax_task() -> Result<Task> {
    let mut cases = Vec::new();
    for scores in [&[1.0, 0.0, 0.5][..], &[-2.0, 0.25, 3.0, 3.0], &[7.0], &[1000.0, 999.0, 0.0], &[-1000.0, -1001.0]] {
        let expected = wide(&softmax(&row(scores), Mask::none())?);
        let shown = Text::from(format!("softmax({})", list(scores.iter().copied())));
        cases.push(Case { input: scores.to_vec(), expected, shown });
    }
    let code = code!(
        "softmax",
        false,
        cases,
        [
            (
                "overflow",
                softmax_overflow,
                text(
                    "With scores of 1,000 it gives NaN: e^1000 is more than a number can hold, and ∞/∞ is NaN. Subtract the largest score first; the weights stay the same.",
                    "점수가 1,000이면 NaN이 나옵니다. e^1000은 수로 담을 수 없을 만큼 크고, ∞/∞는 NaN입니다. 먼저 가장 큰 점수를 빼십시오. 가중치는 그대로입니다.",
                )
            ),
            (
                "not-normalised",
                softmax_unnormalised,
                text(
                    "The exponentials are not divided by their sum: they must add up to 1.",
                    "지수 함수의 값을 합으로 나누지 않았습니다. 더해서 1이 되어야 합니다.",
                )
            ),
            (
                "no-exponential",
                softmax_linear,
                text(
                    "The scores are divided by their sum, without e to their power: negative scores would get negative weights.",
                    "e의 지수로 올리지 않고 점수를 그냥 합으로 나누었습니다. 그러면 음수 점수는 음수 가중치를 받습니다.",
                )
            ),
        ]
    );
    let question = text(
        "Write softmax. It is run on scores that you do not see, large ones among them.",
        "소프트맥스를 쓰십시오. 보이지 않는 점수로 시험하며, 큰 점수도 있습니다.",
    );
    Ok(Task::code(question, code)
        .hint(
            "e to the power of each score, divided by the sum of all.",
            "점수마다 e의 지수로 올리고, 그 합으로 나눕니다.",
        )
        .hint("Let m be the largest score: use e^(s − m).", "가장 큰 점수를 m이라 하고 e^(s − m)을 쓰십시오.")
        .hint(
            "scores.iter().fold(f64::MIN, |m, s| m.max(*s)) is the largest.",
            "scores.iter().fold(f64::MIN, |m, s| m.max(*s))가 가장 큰 점수입니다.",
        )
        .because("It is right for scores of any size.", "점수가 아무리 커도 맞습니다."))
}

/// T, S, D, then q, k and v: random, or of one pattern.
fn arrays(seed: u64, [t, s, d]: [usize; 3], values: usize) -> (Vec<f64>, [Array2<f32>; 3]) {
    let mut random = Random::new(seed);
    let q: Array2<f32> = random.normal((t, d), 1.5);
    let (k, v): (Array2<f32>, Array2<f32>) = (random.normal((s, d), 1.5), random.normal((s, values), 1.0));
    let sizes = [t, s, d, values].map(|size| size as f64);
    let input = sizes.into_iter().chain(wide(&q)).chain(wide(&k)).chain(wide(&v)).collect();
    (input, [q, k, v])
}

pub(super) fn attention_task() -> Result<Task> {
    let mut cases = Vec::new();
    for (seed, sizes, values) in [(1, [1, 3, 4], 2), (2, [3, 5, 2], 3), (3, [4, 2, 9], 1)] {
        let (input, [q, k, v]) = arrays(seed, sizes, values);
        let expected = wide(&output(&Attention::new(), &q, &k, &v)?);
        let [t, s, d] = sizes;
        let shown = Text::from(format!("attention(q: {t} × {d}, k: {s} × {d}, v: {s} × {values})"));
        cases.push(Case { input, expected, shown });
    }
    let code = code!(
        "attention",
        false,
        cases,
        [
            (
                "no-scale",
                attention_unscaled,
                text(
                    "You forgot the scale: divide the scores by √d, the root of the length of a query.",
                    "스케일을 잊으셨습니다. 점수를 √d, 곧 쿼리 길이의 제곱근으로 나누십시오.",
                )
            ),
            (
                "t-for-d",
                attention_by_keys,
                text(
                    "The scale is the root of the number of keys: T and d are confused. d is the length of a query, q[0].len().",
                    "키 개수의 제곱근으로 나누었습니다. T와 d를 헷갈리셨습니다. d는 쿼리의 길이 q[0].len()입니다.",
                )
            ),
            (
                "scale-by-d",
                attention_by_d,
                text("The scores are divided by d instead of √d.", "점수를 √d가 아니라 d로 나누었습니다.",)
            ),
            (
                "wrong-axis",
                attention_axis,
                text(
                    "The softmax runs over the queries: each column adds up to 1. It is the query that distributes, so each row must.",
                    "소프트맥스를 쿼리 방향으로 해서 열마다 합이 1입니다. 나누어 주는 것은 쿼리이므로 행마다 합이 1이어야 합니다.",
                )
            ),
        ]
    );
    let question = text(
        "Write attention: softmax(Q·Kᵀ/√d)·V, for any number of queries and keys.",
        "어텐션 softmax(Q·Kᵀ/√d)·V를 쓰십시오. 쿼리와 키의 개수는 아무래도 좋아야 합니다.",
    );
    Ok(Task::code(question, code)
        .hint(
            "For each query: the scores with all keys, their softmax, the mixture of the rows of v.",
            "쿼리마다 모든 키와의 점수, 소프트맥스, v의 행들의 혼합을 구합니다.",
        )
        .hint("The scale is 1/√d with d = q[0].len().", "스케일은 1/√d이고 d = q[0].len()입니다.")
        .because("This is the whole of it; everything else is speed.", "이것이 전부입니다. 나머지는 모두 속도입니다."))
}

pub(super) fn causal_task() -> Result<Task> {
    let mut cases = Vec::new();
    for (queries, keys) in [(3usize, 3usize), (1, 1), (2, 5), (5, 2)] {
        let mask = causal_mask(queries, keys, &Align::Last)?;
        let expected = mask.iter().map(|visible| f64::from(u8::from(*visible))).collect();
        let shown = Text::from(format!("causal({queries}, {keys})"));
        cases.push(Case { input: vec![queries as f64, keys as f64], expected, shown });
    }
    let code = code!(
        "causal",
        false,
        cases,
        [
            (
                "mask-inverted",
                causal_inverted,
                text(
                    "The mask is inverted: true must mean visible, and here it marks what is hidden.",
                    "마스크가 뒤집혔습니다. true는 보임이어야 하는데, 가린 곳에 true가 있습니다.",
                )
            ),
            (
                "align-first",
                causal_first,
                text(
                    "It is right for as many queries as keys. With fewer, the queries are the last tokens: query 0 stands at key S − T.",
                    "쿼리와 키의 수가 같을 때는 맞습니다. 쿼리가 더 적으면 쿼리는 마지막 토큰들이므로, 쿼리 0은 키 S − T에 서 있습니다.",
                )
            ),
            (
                "without-itself",
                causal_strict,
                text(
                    "A token may see itself: j ≤ i, not j < i.",
                    "토큰은 자기 자신을 볼 수 있습니다. j < i가 아니라 j ≤ i입니다.",
                )
            ),
        ]
    );
    let question = text(
        "Write the causal mask for T queries and S keys: true is visible. The last query stands at the last key, as when a model writes with a cache.",
        "쿼리 T개, 키 S개의 인과 마스크를 쓰십시오. true가 보임입니다. 캐시를 쓰며 글을 쓸 때처럼 마지막 쿼리가 마지막 키에 서 있습니다.",
    );
    Ok(Task::code(question, code)
        .hint("With T = S: query i sees key j where j ≤ i.", "T = S이면 쿼리 i는 j ≤ i인 키 j를 봅니다.")
        .hint(
            "Query i stands at key i + S − T. S − T may be negative: compare j + T ≤ i + S.",
            "쿼리 i는 키 i + S − T에 서 있습니다. S − T는 음수일 수 있으므로 j + T ≤ i + S를 비교하십시오.",
        )
        .because("Align::Last is the engine's name for it.", "엔진에서는 이것을 Align::Last라고 부릅니다."))
}

pub(super) fn masked_task() -> Result<Task> {
    let mut cases = Vec::new();
    let (yes, no) = (1.0, 0.0);
    for (scores, visible) in [
        (&[2.0, 1.0, 0.5][..], &[yes, no, yes][..]),
        (&[0.3, 5.0], &[yes, no]),
        (&[2.0, 1.0, 0.0], &[no, no, no]),
        (&[1.0, 1.5, -2.0, 0.0], &[yes, yes, yes, yes]),
    ] {
        let keep = Array2::from_shape_fn((1, visible.len()), |(_, j)| visible[j] == yes);
        let mask = Mask::dense(keep.insert_axis(Axis(0)).insert_axis(Axis(0)));
        let expected = wide(&softmax(&row(scores), mask)?);
        let flags: Vec<&str> = visible.iter().map(|v| if *v == yes { "true" } else { "false" }).collect();
        let shown = Text::from(format!("masked_softmax({}, [{}])", list(scores.iter().copied()), flags.join(", ")));
        cases.push(Case { input: scores.iter().chain(visible).copied().collect(), expected, shown });
    }
    let code = code!(
        "masked-softmax",
        false,
        cases,
        [
            (
                "minus-1e9",
                masked_large,
                text(
                    "Where every key is hidden, −1e9 in place of −∞ leaves the differences between the scores: the row looks at everything that is hidden. It should be all 0.",
                    "모든 키가 가려진 행에서는 −∞ 대신 쓴 −1e9가 점수의 차이를 그대로 남깁니다. 가린 것을 모두 보는 셈입니다. 모두 0이어야 합니다.",
                )
            ),
            (
                "nan",
                masked_nan,
                text(
                    "Where every key is hidden, −∞ − (−∞) is NaN, and it spreads. Such a row should be all 0.",
                    "모든 키가 가려진 행에서는 −∞ − (−∞)가 NaN이 되어 퍼집니다. 그런 행은 모두 0이어야 합니다.",
                )
            ),
            (
                "mask-after-softmax",
                masked_after,
                text(
                    "The mask comes after the softmax: hidden scores have taken their share of the sum, and the row no longer adds up to 1.",
                    "소프트맥스를 한 다음에 가렸습니다. 가린 점수가 이미 제 몫을 가져가서 행의 합이 1이 아닙니다.",
                )
            ),
            (
                "mask-inverted",
                masked_inverted,
                text("The mask is inverted: true means visible.", "마스크가 뒤집혔습니다. true가 보임입니다.",)
            ),
        ]
    );
    let question = text(
        "Write softmax with a mask: hidden keys get exactly 0, the others add up to 1, and a row in which everything is hidden is all 0.",
        "마스크를 쓰는 소프트맥스를 쓰십시오. 가린 키는 정확히 0, 나머지는 더해서 1이고, 모두 가려진 행은 모두 0입니다.",
    );
    Ok(Task::code(question, code)
        .hint(
            "Take the largest score among the visible ones, and add up e^(s − m) of the visible ones.",
            "보이는 점수 가운데 가장 큰 것을 구하고, 보이는 것들의 e^(s − m)을 더하십시오.",
        )
        .hint(
            "If nothing is visible the sum is 0. Then there is nothing to divide by.",
            "보이는 것이 없으면 합이 0입니다. 그때는 나눌 것이 없습니다.",
        )
        .because("No NaN, no weight on what is hidden.", "NaN도 없고, 가린 것에 준 가중치도 없습니다."))
}

pub(super) fn flash_task() -> Result<Task> {
    let mut cases = Vec::new();
    for tiles in [
        &[&[1.0, 0.5][..], &[3.0, 2.0]][..],
        &[&[4.0, 1.0], &[2.0], &[-1.0, 0.0, 0.5]],
        &[&[900.0, 1.0], &[1000.0, 999.0]],
        &[&[-500.0, -501.0], &[-1000.0]],
    ] {
        let scores: Vec<f64> = tiles.iter().flat_map(|tile| tile.iter().copied()).collect();
        let values: Vec<f64> = (0..scores.len()).map(|j| (j + 1) as f64).collect();
        let v = Array2::from_shape_fn((values.len(), 1), |(j, _)| values[j] as f32);
        let (q, eye) = (row(&scores), Array2::eye(scores.len()));
        let fwd = Attention::new().scale(1.0).forward(four(&q), four(&eye), four(&v))?;
        let expected = vec![f64::from(fwd.out[[0, 0, 0, 0]]), fwd.lse[[0, 0, 0]]];
        let input =
            tiles.iter().flat_map(|tile| std::iter::once(tile.len() as f64).chain(tile.iter().copied())).collect();
        let shown = tiles.iter().map(|tile| list(tile.iter().copied())).collect::<Vec<_>>().join(", ");
        let shown = text(format!("tiles {shown}, values 1, 2, 3, …"), format!("타일 {shown}, 값 1, 2, 3, …"));
        cases.push(Case { input, expected, shown });
    }
    let code = code!(
        "flash",
        false,
        cases,
        [
            (
                "no-rescale",
                flash_unscaled,
                text(
                    "When a tile brings a larger score, what was there must be multiplied by e^(old − new), the sum and the mixture both.",
                    "타일에 더 큰 점수가 있으면 이미 있던 합과 혼합 모두에 e^(예전 − 새것)을 곱해야 합니다.",
                )
            ),
            (
                "overflow",
                flash_overflow,
                text(
                    "Large scores give ∞ or NaN: keep the largest score so far, and subtract it from every score.",
                    "점수가 크면 ∞나 NaN이 됩니다. 지금까지 가장 큰 점수를 담아 두고 모든 점수에서 빼십시오.",
                )
            ),
            (
                "mix-not-rescaled",
                flash_mix,
                text(
                    "The sum is brought over to the new maximum, the mixture of values is not.",
                    "합은 새 최댓값에 맞추었는데, 값의 혼합은 맞추지 않았습니다.",
                )
            ),
        ]
    );
    let question = text(
        "Write one step of FlashAttention: a tile of scores and values comes, and the largest score, the sum and the mixture are brought up to date.",
        "FlashAttention의 한 걸음을 쓰십시오. 점수와 값의 타일이 오면 가장 큰 점수, 합, 혼합을 새로 고칩니다.",
    );
    Ok(Task::code(question, code)
        .hint(
            "First the new maximum n of the old one and the scores of the tile.",
            "먼저 예전 최댓값과 타일의 점수에서 새 최댓값 n을 구하십시오.",
        )
        .hint(
            "Multiply sum and mixture by e^(max − n), then add the tile's terms e^(s − n) and e^(s − n)·v.",
            "합과 혼합에 e^(max − n)을 곱한 다음, 타일의 e^(s − n)과 e^(s − n)·v를 더하십시오.",
        )
        .hint(
            "At the start max is −∞, and e^(−∞ − n) is 0: nothing special to do.",
            "처음에 max는 −∞이고 e^(−∞ − n)은 0이므로 따로 할 일이 없습니다.",
        )
        .because(
            "Exact, in one pass, and nothing of the row is stored.",
            "한 번 훑어서 정확히 구하고, 행은 조금도 저장하지 않습니다.",
        ))
}

pub(super) fn engine_task() -> Result<Task> {
    let mut cases = Vec::new();
    for (seed, tokens, dim) in [(11, 4, 8), (12, 6, 2), (13, 3, 16)] {
        let (input, [q, k, v]) = arrays(seed, [tokens, tokens, dim], dim);
        let expected = wide(&output(&Attention::new().mask(Mask::causal()), &q, &k, &v)?);
        let shown = Text::from(format!("attend(q, k, v: 1 × 1 × {tokens} × {dim})"));
        cases.push(Case { input, expected, shown });
    }
    let code = code!(
        "engine",
        true,
        cases,
        [
            (
                "no-mask",
                engine_open,
                text(
                    "Every token sees the future: Attention::new() has no mask. Set one.",
                    "토큰마다 미래를 봅니다. Attention::new()에는 마스크가 없습니다. 마스크를 정하십시오.",
                )
            ),
            (
                "no-scale",
                engine_unscaled,
                text(
                    "The scale is 1. Leave it out: 1/√d is the default.",
                    "스케일이 1입니다. 지우십시오. 정하지 않으면 1/√d입니다.",
                )
            ),
        ]
    );
    let question = text(
        "Compute causal attention with the library: queries, keys and values are [batch, heads, tokens, dim]. (The first build takes a while.)",
        "라이브러리로 인과 어텐션을 계산하십시오. 쿼리, 키, 값은 [배치, 헤드, 토큰, 차원]입니다. (처음에는 컴파일에 시간이 걸립니다.)",
    );
    Ok(Task::code(question, code)
        .hint("Attention::new().mask(…)", "Attention::new().mask(…)")
        .hint("attention.forward(q, k, v)? gives .out and .lse.", "attention.forward(q, k, v)?는 .out과 .lse를 줍니다.")
        .because(
            "One call, exact, in O(n) memory, on all cores.",
            "호출 한 번으로 정확하게, O(n) 메모리로, 모든 코어에서 계산합니다.",
        ))
}
