//! All exercises for the lessons' site: texts and pictures in both languages, answers, what mistakes lead to.

use foveal_exercises::{EXERCISES, Result, Task, switched_off};
use foveal_labs::{Bilingual, Section};
use foveal_view::{Look, Theme};
use serde_json::{Value, json};

pub fn all() -> Result<Value> {
    let exercises = EXERCISES.iter().map(|exercise| -> Result<Value> {
        let Task { question, sections, expected, hints, mistakes, explanation, .. } = exercise.task()?;
        let sections = sections.iter().map(shown).collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "name": exercise.name, "chapter": exercise.chapter, "title": exercise.title, "question": question, "sections": sections,
            "expected": expected, "hints": hints, "mistakes": mistakes, "explanation": explanation,
        }))
    });
    Ok(json!({ "exercises": exercises.collect::<Result<Vec<_>>>()?, "switched_off": switched_off()? }))
}

fn shown(section: &Section) -> Result<Value> {
    Ok(match section {
        Section::Prose(text) => json!({ "prose": text }),
        Section::Table(table) => json!({ "table": table }),
        Section::Scene(scene) => {
            let drawn = |theme| Bilingual::build(|language| scene.get(language).svg(&Look::new().theme(theme)));
            json!({ "svg": { "light": drawn(Theme::Light)?, "dark": drawn(Theme::Dark)? } })
        }
    })
}
