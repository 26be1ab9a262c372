//! `foveal see`: text or image → model → trace → picture.

mod image;
mod looked;
mod page;

use anyhow::{Result, bail};
use foveal_models::analysis::rollout;
use foveal_models::analysis::{norms, words};
use foveal_models::trace::LayerTrace;
use foveal_view::{Bars, Grid, Heatmap, Lines, Scene};
use ndarray::Array2;
use serde_json::json;

use self::looked::Looked;
pub use self::looked::Side;
use crate::arguments::{KindChoice, See, Show, Unit, View, Which};
use crate::model::Loaded;
use crate::output::Output;
use crate::report::Report;
use crate::source;
use crate::table::Table;

/// Tokens of a matrix at most: more are for `foveal map`.
const MOST: usize = 2048;

pub fn run(see: &See, output: Output) -> Result<()> {
    output.check_file()?;
    if let Some(path) = &see.image {
        return image::run(see, path, output);
    }
    let text = source::text(see.text.text.as_deref(), see.text.file.as_deref())?;
    let default = if see.kind == Some(KindChoice::Cross) { "translate-en-ko" } else { "shakespeare" };
    let loaded = Loaded::open(&see.model, default)?;
    let looked = Looked::at(&loaded, &text, see.kind)?;
    let most = looked.queries.labels.len().max(looked.keys.labels.len());
    if most > MOST {
        bail!("{most} tokens are too many to label; `foveal map` shows the attention of long texts");
    }
    output.show(&report(see, &loaded, &looked, &output)?)
}

fn report(see: &See, loaded: &Loaded, looked: &Looked, output: &Output) -> Result<Report> {
    let ko = |english, korean| output.language.of(english, korean);
    let (queries, keys) = (looked.queries.of(see.tokens), looked.keys.of(see.tokens));
    let place = place(see, looked)?;
    let note = match (place, see.show) {
        (Place::All, _) => String::new(),
        (Place::Layer(layer), _) => format!("{} {layer}", ko("layer", "층")),
        (Place::Head(layer, _), Show::Rollout) => format!("{} 0–{layer}", ko("layers", "층")),
        (Place::Head(layer, head), _) => format!("{} {layer}, {} {head}", ko("layer", "층"), ko("head", "헤드")),
    };
    let note = [&loaded.name, &looked.kind.to_string(), &note, &shown(see.show, output).to_owned()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join(" · ");
    let scene = scene(see, looked, place, (&queries, &keys), output, &note)?;
    let page = output.wants_page().then(|| page::of(looked, &note, output)).transpose()?;
    let mut report = Report { scenes: vec![scene], page, ..Report::default() };
    if let Some(predictions) = &looked.predictions {
        let mut table = Table::new([ko("next", "다음"), "p"]);
        for (label, p) in predictions {
            table.row([format!("{label:?}"), format!("{p:.3}")]);
        }
        report.tables.push(table);
    }
    if let Some(written) = &looked.written {
        report.title = written.clone();
    }
    report.figures = figures(see, looked, place, (&queries, &keys))?;
    Ok(report)
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
enum Place {
    All,
    Layer(usize),
    Head(usize, usize),
}

fn place(see: &See, looked: &Looked) -> Result<Place> {
    let (layers, heads) = (looked.layers().len(), looked.heads());
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
        (Some(Which::All), _) => Place::All,
        (None, Some(Which::All)) if see.view.is_none() || grid => Place::All,
        (None, None) if grid => Place::All,
        (Some(Which::One(layer)), Some(Which::All)) => Place::Layer(layer),
        (Some(Which::One(layer)), None) if grid => Place::Layer(layer),
        (Some(Which::One(layer)), Some(Which::One(head))) => Place::Head(layer, head),
        (Some(Which::One(layer)), None) => Place::Head(layer, looked.liveliest(Some(layer))?.1),
        (None, Some(Which::One(head))) => Place::Head(looked.liveliest(None)?.0, head),
        (None, Some(Which::All)) => Place::Layer(looked.liveliest(None)?.0),
        (None, None) => {
            // Rollout goes through all layers.
            let (layer, head) = looked.liveliest(None)?;
            if see.show == Show::Rollout { Place::Head(layers - 1, head) } else { Place::Head(layer, head) }
        }
    })
}

fn scene(
    see: &See,
    looked: &Looked,
    place: Place,
    (queries, keys): (&Side, &Side),
    output: &Output,
    note: &str,
) -> Result<Scene> {
    let (language, title) = (output.language.into(), looked.title());
    let (rows, cols) = (queries.labels.clone(), keys.labels.clone());
    let token = match see.token {
        Some(token) if token >= rows.len() => {
            bail!("there is no token {token}; there are {}, counted from 0", rows.len())
        }
        token => token,
    };
    let many = |layers: &[usize]| -> Result<Vec<Vec<Array2<f32>>>> {
        layers.iter().map(|&layer| (0..looked.heads()).map(|head| matrix(see, looked, layer, head)).collect()).collect()
    };
    Ok(match (place, see.view) {
        (Place::All, _) => Grid::layers(many(&looked.layers())?)?.title(title).note(note).language(language).into(),
        (Place::Layer(layer), Some(View::Lines)) => {
            let heads = many(&[layer])?.remove(0);
            let named = heads.into_iter().enumerate().map(|(head, weights)| (head.to_string(), weights)).collect();
            let lines = Lines::heads(named, rows, cols)?.title(title).note(note).language(language);
            token.map_or_else(|| lines.clone(), |token| lines.clone().token(token)).into()
        }
        (Place::Layer(layer), _) => {
            Grid::heads(many(&[layer])?.remove(0))?.title(title).note(note).language(language).into()
        }
        (Place::Head(layer, head), view) => {
            let weights = matrix(see, looked, layer, head)?;
            match view.unwrap_or(View::Heatmap) {
                View::Lines => {
                    let lines = Lines::new(weights, rows, cols)?.title(title).note(note).language(language);
                    token.map_or_else(|| lines.clone(), |token| lines.clone().token(token)).into()
                }
                View::Bars => {
                    let token = token.unwrap_or(rows.len() - 1);
                    Bars::of_row(&weights, token, cols)?.title(title).note(note).language(language).into()
                }
                View::Heatmap | View::Grid if looked.is_cross() => {
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
fn matrix(see: &See, looked: &Looked, layer: usize, head: usize) -> Result<Array2<f32>> {
    let trace: &LayerTrace = looked.layer(layer)?;
    let values = match see.show {
        Show::Weights => trace.weights(0, head)?,
        Show::Norm => norms::of_head(trace, 0, head)?,
        Show::Rollout => rollout(&looked.trace, looked.kind, 0, layer)?,
    };
    Ok(match see.tokens {
        Unit::Tokens => values,
        Unit::Words => words::merge(&values, &looked.queries.groups, &looked.keys.groups)?,
    })
}

fn figures(see: &See, looked: &Looked, place: Place, (queries, keys): (&Side, &Side)) -> Result<serde_json::Value> {
    let rows = |values: Array2<f32>| -> Vec<Vec<f32>> { values.outer_iter().map(|row| row.to_vec()).collect() };
    let places: Vec<(usize, usize)> = match place {
        Place::All => looked.layers().iter().flat_map(|&l| (0..looked.heads()).map(move |h| (l, h))).collect(),
        Place::Layer(layer) => (0..looked.heads()).map(|head| (layer, head)).collect(),
        Place::Head(layer, head) => vec![(layer, head)],
    };
    let heads = places.into_iter().map(|(layer, head)| {
        Ok(json!({ "layer": layer, "head": head, "values": rows(matrix(see, looked, layer, head)?) }))
    });
    Ok(json!({
        "kind": looked.kind.to_string(),
        "queries": queries.labels,
        "keys": keys.labels,
        "heads": heads.collect::<Result<Vec<_>>>()?,
        "next": looked.predictions.iter().flatten().map(|(label, p)| json!({ "token": label, "p": p })).collect::<Vec<_>>(),
    }))
}
