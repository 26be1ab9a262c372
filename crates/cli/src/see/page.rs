//! The page with all layers and heads, opened with what was asked for.

use anyhow::Result;
use foveal_models::OpenModel;
use foveal_view::Page;

use super::selection::Selection;
use super::title;
use super::values::Values;
use crate::arguments::{Show, View};
use crate::output::Output;
use crate::page;

pub fn of(values: &Values, open: &OpenModel, selection: Selection, output: &Output) -> Result<Page> {
    let (see, seen) = (values.see, values.seen);
    let salient = match selection {
        Selection::Head(layer, head) => (layer, head),
        Selection::Layer(layer) => (layer, seen.salient_head(Some(layer))?.1),
        Selection::All => seen.salient_head(None)?,
    };
    let measure = match see.show {
        Show::Weights => "weights",
        Show::Norm => "norms",
        Show::Rollout => "rollout",
    };
    let view = match (see.view, selection) {
        (Some(View::Lines), Selection::Layer(_)) => "heads",
        (Some(View::Lines | View::Bars), _) => "lines",
        _ => "map",
    };
    let page = page::of(seen, salient, &see.page, output)?
        .title(title(&seen.text))
        .model(&open.name)
        .view("measure", measure)
        .view("view", view);
    // Words are whole unless pieces are asked for.
    let page = see.tokens.iter().fold(page, |page, unit| page.view("unit", unit.name()));
    Ok(match values.token()? {
        Some(token) => page.view("pin", values.unit.first(&seen.queries, token).to_string()),
        None => page,
    })
}
