//! Chapters 5 and 6: self and cross, many heads.

use foveal::Attention;
use foveal_labs::text;
use foveal_models::layer::{MultiHeadAttention, Parameters, Random};
use foveal_view::{Heatmap, Numbers};
use ndarray::{Array2, array};

use super::{output, weights};
use crate::number::{list, matrix, short, wide};
use crate::{Exercise, Result, Task};

pub(crate) const HEADS: [Exercise; 3] = [
    Exercise::new("self-or-cross", 5, ["Self or cross?", "셀프입니까, 크로스입니까?"], self_or_cross),
    Exercise::new("two-heads", 6, ["Two heads by hand", "두 헤드를 손으로"], two_heads),
    Exercise::new("parameters", 6, ["The parameters of a layer", "한 층의 매개변수"], parameters),
];

fn self_or_cross() -> Result<Task> {
    let (target, source) = (["나는", "책을", "읽는다"], ["I", "am", "reading", "a", "book"]);
    let meaning = [[0usize, 1, 2].as_slice(), &[0, 3, 2, 4, 1]];
    let mut random = Random::new(3);
    let meanings: Array2<f32> = random.normal((5, 32), 1.0);
    let vectors = |which: &[usize]| Array2::from_shape_fn((which.len(), 32), |(i, d)| meanings[[which[i], d]]);
    let weights = weights(&Attention::new().scale(0.1), &vectors(meaning[0]), &vectors(meaning[1]))?;
    let question = text(
        "A translator writes Korean and reads English. Which attention is drawn here?",
        "번역기가 영어를 읽고 한국어를 씁니다. 그림은 어떤 어텐션입니까?",
    );
    let wrong = vec![
        (
            "encoder-self",
            text("self-attention of the encoder", "인코더의 셀프 어텐션"),
            text("Then both sides would be the English words, 5 × 5.", "그렇다면 양쪽 모두 영어 단어이고 5 × 5입니다."),
        ),
        (
            "decoder-self",
            text("self-attention of the decoder", "디코더의 셀프 어텐션"),
            text(
                "Then both sides would be the Korean words, 3 × 3, and half of it hidden by the causal mask.",
                "그렇다면 양쪽 모두 한국어 단어이고 3 × 3이며, 인과 마스크가 절반을 가립니다.",
            ),
        ),
        (
            "cross-reversed",
            text("cross-attention: the encoder asks the decoder", "크로스 어텐션: 인코더가 디코더에게 묻습니다"),
            text(
                "Rows are queries, and the rows are Korean: it is the decoder that asks. The encoder has read its sentence before anything is written.",
                "행이 쿼리인데 행은 한국어입니다. 묻는 쪽은 디코더입니다. 인코더는 글을 쓰기 전에 이미 다 읽었습니다.",
            ),
        ),
    ];
    let right = text("cross-attention: the decoder asks the encoder", "크로스 어텐션: 디코더가 인코더에게 묻습니다");
    Ok(Task::choice(question, 2, right, wrong)
        .scene(|language| {
            Ok(Heatmap::new(weights.clone(), target, source)?.numbers(Numbers::Hidden).language(language))
        })?
        .hint(
            "Rows are queries, columns are keys. Which language is which?",
            "행이 쿼리, 열이 키입니다. 어느 쪽이 어느 언어입니까?",
        )
        .because(
            "3 × 5: one row for each Korean word, one column for each English word, and one output for each query.",
            "3 × 5입니다. 한국어 단어마다 한 행, 영어 단어마다 한 열이고, 쿼리마다 출력이 하나입니다.",
        ))
}

fn two_heads() -> Result<Task> {
    let x = array![[2.0f32, 3.0]];
    let entries = [0.5f32, 0.2];
    let mixing = array![[1.0f32, 2.0], [1.0, -1.0]];
    let mut joined = Array2::zeros((1, 2));
    for (h, entry) in entries.into_iter().enumerate() {
        let projected = x.dot(&Array2::from_elem((2, 1), entry));
        joined[[0, h]] = output(&Attention::new(), &projected, &projected, &projected)?[[0, 0]];
    }
    let right = joined.dot(&mixing);
    let narrow = array![[x[[0, 0]] * entries[0], x[[0, 0]] * entries[1]]];
    let question = text(
        "One word, X = [2, 3], and two heads of width 1. All entries of head 1's W_Q, W_K, W_V are 0.5, of head 2's 0.2. W_O stands below. What is the output of the layer? Two numbers.",
        "단어 하나 X = [2, 3]과 너비가 1인 헤드 둘입니다. 헤드 1의 W_Q, W_K, W_V는 성분이 모두 0.5, 헤드 2는 모두 0.2입니다. W_O는 아래와 같습니다. 층의 출력은 무엇입니까? 수 두 개를 쓰십시오.",
    );
    Ok(Task::numbers(question, wide(&right), 2)
        .table(matrix(&mixing, "o", "d").title(text("W_O", "W_O")))
        .hint(
            "W of head 1 is [[0.5], [0.5]]: two numbers in, one out. q = k = v = 2·0.5 + 3·0.5.",
            "헤드 1의 W는 [[0.5], [0.5]]입니다. 수 둘이 들어가 하나가 나옵니다. q = k = v = 2·0.5 + 3·0.5",
        )
        .hint(
            "With one key its weight is 1, so each head gives its v.",
            "키가 하나이므로 가중치는 1이고, 헤드마다 v를 그대로 냅니다.",
        )
        .hint(
            format!("Side by side: {}. Times W_O.", list(wide(&joined))),
            format!("이어 붙이면 {}입니다. W_O를 곱하십시오.", list(wide(&joined))),
        )
        .mistake(
            "no-w-o",
            wide(&joined),
            text(
                "Those are the heads side by side. W_O still has to mix them.",
                "두 헤드를 이어 붙인 값입니다. 아직 W_O로 섞지 않았습니다.",
            ),
        )
        .mistake(
            "w-o-transposed",
            wide(&joined.dot(&mixing.t())),
            text(
                "W_O was multiplied from the wrong side: [a, b]·W_O takes the columns of W_O.",
                "W_O를 반대쪽에서 곱하셨습니다. [a, b]·W_O는 W_O의 열과 곱합니다.",
            ),
        )
        .mistake(
            "w-too-narrow",
            wide(&narrow.dot(&mixing)),
            text(
                "Only the first entry of X was used, as if W were [0.5]. It takes two numbers to one: [[0.5], [0.5]].",
                "W가 [0.5]인 것처럼 X의 첫 성분만 쓰셨습니다. 수 둘을 하나로 만들므로 [[0.5], [0.5]]입니다.",
            ),
        )
        .mistake(
            "heads-added",
            [f64::from(joined.sum()); 2],
            text(
                "The heads were added up. They are laid side by side, and W_O mixes them.",
                "두 헤드를 더하셨습니다. 더하지 않고 이어 붙인 다음 W_O로 섞습니다.",
            ),
        )
        .because(
            format!("{} · W_O = {}.", list(wide(&joined)), list(wide(&right))),
            format!("{} · W_O = {}입니다.", list(wide(&joined)), list(wide(&right))),
        ))
}

fn parameters() -> Result<Task> {
    let (width, heads) = (128usize, 8usize);
    let layer = MultiHeadAttention::new(width, heads, &mut Random::new(1))?;
    // The layer has a bias for each of its four projections.
    let count = (layer.parameter_count() - 4 * width) as f64;
    let square = (width * width) as f64;
    let question = text(
        format!(
            "A layer of attention has a width of {width} and {heads} heads. How many parameters has it, without biases?"
        ),
        format!("너비가 {width}이고 헤드가 {heads}개인 어텐션 층이 있습니다. 편향을 빼면 매개변수는 몇 개입니까?"),
    );
    Ok(Task::numbers(question, [count], 0)
        .hint("Which matrices are there? Q, K, V, and one more.", "어떤 행렬이 있습니까? Q, K, V, 그리고 하나 더 있습니다.")
        .hint("All heads side by side are one matrix of width × width.", "헤드를 모두 나란히 놓으면 너비 × 너비인 행렬 하나입니다.")
        .mistake("times-heads", [count * heads as f64], text(
            "The heads do not each have the whole width: it is cut into 8 pieces of 16. The count does not depend on the number of heads.",
            "헤드마다 너비 전체를 갖지는 않습니다. 너비를 16씩 8조각으로 자릅니다. 개수는 헤드 수와 상관없습니다.",
        ))
        .mistake("no-w-o", [3.0 * square], text(
            "W_Q, W_K and W_V are counted; W_O is missing.",
            "W_Q, W_K, W_V만 세고 W_O를 빠뜨리셨습니다.",
        ))
        .mistake("one-matrix", [square], text(
            "That is one of the four matrices.",
            "행렬 네 개 가운데 하나의 크기입니다.",
        ))
        .mistake("with-biases", [count + 4.0 * width as f64], text(
            "That counts the biases, too: 4 · 128 numbers too many.",
            "편향까지 세셨습니다. 4 · 128개가 더 많습니다.",
        ))
        .because(
            format!("4 · {width}² = {}, for 1 head as for 8.", short(count)),
            format!("4 · {width}² = {}입니다. 헤드가 하나여도, 여덟이어도 같습니다.", short(count)),
        ))
}
