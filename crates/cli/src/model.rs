//! The model of a command, the one asked for or one inside the program; and `foveal model`: what it is.

use std::io::IsTerminal;

use anyhow::Result;
use foveal_models::OpenModel;
use foveal_models::checkpoint::Hub;
use serde_json::json;

use crate::arguments::{ModelChoice, ShowModel};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

/// The model asked for, or the one inside of this name. A download shows how it gets on where someone can see it.
pub fn open(choice: &ModelChoice, default: &str) -> Result<OpenModel> {
    named(choice.model.as_deref().unwrap_or(default))
}

fn named(name: &str) -> Result<OpenModel> {
    let hub = Hub::from_env();
    let hub = if std::io::stderr().is_terminal() { hub.show_progress() } else { hub };
    Ok(OpenModel::open_from(&hub, name)?)
}

pub fn run(show: &ShowModel, output: Output) -> Result<()> {
    let open = named(&show.model)?;
    let summary = open.summary();
    let tr = |english, korean| output.language.of(english, korean);
    let layers = summary.layers.iter().map(|(kind, layers)| format!("{layers} {kind}")).collect::<Vec<_>>().join(" + ");
    let heads = match (summary.heads, summary.key_heads) {
        (heads, keys) if heads == keys => heads.to_string(),
        (heads, keys) => format!("{heads} ({} {keys})", tr("of keys:", "키:")),
    };
    let dtype = summary.dtype.map(|dtype| dtype.to_string());
    let tokenizer = summary.tokenizer.map(|kind| kind.to_string());
    let unknown = || "–".to_owned();
    let mut table = Table::new([tr("what", "항목"), open.name.as_str()]).text_columns([1]);
    table.row([tr("architecture", "구조"), &summary.architecture.to_string()]);
    table.row([tr("layers", "층"), &layers]);
    table.row([tr("heads", "헤드"), &heads]);
    table.row([tr("width", "폭"), &summary.width.to_string()]);
    table.row([tr("parameters", "매개변수"), &summary.parameters.to_string()]);
    table.row([tr("type", "자료형"), &dtype.clone().unwrap_or_else(unknown)]);
    table.row([tr("context", "컨텍스트"), &summary.context.to_string()]);
    table.row([tr("tokenizer", "토크나이저"), &tokenizer.clone().unwrap_or_else(unknown)]);
    table.row([tr("vocabulary", "어휘"), &summary.vocabulary.map_or_else(unknown, |size| size.to_string())]);
    table.row([tr("chat template", "대화 템플릿"), if summary.chat { tr("yes", "있음") } else { tr("no", "없음") }]);
    table.row([
        tr("path", "경로"),
        &open.path().map_or_else(|| tr("inside", "내장").into(), |p| p.display().to_string()),
    ]);
    let figures = json!({
        "name": open.name, "path": open.path(), "architecture": summary.architecture.to_string(),
        "layers": summary.layers.iter().map(|(kind, n)| json!({ "kind": kind.to_string(), "count": n })).collect::<Vec<_>>(),
        "heads": summary.heads, "key_heads": summary.key_heads, "width": summary.width,
        "parameters": summary.parameters as u64, "type": dtype, "context": summary.context, "tokenizer": tokenizer,
        "vocabulary": summary.vocabulary, "chat": summary.chat,
    });
    output.show(&Report { tables: vec![table], figures, ..Report::default() })
}
