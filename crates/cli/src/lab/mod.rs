//! `foveal lab`: experiments with attention, each computed here and now.

mod alone;
mod by_hand;
mod causal;
mod clock;
mod complexity;
mod configurations;
mod family;
mod heads;
mod knobs;
mod memory;
mod number;
mod patterns;
mod positions;
mod prose;
mod scale;
mod self_cross;

use anyhow::{Result, bail};
use serde_json::json;

use self::knobs::Knob;
use crate::arguments::Lab;
use crate::language::Language;
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// An experiment. Texts are in English and in Korean.
struct Experiment {
    name: &'static str,
    title: [&'static str; 2],
    /// What there is to learn, in two or three sentences.
    description: [&'static str; 2],
    /// The flags that change something.
    knobs: &'static [Knob],
    run: fn(&Lab, Language) -> Result<Report>,
}

/// In the order of a course.
const EXPERIMENTS: [Experiment; 11] = [
    by_hand::EXPERIMENT,
    scale::EXPERIMENT,
    causal::EXPERIMENT,
    heads::EXPERIMENT,
    self_cross::EXPERIMENT,
    memory::EXPERIMENT,
    complexity::EXPERIMENT,
    family::EXPERIMENT,
    positions::EXPERIMENT,
    patterns::EXPERIMENT,
    configurations::EXPERIMENT,
];

pub fn run(lab: &Lab, output: Output) -> Result<()> {
    output.check_file()?;
    let Some(name) = &lab.name else { return output.show(&list(output.language)) };
    let Some(experiment) = EXPERIMENTS.iter().find(|experiment| experiment.name == name) else {
        let names = EXPERIMENTS.map(|experiment| experiment.name).join(", ");
        bail!("there is no experiment {name}; there are {names}");
    };
    knobs::check(lab, experiment)?;
    let report = (experiment.run)(lab, output.language)?;
    let title = of(output.language, experiment.title);
    let notes =
        [of(output.language, experiment.description)].into_iter().chain(report.notes.iter().map(String::as_str));
    let notes = notes.flat_map(|text| prose::wrap(text, output.width())).collect();
    output.show(&Report { title: title.to_owned(), notes, ..report })
}

fn of(language: Language, [english, korean]: [&'static str; 2]) -> &'static str {
    language.of(english, korean)
}

fn list(language: Language) -> Report {
    let mut table = Table::new(["foveal lab", "", language.of("flags", "조절 옵션")]).text_columns([1, 2]);
    let mut figures = Vec::new();
    for Experiment { name, title, description, knobs, .. } in &EXPERIMENTS {
        let knobs: Vec<String> = knobs.iter().map(Knob::to_string).collect();
        table.row([(*name).to_owned(), of(language, *title).to_owned(), knobs.join(" ")]);
        let (title, description) = (of(language, *title), of(language, *description));
        figures.push(json!({ "name": name, "title": title, "description": description, "flags": knobs }));
    }
    Report { tables: vec![table], figures: figures.into(), ..Report::default() }
}
