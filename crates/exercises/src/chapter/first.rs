//! Chapters 1 and 2: what attention is, and attention by hand.

use foveal::{Attention, Mask};
use foveal_labs::text;
use foveal_view::Bars;
use ndarray::{Array2, array};

use super::{output, picture, programs, softmax, softmax_of_columns, weights};
use crate::number::{list, matrix, short, wide};
use crate::{Exercise, Result, Task};

pub(crate) const FIRST: [Exercise; 9] = [
    Exercise::new("mix", 1, ["A mixture of three values", "세 값의 혼합"], mix),
    Exercise::new("roles", 1, ["The label of a book", "책등의 이름표"], roles),
    Exercise::new("score", 2, ["A score, before and after the scale", "스케일 전후의 점수"], score),
    Exercise::new("weights", 2, ["From scores to weights", "점수에서 가중치로"], weights_of_a_row),
    Exercise::new("output", 2, ["From weights to the output", "가중치에서 출력으로"], output_of_a_row),
    Exercise::new("shapes", 2, ["The shapes of the tables", "표의 모양"], shapes),
    Exercise::new("axis", 2, ["Something is wrong with these weights", "이 가중치는 어디가 잘못되었습니까?"], axis),
    Exercise::new("softmax", 2, ["Program: softmax", "프로그램: 소프트맥스"], programs::softmax_task),
    Exercise::new("attention", 2, ["Program: attention", "프로그램: 어텐션"], programs::attention_task),
];

fn mix() -> Result<Task> {
    // Scores whose softmax is exactly this.
    let shares = [0.5f32, 0.3, 0.2];
    let values = array![[10.0f32], [20.0], [40.0]];
    let scores = Array2::from_shape_fn((1, 3), |(_, j)| shares[j].ln());
    let plain = Attention::new().scale(1.0);
    let out = f64::from(output(&plain, &scores, &Array2::eye(3), &values)?[[0, 0]]);
    let even = f64::from(output(&plain, &Array2::zeros((1, 3)), &Array2::eye(3), &values)?[[0, 0]]);
    let question = text(
        "A query gives its three keys the weights drawn below: 0.5, 0.3 and 0.2. Their values are 10, 20 and 40. What is the output?",
        "한 쿼리가 세 키에 아래 그림과 같은 가중치 0.5, 0.3, 0.2를 줍니다. 세 키의 값(value)은 10, 20, 40입니다. 출력은 얼마입니까?",
    );
    let task = Task::numbers(question, [out], 1).scene(|language| {
        let name = language.choose("weight", "가중치");
        Ok(Bars::new(shares, ["k0", "k1", "k2"])?.measure(name).language(language))
    })?;
    Ok(task
        .hint(
            "The output is an average of the values, in which each counts as much as its weight.",
            "출력은 값들의 평균인데, 각 값은 자기 가중치만큼 반영됩니다.",
        )
        .hint("0.5·10 + 0.3·20 + …", "0.5·10 + 0.3·20 + …")
        .mistake(
            "even",
            [even],
            text(
                "That is the plain average: every value counted alike. Multiply each value by its weight.",
                "모든 값을 똑같이 센 단순 평균입니다. 값마다 그 가중치를 곱하십시오.",
            ),
        )
        .mistake(
            "largest-only",
            [10.0],
            text(
                "That is the value with the largest weight alone. Attention does not choose; it mixes all values.",
                "가중치가 가장 큰 값 하나만 골랐습니다. 어텐션은 고르지 않고 모든 값을 섞습니다.",
            ),
        )
        .mistake(
            "sum",
            [70.0],
            text(
                "That is the sum of the values, as if every weight were 1. The weights add up to 1.",
                "가중치가 모두 1인 것처럼 값을 그냥 더했습니다. 가중치의 합이 1입니다.",
            ),
        )
        .because(
            format!(
                "0.5·10 + 0.3·20 + 0.2·40 = {}. An output lies between the smallest and the largest value.",
                short(out)
            ),
            format!(
                "0.5·10 + 0.3·20 + 0.2·40 = {}입니다. 출력은 언제나 가장 작은 값과 가장 큰 값 사이에 있습니다.",
                short(out)
            ),
        ))
}

fn roles() -> Result<Task> {
    let question = text(
        "You look for books about volcanoes. Every book has a label on its back. Which part of attention is the label?",
        "화산에 관한 책을 찾고 있습니다. 책마다 책등에 이름표가 붙어 있습니다. 이름표는 어텐션의 무엇에 해당합니까?",
    );
    let wrong = vec![
        (
            "query-for-key",
            text("the query", "쿼리(query)"),
            text(
                "The query is what you came with: the question that is compared with every label.",
                "쿼리는 여러분이 가지고 온 질문입니다. 그 질문을 모든 이름표와 비교합니다.",
            ),
        ),
        (
            "value-for-key",
            text("the value", "값(value)"),
            text(
                "The value is what stands inside the book: what you read once you have found it.",
                "값은 책 안에 적힌 내용입니다. 책을 찾은 다음에 읽는 것입니다.",
            ),
        ),
        (
            "weight-for-key",
            text("the weight", "가중치(weight)"),
            text(
                "The weight is how much of a book you read. It comes out of the comparison of question and label.",
                "가중치는 그 책을 얼마나 읽느냐입니다. 질문과 이름표를 비교한 결과로 나옵니다.",
            ),
        ),
    ];
    Ok(Task::choice(question, 1, text("the key", "키(key)"), wrong)
        .hint("It is what your question is compared with.", "질문과 비교하는 대상입니다.")
        .hint("It helps to find a book, and says little of what is in it.", "책을 찾는 데 쓰이지만, 그 안의 내용을 다 말해 주지는 않습니다.")
        .because(
            "Queries are compared with keys; values are what is mixed. Finding and reading are two things, so a token has both.",
            "쿼리는 키와 비교하고, 섞는 것은 값입니다. 찾는 일과 읽는 일은 다르므로 토큰마다 키와 값이 따로 있습니다.",
        ))
}

fn score() -> Result<Task> {
    let (q, k) = (array![[1.0f32, 2.0, 0.0, 1.0]], array![[2.0f32, 1.0, 3.0, 0.0]]);
    let product = f64::from(q.dot(&k.t())[[0, 0]]);
    let scaled = product / f64::from(q.ncols() as u32).sqrt();
    let (q_list, k_list) = (list(wide(&q)), list(wide(&k)));
    let question = text(
        format!(
            "q = {q_list} and k = {k_list}. What is the score q·k, and what is it after the scale of attention? Two numbers."
        ),
        format!(
            "q = {q_list}이고 k = {k_list}입니다. 점수 q·k는 얼마이고, 어텐션의 스케일을 적용하면 얼마입니까? 수 두 개를 쓰십시오."
        ),
    );
    Ok(Task::numbers(question, [product, scaled], 2)
        .hint("Multiply entry by entry and add up: 1·2 + 2·1 + …", "성분끼리 곱해서 더합니다. 1·2 + 2·1 + …")
        .hint(
            "The scale divides by √d. d is how many entries the vectors have.",
            "스케일은 √d로 나누는 것입니다. d는 벡터의 성분 개수입니다.",
        )
        .mistake(
            "no-scale",
            [product, product],
            text(
                "The first is right. The second is not divided by √d: the vectors have 4 entries, so divide by √4 = 2.",
                "첫째 수는 맞습니다. 둘째 수를 √d로 나누지 않았습니다. 벡터의 성분이 4개이므로 √4 = 2로 나누십시오.",
            ),
        )
        .mistake(
            "scale-by-d",
            [product, product / 4.0],
            text(
                "The first is right. The second is divided by d = 4; the scale is the root of it, √4 = 2.",
                "첫째 수는 맞습니다. 둘째 수는 d = 4로 나누었는데, 스케일은 그 제곱근 √4 = 2입니다.",
            ),
        )
        .mistake(
            "scale-only",
            [scaled, product],
            text("Those are the right numbers in the wrong order.", "수는 맞는데 순서가 바뀌었습니다."),
        )
        .because(
            format!("1·2 + 2·1 + 0·3 + 1·0 = {}, divided by √4: {}.", short(product), short(scaled)),
            format!("1·2 + 2·1 + 0·3 + 1·0 = {}이고, √4로 나누면 {}입니다.", short(product), short(scaled)),
        ))
}

/// q and k of the exercise on weights: scores 1, 2, 3.
fn row() -> (Array2<f32>, Array2<f32>) {
    let q = array![[1.0, 1.0, 1.0, 0.0]];
    let k = array![[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]];
    (q, k)
}

fn weights_of_a_row() -> Result<Task> {
    let (q, k) = row();
    let scores = q.dot(&k.t());
    let right = wide(&weights(&Attention::new(), &q, &k)?);
    let of = |scale: f32| -> Result<Vec<f64>> { Ok(wide(&weights(&Attention::new().scale(scale), &q, &k)?)) };
    let scaled: Vec<f64> = wide(&scores).iter().map(|s| s / 2.0).collect();
    let exponentials: Vec<f64> = scaled.iter().map(|s| s.exp()).collect();
    let shares: Vec<f64> = scaled.iter().map(|s| s / scaled.iter().sum::<f64>()).collect();
    let question = text(
        "Here are a query and three keys. What are its three weights? Give three digits after the point.",
        "쿼리 하나와 키 세 개입니다. 세 가중치는 얼마입니까? 소수점 아래 셋째 자리까지 쓰십시오.",
    );
    Ok(Task::weights(question, right.clone(), 3)
        .table(matrix(&q, "q", "d"))
        .table(matrix(&k, "k", "d"))
        .hint("First the three scores q·k.", "먼저 점수 q·k 세 개를 구하십시오.")
        .hint(
            format!("The scores are {}. Divide them by √4 = 2.", list(wide(&scores))),
            format!("점수는 {}입니다. √4 = 2로 나누십시오.", list(wide(&scores))),
        )
        .hint(
            format!("e to the power of each: {}. Divide each by their sum.", list(exponentials.iter().copied())),
            format!("각각을 e의 지수로 올리면 {}입니다. 저마다 그 합으로 나누십시오.", list(exponentials.iter().copied())),
        )
        .mistake("no-scale", of(1.0)?, text(
            "You forgot the scale: that is the softmax of q·k as it is. Divide the scores by √d = 2 first.",
            "스케일을 잊으셨습니다. q·k를 그대로 소프트맥스에 넣은 값입니다. 먼저 점수를 √d = 2로 나누십시오.",
        ))
        .mistake("scale-by-d", of(0.25)?, text(
            "The scores were divided by d = 4. The scale is √d = 2.",
            "점수를 d = 4로 나누셨습니다. 스케일은 √d = 2입니다.",
        ))
        .mistake("t-for-d", of(1.0 / 3f32.sqrt())?, text(
            "The scores were divided by √3: that is the number of keys. d is the number of entries of a vector, 4.",
            "점수를 √3으로 나누셨습니다. 3은 키의 개수입니다. d는 벡터의 성분 개수인 4입니다.",
        ))
        .mistake("not-normalised", exponentials, text(
            "Those are the exponentials. Divide each by their sum, and they add up to 1.",
            "지수 함수의 값까지만 구하셨습니다. 저마다 합으로 나누면 더해서 1이 됩니다.",
        ))
        .mistake("no-exponential", shares, text(
            "The scores were divided by their sum. Softmax takes e to the power of each score first; that also works for negative scores.",
            "점수를 그 합으로 나누셨습니다. 소프트맥스는 먼저 각 점수를 e의 지수로 올립니다. 그래야 음수 점수에도 쓸 수 있습니다.",
        ))
        .because(
            format!("Scores {}, halved, softmax: {}.", list(wide(&scores)), list(right.iter().copied())),
            format!("점수 {}을(를) 2로 나누고 소프트맥스를 하면 {}입니다.", list(wide(&scores)), list(right.iter().copied())),
        ))
}

fn output_of_a_row() -> Result<Task> {
    let (q, k, v) =
        (array![[2.0f32, 0.0], [1.0, 1.0]], array![[1.0f32, 0.0], [0.0, 1.0]], array![[1.0f32, 2.0], [5.0, 10.0]]);
    let attention = Attention::new();
    let out = output(&attention, &q, &k, &v)?;
    let row = weights(&attention, &q, &k)?.row(0).to_owned();
    let scores = q.dot(&k.t()) / 2f32.sqrt();
    let wrong_axis = softmax_of_columns(scores.view())?.dot(&v);
    let sharp = output(&Attention::new().scale(1.0), &q, &k, &v)?;
    let turned = v.dot(&row);
    let rounded = row.mapv(|w| (10.0 * w).round() / 10.0).dot(&v);
    let first = |x: &Array2<f32>| wide(x.row(0));
    let question = text(
        "What is the output of query q0? Two numbers, with three digits after the point.",
        "쿼리 q0의 출력은 무엇입니까? 수 두 개를 소수점 아래 셋째 자리까지 쓰십시오.",
    );
    Ok(Task::numbers(question, first(&out), 3)
        .table(matrix(&q, "q", "d"))
        .table(matrix(&k, "k", "d"))
        .table(matrix(&v, "v", "d"))
        .hint("Scores of q0: 2 and 0. The vectors have 2 entries.", "q0의 점수는 2와 0입니다. 벡터의 성분은 2개입니다.")
        .hint(
            format!("Its weights are {}.", list(wide(&row))),
            format!("가중치는 {}입니다.", list(wide(&row))),
        )
        .hint("Each column of V is mixed with these weights: the first is w0·1 + w1·5.", "V의 열마다 이 가중치로 섞습니다. 첫째 열은 w0·1 + w1·5입니다.")
        .mistake("wrong-axis", first(&wrong_axis), text(
            "Your softmax ran along the columns: over queries. A query distributes its attention over keys, so each row adds up to 1.",
            "소프트맥스를 열 방향, 곧 쿼리 방향으로 하셨습니다. 쿼리가 키들에 어텐션을 나누어 주므로 행마다 합이 1이어야 합니다.",
        ))
        .mistake("no-scale", first(&sharp), text(
            "You forgot the scale: divide the scores by √2 before the softmax.",
            "스케일을 잊으셨습니다. 소프트맥스 전에 점수를 √2로 나누십시오.",
        ))
        .mistake("transposed-values", wide(&turned), text(
            "You multiplied V·w instead of w·V: that mixes the columns of V. Each row of V belongs to a key.",
            "w·V가 아니라 V·w를 계산하셨습니다. 그러면 V의 열을 섞게 됩니다. 키 하나에 해당하는 것은 V의 행입니다.",
        ))
        .mistake("early-rounding", wide(&rounded), text(
            "The weights were rounded to one digit before they were used. Round at the end.",
            "가중치를 소수 첫째 자리로 반올림한 다음 곱하셨습니다. 반올림은 마지막에 하십시오.",
        ))
        .because(
            format!("{}. The second column of V is twice the first, and so is that of the output.", list(first(&out))),
            format!("{}입니다. V의 둘째 열이 첫째 열의 두 배이므로 출력도 그렇습니다.", list(first(&out))),
        ))
}

fn shapes() -> Result<Task> {
    let (queries, keys, dim, value_dim) = (5usize, 7usize, 8usize, 16usize);
    let of = |rows, columns| Array2::<f32>::ones((rows, columns));
    let (q, k, v) = (of(queries, dim), of(keys, dim), of(keys, value_dim));
    let (weights, out) = (weights(&Attention::new(), &q, &k)?.dim(), output(&Attention::new(), &q, &k, &v)?.dim());
    let numbers = |sizes: [usize; 4]| sizes.map(|size| size as f64);
    let question = text(
        format!(
            "Q is {queries} × {dim}, K is {keys} × {dim}, V is {keys} × {value_dim}. What are the shapes of the weights and of the output? Four numbers: rows and columns of each."
        ),
        format!(
            "Q는 {queries} × {dim}, K는 {keys} × {dim}, V는 {keys} × {value_dim}입니다. 가중치와 출력의 모양은 무엇입니까? 각각의 행과 열, 수 네 개를 쓰십시오."
        ),
    );
    Ok(Task::numbers(question, numbers([weights.0, weights.1, out.0, out.1]), 0)
        .hint("One row for every query.", "쿼리마다 한 행입니다.")
        .hint(
            "The weights have a column for every key; the output has the columns of V.",
            "가중치에는 키마다 한 열이 있고, 출력의 열은 V의 열과 같습니다.",
        )
        .mistake(
            "t-for-d",
            numbers([dim, dim, queries, value_dim]),
            text(
                "8 × 8 is Qᵀ·K: dimensions by dimensions. T and d are confused; the scores are Q·Kᵀ, tokens by tokens.",
                "8 × 8은 Qᵀ·K, 곧 차원 × 차원입니다. T와 d를 헷갈리셨습니다. 점수는 Q·Kᵀ이고 토큰 × 토큰입니다.",
            ),
        )
        .mistake(
            "transposed",
            numbers([keys, queries, queries, value_dim]),
            text(
                "The weights are the wrong way round: a row for every query, a column for every key.",
                "가중치의 행과 열이 바뀌었습니다. 쿼리마다 한 행, 키마다 한 열입니다.",
            ),
        )
        .mistake(
            "width-of-q",
            numbers([queries, keys, queries, dim]),
            text(
                "The weights are right. The output mixes values, so it is as wide as V, not as Q.",
                "가중치는 맞습니다. 출력은 값을 섞은 것이므로 너비가 Q가 아니라 V와 같습니다.",
            ),
        )
        .mistake(
            "outputs-of-keys",
            numbers([queries, keys, keys, value_dim]),
            text(
                "The weights are right. There is one output for every query, not for every key.",
                "가중치는 맞습니다. 출력은 키마다가 아니라 쿼리마다 하나입니다.",
            ),
        )
        .because(
            "Weights T × S, output T × d_v: one row for every query either way.",
            "가중치는 T × S, 출력은 T × d_v입니다. 어느 쪽이든 쿼리마다 한 행입니다.",
        ))
}

fn axis() -> Result<Task> {
    let scores = array![[2.0f32, 0.5, 0.0], [1.5, 2.5, 0.5], [1.0, 0.0, 0.5]];
    let shown = softmax_of_columns(scores.view())?;
    debug_assert_ne!(shown, softmax(&scores, Mask::none())?);
    let question = text(
        "These were meant to be weights of three queries on three keys. What went wrong?",
        "쿼리 셋이 키 셋에 준 가중치라고 합니다. 무엇이 잘못되었습니까?",
    );
    let wrong = vec![
        (
            "no-scale",
            text("The scale was forgotten.", "스케일을 잊었습니다."),
            text(
                "Without the scale, weights are sharper, but every row still adds up to 1. Add up a row.",
                "스케일이 없으면 가중치가 더 날카로울 뿐, 행의 합은 여전히 1입니다. 한 행을 더해 보십시오.",
            ),
        ),
        (
            "no-exponential",
            text("The scores were not exponentiated.", "지수 함수를 쓰지 않았습니다."),
            text(
                "Then the rows would still add up to 1, if they were divided by their sums. Add up the rows, then the columns.",
                "그래도 합으로 나누었다면 행의 합은 1입니다. 행을 더해 보고, 열도 더해 보십시오.",
            ),
        ),
        (
            "nothing-wrong",
            text("Nothing: these are weights.", "잘못이 없습니다. 올바른 가중치입니다."),
            text(
                "Add up the first row: weights of a query must add up to 1.",
                "첫 행을 더해 보십시오. 한 쿼리의 가중치는 더해서 1이어야 합니다.",
            ),
        ),
    ];
    let rounded = shown.mapv(|x| (1000.0 * x).round() / 1000.0);
    let right = text("The softmax ran along the wrong axis.", "소프트맥스를 다른 축으로 했습니다.");
    Ok(Task::choice(question, 2, right, wrong)
        .table(matrix(&rounded, "q", "k"))
        .scene(|language| picture(&shown, language))?
        .hint("Add up each row.", "행마다 더해 보십시오.")
        .hint("Now add up each column.", "이제 열마다 더해 보십시오.")
        .because(
            "The columns add up to 1, the rows do not: softmax over queries instead of keys.",
            "열의 합이 1이고 행의 합은 1이 아닙니다. 키가 아니라 쿼리 방향으로 소프트맥스를 한 것입니다.",
        ))
}
