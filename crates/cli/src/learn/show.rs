//! A question, a hint, a verdict: as text.

use anyhow::Result;
use foveal_exercises::{EXERCISES, Exercise, Expected, Task, Verdict};
use foveal_labs::{Section, Text};

use super::Learner;
use crate::prose;
use crate::table::Table;

impl Learner {
    /// Paragraphs in lines.
    pub(super) fn lines(&self, text: &Text) -> String {
        let paragraphs = text.get(self.output.language.into()).lines();
        // What a compiler says is indented, and keeps its form.
        let lines = paragraphs.flat_map(|paragraph| {
            match paragraph.starts_with([' ', '-', '=']) || paragraph.contains(" | ") {
                true => vec![paragraph.to_owned()],
                false => prose::wrap(paragraph, self.output.width()),
            }
        });
        lines.map(|line| line + "\n").collect()
    }

    /// The question, with its tables and pictures.
    pub(super) fn question(&self, exercise: &Exercise, task: &Task) -> Result<String> {
        let language = self.output.language;
        let number = EXERCISES.iter().position(|other| other.name == exercise.name).map_or(0, |at| at + 1);
        let (of, chapter) = (EXERCISES.len(), exercise.chapter);
        let done = if self.progress.of(exercise.name).done { " ✓" } else { "" };
        let place = match language {
            crate::language::Language::En => format!("{number} of {of}, chapter {chapter}"),
            crate::language::Language::Ko => format!("{of}개 가운데 {number}번째, {chapter}장"),
        };
        let mut text = format!("\n{}  ({}: {place}){done}\n\n", exercise.title.get(language.into()), exercise.name);
        text.push_str(&self.lines(&task.question));
        for section in &task.sections {
            text.push('\n');
            match section {
                Section::Prose(prose) => text.push_str(&self.lines(prose)),
                Section::Table(table) => {
                    let lines = Table::of_lab(table, language).lines(self.output.width());
                    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
                }
                Section::Scene(scene) => text.push_str(&self.output.draw(scene.get(language.into()))?),
            }
        }
        if let Expected::Choice { options, .. } = &task.expected {
            text.push('\n');
            for (letter, option) in ('a'..).zip(options) {
                text.push_str(&format!("  {letter}) {}\n", option.get(language.into())));
            }
        }
        Ok(text + "\n")
    }

    /// What there is to say to an answer.
    pub(super) fn spoken(&self, task: &Task, verdict: &Verdict) -> String {
        match verdict {
            Verdict::Wrong { why, .. } => format!("✗ {}", self.lines(why)),
            Verdict::Unreadable(why) => format!("? {}", self.lines(why)),
            _ => format!("✓ {}\n{}", self.tr("Right.", "맞습니다."), self.lines(&task.explanation)),
        }
    }

    /// The next hint that was not shown; after the last, the last again.
    pub(super) fn next_hint(&mut self, exercise: &Exercise, task: &Task) -> Result<String> {
        let (shown, of) = (self.progress.of(exercise.name).hints, task.hints.len());
        let at = shown.min(of - 1);
        if shown < of {
            let changed = self.progress.change(exercise.name, |record| record.hints = at + 1);
            self.told(changed)?;
        }
        Ok(format!("{} {}/{of}: {}", self.tr("Hint", "힌트"), at + 1, self.lines(&task.hints[at])))
    }

    /// The answer itself.
    pub(super) fn solution(&self, task: &Task) -> String {
        let answer = task.right_answer();
        let between = if answer.contains('\n') { "\n" } else { " " };
        format!("{}:{between}{answer}\n", self.tr("A right answer", "맞는 답"))
    }
}
