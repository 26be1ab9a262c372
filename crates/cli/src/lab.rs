//! `foveal lab`: experiments with attention, each computed here and now.

use anyhow::{Result, anyhow};
use foveal_labs::{Knob, Knobs, LABS, Section, Watch};
use serde_json::json;

use crate::arguments::Lab;
use crate::language::Language;
use crate::output::Output;
use crate::prose;
use crate::report::Report;
use crate::table::Table;

pub fn run(lab: &Lab, output: Output) -> Result<()> {
    output.check_file()?;
    let language = output.language;
    let Some(name) = &lab.name else { return output.show(&list(language)) };
    let told = |error: foveal_labs::Error| anyhow!(error.message(language.into()));
    let experiment = foveal_labs::find(name).map_err(told)?;
    let found = experiment.run(&knobs(lab), Watch::silent()).map_err(told)?;
    let summary = *experiment.summary.get(language.into());
    let mut report = Report {
        title: (*experiment.title.get(language.into())).to_owned(),
        notes: prose::wrap(summary, output.width()),
        figures: found.figures,
        ..Report::default()
    };
    for section in &found.sections {
        match section {
            Section::Prose(text) => report.notes.extend(prose::wrap(text.get(language.into()), output.width())),
            Section::Table(table) => report.tables.push(Table::of_lab(table, language)),
            Section::Scene(scene) => report.scenes.push(scene.get(language.into()).clone()),
        }
    }
    output.show(&report)
}

/// What the flags turn.
fn knobs(lab: &Lab) -> Knobs {
    let several = [("dims", &lab.dims), ("heads", &lab.heads), ("tokens", &lab.tokens)];
    let knobs = several.into_iter().filter(|(_, numbers)| !numbers.is_empty());
    let knobs = knobs.fold(Knobs::new(), |knobs, (name, numbers)| knobs.numbers(name, numbers.clone()));
    let knobs = lab.seed.into_iter().fold(knobs, Knobs::seed);
    lab.model.model.iter().fold(knobs, |knobs, model| knobs.text("model", model))
}

fn list(language: Language) -> Report {
    let mut table = Table::new(["foveal lab", "", language.of("flags", "조절 옵션")]).text_columns([1, 2]);
    let mut figures = Vec::new();
    for lab in &LABS {
        let (title, summary) = (*lab.title.get(language.into()), *lab.summary.get(language.into()));
        let flags: Vec<String> = lab.knobs.iter().map(Knob::flag).collect();
        table.row([lab.name.to_owned(), title.to_owned(), flags.join(" ")]);
        figures.push(json!({ "name": lab.name, "title": title, "description": summary, "flags": flags }));
    }
    Report { tables: vec![table], figures: figures.into(), ..Report::default() }
}
