//! Chapter 7: positions.

use foveal::{Attention, Bias, Rope, alibi_slopes, positional_encoding};
use foveal_labs::text;
use ndarray::{Array2, Array4, s};

use super::weights;
use crate::number::{list, short, wide};
use crate::{Exercise, Result, Task};

pub(crate) const POSITIONS: [Exercise; 4] = [
    Exercise::new("sinusoid", 7, ["The encoding of a position", "한 위치의 인코딩"], sinusoid),
    Exercise::new("rope", 7, ["A turned vector", "회전한 벡터"], rope),
    Exercise::new("alibi", 7, ["A penalty on distance", "거리에 따른 감점"], alibi),
    Exercise::new("blind", 7, ["Blind to order", "순서를 모르는 것"], blind),
];

fn sinusoid() -> Result<Task> {
    let encoding = positional_encoding(3, 4)?;
    let right = wide(encoding.row(2));
    let swapped = [right[1], right[0], right[3], right[2]];
    let halves = [right[0], right[2], right[1], right[3]];
    // 10000^(i/d) instead of 10000^(2i/d).
    let slow = 2.0 / 10000f64.powf(0.25);
    let degrees = right.iter().enumerate().map(|(at, _)| {
        let angle = (2.0 / 10000f64.powf((at / 2) as f64 * 0.5)).to_radians();
        if at % 2 == 0 { angle.sin() } else { angle.cos() }
    });
    let degrees: Vec<f64> = degrees.collect();
    let question = text(
        "What is the sinusoidal encoding of position p = 2 with d = 4? Four numbers, three digits after the point.",
        "d = 4일 때 위치 p = 2의 사인파 인코딩은 무엇입니까? 수 네 개를 소수점 아래 셋째 자리까지 쓰십시오.",
    );
    Ok(Task::numbers(question, right.clone(), 3)
        .hint("PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos of the same angle. Angles are in radians.", "PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1)은 같은 각의 cos입니다. 각은 라디안입니다.")
        .hint("i = 0: the angle is 2. i = 1: 2i/d = 1/2, and 10000^(1/2) = 100, so the angle is 0.02.", "i = 0이면 각은 2입니다. i = 1이면 2i/d = 1/2이고 10000^(1/2) = 100이므로 각은 0.02입니다.")
        .mistake("degrees", degrees, text("Your calculator is set to degrees. Angles here are radians.", "계산기가 도(°) 단위입니다. 여기서 각은 라디안입니다."))
        .mistake("cosine-first", swapped, text("Sine and cosine are exchanged: even entries are sines.", "사인과 코사인이 바뀌었습니다. 짝수 번째가 사인입니다."))
        .mistake("halves", halves, text(
            "First all sines, then all cosines: some programs store it so. The formula has them in turn: sin, cos, sin, cos.",
            "사인을 모두 쓰고 코사인을 쓰셨습니다. 그렇게 저장하는 프로그램도 있지만, 수식에서는 sin, cos, sin, cos으로 번갈아 나옵니다.",
        ))
        .mistake("exponent", [right[0], right[1], slow.sin(), slow.cos()], text(
            "The exponent of the second pair is 2i/d = 1/2, not i/d = 1/4: the angle is 2/100.",
            "둘째 쌍의 지수는 i/d = 1/4가 아니라 2i/d = 1/2입니다. 각은 2/100입니다.",
        ))
        .because(
            format!("{}: sin 2, cos 2, sin 0.02, cos 0.02.", list(right.iter().copied())),
            format!("{}입니다. 차례로 sin 2, cos 2, sin 0.02, cos 0.02입니다.", list(right.iter().copied())),
        ))
}

fn rope() -> Result<Task> {
    let turned = |position: usize, back: bool| -> Result<Vec<f64>> {
        let mut x = Array4::<f32>::zeros((1, 1, 1, 2));
        x[[0, 0, 0, 0]] = 1.0;
        if back {
            Rope::new(2)?.rotate_back(&mut x, position)?;
        } else {
            Rope::new(2)?.rotate(&mut x, position)?;
        };
        Ok(wide(x.slice(s![0, 0, 0, ..])))
    };
    let right = turned(2, false)?;
    let question = text(
        "RoPE turns the pair (1, 0) of a query at position 2 by the angle 2·θ, and θ of the first pair is 1. What does the pair become? Two numbers, three digits after the point.",
        "RoPE는 위치 2에 있는 쿼리의 쌍 (1, 0)을 각 2·θ만큼 돌립니다. 첫 쌍의 θ는 1입니다. 쌍은 무엇이 됩니까? 수 두 개를 소수점 아래 셋째 자리까지 쓰십시오.",
    );
    let degrees = 2f64.to_radians();
    Ok(Task::numbers(question, right.clone(), 3)
        .hint("(1, 0) turned by an angle a is (cos a, sin a).", "(1, 0)을 각 a만큼 돌리면 (cos a, sin a)입니다.")
        .hint("The angle is 2 radians.", "각은 2라디안입니다.")
        .mistake(
            "degrees",
            [degrees.cos(), degrees.sin()],
            text(
                "Your calculator is set to degrees. The angle is 2 radians.",
                "계산기가 도(°) 단위입니다. 각은 2라디안입니다.",
            ),
        )
        .mistake(
            "backwards",
            turned(2, true)?,
            text("That is turned the other way round.", "반대 방향으로 돌리셨습니다."),
        )
        .mistake(
            "position-from-1",
            turned(3, false)?,
            text(
                "That is the angle of position 3. Positions count from 0, and this one is 2.",
                "위치 3의 각입니다. 위치는 0부터 세고, 이것은 2입니다.",
            ),
        )
        .mistake(
            "cosine-second",
            [right[1], right[0]],
            text("Cosine and sine are exchanged.", "코사인과 사인이 바뀌었습니다."),
        )
        .because(
            "(cos 2, sin 2). The dot product of two turned vectors depends on the difference of their positions alone.",
            "(cos 2, sin 2)입니다. 돌린 벡터 둘의 내적은 두 위치의 차이에만 달려 있습니다.",
        ))
}

fn alibi() -> Result<Task> {
    let heads = 8;
    let slopes = alibi_slopes(heads)?;
    // The bias of query 5 on key 2, read off the engine's weights: all q·k are 0.
    let distance = |head: usize| -> Result<f64> {
        let flat = Array2::<f32>::zeros((6, 4));
        let w = weights(&Attention::new().bias(Bias::alibi_with([slopes[head]])), &flat, &flat)?;
        Ok((f64::from(w[[5, 2]]) / f64::from(w[[5, 5]])).ln())
    };
    let right = distance(1)?;
    let question = text(
        format!(
            "ALiBi gives the {heads} heads of a layer the slopes 1/2, 1/4, 1/8, … What does it add to the score of query 5 on key 2 in the second head?"
        ),
        format!(
            "ALiBi는 한 층의 헤드 {heads}개에 기울기 1/2, 1/4, 1/8, …을 줍니다. 둘째 헤드에서 쿼리 5와 키 2의 점수에 무엇을 더합니까?"
        ),
    );
    let slope = f64::from(slopes[1]);
    Ok(Task::numbers(question, [right], 2)
        .hint("The distance is 5 − 2.", "거리는 5 − 2입니다.")
        .hint(
            "Slope times distance, as a penalty: far keys lose.",
            "기울기 곱하기 거리이고, 감점입니다. 먼 키가 손해를 봅니다.",
        )
        .mistake(
            "sign",
            [-right],
            text(
                "The sign: distance is a penalty, so it is subtracted.",
                "부호가 반대입니다. 거리는 감점이므로 뺍니다.",
            ),
        )
        .mistake(
            "first-head",
            [-3.0 * f64::from(slopes[0])],
            text(
                "That is the slope of the first head, 1/2. The second has 1/4.",
                "첫째 헤드의 기울기 1/2을 쓰셨습니다. 둘째 헤드는 1/4입니다.",
            ),
        )
        .mistake(
            "position-for-distance",
            [-2.0 * slope],
            text(
                "That is the slope times the position of the key. ALiBi counts the distance from query to key.",
                "키의 위치에 기울기를 곱하셨습니다. ALiBi는 쿼리와 키의 거리를 셉니다.",
            ),
        )
        .mistake(
            "off-by-one",
            [-4.0 * slope],
            text("From 2 to 5 there are 3 steps, not 4.", "2에서 5까지는 네 걸음이 아니라 세 걸음입니다."),
        )
        .because(format!("−1/4 · 3 = {}.", short(right)), format!("−1/4 · 3 = {}입니다.", short(right))))
}

fn blind() -> Result<Task> {
    let question = text(
        "Which of these models gives every word of “dog bites man” the same output as in “man bites dog”?",
        "다음 가운데 “dog bites man”과 “man bites dog”에서 단어마다 출력이 똑같은 모델은 어느 것입니까?",
    );
    let wrong = vec![
        (
            "rope-blind",
            text("one with RoPE", "RoPE를 쓰는 모델"),
            text(
                "RoPE turns queries and keys by their positions: the score of a pair changes with the side on which the other stands.",
                "RoPE는 쿼리와 키를 위치만큼 돌립니다. 상대가 어느 쪽에 있느냐에 따라 점수가 달라집니다.",
            ),
        ),
        (
            "causal-blind",
            text("one with a causal mask and no positions", "위치 정보 없이 인과 마스크만 쓰는 모델"),
            text(
                "The mask shows each token another set of keys: the first word sees itself alone. That tells the order.",
                "마스크는 토큰마다 다른 키를 보여 줍니다. 첫 단어는 자기만 봅니다. 그것으로 순서를 압니다.",
            ),
        ),
        (
            "sines-blind",
            text("one that adds sines to its input", "입력에 사인파를 더하는 모델"),
            text(
                "The sines make “dog” at position 0 another vector than “dog” at position 2.",
                "사인파 때문에 위치 0의 “dog”와 위치 2의 “dog”는 다른 벡터가 됩니다.",
            ),
        ),
    ];
    let right = text("one with ALiBi and no mask", "마스크 없이 ALiBi만 쓰는 모델");
    Ok(Task::choice(question, 3, right, wrong)
        .hint("One sentence is the mirror image of the other.", "한 문장은 다른 문장을 거꾸로 놓은 것입니다.")
        .hint(
            "Which of them knows distances, but no direction? `foveal lab positions` computes it.",
            "거리는 알지만 방향은 모르는 것이 무엇입니까? `foveal lab positions`가 계산해 줍니다.",
        )
        .because(
            "All distances are the same in the mirror image. That is why ALiBi is used together with a causal mask.",
            "거꾸로 놓아도 거리는 모두 같습니다. 그래서 ALiBi는 인과 마스크와 함께 씁니다.",
        ))
}
