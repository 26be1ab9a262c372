//! `foveal train questions`: a reader that answers from passages, on generated facts in English and Korean.

use anyhow::Result;
use foveal_facts::{Exercise, Facts, Language, Settings};
use foveal_grammar::Random as Chance;
use foveal_models::Tokenizer;
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Reader, ReaderConfig};
use foveal_models::reading::{Asker, Limits, ReaderTokens, reader_vocabulary};
use foveal_models::train::{Asked, Ended, Plan, Questions as Task};
use serde_json::{Value, json};

use super::{curve, ending};
use crate::arguments::{Run, TrainQuestions};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// Exercises that the vocabulary is learned from, and its byte pairs.
const VOCABULARY: (usize, usize) = (6000, 900);
/// Passages that are read in a step, for one question or for several.
const PASSAGES: usize = 24;
/// Of a hundred questions, how many no passage answers.
const UNANSWERABLE: usize = 25;
/// Parts that questions are sorted into by the length of their passages. A step has those of one part: little is filled up.
const LENGTHS: usize = 4;
/// Held-out questions in each language.
const HELD_OUT: usize = 500;
/// Of them, how many are looked at after each evaluation.
const SAMPLE: usize = 50;
/// Passages of a held-out question.
const AMONG: usize = 10;

fn plan() -> Plan {
    let plan = Plan { steps: 6000, peak: 2e-3, floor: 3e-5, warmup: 300, ..Plan::default() };
    Plan { weight_decay: 0.01, betas: (0.9, 0.98), evaluate_every: 500, ..plan }
}

pub fn run(arguments: &TrainQuestions, output: Output) -> Result<()> {
    output.check_file()?;
    let (run, facts) = (&arguments.run, Facts::new());
    let tokenizer = vocabulary(&facts, run.seed)?;
    let model = model_of(&tokenizer, run)?;
    let context = model.config().context;
    let tokens = ReaderTokens::new(&tokenizer, context)?;
    let encode = |exercise: &Exercise| asked(&tokens, exercise).expect("an exercise is short and of known letters");
    let held_out = [0, 1].map(|n| held_out(&facts, Language::ALL[n], SAMPLE, 17));
    let passages = run.batch.unwrap_or(PASSAGES);
    let draw = |random: &mut Random| {
        // Most questions have one passage, which is hard enough to learn from; many passages teach to tell them apart.
        let count = [1, 1, 1, 1, 1, 1, 3, 3, 3, AMONG][random.below(10)];
        let (mut chance, part) = (Chance::new(random.bits()), random.below(LENGTHS));
        let settings = |n: usize| Settings::learned(Language::ALL[n % 2], count).unanswerable(UNANSWERABLE);
        let questions = (passages / count).max(4);
        let mut drawn: Vec<_> = (0..LENGTHS * questions).map(|n| facts.exercise(&settings(n), &mut chance)).collect();
        drawn.sort_by_key(|exercise| exercise.passages.iter().map(|passage| room(passage)).max());
        drawn[part * questions..(part + 1) * questions].iter().map(encode).collect()
    };
    let task = Task::new(draw, held_out.iter().flatten().map(encode).collect(), (tokens.begin, tokens.end))?;
    let parameters = model.parameter_count();
    let mut trainer = run.trainer(&task, model, run.plan(plan()))?;
    let ended = run.train(&mut trainer, &mut |trainer, progress| {
        for (language, exercises) in Language::ALL.into_iter().zip(&held_out) {
            let marks = Marks::of(&Asker::of(trainer.model(), tokens, Limits::default()), exercises)?;
            progress.line(&format!("  {language:?}: {marks}"));
        }
        Ok(())
    })?;
    let best = trainer.best();
    best.save(&run.folder, run.dtype())?;
    tokenizer.save(&run.folder)?;
    let mut figures = json!({ "parameters": parameters, "steps": trainer.records().len() });
    let mut tables = Vec::new();
    // A run that was interrupted goes on; what it is worth is asked at its end.
    if ended != Ended::Stopped {
        let asker = Asker::of(best, tokens, Limits::default());
        tables.push(examination(&facts, &asker, &mut figures, output.language)?);
    }
    output.show(&Report {
        title: format!("{}: {parameters} parameters", run.folder.display()),
        notes: vec![ending(ended, run, &output)],
        tables,
        scenes: vec![curve(&trainer, &output)],
        figures,
        ..Report::default()
    })
}

/// All held-out questions of both languages, with and without an answer.
fn examination(
    facts: &Facts,
    asker: &Asker,
    figures: &mut Value,
    language: crate::language::Language,
) -> Result<Table> {
    let tr = |english, korean| language.of(english, korean);
    let mut table = Table::new([
        tr("held out", "검증"),
        tr("exact", "정확"),
        tr("right passage", "맞는 글"),
        tr("refused rightly", "옳은 거절"),
        tr("refused wrongly", "잘못된 거절"),
    ]);
    for language in Language::ALL {
        let answerable = Marks::of(asker, &held_out(facts, language, HELD_OUT, 0))?;
        let unanswerable = Marks::of(asker, &held_out(facts, language, HELD_OUT / 2, 100))?;
        let all = answerable.and(&unanswerable);
        let percent = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let [exact, found, rightly, wrongly] = all.shares();
        table.row([format!("{language:?}"), percent(exact), percent(found), percent(rightly), percent(wrongly)]);
        figures[format!("{language:?}").to_lowercase()] = all.figures();
    }
    Ok(table)
}

fn vocabulary(facts: &Facts, seed: u64) -> Result<Tokenizer> {
    let mut chance = Chance::stream(seed, 1);
    let settings = Settings::learned(Language::English, 1);
    let texts = (0..VOCABULARY.0).map(|_| {
        let exercise = facts.exercise(&settings, &mut chance);
        format!("{} {}", exercise.question, exercise.passages.join(" "))
    });
    Ok(reader_vocabulary(texts, Facts::syllables(), VOCABULARY.1)?)
}

fn model_of(tokenizer: &Tokenizer, run: &Run) -> Result<Reader> {
    let small = ReaderConfig::small(tokenizer.vocabulary());
    let width = run.dims.unwrap_or(small.width);
    let config = ReaderConfig {
        width,
        hidden: 3 * width,
        heads: run.heads.unwrap_or(small.heads),
        encoder_layers: run.layers.unwrap_or(small.encoder_layers),
        ..small
    };
    Ok(Reader::new(&config, &mut Random::new(run.seed))?)
}

/// About how many tokens a passage has: a syllable of Hangul is one, and so are four other letters.
fn room(passage: &str) -> usize {
    passage.chars().map(|c| if c.is_ascii() { 1 } else { 4 }).sum()
}

fn asked(tokens: &ReaderTokens, exercise: &Exercise) -> Result<Asked> {
    let question = tokens.question(&exercise.question)?;
    let inputs = exercise.passages.iter().map(|passage| Ok(tokens.input(&question, passage)?));
    let answer = tokens.answer(exercise.answer.as_ref().map(|answer| answer.text.as_str()))?;
    Ok(Asked { inputs: inputs.collect::<Result<_>>()?, answer })
}

/// The same questions for everyone: no seed of a run changes them.
fn held_out(facts: &Facts, language: Language, count: usize, unanswerable: usize) -> Vec<Exercise> {
    let mut chance = Chance::stream(2020, unanswerable as u64);
    let settings = Settings::held_out(language, AMONG).unanswerable(unanswerable);
    (0..count).map(|_| facts.exercise(&settings, &mut chance)).collect()
}

/// How many questions had which end.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    answerable: usize,
    exact: usize,
    found: usize,
    refused_wrongly: usize,
    unanswerable: usize,
    refused_rightly: usize,
}

impl Marks {
    fn of(asker: &Asker, exercises: &[Exercise]) -> Result<Self> {
        let mut marks = Marks::default();
        for exercise in exercises {
            let answered = asker.ask(&exercise.question, &exercise.passages)?;
            match &exercise.answer {
                Some(answer) => {
                    marks.answerable += 1;
                    marks.exact += usize::from(answered.text.as_ref() == Some(&answer.text));
                    marks.found += usize::from(answered.passage() == Some(answer.passage));
                    marks.refused_wrongly += usize::from(answered.text.is_none());
                }
                None => {
                    marks.unanswerable += 1;
                    marks.refused_rightly += usize::from(answered.text.is_none());
                }
            }
        }
        Ok(marks)
    }

    fn and(&self, other: &Marks) -> Self {
        Marks {
            answerable: self.answerable + other.answerable,
            exact: self.exact + other.exact,
            found: self.found + other.found,
            refused_wrongly: self.refused_wrongly + other.refused_wrongly,
            unanswerable: self.unanswerable + other.unanswerable,
            refused_rightly: self.refused_rightly + other.refused_rightly,
        }
    }

    /// Exact, most weight on the right passage, refused rightly, refused wrongly; none of nothing.
    fn shares(&self) -> [Option<f64>; 4] {
        let of = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
        let (all, none) = (self.answerable, self.unanswerable);
        [of(self.exact, all), of(self.found, all), of(self.refused_rightly, none), of(self.refused_wrongly, all)]
    }

    fn figures(&self) -> Value {
        let [exact, passage, refused_rightly, refused_wrongly] = self.shares();
        json!({ "answerable": self.answerable, "unanswerable": self.unanswerable, "exact": exact, "passage": passage,
                "refused_rightly": refused_rightly, "refused_wrongly": refused_wrongly })
    }
}

impl std::fmt::Display for Marks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Marks { answerable, exact, found, refused_wrongly, unanswerable, refused_rightly } = self;
        write!(f, "{exact} of {answerable} exact, {found} in the right passage, {refused_wrongly} refused; ")?;
        write!(f, "{refused_rightly} of {unanswerable} without an answer refused")
    }
}
