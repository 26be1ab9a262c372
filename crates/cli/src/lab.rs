//! `foveal lab`: experiments with attention, each computed here and now.

mod page;

use std::io::IsTerminal;
use std::ops::ControlFlow;

use anyhow::{Result, anyhow};
use foveal_labs::{Knob, Knobs, LABS, Progress, Section, Watch};
use foveal_view::Format;
use indicatif::{ProgressBar, ProgressStyle};
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
    let bar = std::io::stderr().is_terminal().then(bar);
    let mut show = |progress: &Progress| {
        if let Some(bar) = &bar {
            bar.set_length(progress.of as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(progress.doing.get(language.into()).clone());
        }
        ControlFlow::Continue(())
    };
    let found = experiment.run(&knobs(lab), Watch::new(&mut show)).map_err(told)?;
    bar.iter().for_each(ProgressBar::finish_and_clear);
    let document =
        (output.format() == Some(Format::Html)).then(|| page::html(experiment, &found, language.into())).transpose()?;
    let summary = *experiment.summary.get(language.into());
    let mut report = Report {
        title: (*experiment.title.get(language.into())).to_owned(),
        notes: prose::wrap(summary, output.width()),
        figures: found.figures,
        document,
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

/// A bar for long experiments.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:28.cyan/dim} {pos}/{len}  {msg}  {eta}");
    ProgressBar::no_length().with_style(style.expect("a template that is part of the program").progress_chars("━╸─"))
}

/// What the flags turn.
fn knobs(lab: &Lab) -> Knobs {
    let several = [("dims", &lab.dims), ("heads", &lab.heads), ("tokens", &lab.tokens)];
    let knobs = several.into_iter().filter(|(_, numbers)| !numbers.is_empty());
    let knobs = knobs.fold(Knobs::new(), |knobs, (name, numbers)| knobs.numbers(name, numbers.clone()));
    let knobs = lab.steps.into_iter().fold(knobs, |knobs, steps| knobs.numbers("steps", [steps]));
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
