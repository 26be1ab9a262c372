//! Chapter 4: masks.

use foveal::{Align, Mask, causal_mask};
use foveal_labs::{Text, text};
use ndarray::{Array2, array};

use super::{picture, programs, softmax};
use crate::number::{list, matrix, wide};
use crate::{Exercise, Result, Task};

pub(crate) const MASKS: [Exercise; 9] = [
    Exercise::new("mask-1", 4, ["Which mask is this? (1)", "어떤 마스크입니까? (1)"], mask_1),
    Exercise::new("mask-2", 4, ["Which mask is this? (2)", "어떤 마스크입니까? (2)"], mask_2),
    Exercise::new("mask-3", 4, ["Which mask is this? (3)", "어떤 마스크입니까? (3)"], mask_3),
    Exercise::new("causal-row", 4, ["A row under the causal mask", "인과 마스크를 쓴 한 행"], causal_row),
    Exercise::new("hidden-row", 4, ["A row that sees nothing", "아무것도 보지 못하는 행"], hidden_row),
    Exercise::new("convention", 4, ["True, but of what?", "참은 무엇이 참입니까?"], convention),
    Exercise::new("causal", 4, ["Program: the causal mask", "프로그램: 인과 마스크"], programs::causal_task),
    Exercise::new(
        "masked-softmax",
        4,
        ["Program: softmax with a mask", "프로그램: 마스크를 쓴 소프트맥스"],
        programs::masked_task,
    ),
    Exercise::new(
        "engine",
        4,
        ["Program: causal attention with the library", "프로그램: 라이브러리로 하는 인과 어텐션"],
        programs::engine_task,
    ),
];

/// What a picture of a mask may be taken for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Causal,
    Inverted,
    Padding,
    Window,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Causal, Kind::Inverted, Kind::Padding, Kind::Window];

    fn name(self) -> (&'static str, Text) {
        match self {
            Kind::Causal => ("causal", text("a causal mask", "인과 마스크(causal mask)")),
            Kind::Inverted => ("mask-inverted", text("a causal mask, inverted", "뒤집힌 인과 마스크")),
            Kind::Padding => (
                "padding",
                text(
                    "a padding mask: two of six keys are filling",
                    "패딩 마스크(padding mask): 키 여섯 개 중 둘이 채움",
                ),
            ),
            Kind::Window => {
                ("window", text("a causal mask with a window of three keys", "키 세 개짜리 창이 있는 인과 마스크"))
            }
        }
    }

    /// Why a picture of something else is not this.
    fn refuted(self) -> Text {
        match self {
            Kind::Causal => text(
                "Under a causal mask the last query sees every key, and the first sees one.",
                "인과 마스크에서는 마지막 쿼리가 모든 키를 보고, 첫 쿼리는 하나만 봅니다.",
            ),
            Kind::Inverted => text(
                "Inverted, every query would see only what comes after it, and the last one nothing at all.",
                "뒤집힌 마스크라면 쿼리마다 자기 뒤만 보고, 마지막 쿼리는 아무것도 보지 못합니다.",
            ),
            Kind::Padding => text(
                "Padding hides the same keys from every query: whole columns are empty.",
                "패딩은 모든 쿼리에게서 같은 키를 가립니다. 열이 통째로 비어 있어야 합니다.",
            ),
            Kind::Window => text(
                "With a window no query sees more than three keys: a band along the diagonal.",
                "창이 있으면 어느 쿼리도 키를 세 개 넘게 보지 못합니다. 대각선을 따라 띠가 보여야 합니다.",
            ),
        }
    }

    fn mask(self, tokens: usize) -> Result<Mask> {
        Ok(match self {
            Kind::Causal => Mask::causal(),
            Kind::Inverted => {
                let hidden = causal_mask(tokens, tokens, &Align::Last)?.mapv(|visible| !visible);
                Mask::dense(hidden.insert_axis(ndarray::Axis(0)).insert_axis(ndarray::Axis(0)))
            }
            Kind::Padding => Mask::padding([tokens - 2]),
            Kind::Window => Mask::window(2, 0),
        })
    }
}

/// A drawn mask, and four to choose from. Weights are drawn, since these are what one gets to see.
fn which(kind: Kind, right: usize, because: Text) -> Result<Task> {
    let tokens = 6;
    let scores = Array2::from_shape_fn((tokens, tokens), |(i, j)| ((3 * i + 5 * j) % 7) as f32 / 7.0);
    let weights = softmax(&scores, kind.mask(tokens)?)?;
    let question = text(
        "Six queries, six keys. The weights below are not 0 where a query may look. Which mask is it?",
        "쿼리 여섯, 키 여섯입니다. 쿼리가 볼 수 있는 곳에서는 가중치가 0이 아닙니다. 어떤 마스크입니까?",
    );
    let others = Kind::ALL.into_iter().filter(|other| *other != kind);
    let wrong = others.map(|other| (other.name().0, other.name().1, other.refuted())).collect();
    let mut task = Task::choice(question, right, kind.name().1, wrong)
        .scene(|language| picture(&weights, language))?
        .hint("Rows are queries. Read the first row and the last.", "행이 쿼리입니다. 첫 행과 마지막 행을 읽으십시오.")
        .hint(
            "Is any column empty? Does any query see a key after its own position?",
            "빈 열이 있습니까? 자기보다 뒤에 있는 키를 보는 쿼리가 있습니까?",
        );
    task.explanation = because;
    Ok(task)
}

fn mask_1() -> Result<Task> {
    which(
        Kind::Causal,
        2,
        text(
            "A lower triangle: query i sees keys 0 to i, itself included.",
            "아래 삼각형입니다. 쿼리 i는 키 0부터 자기 자신인 i까지 봅니다.",
        ),
    )
}

fn mask_2() -> Result<Task> {
    which(
        Kind::Padding,
        0,
        text(
            "The last two columns are empty for every query: nobody may look at filling.",
            "마지막 두 열이 모든 쿼리에게 비어 있습니다. 채움은 아무도 보아서는 안 됩니다.",
        ),
    )
}

fn mask_3() -> Result<Task> {
    which(
        Kind::Window,
        3,
        text(
            "A band: each query sees itself and two keys before. Long texts are read so.",
            "띠 모양입니다. 쿼리마다 자기와 앞의 키 두 개를 봅니다. 긴 글을 이렇게 읽기도 합니다.",
        ),
    )
}

fn causal_row() -> Result<Task> {
    let scores = array![[2.1f32, 1.5, 0.8, 1.2], [1.3, 2.5, 1.1, 0.9], [0.7, 1.8, 2.2, 1.4], [1.0, 1.6, 1.9, 2.3]];
    let causal = softmax(&scores, Mask::causal())?;
    let open = softmax(&scores, Mask::none())?;
    let inverted = softmax(&scores, Kind::Inverted.mask(4)?)?;
    let strict = softmax(&scores, strictly_before(4))?;
    let after: Vec<f64> = (0..4).map(|j| if j <= 1 { f64::from(open[[1, j]]) } else { 0.0 }).collect();
    let row = |x: &Array2<f32>| wide(x.row(1));
    let right = row(&causal);
    let question = text(
        "These scores are scaled already. What are the four weights of q1 under a causal mask? Three digits after the point.",
        "이미 스케일한 점수입니다. 인과 마스크를 쓸 때 q1의 가중치 네 개는 얼마입니까? 소수점 아래 셋째 자리까지 쓰십시오.",
    );
    Ok(Task::weights(question, right.clone(), 3)
        .table(matrix(&scores, "q", "k"))
        .hint("q1 sees k0 and k1.", "q1은 k0과 k1을 봅니다.")
        .hint("Softmax over 1.3 and 2.5 alone; the others are exactly 0.", "1.3과 2.5만으로 소프트맥스를 합니다. 나머지는 정확히 0입니다.")
        .mistake("no-mask", row(&open), text(
            "That is the softmax of all four scores: no mask at all. q1 may not look at k2 and k3.",
            "점수 네 개 모두에 소프트맥스를 한 값입니다. 마스크가 없습니다. q1은 k2와 k3을 볼 수 없습니다.",
        ))
        .mistake("mask-inverted", row(&inverted), text(
            "The mask is inverted: q1 sees only what comes after it. It must see itself and what came before.",
            "마스크가 뒤집혔습니다. q1이 자기 뒤만 봅니다. 자기와 그 앞을 보아야 합니다.",
        ))
        .mistake("mask-after-softmax", after, text(
            "The mask came after the softmax: the row no longer adds up to 1. Hide the scores first, then take the softmax.",
            "소프트맥스를 한 다음에 가렸습니다. 그러면 행의 합이 1이 아닙니다. 먼저 점수를 가리고 소프트맥스를 하십시오.",
        ))
        .mistake("without-itself", row(&strict), text(
            "q1 sees itself, too: j ≤ i, not j < i.",
            "q1은 자기 자신도 봅니다. j < i가 아니라 j ≤ i입니다.",
        ))
        .because(
            format!("{}: hidden weights are exactly 0, and what is left is shared out anew.", list(right.iter().copied())),
            format!("{}입니다. 가린 가중치는 정확히 0이고, 그 몫은 남은 키에 다시 나뉩니다.", list(right.iter().copied())),
        ))
}

/// A causal mask that leaves out the query itself.
fn strictly_before(tokens: usize) -> Mask {
    let keep = Array2::from_shape_fn((tokens, tokens), |(i, j)| j < i);
    Mask::dense(keep.insert_axis(ndarray::Axis(0)).insert_axis(ndarray::Axis(0)))
}

fn hidden_row() -> Result<Task> {
    let scores = array![[2.0f32, 1.0, 0.0]];
    let right = wide(&softmax(&scores, Mask::padding([0]))?);
    let ordinary = wide(&softmax(&scores, Mask::none())?);
    // In 32 bits −1e9 + 2 is −1e9: the scores are lost, and the row becomes an even one.
    let added = wide(&softmax(&(&scores - 1e9), Mask::none())?);
    let question = text(
        "A query has the scores 2, 1, 0, and a mask hides all three keys. Which weights should it get, so that nothing hidden is seen and nothing breaks? Three numbers.",
        "쿼리의 점수는 2, 1, 0인데 마스크가 키 세 개를 모두 가립니다. 가린 것은 보이지 않고 아무것도 망가지지 않으려면 가중치가 얼마여야 합니까? 수 세 개를 쓰십시오.",
    );
    Ok(Task::numbers(question, right, 3)
        .hint("The formula gives 0/0. Something must be agreed on.", "수식대로면 0/0입니다. 무엇으로 할지 약속해야 합니다.")
        .hint("A weight on a hidden key would let it be seen. NaN would spread through the model.", "가린 키에 가중치를 주면 그것을 보게 됩니다. NaN은 모델 전체로 퍼집니다.")
        .mistake("minus-1e9", added, text(
            "That is what −1e9 in place of −∞ gives in 32 bits: the row becomes an even one, and looks at everything that is hidden. −∞ is meant.",
            "−∞ 대신 −1e9를 쓰면 32비트에서 나오는 값입니다. 행이 고르게 되어, 가린 것을 모두 봅니다. −∞여야 합니다.",
        ))
        .mistake("minus-1e9-wide", ordinary, text(
            "That is the softmax of 2, 1, 0 as if nothing were hidden. Adding −1e9 to all three in 64 bits gives just that: the differences stay. −∞ is meant.",
            "아무것도 가리지 않은 것처럼 2, 1, 0에 소프트맥스를 한 값입니다. 64비트에서 셋 모두에 −1e9를 더하면 차이가 남아 바로 이렇게 됩니다. −∞여야 합니다.",
        ))
        .mistake("nan", [f64::NAN; 3], text(
            "That is what −∞ − (−∞) gives in a naive softmax. NaN spreads through the whole model from a place that nobody looks at.",
            "단순한 소프트맥스에서 −∞ − (−∞)를 계산하면 나오는 값입니다. NaN은 아무도 보지 않는 자리에서 시작해 모델 전체로 퍼집니다.",
        ))
        .because("All 0, and an output of 0: a row that sees nothing has nothing to say.", "모두 0이고 출력도 0입니다. 아무것도 보지 못하는 행은 할 말이 없습니다."))
}

fn convention() -> Result<Task> {
    let mask = causal_mask(3, 3, &Align::Last)?;
    let weights = softmax(&Array2::zeros((3, 3)), Mask::causal())?;
    let written = mask.map(|visible| f32::from(u8::from(!visible)));
    let question = text(
        "A course writes the mask of a GPT as the numbers in the table and draws the weights below them. What does a 1 mean there?",
        "어떤 강의가 GPT의 마스크를 표처럼 적고, 그 아래에 가중치를 그렸습니다. 여기서 1은 무슨 뜻입니까?",
    );
    let wrong = vec![
        (
            "mask-inverted",
            text("visible", "보임"),
            text(
                "Then q0 would see k1 and k2 and not itself. The drawn weights say otherwise. Other documents do use 1 for visible: look, do not guess.",
                "그렇다면 q0은 k1과 k2를 보고 자기는 보지 못합니다. 그림은 그렇지 않습니다. 1을 보임으로 쓰는 자료도 있으니, 짐작하지 말고 확인하십시오.",
            ),
        ),
        (
            "added",
            text("1 is added to the score", "점수에 1을 더함"),
            text(
                "Adding 1 would leave some weight there. The drawn weights are 0.",
                "1을 더해도 가중치는 남습니다. 그림의 가중치는 0입니다.",
            ),
        ),
        (
            "multiplied",
            text("the score is multiplied by 1", "점수에 1을 곱함"),
            text(
                "Then scores with 0 would become 0, and still get weight: e⁰ = 1.",
                "그렇다면 0인 곳의 점수는 0이 되는데, e⁰ = 1이므로 가중치가 남습니다.",
            ),
        ),
    ];
    Ok(Task::choice(question, 1, text("hidden", "가림"), wrong)
        .table(matrix(&written, "q", "k"))
        .scene(|language| picture(&weights, language))?
        .hint("Compare the 1 of q0 with the weights of q0.", "q0의 1과 q0의 가중치를 비교하십시오.")
        .because(
            "Here 1 hides. In this project `true` is always visible, and masks have names: Mask::causal().",
            "여기서는 1이 가림입니다. 이 프로젝트에서 `true`는 언제나 보임이고, 마스크에는 Mask::causal()처럼 이름이 있습니다.",
        ))
}
