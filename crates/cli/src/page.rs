//! The page of what a model has read.

use anyhow::Result;
use foveal_explorer::page_group;
use foveal_models::trace::{Kind, Trace};
use foveal_models::{Observation, TokenAxis};
use foveal_view::{Group, Page, Storage};

use crate::arguments::PageOptions;
use crate::output::Output;

/// The page of an observation, with all kinds of attention that were seen. `salient`: the layer and head it opens with.
pub fn of(seen: &Observation, salient: (usize, usize), options: &PageOptions, output: &Output) -> Result<Page> {
    let mut groups = Vec::new();
    for kind in seen.trace.kinds() {
        let (queries, keys) = axes(seen, kind);
        let group = group(&seen.trace, kind, (queries, keys), options)?;
        groups.push(if kind == seen.kind { group.salient(salient.0, salient.1) } else { group });
    }
    let next = seen.predictions.iter().map(|next| (next.label.clone(), next.probability));
    let page = page(groups, options, output).next(next).view("site", seen.kind.to_string());
    Ok(match &seen.written {
        Some(written) => page.written(written.text.clone()),
        None => page,
    })
}

/// A page of these groups.
pub fn page(groups: Vec<Group>, options: &PageOptions, output: &Output) -> Page {
    let storage = if options.exact { Storage::Exact } else { Storage::Fitting };
    let page = Page::new(groups).storage(storage).language(output.language.into());
    if output.is_dark() { page.view("theme", "dark") } else { page }
}

/// The tokens of another kind of attention than the one that was asked for: an encoder-decoder has two sequences.
fn axes(seen: &Observation, kind: Kind) -> (&TokenAxis, &TokenAxis) {
    match (seen.kind, kind) {
        (Kind::Cross, Kind::Encoder) => (&seen.keys, &seen.keys),
        (Kind::Cross, Kind::Decoder) => (&seen.queries, &seen.queries),
        _ => (&seen.queries, &seen.keys),
    }
}

/// The layers of one kind of attention.
pub fn group(trace: &Trace, kind: Kind, axes: (&TokenAxis, &TokenAxis), options: &PageOptions) -> Result<Group> {
    Ok(page_group(trace, kind, axes, options.values)?)
}
