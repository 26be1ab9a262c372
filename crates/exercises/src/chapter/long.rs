//! Chapters 12 to 14: images, long texts, many passages.

use foveal::Attention;
use foveal_labs::text;
use ndarray::{Array2, array};

use super::{four, programs, weights};
use crate::number::{fixed, short};
use crate::{Exercise, Result, Task};

pub(crate) const LONG: [Exercise; 5] = [
    Exercise::new("patches", 12, ["An image as a sentence", "문장이 된 이미지"], patches),
    Exercise::new("running-softmax", 13, ["One more tile", "타일 하나 더"], running_softmax),
    Exercise::new("from-lse", 13, ["A weight from the log-sum-exp", "로그합지수에서 가중치로"], from_lse),
    Exercise::new("flash", 13, ["Program: the running softmax", "프로그램: 흘러가는 소프트맥스"], programs::flash_task),
    Exercise::new("fused", 14, ["Ten passages", "문단 열 개"], fused),
];

fn patches() -> Result<Task> {
    let count = |side: f64, patch: f64| (side / patch) * (side / patch);
    let (whole, half) = (count(224.0, 16.0), count(224.0, 8.0));
    let growth = (half * half) / (whole * whole);
    let question = text(
        "An image of 224 × 224 in patches of 16 × 16: how many patches? By what factor grows the work of attention with patches of 8 × 8? Two numbers.",
        "224 × 224 이미지를 16 × 16 패치로 자르면 패치는 몇 개입니까? 8 × 8 패치로 바꾸면 어텐션의 계산량은 몇 배가 됩니까? 수 두 개를 쓰십시오.",
    );
    Ok(Task::numbers(question, [whole, growth], 0)
        .hint("224 / 16 in each direction.", "가로와 세로로 각각 224 / 16입니다.")
        .hint(
            "Half the side gives four times as many patches; attention compares pairs.",
            "한 변이 절반이면 패치는 네 배이고, 어텐션은 쌍을 비교합니다.",
        )
        .mistake(
            "linear",
            [whole, 4.0],
            text("Four times as many patches, so 16 times as many pairs.", "패치가 네 배이므로 쌍은 16배입니다."),
        )
        .mistake("one-side", [14.0, growth], text("14 is the number along one side.", "14는 한 변의 개수입니다."))
        .mistake(
            "halved",
            [whole, 2.0],
            text(
                "Half the side in both directions: four times as many patches, and pairs grow with the square of that.",
                "가로와 세로 모두 절반이므로 패치는 네 배이고, 쌍은 그 제곱으로 늘어납니다.",
            ),
        )
        .mistake(
            "class-token",
            [whole + 1.0, growth],
            text("197 counts the class token, which is no patch.", "197은 패치가 아닌 클래스 토큰까지 센 수입니다."),
        )
        .because(
            "14 · 14 = 196 patches, and (4)² = 16 times the work.",
            "14 · 14 = 196개이고, 계산량은 4² = 16배입니다.",
        ))
}

fn running_softmax() -> Result<Task> {
    let (first, tile) = ([1.0f32, 0.5], [3.0f32, 2.0]);
    let sums = |scores: &[f32]| -> Result<(f64, f64)> {
        // From the engine: lse, and the largest score.
        let q = Array2::from_shape_fn((1, scores.len()), |(_, j)| scores[j]);
        let eye = Array2::eye(scores.len());
        let lse = Attention::new().scale(1.0).forward(four(&q), four(&eye), four(&eye))?.lse[[0, 0, 0]];
        let max = scores.iter().fold(f64::MIN, |max, s| max.max(f64::from(*s)));
        Ok((max, (lse - max).exp()))
    };
    let (m, l) = sums(&first)?;
    let (new_m, new_l) = sums(&[&first[..], &tile].concat())?;
    let of_tile: f64 = tile.iter().map(|s| (f64::from(*s) - new_m).exp()).sum();
    let question = text(
        format!(
            "So far m = {} and ℓ = {} (scores 1 and 0.5). A tile with the scores 3 and 2 comes. What are m and ℓ then? Two numbers, three digits after the point.",
            short(m),
            fixed(l, 5)
        ),
        format!(
            "지금까지 m = {}, ℓ = {}입니다(점수 1과 0.5). 점수 3과 2가 든 타일이 옵니다. m과 ℓ은 얼마가 됩니까? 수 두 개를 소수점 아래 셋째 자리까지 쓰십시오.",
            short(m),
            fixed(l, 5)
        ),
    );
    Ok(Task::numbers(question, [new_m, new_l], 3)
        .hint("The new maximum is 3.", "새 최댓값은 3입니다.")
        .hint(
            "What was there is brought over by the factor e^(m − n) = e^(1 − 3).",
            "이미 있던 합에는 e^(m − n) = e^(1 − 3)을 곱합니다.",
        )
        .hint("ℓ ← e^(−2)·ℓ + e^(3 − 3) + e^(2 − 3).", "ℓ ← e^(−2)·ℓ + e^(3 − 3) + e^(2 − 3)")
        .mistake(
            "no-rescale",
            [new_m, l + of_tile],
            text(
                "The old sum was taken with the old maximum. Multiply it by e^(1 − 3) first.",
                "예전 합은 예전 최댓값으로 구한 것입니다. 먼저 e^(1 − 3)을 곱하십시오.",
            ),
        )
        .mistake(
            "rescale-inverted",
            [new_m, l * (new_m - m).exp() + of_tile],
            text(
                "The factor is upside down: e^(m − n) with the old m and the new n, so e^(−2).",
                "곱하는 수가 뒤집혔습니다. 예전 m에서 새 n을 뺀 e^(m − n), 곧 e^(−2)입니다.",
            ),
        )
        .mistake(
            "tile-alone",
            [new_m, of_tile],
            text(
                "That is the tile alone. The keys before it still count.",
                "이 타일만 센 값입니다. 앞서 온 키들도 세어야 합니다.",
            ),
        )
        .because(
            format!("3 and {}: the same as of all four scores at once.", fixed(new_l, 3)),
            format!("3과 {}입니다. 점수 네 개를 한꺼번에 계산한 것과 같습니다.", fixed(new_l, 3)),
        ))
}

fn from_lse() -> Result<Task> {
    let (q, k) = (array![[1.2f32, 0.4]], array![[1.0f32, 0.0], [0.0, 1.0]]);
    let attention = Attention::new().scale(1.0);
    let lse = attention.forward(four(&q), four(&k), four(&k))?.lse[[0, 0, 0]];
    let score = f64::from(q[[0, 0]]);
    let right = f64::from(weights(&attention, &q, &k)?[[0, 0]]);
    let question = text(
        format!(
            "The row of a query has the log-sum-exp {}. The score of one of its keys is {}. What is the weight of this key? Three digits after the point.",
            fixed(lse, 4),
            short(score)
        ),
        format!(
            "어떤 쿼리의 행에서 로그합지수(lse)는 {}입니다. 한 키의 점수는 {}입니다. 이 키의 가중치는 얼마입니까? 소수점 아래 셋째 자리까지 쓰십시오.",
            fixed(lse, 4),
            short(score)
        ),
    );
    Ok(Task::numbers(question, [right], 3)
        .hint("lse = ln Σ e^s, so the sum below the fraction line is e^lse.", "lse = ln Σ e^s이므로 분모의 합은 e^lse입니다.")
        .hint("w = e^(s − lse).", "w = e^(s − lse)")
        .mistake("no-exponential", [score - lse], text("That is s − lse, the logarithm of the weight. e to that power.", "s − lse, 곧 가중치의 로그입니다. e의 지수로 올리십시오."))
        .mistake("divided-by-lse", [score.exp() / lse], text("e^s must be divided by the sum itself, e^lse, not by its logarithm.", "e^s를 합의 로그가 아니라 합 그 자체인 e^lse로 나누어야 합니다."))
        .mistake("ratio", [score / lse], text("Scores are no weights: e^s over e^lse, not s over lse.", "점수는 가중치가 아닙니다. s를 lse로 나누지 말고 e^s를 e^lse로 나누십시오."))
        .mistake("inverted", [(lse - score).exp()], text("Upside down: a weight is at most 1. e^(s − lse).", "뒤집혔습니다. 가중치는 1을 넘지 않습니다. e^(s − lse)입니다."))
        .because(
            "With Q, K and one number a row, any weight can be had again. This is how the map of 16,000 tokens is drawn.",
            "Q와 K, 그리고 행마다 수 하나만 있으면 어떤 가중치든 다시 구할 수 있습니다. 토큰 16,000개의 지도를 이렇게 그립니다.",
        ))
}

fn fused() -> Result<Task> {
    let (passages, tokens) = (10.0f64, 200.0f64);
    let (joined, fused) = ((passages * tokens).powi(2), passages * tokens * tokens);
    let question = text(
        "Ten passages of 200 tokens. How many pairs does the encoder's self-attention compare if they are joined into one text, and how many with Fusion-in-Decoder? Two numbers.",
        "토큰 200개짜리 문단이 열 개 있습니다. 한 글로 이어 붙이면 인코더의 셀프 어텐션은 몇 쌍을 비교하고, Fusion-in-Decoder로는 몇 쌍을 비교합니까? 수 두 개를 쓰십시오.",
    );
    Ok(Task::numbers(question, [joined, fused], 0)
        .hint("Joined: one text of 2,000 tokens.", "이어 붙이면 토큰 2,000개짜리 글 하나입니다.")
        .hint(
            "Fusion-in-Decoder encodes each passage by itself: ten times 200².",
            "Fusion-in-Decoder는 문단을 따로따로 인코딩합니다. 200²이 열 번입니다.",
        )
        .mistake(
            "one-passage",
            [joined, tokens * tokens],
            text("The second is one passage. There are ten.", "둘째 수는 문단 하나입니다. 열 개가 있습니다."),
        )
        .mistake(
            "same",
            [joined, joined],
            text(
                "In the encoder of Fusion-in-Decoder no passage looks at another; they meet in the decoder alone.",
                "Fusion-in-Decoder의 인코더에서는 문단끼리 서로 보지 않습니다. 디코더에서만 만납니다.",
            ),
        )
        .mistake(
            "tokens-for-pairs",
            [passages * tokens, tokens],
            text(
                "Those are tokens. Attention compares every token with every other: the square.",
                "토큰의 수입니다. 어텐션은 모든 토큰을 서로 비교하므로 제곱입니다.",
            ),
        )
        .because(
            "4,000,000 against 400,000: with k passages, k times fewer.",
            "4,000,000 대 400,000입니다. 문단이 k개이면 k배 적습니다.",
        ))
}
