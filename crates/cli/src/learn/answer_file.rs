//! Answers in files, checked whenever they are saved.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use foveal_exercises::{Exercise, Expected, Task, Workshop};

use super::Learner;

/// How often a file is looked at.
const PAUSE: Duration = Duration::from_millis(200);

impl Learner {
    /// One exercise until it is right, or one after the other.
    pub(super) fn watch(mut self, only: Option<&'static Exercise>) -> Result<()> {
        let mut given = only;
        while let Some(exercise) = given.take().or_else(|| if only.is_none() { self.next() } else { None }) {
            let task = self.task(exercise)?;
            self.output.text(&self.question(exercise, &task)?)?;
            let file = self.begin(exercise, &task)?;
            let do_it = self.tr(
                "Write the answer into this file. It is checked when you save it; Ctrl-C ends.",
                "이 파일에 답을 쓰십시오. 저장할 때마다 확인합니다. Ctrl-C로 끝냅니다.",
            );
            self.output.text(&format!("{do_it}\n  {}\n\n", file.display()))?;
            // What is there already is checked, unless it is what we have written ourselves.
            let mut seen = String::new();
            loop {
                let text = read(&file)?;
                let answer = answer(&text, &task);
                if text != seen && !answer.is_empty() {
                    let answer =
                        if matches!(task.expected, Expected::Code(_)) { file.display().to_string() } else { answer };
                    let verdict = self.judge(exercise, &task, &answer)?;
                    self.output.text(&self.spoken(&task, &verdict))?;
                    if verdict.is_right() {
                        break;
                    }
                }
                seen = text;
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// The file, with the question in it if it is new.
    fn begin(&self, exercise: &Exercise, task: &Task) -> Result<PathBuf> {
        if let Expected::Code(code) = &task.expected {
            if let Some(obstacle) = Workshop::obstacle(code) {
                anyhow::bail!("{}: {}", exercise.name, obstacle.get(self.output.language.into()));
            }
            return self.told(self.workshop.start(exercise.name, code, self.output.language.into()));
        }
        let path = self.folder.join(format!("{}.txt", exercise.name));
        if !path.exists() {
            std::fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
            let asked = self.lines(&task.question).lines().map(|line| format!("# {line}\n")).collect::<String>();
            foveal_view::write(&path, format!("{asked}\n").as_bytes())?;
        }
        Ok(path)
    }
}

/// Editors take a file away for a moment while they save it.
fn read(path: &Path) -> Result<String> {
    for _ in 0..10 {
        match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::thread::sleep(PAUSE),
            other => return other.with_context(|| path.display().to_string()),
        }
    }
    Err(anyhow::anyhow!("{} is gone", path.display()))
}

/// What is written in a file, without what only explains; of a program nothing while it is as it was given.
fn answer(text: &str, task: &Task) -> String {
    match &task.expected {
        Expected::Code(code) if text == code.start.en || text == code.start.ko => String::new(),
        Expected::Code(_) => text.to_owned(),
        _ => text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ").trim().to_owned(),
    }
}
