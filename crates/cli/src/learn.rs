//! `foveal learn`: exercises that check themselves.

mod answer_file;
mod export;
mod folder;
mod session;
mod show;

use std::fmt;

use anyhow::{Result, anyhow, bail};
use foveal_exercises::{EXERCISES, Exercise, Expected, Progress, Task, Verdict, Workshop, find};
use serde_json::json;

use crate::arguments::Learn;
use crate::language::Language;
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// An answer was wrong, and that has been told.
#[derive(Debug)]
pub struct WrongAnswer;

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is wrong")
    }
}

impl std::error::Error for WrongAnswer {}

/// A learner: where files are kept, what is done, in which language.
struct Learner {
    output: Output,
    progress: Progress,
    workshop: Workshop,
    folder: std::path::PathBuf,
}

pub fn run(learn: &Learn, mut output: Output) -> Result<()> {
    let mut name = None;
    for word in &learn.words {
        match word.as_str() {
            "ko" => output.language = Language::Ko,
            "en" => output.language = Language::En,
            _ if name.is_none() => name = Some(word.as_str()),
            other => bail!("one exercise at a time: {other} is the second; leave one out"),
        }
    }
    let language = output.language;
    let told = |error: foveal_exercises::Error| anyhow!(error.message(language.into()));
    let exercise = name.map(find).transpose().map_err(told)?;
    let folder = learn.folder.clone().map_or_else(|| folder::data(language), Ok)?;
    let progress = Progress::open(folder.join("progress.json")).map_err(told)?;
    let mut learner = Learner { workshop: Workshop::new(&folder), output, progress, folder };
    if learn.reset {
        learner.progress.reset().map_err(told)?;
        return learner
            .output
            .line(language.of("All exercises are new again.", "모든 문제를 처음부터 다시 시작합니다."));
    }
    if learn.list || (learner.output.is_json() && exercise.is_none()) {
        return learner.list();
    }
    match (exercise, &learn.answer) {
        (None, Some(_)) => bail!(
            language.of("--answer needs the name of an exercise", "--answer에는 문제 이름이 필요합니다").to_owned()
        ),
        (Some(exercise), Some(answer)) => learner.answer(exercise, answer),
        (exercise, None) if learn.hint => {
            let exercise = exercise.or_else(|| learner.next()).unwrap_or(&LAST);
            learner.hint(exercise)
        }
        (exercise, None) if learn.watch => learner.watch(exercise),
        (exercise, None) => learner.ask(exercise),
    }
}

/// Where there is nothing left to do, there is still something to repeat.
static LAST: Exercise = EXERCISES[EXERCISES.len() - 1];

impl Learner {
    fn tr<'a>(&self, english: &'a str, korean: &'a str) -> &'a str {
        self.output.language.of(english, korean)
    }

    /// The error in the learner's language.
    fn told<T>(&self, result: foveal_exercises::Result<T>) -> Result<T> {
        result.map_err(|error| anyhow!(error.message(self.output.language.into())))
    }

    fn task(&self, exercise: &Exercise) -> Result<Task> {
        self.told(exercise.task())
    }

    /// The first exercise that is not done.
    fn next(&self) -> Option<&'static Exercise> {
        static ALL: [Exercise; EXERCISES.len()] = EXERCISES;
        ALL.iter().find(|exercise| !self.progress.of(exercise.name).done)
    }

    /// Judges an answer and keeps the result. Of a program the answer is a file.
    fn judge(&mut self, exercise: &Exercise, task: &Task, answer: &str) -> Result<Verdict> {
        let verdict = match &task.expected {
            Expected::Code(code) => {
                if let Some(obstacle) = Workshop::obstacle(code) {
                    let skipped = self.tr("skipped", "건너뜁니다");
                    bail!("{}: {skipped}: {}", exercise.name, obstacle.get(self.output.language.into()));
                }
                self.told(self.workshop.check(exercise.name, code, answer.as_ref()))?
            }
            _ => task.check(answer),
        };
        if !matches!(verdict, Verdict::Unreadable(_)) {
            let changed = self.progress.change(exercise.name, |record| {
                record.attempts += 1;
                record.done |= verdict.is_right();
            });
            self.told(changed)?;
        }
        Ok(verdict)
    }

    /// `--answer`.
    fn answer(mut self, exercise: &Exercise, answer: &str) -> Result<()> {
        let task = self.task(exercise)?;
        let verdict = self.judge(exercise, &task, answer)?;
        if self.output.is_json() {
            let why = match &verdict {
                Verdict::Wrong { why, .. } | Verdict::Unreadable(why) => Some(why.get(self.output.language.into())),
                _ => None,
            };
            let figures = json!({ "exercise": exercise.name, "right": verdict.is_right(), "mistake": verdict.mistake(), "why": why });
            self.output.line(&figures.to_string())?;
        } else {
            self.output.text(&self.spoken(&task, &verdict))?;
        }
        if verdict.is_right() { Ok(()) } else { Err(WrongAnswer.into()) }
    }

    /// `--hint`: the next one that was not shown yet.
    fn hint(mut self, exercise: &Exercise) -> Result<()> {
        let task = self.task(exercise)?;
        let text = self.next_hint(exercise, &task)?;
        self.output.text(&text)
    }

    /// `--list`: which there are, and which are done. As JSON all of them, with answers, for other programs.
    fn list(&self) -> Result<()> {
        let language = self.output.language;
        if self.output.is_json() || self.output.file().is_some() {
            return self.output.show(&Report { figures: self.told(export::all())?, ..Report::default() });
        }
        let mut table = Table::new(["", "foveal learn", self.tr("chapter", "장"), ""]).text_columns([1, 3]);
        for exercise in &EXERCISES {
            let record = self.progress.of(exercise.name);
            let mark = if record.done {
                "✓"
            } else if record.attempts > 0 {
                "·"
            } else {
                ""
            };
            table.row([mark, exercise.name, &exercise.chapter.to_string(), *exercise.title.get(language.into())]);
        }
        let done = self.progress.done(EXERCISES.iter().map(|exercise| exercise.name));
        let of = EXERCISES.len();
        let count = match language {
            Language::En => format!("{done} of {of} done"),
            Language::Ko => format!("{of}개 가운데 {done}개를 풀었습니다"),
        };
        self.output.show(&Report { tables: vec![table], title: count, ..Report::default() })
    }
}
