//! `foveal heads`: what each head of a language model does.

use anyhow::Result;
use foveal_models::analysis::{HeadScores, Repeated, ablation, report as scores_of};
use foveal_view::Heatmap;
use ndarray::Array2;
use serde_json::json;

use crate::arguments::{By, Heads};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;
use crate::{model, source};

/// The text that heads are scored on where the user gives none.
const TEXT: &str = "ROMEO: But soft, what light through yonder window breaks? It is the east, and Juliet is the sun. \
                    Arise, fair sun, and kill the envious moon, who is already sick and pale with grief.";

pub fn run(heads: &Heads, output: Output) -> Result<()> {
    output.check_file()?;
    let text = match (&heads.text.text, &heads.text.file) {
        (None, None) => TEXT.to_owned(),
        (text, file) => source::text(text.as_deref(), file.as_deref())?,
    };
    let open = model::open(&heads.model, "shakespeare")?;
    let model = open.model.as_language_model()?;
    let shape = model.shape();
    let encoding = open.tokenizer()?.encode(&text)?;
    // Twice as many random tokens must fit.
    let repeated = Repeated { period: heads.period.min(shape.context / 2), seed: heads.seed };
    let mut scores = scores_of(model, encoding.ids(), repeated)?;
    let losses = if heads.ablate { Some(ablation::each(model, encoding.ids())?) } else { None };
    let loss_of =
        |scores: &HeadScores| losses.iter().flatten().find(|(head, _)| *head == scores.head).map(|(_, loss)| *loss);
    let picture = Array2::from_shape_fn((shape.layers, shape.heads), |(layer, head)| {
        value(&scores[layer * shape.heads + head], heads.by).unwrap_or(f32::NAN)
    });
    // Low entropy is what stands out; of everything else, high scores.
    scores.sort_by(|a, b| {
        let (a, b) = (value(a, heads.by).unwrap_or(0.0), value(b, heads.by).unwrap_or(0.0));
        if heads.by == By::Entropy { a.total_cmp(&b) } else { b.total_cmp(&a) }
    });
    let tr = |english, korean| output.language.of(english, korean);
    let mut table = Table::new(columns(&output, heads.ablate));
    for scores in scores.iter().take(heads.top) {
        table.row(row(scores, heads.ablate.then(|| loss_of(scores)).flatten()));
    }
    let name = name(heads.by);
    let scene = Heatmap::new(
        picture,
        (0..shape.layers).map(|layer| format!("{layer}")),
        (0..shape.heads).map(|head| format!("{head}")),
    )?;
    let scene = scene.axes(tr("layer", "층"), tr("head", "헤드")).measure(name).title(&open.name).note(name);
    let title =
        format!("{}: {} {} × {} {}", open.name, shape.layers, tr("layers", "층"), shape.heads, tr("heads", "헤드"));
    let figures = scores.iter().map(|scores| {
        json!({
            "layer": scores.head.site.layer, "head": scores.head.head, "previous": scores.previous,
            "duplicate": scores.duplicate, "induction": scores.induction, "entropy": scores.entropy,
            "confidence": scores.confidence,
            "sink": scores.sink.map(|sink| json!({ "key": sink.key, "share": sink.share, "is_sink": sink.is_sink() })),
            "loss_without": loss_of(scores),
        })
    });
    output.show(&Report {
        title,
        tables: vec![table],
        scenes: vec![scene.language(output.language.into()).into()],
        figures: json!({ "model": open.name, "heads": figures.collect::<Vec<_>>() }),
        ..Report::default()
    })
}

fn value(scores: &HeadScores, by: By) -> Option<f32> {
    match by {
        By::Previous => Some(scores.previous),
        By::Duplicate => scores.duplicate,
        By::Induction => scores.induction,
        By::Sink => scores.sink.map(|sink| sink.share),
        By::Entropy => Some(scores.entropy),
        By::Confidence => Some(scores.confidence),
    }
}

fn name(by: By) -> &'static str {
    match by {
        By::Previous => "previous",
        By::Duplicate => "duplicate",
        By::Induction => "induction",
        By::Sink => "sink",
        By::Entropy => "entropy",
        By::Confidence => "confidence",
    }
}

fn columns(output: &Output, ablated: bool) -> Vec<&'static str> {
    let english = ["layer.head", "previous", "duplicate", "induction", "sink", "entropy", "confidence", "Δ loss"];
    let korean = ["층.헤드", "직전", "중복", "귀납", "싱크", "엔트로피", "확신", "Δ 손실"];
    let all = english.into_iter().zip(korean).map(|(english, korean)| output.language.of(english, korean));
    all.take(if ablated { 8 } else { 7 }).collect()
}

fn row(scores: &HeadScores, loss: Option<f32>) -> Vec<String> {
    let number = |x: Option<f32>| x.map_or_else(|| "–".into(), |x| format!("{x:.3}"));
    let sink = scores.sink.map_or_else(|| "–".into(), |sink| format!("{:.3} @{}", sink.share, sink.key));
    let mut row = vec![
        format!("{}.{}", scores.head.site.layer, scores.head.head),
        number(Some(scores.previous)),
        number(scores.duplicate),
        number(scores.induction),
        sink,
        number(Some(scores.entropy)),
        number(Some(scores.confidence)),
    ];
    row.extend(loss.map(|loss| format!("{loss:+.4}")));
    row
}
