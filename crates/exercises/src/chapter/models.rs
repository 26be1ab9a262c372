//! Chapters 8 to 11: cost, the cache, heads of real models, alignment.

use std::collections::BTreeMap;

use foveal_labs::{Text, text};
use foveal_models::analysis::survey::HELD_OUT;
use foveal_models::analysis::words::merge;
use foveal_models::analysis::{HeadClass, SurveyedHead, ablation, survey};
use foveal_models::model::Gpt2Config;
use foveal_models::{OpenModel, ReadOptions};
use foveal_view::{Heatmap, Numbers};

use crate::answer::Answer;
use crate::number::{fixed, short};
use crate::{Exercise, Result, Task};

pub(crate) const MODELS: [Exercise; 7] = [
    Exercise::new("cost", 8, ["Twice as many words", "단어가 두 배가 되면"], cost),
    Exercise::new("kv-cache", 9, ["The memory of a cache", "캐시의 메모리"], kv_cache),
    Exercise::new(
        "previous-head",
        10,
        ["Find the head that looks at the token before", "직전 토큰을 보는 헤드 찾기"],
        previous_head,
    ),
    Exercise::new("line-head", 10, ["Find the head that looks at line ends", "줄 끝을 보는 헤드 찾기"], line_head),
    Exercise::new(
        "costly-head",
        10,
        ["Find the head that is missed most", "없으면 가장 아쉬운 헤드 찾기"],
        costly_head,
    ),
    Exercise::new("cause", 10, ["A weight of 0.9", "가중치 0.9"], cause),
    Exercise::new("alignment", 11, ["Which word was it made from?", "어느 단어에서 왔습니까?"], alignment),
];

fn cost() -> Result<Task> {
    let work = |n: f64, d: f64| [n * n * d, n * d * d, 3.0 * n * d * d];
    let (before, after) = (work(512.0, 256.0), work(1024.0, 256.0));
    let question = text(
        "A text becomes twice as long; the width stays. By what factor grows the work of attention, of an RNN, and of a CNN with a kernel of 3? Three numbers.",
        "너비는 그대로이고 글만 두 배로 길어집니다. 어텐션, RNN, 커널이 3인 CNN의 계산량은 각각 몇 배가 됩니까? 수 세 개를 쓰십시오.",
    );
    Ok(Task::numbers(question, (0..3).map(|i| after[i] / before[i]), 0)
        .hint("n²·d, n·d², k·n·d². Put 2n in place of n.", "n²·d, n·d², k·n·d²입니다. n 자리에 2n을 넣으십시오.")
        .mistake(
            "all-linear",
            [2.0, 2.0, 2.0],
            text(
                "Attention compares every pair: n² pairs, so four times as many.",
                "어텐션은 모든 쌍을 비교합니다. 쌍은 n²개이므로 네 배입니다.",
            ),
        )
        .mistake(
            "all-square",
            [4.0, 4.0, 4.0],
            text(
                "Only attention compares pairs. An RNN takes one step a word, a CNN one window a word.",
                "쌍을 비교하는 것은 어텐션뿐입니다. RNN은 단어마다 한 걸음, CNN은 단어마다 창 하나입니다.",
            ),
        )
        .mistake(
            "times-kernel",
            [4.0, 2.0, 6.0],
            text(
                "The kernel of 3 counts before and after alike, so it cancels.",
                "커널 3은 전에도 후에도 똑같이 곱해지므로 지워집니다.",
            ),
        )
        .because(
            "×4, ×2, ×2. The price of looking at everything at once.",
            "4배, 2배, 2배입니다. 모든 것을 한꺼번에 보는 값입니다.",
        ))
}

fn kv_cache() -> Result<Task> {
    let config = Gpt2Config::small();
    let (layers, width, heads) = (config.layers as f64, config.width as f64, config.heads as f64);
    let tokens = 1024.0;
    let megabytes = 2.0 * layers * tokens * width * 4.0 / f64::from(1 << 20);
    let question = text(
        format!(
            "GPT-2 has {layers} layers and a width of {width}. How many megabytes (2²⁰ bytes) does its cache of keys and values take for {tokens} tokens, in numbers of 4 bytes?"
        ),
        format!(
            "GPT-2는 층이 {layers}개이고 너비가 {width}입니다. 토큰 {tokens}개의 키와 값을 담은 캐시는 4바이트 수로 몇 메가바이트(2²⁰바이트)입니까?"
        ),
    );
    Ok(Task::numbers(question, [megabytes], 0)
        .hint(
            "For each token and layer: a key and a value, each as wide as the model.",
            "토큰마다, 층마다 키 하나와 값 하나이고, 둘 다 모델만큼 넓습니다.",
        )
        .hint("2 · 12 · 1024 · 768 numbers of 4 bytes.", "4바이트 수가 2 · 12 · 1024 · 768개입니다.")
        .mistake(
            "keys-only",
            [megabytes / 2.0],
            text(
                "Half of it is missing: keys and values are both kept.",
                "절반이 빠졌습니다. 키와 값을 모두 담아 둡니다.",
            ),
        )
        .mistake(
            "times-heads",
            [megabytes * heads],
            text(
                "The heads share the width of 768; they do not each have it.",
                "헤드들은 너비 768을 나누어 가집니다. 저마다 768은 아닙니다.",
            ),
        )
        .mistake(
            "one-layer",
            [megabytes / layers],
            text(
                "That is one layer. Each has keys and values of its own.",
                "한 층의 크기입니다. 층마다 키와 값이 따로 있습니다.",
            ),
        )
        .mistake(
            "queries-too",
            [megabytes * 1.5],
            text(
                "Queries are not kept: nobody asks for an earlier one again.",
                "쿼리는 담아 두지 않습니다. 지나간 쿼리는 다시 쓰이지 않습니다.",
            ),
        )
        .because(
            format!("{} MB; and four times as much for 4,096 tokens.", short(megabytes)),
            format!("{}MB입니다. 토큰이 4,096개이면 네 배입니다.", short(megabytes)),
        ))
}

/// Scores of the heads of the model `shakespeare`, by layer and head.
type Scores = BTreeMap<[usize; 2], f64>;

/// A head that is best at something; those within a twentieth of the best are as good.
struct Search {
    scores: Scores,
    of: [usize; 2],
}

impl Search {
    fn right(&self) -> Vec<[usize; 2]> {
        let best = self.scores.values().fold(f64::MIN, |best, score| best.max(*score));
        let mut right: Vec<_> = self.scores.iter().filter(|(_, score)| **score >= 0.95 * best).collect();
        right.sort_by(|a, b| b.1.total_cmp(a.1));
        right.into_iter().map(|(head, _)| *head).collect()
    }

    /// The question, with the mistakes that can be made in any search, and those that are this one's own.
    fn task(&self, question: Text, own: Vec<(&'static str, [usize; 2], Text)>) -> Task {
        let right = self.right();
        let mut mistakes: BTreeMap<[usize; 2], (&'static str, Text)> = BTreeMap::new();
        for (name, head, why) in own {
            mistakes.entry(head).or_insert((name, why));
        }
        for &[layer, head] in &right {
            mistakes.entry([head, layer]).or_insert((
                "swapped",
                text(
                    format!("Layer and head are exchanged: first the layer, then the head, {layer}.{head}."),
                    format!("층과 헤드가 바뀌었습니다. {layer}.{head}처럼 층을 먼저 씁니다."),
                ),
            ));
            mistakes.entry([layer + 1, head + 1]).or_insert((
                "from-1",
                text("Layers and heads count from 0, as in the tables.", "층과 헤드는 표에서처럼 0부터 셉니다."),
            ));
        }
        let [layers, heads] = self.of;
        let possible = |head: &[usize; 2]| !right.contains(head) && head[0] < layers && head[1] < heads;
        let wrong: Vec<_> = mistakes.into_iter().filter(|(head, _)| possible(head)).collect();
        let task = Task::head(question, right, self.of);
        wrong.into_iter().fold(task, |task, (head, (name, why))| task.mistaken(name, Answer::Head(head), why))
    }
}

/// All heads of the model on the text that `foveal heads` takes.
fn surveyed(score: impl Fn(&SurveyedHead) -> Option<f64>) -> Result<Search> {
    let open = OpenModel::open("shakespeare")?;
    let found = survey(&open, HELD_OUT, Default::default())?;
    let shape = open.model.as_language_model()?.shape();
    let place = |head: &SurveyedHead| [head.scores.head.site.layer, head.scores.head.head];
    let scores = found.heads.iter().filter_map(|head| Some((place(head), score(head)?))).collect();
    Ok(Search { scores, of: [shape.layers, shape.heads] })
}

fn of_lines(head: &SurveyedHead) -> Option<f64> {
    head.classes.of(HeadClass::LineEnd).map(|share| share.share)
}

const INTRODUCTION: [&str; 2] = [
    "The model inside, shakespeare, has 5 layers of 10 heads.",
    "안에 든 모델 shakespeare는 층이 5개이고 층마다 헤드가 10개입니다.",
];

fn previous_head() -> Result<Task> {
    let search = surveyed(|head| Some(f64::from(head.scores.previous)))?;
    let lines = surveyed(of_lines)?.right();
    let [en, ko] = INTRODUCTION;
    let question = text(
        format!(
            "{en} Which head gives the most weight to the token just before? In another terminal: foveal heads --by previous. Answer as layer.head."
        ),
        format!(
            "{ko} 바로 앞 토큰에 가중치를 가장 많이 주는 헤드는 어느 것입니까? 다른 터미널에서 foveal heads --by previous를 실행해 보십시오. 층.헤드로 답하십시오."
        ),
    );
    let own = vec![(
        "line-end",
        lines[0],
        text(
            "That head looks at the ends of lines. The token before is a diagonal just below the main one.",
            "그 헤드는 줄 끝을 봅니다. 직전 토큰은 주대각선 바로 아래의 대각선으로 보입니다.",
        ),
    )];
    let best = search.right()[0];
    let share = fixed(search.scores[&best], 2);
    Ok(search
        .task(question, own)
        .hint("foveal heads --by previous sorts all heads by the mean of A[i, i − 1].", "foveal heads --by previous는 모든 헤드를 A[i, i − 1]의 평균으로 정렬합니다.")
        .hint("Read layer.head in the first column of the first row.", "첫 행 첫 열의 층.헤드를 읽으십시오.")
        .because(
            format!("Head {}.{} gives {share} of its weight to the token before, on the average. Heads within a twentieth of it count as right, too.", best[0], best[1]),
            format!("헤드 {}.{}은(는) 평균 {share}의 가중치를 직전 토큰에 줍니다. 이보다 20분의 1 이내로 적은 헤드도 맞은 것으로 칩니다.", best[0], best[1]),
        ))
}

fn line_head() -> Result<Task> {
    let search = surveyed(of_lines)?;
    let previous = surveyed(|head| Some(f64::from(head.scores.previous)))?.right();
    let [en, ko] = INTRODUCTION;
    let question = text(
        format!(
            "{en} Several heads look at line ends. Which gives them the largest share of its weight? foveal heads lists the plainest head of each class. Answer as layer.head."
        ),
        format!(
            "{ko} 줄 끝을 보는 헤드가 여럿 있습니다. 줄 끝에 주는 몫이 가장 큰 헤드는 어느 것입니까? foveal heads가 종류마다 가장 뚜렷한 헤드를 보여 줍니다. 층.헤드로 답하십시오."
        ),
    );
    let own = vec![(
        "previous",
        previous[0],
        text(
            "That head looks at the token before. Look for the class “line end”.",
            "그 헤드는 직전 토큰을 봅니다. 줄 끝 종류를 찾으십시오.",
        ),
    )];
    let best = search.right()[0];
    let share = fixed(search.scores[&best], 2);
    Ok(search
        .task(question, own)
        .hint("The second table of foveal heads has a row for each class.", "foveal heads의 둘째 표에 종류마다 한 행이 있습니다.")
        .hint("Its column “plainest” is layer.head.", "“가장 뚜렷한 헤드” 열이 층.헤드입니다.")
        .because(
            format!("Head {}.{} gives {share} of the weight that is not left at a sink to line ends. Verse has a line end in every row, and knowing how far it is helps to write verse.", best[0], best[1]),
            format!("헤드 {}.{}은(는) 싱크에 남기지 않은 가중치의 {share}를 줄 끝에 줍니다. 운문에는 줄마다 끝이 있고, 그것이 얼마나 떨어져 있는지 알면 운문을 쓰기 쉽습니다.", best[0], best[1]),
        ))
}

fn costly_head() -> Result<Task> {
    let open = OpenModel::open("shakespeare")?;
    let model = open.model.as_language_model()?;
    let mut tokens = open.tokenizer()?.encode(HELD_OUT)?.ids().to_vec();
    tokens.truncate(model.shape().context);
    let each = ablation::each(model, &tokens)?;
    let scores = each.iter().map(|(head, loss)| ([head.site.layer, head.head], f64::from(*loss))).collect();
    let search = Search { scores, of: [model.shape().layers, model.shape().heads] };
    let sure = surveyed(|head| Some(f64::from(head.scores.confidence)))?.right();
    let [en, ko] = INTRODUCTION;
    let question = text(
        format!(
            "{en} Switch each head off by itself: which one does the text miss most? foveal heads --ablate has a column for it; --top 50 lists all. Answer as layer.head."
        ),
        format!(
            "{ko} 헤드를 하나씩 꺼 보십시오. 없을 때 글을 맞히기가 가장 어려워지는 헤드는 어느 것입니까? foveal heads --ablate에 그 열이 있고, --top 50이면 모두 나옵니다. 층.헤드로 답하십시오."
        ),
    );
    let own = sure.into_iter().map(|head| ("weight-for-cause", head, text(
        "That head is the surest of where it looks. A large weight is no cause: switch it off, and the text hardly changes.",
        "그 헤드는 어디를 볼지 가장 확신합니다. 하지만 큰 가중치가 원인은 아닙니다. 꺼도 글은 별로 달라지지 않습니다.",
    )));
    let best = search.right()[0];
    let change = fixed(search.scores[&best], 3);
    Ok(search
        .task(question, own.collect())
        .hint("foveal heads --ablate --top 50", "foveal heads --ablate --top 50")
        .hint("The last column is the loss that the head's absence adds; look for the largest.", "마지막 열은 그 헤드가 없을 때 늘어나는 손실입니다. 가장 큰 값을 찾으십시오.")
        .because(
            format!("Without head {}.{} the loss grows by {change} nats a token. That is an intervention: it says more than any weight.", best[0], best[1]),
            format!("헤드 {}.{}이(가) 없으면 손실이 토큰마다 {change}내트 늘어납니다. 이것은 개입이고, 어떤 가중치보다 많은 것을 말해 줍니다.", best[0], best[1]),
        ))
}

fn cause() -> Result<Task> {
    let question = text(
        "A head gives 0.9 of its weight to a comma, and the model answers rightly. Someone says: “It answers so because of the comma.” What would show whether that is true?",
        "어떤 헤드가 쉼표에 가중치 0.9를 주고, 모델은 옳게 답합니다. 누군가 “쉼표 때문에 그렇게 답했다”고 말합니다. 사실인지 무엇으로 알 수 있습니까?",
    );
    let wrong = vec![
        (
            "weight-for-cause",
            text("The weight itself: 0.9 is nearly all.", "가중치 그 자체입니다. 0.9면 거의 전부입니다."),
            text(
                "A weight says where something was read, not what came of it. The value may be tiny, or later layers may drop it.",
                "가중치는 어디를 읽었는지 말할 뿐, 그것으로 무엇을 했는지는 말하지 않습니다. 값이 아주 작거나 다음 층이 버릴 수 있습니다.",
            ),
        ),
        (
            "mean-of-heads",
            text("The mean over all heads.", "모든 헤드의 평균입니다."),
            text(
                "A mean mixes heads with different jobs, and is still a weight.",
                "평균은 하는 일이 다른 헤드를 섞을 뿐이고, 여전히 가중치입니다.",
            ),
        ),
        (
            "one-example",
            text(
                "A second sentence in which the head looks at a comma.",
                "그 헤드가 쉼표를 보는 문장을 하나 더 찾습니다.",
            ),
            text(
                "That shows that the head looks at commas, not that the answer depends on it.",
                "그 헤드가 쉼표를 본다는 것을 보일 뿐, 답이 거기에 달려 있다는 것은 아닙니다.",
            ),
        ),
    ];
    let right =
        text("Switching the head off, and seeing whether the answer changes.", "헤드를 끄고 답이 달라지는지 봅니다.");
    Ok(Task::choice(question, 1, right, wrong).hint("Correlation or intervention?", "상관입니까, 개입입니까?").because(
        "Attention is correlation. An intervention tells of causes.",
        "어텐션은 상관입니다. 원인은 개입이 알려 줍니다.",
    ))
}

fn alignment() -> Result<Task> {
    let sentence = "The student reads two books.";
    let open = OpenModel::open("translate-en-ko")?;
    let seen = foveal_models::Observation::of(&open, sentence, &ReadOptions::default())?;
    let (layer, head) = seen.salient_head(None)?;
    let weights = merge(&seen.layer(layer)?.weights(0, head)?, &seen.queries.groups, &seen.keys.groups)?;
    let (rows, columns) = (seen.queries.words(), seen.keys.words());
    // The last word; after it come its full stop and the end of the sentence.
    let is_word = |label: &String| label.chars().any(char::is_alphabetic) && !label.starts_with('<');
    let row = (0..rows.len()).rev().find(|&i| is_word(&rows.labels[i])).unwrap_or(0);
    let weight = |j: usize| weights[[row, j]];
    let options: Vec<usize> = (0..columns.len()).filter(|&j| is_word(&columns.labels[j])).collect();
    let best = options.iter().copied().max_by(|a, b| weight(*a).total_cmp(&weight(*b))).unwrap_or(0);
    let word = rows.labels[row].trim().to_owned();
    let names = ["word-1", "word-2", "word-3", "word-4", "word-5", "word-6", "word-7", "word-8"];
    let last = options.last().copied();
    let wrong = options.iter().filter(|&&j| j != best).zip(names).map(|(&j, name)| {
        let (share, other) = (fixed(f64::from(weight(j)), 3), columns.labels[j].trim());
        let why = if Some(j) == last {
            text(
                format!("The last word of the one is not made from the last of the other: Korean puts the verb last. Its weight here is {share}."),
                format!("한쪽의 마지막 단어가 다른 쪽의 마지막 단어에서 오지는 않습니다. 한국어는 동사가 마지막에 옵니다. 여기서 가중치는 {share}입니다."),
            )
        } else {
            text(
                format!("The row of {word} gives {other} a weight of {share}. Look for the strongest cell of the row."),
                format!("{word} 행에서 {other}의 가중치는 {share}입니다. 행에서 가장 강한 칸을 찾으십시오."),
            )
        };
        (name, Text::from(columns.labels[j].trim()), why)
    });
    let right = options.iter().position(|j| *j == best).unwrap_or(0);
    let question = text(
        format!(
            "The translator inside has written the Korean at the left for “{sentence}”. From which English word was {word} made?"
        ),
        format!(
            "안에 든 번역기가 “{sentence}”를 왼쪽의 한국어로 옮겼습니다. {word}은(는) 어느 영어 단어에서 왔습니까?"
        ),
    );
    Ok(Task::choice(question, right, Text::from(columns.labels[best].trim()), wrong.collect())
        .scene(|language| {
            let map = Heatmap::alignment(weights.clone(), rows.labels.clone(), columns.labels.clone())?;
            Ok(map.numbers(Numbers::Hidden).language(language))
        })?
        .hint(
            format!("Read the row of {word} from left to right."),
            format!("{word} 행을 왼쪽에서 오른쪽으로 읽으십시오."),
        )
        .because(
            format!(
                "{word} ← {}, with a weight of {}. The diagonal breaks where the orders of the languages differ.",
                columns.labels[best].trim(),
                fixed(f64::from(weight(best)), 3)
            ),
            format!(
                "{word} ← {}, 가중치는 {}입니다. 두 언어의 어순이 다른 곳에서 대각선이 끊깁니다.",
                columns.labels[best].trim(),
                fixed(f64::from(weight(best)), 3)
            ),
        ))
}
