//! Chapter 3: why the scores are divided by √d.

use foveal::Attention;
use foveal_labs::text;
use foveal_models::layer::Random;
use ndarray::{Array2, Axis, concatenate};

use super::{picture, weights};
use crate::{Exercise, Result, Task};

pub(crate) const SCALE: [Exercise; 3] = [
    Exercise::new("variance", 3, ["How large scores are", "점수의 크기"], variance),
    Exercise::new("which-scale", 3, ["Which row was not scaled?", "스케일하지 않은 행은?"], which_scale),
    Exercise::new("which-d", 3, ["Divided by the root of what?", "무엇의 제곱근으로 나누는가"], which_d),
];

fn variance() -> Result<Task> {
    let dim = 64u32;
    let d = f64::from(dim);
    let scale =
        f64::from(Attention::new().head_options((0, 0), (1, 1, dim as usize))?.map_or(1.0, |options| options.scale));
    let question = text(
        format!(
            "The entries of q and k are independent, with mean 0 and variance 1, and there are {dim} of them. What is the variance of q·k, what its standard deviation, and what the variance after the scale? Three numbers."
        ),
        format!(
            "q와 k의 성분은 서로 독립이고 평균 0, 분산 1이며 {dim}개씩입니다. q·k의 분산과 표준편차, 그리고 스케일을 적용한 뒤의 분산은 얼마입니까? 수 세 개를 쓰십시오."
        ),
    );
    Ok(Task::numbers(question, [d, d.sqrt(), d * scale * scale], 2)
        .hint(
            "Each product of two entries has variance 1, and variances of independent terms add up.",
            "성분 둘의 곱은 저마다 분산이 1이고, 독립인 항의 분산은 더해집니다.",
        )
        .hint("A number divided by c has a variance divided by c².", "수를 c로 나누면 분산은 c²으로 나뉩니다.")
        .mistake(
            "variance-by-c",
            [d, d.sqrt(), d.sqrt()],
            text(
                "The third: dividing by √d divides the variance by (√d)² = d, not by √d.",
                "셋째 수가 틀렸습니다. √d로 나누면 분산은 √d가 아니라 (√d)² = d로 나뉩니다.",
            ),
        )
        .mistake(
            "scale-by-d",
            [d, d.sqrt(), 1.0 / d],
            text(
                "The third would be right for a division by d. The scale divides by √d.",
                "셋째 수는 d로 나누었을 때의 분산입니다. 스케일은 √d로 나눕니다.",
            ),
        )
        .mistake(
            "deviation-for-variance",
            [d.sqrt(), d, 1.0],
            text(
                "The first two are exchanged: the variance is the sum of 64 ones.",
                "앞의 두 수가 바뀌었습니다. 분산은 1을 64번 더한 것입니다.",
            ),
        )
        .because(
            "d, √d, and 1 whatever d is: that is why √d and nothing else.",
            "d, √d, 그리고 d가 무엇이든 1입니다. 그래서 하필 √d로 나눕니다.",
        ))
}

fn which_scale() -> Result<Task> {
    let mut random = Random::new(7);
    let (q, k): (Array2<f32>, Array2<f32>) = (random.normal((1, 64), 1.0), random.normal((8, 64), 1.0));
    let of = |scale: f32| weights(&Attention::new().scale(scale), &q, &k);
    let rows = [of(0.125)?, of(1.0 / 64.0)?, of(1.0)?];
    let shown = concatenate(Axis(0), &[rows[0].view(), rows[1].view(), rows[2].view()]).expect("rows of eight weights");
    let question = text(
        "One query, eight keys, d = 64. The three rows are its weights with three scales. Which row is the softmax of q·k as it is, without any scale?",
        "쿼리 하나, 키 여덟 개, d = 64입니다. 세 행은 스케일 세 가지로 구한 가중치입니다. 스케일 없이 q·k를 그대로 소프트맥스에 넣은 행은 어느 것입니까?",
    );
    let wrong = vec![
        (
            "scaled",
            "q0".into(),
            text(
                "Scores over √64 have a variance of 1: some keys stand out, none takes all. This row is scaled as it should be.",
                "√64로 나눈 점수는 분산이 1입니다. 눈에 띄는 키는 있지만 독차지하는 키는 없습니다. 이 행은 제대로 스케일한 것입니다.",
            ),
        ),
        (
            "scale-by-d",
            "q1".into(),
            text(
                "All weights of this row are nearly equal: its scores are too small. It was divided by d instead of √d.",
                "이 행은 가중치가 거의 같습니다. 점수가 너무 작다는 뜻이고, √d가 아니라 d로 나눈 것입니다.",
            ),
        ),
    ];
    Ok(Task::choice(question, 2, "q2".into(), wrong)
        .scene(|language| picture(&shown, language))?
        .hint(
            "Without the scale, scores have a standard deviation of √64 = 8.",
            "스케일이 없으면 점수의 표준편차는 √64 = 8입니다.",
        )
        .hint(
            "A difference of 8 between two scores is a factor of 3,000 between their weights.",
            "점수가 8만큼 다르면 가중치는 3,000배 차이가 납니다.",
        )
        .because(
            "One key takes nearly everything: not because it fits so well, but because the vectors are long.",
            "키 하나가 거의 모두 가져갑니다. 그만큼 잘 맞아서가 아니라 벡터가 길기 때문입니다.",
        ))
}

fn which_d() -> Result<Task> {
    let (width, heads) = (768usize, 12usize);
    let dim = width / heads;
    let scale = Attention::new().head_options((0, 0), (1, 1, dim))?.map_or(1.0, |options| f64::from(options.scale));
    let question = text(
        "GPT-2 has a width of 768 and 12 heads. By what number does each head divide its scores?",
        "GPT-2의 너비는 768이고 헤드는 12개입니다. 각 헤드는 점수를 얼마로 나눕니까?",
    );
    Ok(Task::numbers(question, [1.0 / scale], 2)
        .hint("d is the length of the vectors that are multiplied.", "d는 곱하는 벡터의 길이입니다.")
        .hint("The width is shared out among the heads: 768 / 12.", "너비를 헤드들이 나누어 가집니다. 768 / 12")
        .mistake(
            "d-model",
            [(width as f64).sqrt()],
            text(
                "That is √768, the root of the whole width. Each head multiplies vectors of 768 / 12 = 64 entries.",
                "전체 너비의 제곱근 √768입니다. 헤드마다 곱하는 벡터의 성분은 768 / 12 = 64개입니다.",
            ),
        )
        .mistake(
            "no-root",
            [dim as f64],
            text("That is d. The scores are divided by its root.", "d 그 자체입니다. 점수는 그 제곱근으로 나눕니다."),
        )
        .mistake(
            "heads-for-d",
            [(heads as f64).sqrt()],
            text(
                "That is the root of the number of heads. d is the width of one head.",
                "헤드 개수의 제곱근입니다. d는 헤드 하나의 너비입니다.",
            ),
        )
        .because("768 / 12 = 64, and √64 = 8.", "768 / 12 = 64이고 √64 = 8입니다."))
}
