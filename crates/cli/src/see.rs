//! `foveal see`: text or image → model → trace → picture.

mod image;
mod page;

use anyhow::{Result, bail};
use foveal_models::analysis::{norms, rollout, words};
use foveal_models::trace::LayerTrace;
use foveal_models::{Observation, OpenModel, TokenAxis};
use foveal_view::{Bars, Grid, Heatmap, Lines, Scene};
use ndarray::Array2;
use serde_json::json;

use crate::arguments::{KindChoice, See, Show, Unit, View, Which};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;
use crate::{model, source};

/// Tokens of a matrix at most: more are for `foveal map`.
const MOST: usize = 2048;

pub fn run(see: &See, output: Output) -> Result<()> {
    output.check_file()?;
    if let Some(path) = &see.image {
        return image::run(see, path, output);
    }
    let text = source::text(see.text.text.as_deref(), see.text.file.as_deref())?;
    let default = if see.kind == Some(KindChoice::Cross) { "translate-en-ko" } else { "shakespeare" };
    let open = model::open(&see.model, default)?;
    let seen = Observation::of(&open, &text, see.kind.map(Into::into))?;
    let most = seen.queries.len().max(seen.keys.len());
    if most > MOST {
        bail!("{most} tokens are too many to label; `foveal map` shows the attention of long texts");
    }
    output.show(&report(see, &open, &seen, &output)?)
}

fn report(see: &See, open: &OpenModel, seen: &Observation, output: &Output) -> Result<Report> {
    let tr = |english, korean| output.language.of(english, korean);
    let (queries, keys) = (see.tokens.of(&seen.queries), see.tokens.of(&seen.keys));
    let selection = selection(see, seen)?;
    let note = match (selection, see.show) {
        (Selection::All, _) => String::new(),
        (Selection::Layer(layer), _) => format!("{} {layer}", tr("layer", "층")),
        (Selection::Head(layer, _), Show::Rollout) => format!("{} 0–{layer}", tr("layers", "층")),
        (Selection::Head(layer, head), _) => format!("{} {layer}, {} {head}", tr("layer", "층"), tr("head", "헤드")),
    };
    let note = [&open.name, &seen.kind.to_string(), &note, &shown(see.show, output).to_owned()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join(" · ");
    let scene = scene(see, seen, selection, (&queries, &keys), output, &note)?;
    let page = output.wants_page().then(|| page::of(seen, &note, output)).transpose()?;
    let mut report = Report { scenes: vec![scene], page, ..Report::default() };
    if !seen.predictions.is_empty() {
        let mut table = Table::new([tr("next", "다음"), "p"]);
        for prediction in &seen.predictions {
            table.row([format!("{:?}", prediction.label), format!("{:.3}", prediction.probability)]);
        }
        report.tables.push(table);
    }
    if let Some(written) = &seen.written {
        report.title = written.text.clone();
    }
    report.figures = figures(see, seen, selection, (&queries, &keys))?;
    Ok(report)
}

/// What stands over a picture: the text, or its beginning.
fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(72) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn shown(show: Show, output: &Output) -> &'static str {
    match show {
        Show::Weights => "",
        Show::Norm => output.language.of("norm-based", "노름 기반"),
        Show::Rollout => output.language.of("rollout", "롤아웃"),
    }
}

/// Which part of the model is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Selection {
    All,
    Layer(usize),
    Head(usize, usize),
}

fn selection(see: &See, seen: &Observation) -> Result<Selection> {
    let (layers, heads) = (seen.layers().len(), seen.heads());
    let check = |what: &str, which: Option<Which>, count: usize| match which {
        Some(Which::One(n)) if n >= count => bail!("there is no {what} {n}; there are {count}, counted from 0"),
        _ => Ok(()),
    };
    check("layer", see.layer, layers)?;
    check("head", see.head, heads)?;
    let grid = see.view == Some(View::Grid);
    Ok(match (see.layer, see.head) {
        (Some(Which::All), Some(Which::One(_))) => {
            bail!("one head of all layers is no picture; take --head all, or one layer")
        }
        (Some(Which::All), _) => Selection::All,
        (None, Some(Which::All)) if see.view.is_none() || grid => Selection::All,
        (None, None) if grid => Selection::All,
        (Some(Which::One(layer)), Some(Which::All)) => Selection::Layer(layer),
        (Some(Which::One(layer)), None) if grid => Selection::Layer(layer),
        (Some(Which::One(layer)), Some(Which::One(head))) => Selection::Head(layer, head),
        (Some(Which::One(layer)), None) => Selection::Head(layer, seen.salient_head(Some(layer))?.1),
        (None, Some(Which::One(head))) => Selection::Head(seen.salient_head(None)?.0, head),
        (None, Some(Which::All)) => Selection::Layer(seen.salient_head(None)?.0),
        (None, None) => {
            // Rollout goes through all layers.
            let (layer, head) = seen.salient_head(None)?;
            if see.show == Show::Rollout { Selection::Head(layers - 1, head) } else { Selection::Head(layer, head) }
        }
    })
}

fn scene(
    see: &See,
    seen: &Observation,
    selection: Selection,
    (queries, keys): (&TokenAxis, &TokenAxis),
    output: &Output,
    note: &str,
) -> Result<Scene> {
    let (language, title) = (output.language.into(), title(&seen.text));
    let (rows, cols) = (queries.labels.clone(), keys.labels.clone());
    let token = match see.token {
        Some(token) if token >= rows.len() => {
            bail!("there is no token {token}; there are {}, counted from 0", rows.len())
        }
        token => token,
    };
    let many = |layers: &[usize]| -> Result<Vec<Vec<Array2<f32>>>> {
        layers.iter().map(|&layer| (0..seen.heads()).map(|head| matrix(see, seen, layer, head)).collect()).collect()
    };
    Ok(match (selection, see.view) {
        (Selection::All, _) => Grid::layers(many(&seen.layers())?)?.title(title).note(note).language(language).into(),
        (Selection::Layer(layer), Some(View::Lines)) => {
            let heads = many(&[layer])?.remove(0);
            let named = heads.into_iter().enumerate().map(|(head, weights)| (head.to_string(), weights)).collect();
            let lines = Lines::heads(named, rows, cols)?.title(title).note(note).language(language);
            token.map_or_else(|| lines.clone(), |token| lines.clone().token(token)).into()
        }
        (Selection::Layer(layer), _) => {
            Grid::heads(many(&[layer])?.remove(0))?.title(title).note(note).language(language).into()
        }
        (Selection::Head(layer, head), view) => {
            let weights = matrix(see, seen, layer, head)?;
            match view.unwrap_or(View::Heatmap) {
                View::Lines => {
                    let lines = Lines::new(weights, rows, cols)?.title(title).note(note).language(language);
                    token.map_or_else(|| lines.clone(), |token| lines.clone().token(token)).into()
                }
                View::Bars => {
                    let token = token.unwrap_or(rows.len() - 1);
                    Bars::of_row(&weights, token, cols)?.title(title).note(note).language(language).into()
                }
                View::Heatmap | View::Grid if seen.is_cross() => {
                    Heatmap::alignment(weights, rows, cols)?.title(title).note(note).language(language).into()
                }
                View::Heatmap | View::Grid => {
                    Heatmap::new(weights, rows, cols)?.title(title).note(note).language(language).into()
                }
            }
        }
    })
}

/// What is shown of one head, between tokens or words.
fn matrix(see: &See, seen: &Observation, layer: usize, head: usize) -> Result<Array2<f32>> {
    let trace: &LayerTrace = seen.layer(layer)?;
    let values = match see.show {
        Show::Weights => trace.weights(0, head)?,
        Show::Norm => norms::of_head(trace, 0, head)?,
        Show::Rollout => rollout(&seen.trace, seen.kind, 0, layer)?,
    };
    Ok(match see.tokens {
        Unit::Tokens => values,
        Unit::Words => words::merge(&values, &seen.queries.groups, &seen.keys.groups)?,
    })
}

fn figures(
    see: &See,
    seen: &Observation,
    selection: Selection,
    (queries, keys): (&TokenAxis, &TokenAxis),
) -> Result<serde_json::Value> {
    let rows = |values: Array2<f32>| -> Vec<Vec<f32>> { values.outer_iter().map(|row| row.to_vec()).collect() };
    let heads_shown: Vec<(usize, usize)> = match selection {
        Selection::All => seen.layers().iter().flat_map(|&l| (0..seen.heads()).map(move |h| (l, h))).collect(),
        Selection::Layer(layer) => (0..seen.heads()).map(|head| (layer, head)).collect(),
        Selection::Head(layer, head) => vec![(layer, head)],
    };
    let heads = heads_shown.into_iter().map(|(layer, head)| {
        Ok(json!({ "layer": layer, "head": head, "values": rows(matrix(see, seen, layer, head)?) }))
    });
    Ok(json!({
        "kind": seen.kind.to_string(),
        "queries": queries.labels,
        "keys": keys.labels,
        "heads": heads.collect::<Result<Vec<_>>>()?,
        "next": seen.predictions.iter().map(|next| json!({ "token": next.label, "p": next.probability })).collect::<Vec<_>>(),
    }))
}
