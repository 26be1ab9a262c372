//! Question and answer at a prompt.

use std::collections::BTreeSet;
use std::io::BufRead;

use anyhow::Result;
use foveal_exercises::{EXERCISES, Exercise, Expected, Task, Workshop};

use super::Learner;

/// What a learner wants at the prompt.
enum Wish {
    Hint,
    Skip,
    List,
    Solution,
    Quit,
    Answer(String),
}

impl Wish {
    fn of(line: &str) -> Self {
        match line.trim().to_lowercase().as_str() {
            "hint" | "?" | "힌트" => Wish::Hint,
            "skip" | "건너뛰기" => Wish::Skip,
            "list" | "목록" => Wish::List,
            "solution" | "정답" => Wish::Solution,
            "quit" | "exit" | "q" | "그만" => Wish::Quit,
            _ => Wish::Answer(line.trim().to_owned()),
        }
    }
}

/// How an exercise ended.
#[derive(PartialEq)]
enum End {
    Right,
    Skipped,
    Quit,
}

impl Learner {
    /// One exercise, or all that are left.
    pub(super) fn ask(mut self, only: Option<&'static Exercise>) -> Result<()> {
        let mut lines = std::io::stdin().lock().lines();
        let mut line = || -> Result<Option<String>> { Ok(lines.next().transpose()?) };
        if let Some(exercise) = only {
            let task = self.task(exercise)?;
            self.one(exercise, &task, &mut line)?;
            return Ok(());
        }
        let mut passed: BTreeSet<&str> = BTreeSet::new();
        static ALL: [Exercise; EXERCISES.len()] = EXERCISES;
        while let Some(exercise) =
            ALL.iter().find(|exercise| !self.progress.of(exercise.name).done && !passed.contains(exercise.name))
        {
            passed.insert(exercise.name);
            let task = self.task(exercise)?;
            if let Expected::Code(code) = &task.expected
                && let Some(obstacle) = Workshop::obstacle(code)
            {
                let (skipped, why) = (self.tr("skipped", "건너뜁니다"), obstacle.get(self.output.language.into()));
                self.output.line(&format!("{}: {skipped}: {why}", exercise.name))?;
                continue;
            }
            if self.one(exercise, &task, &mut line)? == End::Quit {
                return Ok(());
            }
        }
        let done = self.progress.done(EXERCISES.iter().map(|exercise| exercise.name));
        if done == EXERCISES.len() {
            let all = "All forty are done. foveal learn NAME repeats one; foveal learn --reset begins anew.";
            return self.output.line(self.tr(all, "마흔 문제를 모두 풀었습니다. foveal learn 이름으로 다시 풀거나, foveal learn --reset으로 처음부터 시작할 수 있습니다."));
        }
        self.output.line(self.tr(
            "That is all for now. foveal learn --list says what is left.",
            "지금은 여기까지입니다. 남은 문제는 foveal learn --list로 볼 수 있습니다.",
        ))
    }

    /// Asks until the answer is right, or the learner has had enough.
    fn one(
        &mut self,
        exercise: &Exercise,
        task: &Task,
        line: &mut impl FnMut() -> Result<Option<String>>,
    ) -> Result<End> {
        self.output.text(&self.question(exercise, task)?)?;
        let file = match &task.expected {
            Expected::Code(code) => {
                let file = self.told(self.workshop.start(exercise.name, code, self.output.language.into()))?;
                let do_it = self.tr(
                    "Edit this file, save it, and press Enter here:",
                    "이 파일을 고쳐 저장한 다음 여기서 Enter를 누르십시오.",
                );
                self.output.text(&format!("{do_it}\n  {}\n\n", file.display()))?;
                Some(file)
            }
            _ => None,
        };
        loop {
            self.output.text("> ")?;
            let Some(typed) = line()? else {
                self.output.line("")?;
                return Ok(End::Quit);
            };
            match Wish::of(&typed) {
                Wish::Quit => return Ok(End::Quit),
                Wish::Skip => return Ok(End::Skipped),
                Wish::List => self.list()?,
                Wish::Hint => {
                    let hint = self.next_hint(exercise, task)?;
                    self.output.text(&hint)?;
                }
                Wish::Solution => self.output.text(&self.solution(task))?,
                Wish::Answer(answer) => {
                    let answer = match &file {
                        Some(file) => file.display().to_string(),
                        None if answer.is_empty() => {
                            let all = "An answer, or: hint, skip, list, solution, quit";
                            self.output.line(
                                self.tr(all, "답을 쓰거나 힌트, 건너뛰기, 목록, 정답, 그만 가운데 하나를 쓰십시오"),
                            )?;
                            continue;
                        }
                        None => answer,
                    };
                    let verdict = self.judge(exercise, task, &answer)?;
                    self.output.text(&self.spoken(task, &verdict))?;
                    if verdict.is_right() {
                        return Ok(End::Right);
                    }
                }
            }
        }
    }
}
