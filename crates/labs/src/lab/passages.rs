//! More and more passages: each read by itself, or all joined into one text.

use foveal_facts::{Exercise, Facts, Language, Settings};
use foveal_grammar::Random;
use foveal_models::model::Reader;
use foveal_models::reading::{Asker, Limits, Padded, ReaderTokens};
use foveal_models::trace::Probe;
use foveal_models::{OpenModel, Tokenizer};
use foveal_view::{Chart, Steps};
use serde_json::json;

use crate::clock::{exponent, fastest};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Watch, text};

pub const LAB: Lab = Lab {
    name: "passages",
    title: Bilingual {
        en: "Fusion-in-Decoder: from 1 passage to 100", ko: "Fusion-in-Decoder: 글 1개에서 100개까지"
    },
    summary: Bilingual {
        en: "A question is put to more and more passages, of which one has the answer. Each is encoded by itself, together with \
         the question, and the decoder attends to all: twice the passages, twice the time. Joined into one text, every token \
         would attend to those of all other passages: the time of attention grows with the square. Attention has to find \
         the right passage among ever more wrong ones.",
        ko: "질문 하나를 점점 더 많은 글에 묻습니다. 답은 그중 하나에 있습니다. 글은 하나씩 질문과 함께 인코딩되고 디코더가 모두를 봅니다. \
         글이 2배가 되면 시간도 2배가 됩니다. 한 글로 이으면 모든 토큰이 다른 모든 글의 토큰을 보게 되어 어텐션 시간은 제곱으로 늘어납니다. \
         어텐션은 점점 더 많은 틀린 글 사이에서 맞는 글을 찾아야 합니다.",
    },
    knobs: &[COUNTS, SEED, MODEL],
    work,
};

const COUNTS: Knob =
    Knob::several("tokens", Bilingual { en: "Numbers of passages", ko: "글의 수" }, &[1, 2, 5, 10, 30, 100], 1..=200)
        .growth();
const SEED: Knob = Knob::seed();
const MODEL: Knob = Knob::model("reader");

/// Passages that all questions of a row have together.
const READ: usize = 200;

/// What came of the questions with one number of passages.
struct Row {
    passages: usize,
    questions: usize,
    right: usize,
    found: usize,
    /// The mean share of the attention on the right passage.
    weight: f64,
    /// Seconds to encode the passages: each by itself, and joined.
    seconds: [f64; 2],
}

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let (counts, seed) = (knobs.get_several(&COUNTS), knobs.get_seed(&SEED));
    let open = OpenModel::open(knobs.get_text(&MODEL))?;
    let facts = Facts::new();
    let mut rows = Vec::new();
    for &passages in &counts {
        let mut random = Random::stream(seed, passages as u64);
        let questions = (READ / passages).clamp(4, 40);
        let exercises: Vec<Exercise> = (0..questions)
            .map(|n| {
                let settings = Settings::held_out(Language::ALL[n % 2], passages).unanswerable(0);
                facts.exercise(&settings, &mut random)
            })
            .collect();
        rows.push(row(&open, &exercises)?);
    }
    let grows = |at: usize| exponent(&counts, &rows.iter().map(|row| row.seconds[at]).collect::<Vec<_>>());
    let (apart, joined) = (grows(0), grows(1));
    let figures: Vec<_> = (rows.iter())
        .map(|row| {
            json!({ "passages": row.passages, "questions": row.questions, "right": row.right, "right_passage": row.found,
                    "weight": row.weight, "seconds": { "apart": row.seconds[0], "joined": row.seconds[1] } })
        })
        .collect();
    let figures = json!({ "seed": seed, "model": open.name, "counts": figures,
                          "exponents": { "apart": apart, "joined": joined } });
    let prose = text(
        format!("Time grows as n^{apart:.2} where each is read by itself, as n^{joined:.2} where they are joined."),
        format!("시간은 하나씩 읽으면 n^{apart:.2}, 이어서 읽으면 n^{joined:.2}으로 늘어납니다."),
    );
    Report::new(figures).prose(prose).table(table(&rows)).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let points = |at: usize| -> Vec<(f64, f64)> {
            rows.iter().map(|row| (row.passages as f64, 1e3 * row.seconds[at])).collect()
        };
        Ok(Chart::new(tr("passages", "글"), tr("milliseconds", "밀리초"))
            .series(format!("{}: n^{apart:.2}", tr("each by itself", "하나씩")), points(0))
            .series(format!("{}: n^{joined:.2}", tr("joined", "이어서")), points(1))
            .title(tr("Time to encode the passages", "글을 인코딩하는 시간"))
            .steps(Steps::Log, Steps::Log)
            .language(language))
    })
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        text("passages", "글"),
        text("questions", "질문"),
        text("right", "정답"),
        text("passage found", "찾은 글"),
        text("weight on it", "그 글의 가중치"),
        text("each by itself, ms", "하나씩, ms"),
        text("joined, ms", "이어서, ms"),
    ]);
    for row in rows {
        table.row([
            row.passages.to_string(),
            row.questions.to_string(),
            row.right.to_string(),
            row.found.to_string(),
            format!("{:.3}", row.weight),
            format!("{:.1}", 1e3 * row.seconds[0]),
            format!("{:.1}", 1e3 * row.seconds[1]),
        ]);
    }
    table
}

/// Asks questions that have as many passages each.
fn row(open: &OpenModel, exercises: &[Exercise]) -> Result<Row> {
    let asker = Asker::new(open, Limits::default())?;
    let (mut right, mut found, mut weight) = (0, 0, 0.0);
    for exercise in exercises {
        let answered = asker.ask(&exercise.question, &exercise.passages)?;
        let Some(answer) = &exercise.answer else { continue };
        right += usize::from(answered.text.as_ref() == Some(&answer.text));
        found += usize::from(answered.passage() == Some(answer.passage));
        weight += f64::from(answered.weights()[answer.passage]) / exercises.len() as f64;
    }
    let seconds = seconds(open.reader()?, open.tokenizer()?, &exercises[0])?;
    Ok(Row { passages: exercises[0].passages.len(), questions: exercises.len(), right, found, weight, seconds })
}

/// Seconds to encode passages each by itself, and joined into one text.
fn seconds(reader: &Reader, tokenizer: &Tokenizer, exercise: &Exercise) -> Result<[f64; 2]> {
    // One token for each byte at most; rotary positions have no end.
    let room = exercise.passages.iter().map(String::len).sum::<usize>() + 2 * exercise.question.len() + 8;
    let long = reader.clone().with_context(room);
    let tokens = ReaderTokens::new(tokenizer, room)?;
    let question = tokens.question(&exercise.question)?;
    let apart =
        exercise.passages.iter().map(|passage| tokens.input(&question, passage)).collect::<Result<Vec<_>, _>>()?;
    let joined = [tokens.input(&question, &exercise.passages.join(" "))?];
    let (apart, joined) = (Padded::new([apart.as_slice()]), Padded::new([joined.as_slice()]));
    let encode = |padded: &Padded| -> Result<()> {
        long.encode(padded.batch(), &mut Probe::default())?;
        Ok(())
    };
    let times = fastest(&mut [Box::new(|| encode(&apart)), Box::new(|| encode(&joined))])?;
    Ok([times[0], times[1]])
}
