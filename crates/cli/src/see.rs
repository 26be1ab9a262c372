//! `foveal see`: text or image → model → trace → picture.

mod characters;
mod image;
mod page;
mod selection;
mod values;

use anyhow::{Result, bail};
use foveal_models::{Observation, OpenModel, ReadOptions, TokenAxis};
use foveal_view::{Bars, Format, Heatmap, Lines, Scene};

use self::characters::Characters;
pub use self::characters::note as character_note;
use self::selection::Selection;
use self::values::Values;
use crate::arguments::{KindChoice, See, Show, Unit, View};
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;
use crate::{model, prose, source};

/// Tokens of a matrix at most: more are for `foveal map`, and for grids of heads, which need no labels.
const MOST: usize = 2048;

pub fn run(see: &See, output: Output) -> Result<()> {
    output.check_file()?;
    if let Some(path) = &see.image {
        return image::run(see, path, output);
    }
    let text = source::text(see.text.text.as_deref(), see.text.file.as_deref())?;
    let default = if see.kind == Some(KindChoice::Cross) { "translate-en-ko" } else { "shakespeare" };
    let open = model::open(&see.model, default)?;
    let mut report = of_text(see, &open, &text, &output)?;
    if output.file().is_some() {
        // What comes next was told with the text in the terminal; whoever asks for a file asks for that.
        report.tables.clear();
    }
    output.show(&report)
}

/// The attention of a text, as it is asked for.
pub fn of_text(see: &See, open: &OpenModel, text: &str, output: &Output) -> Result<Report> {
    let options = ReadOptions {
        kind: see.kind.map(Into::into),
        most: see.most.map(Into::into),
        chat: see.chat,
        ..ReadOptions::default()
    };
    let mut seen = Observation::of(open, text, &options)?;
    // What was read is the whole sentence only where nothing was written and nothing put around it.
    let cut = match seen.written.is_none() && !see.chat {
        true => Characters::of(&options.encode(open, text)?),
        false => None,
    };
    let mut unit = see.tokens.unwrap_or_default();
    let mut notes = Vec::new();
    if let Some(characters) = cut {
        notes = prose::wrap(&characters.note(open, output.language), output.width());
        if see.tokens.is_none() && output.format() != Some(Format::Html) {
            (seen.queries.groups, seen.keys.groups) = (characters.groups.clone(), characters.groups);
            unit = Unit::Words;
        }
    }
    let values = Values { see, seen: &seen, unit };
    Ok(Report { notes, ..report(&values, open, output)? })
}

fn report(values: &Values, open: &OpenModel, output: &Output) -> Result<Report> {
    let (see, seen) = (values.see, values.seen);
    let selection = Selection::of(see, seen)?;
    let most = seen.queries.len().max(seen.keys.len());
    // Pooled pictures of heads are the one thing that is small however long the text is.
    let pooled = matches!(selection, Selection::All | Selection::Layer(_)) && see.view != Some(View::Lines);
    let numbers = output.wants_figures() || matches!(output.format(), Some(Format::Html | Format::Csv));
    if most > MOST && (numbers || !pooled) {
        bail!("{most} tokens are too many for one matrix; take fewer with --most, or see `foveal map` for long texts");
    }
    let note = note(see, open, seen, selection, output);
    let mut report = Report { tables: tables(seen, output), ..Report::default() };
    if output.wants_scene() {
        report.scenes.push(scene(values, selection, output, &note)?);
    }
    if output.format() == Some(Format::Html) {
        report.page = Some(page::of(values, open, selection, output)?);
    }
    if output.wants_figures() {
        report.figures = values.figures(open, selection)?;
    }
    if let Some(written) = &seen.written {
        report.title = written.text.clone();
    }
    Ok(report)
}

/// Which model, layer and head.
fn note(see: &See, open: &OpenModel, seen: &Observation, selection: Selection, output: &Output) -> String {
    let tr = |english, korean| output.language.of(english, korean);
    let place = match (selection, see.show) {
        (Selection::All, _) => String::new(),
        (Selection::Layer(layer), _) => format!("{} {layer}", tr("layer", "층")),
        (Selection::Head(layer, _), Show::Rollout) => format!("{} 0–{layer}", tr("layers", "층")),
        (Selection::Head(layer, head), _) => format!("{} {layer}, {} {head}", tr("layer", "층"), tr("head", "헤드")),
    };
    let shown = match see.show {
        Show::Weights => "",
        Show::Norm => tr("norm-based", "노름 기반"),
        Show::Rollout => tr("rollout", "롤아웃"),
    };
    let parts = [open.name.clone(), seen.kind.to_string(), place, shown.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// The likeliest tokens to come next, and in the place of each masked word.
fn tables(seen: &Observation, output: &Output) -> Vec<Table> {
    let tr = |english, korean| output.language.of(english, korean);
    let next = (!seen.predictions.is_empty()).then(|| (tr("next", "다음").to_owned(), &seen.predictions));
    let masked = seen.masked.iter().map(|masked| {
        let label = &seen.queries.labels[masked.at];
        (format!("{label} ({} {})", tr("token", "토큰"), masked.at), &masked.predictions)
    });
    let table = |(name, predictions): (String, &Vec<foveal_models::Prediction>)| {
        let mut table = Table::new([name, "p".to_owned()]);
        for prediction in predictions {
            table.row([format!("{:?}", prediction.label), format!("{:.3}", prediction.probability)]);
        }
        table
    };
    next.into_iter().chain(masked).map(table).collect()
}

/// What stands over a picture: the text, or its beginning.
fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(72) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn scene(values: &Values, selection: Selection, output: &Output, note: &str) -> Result<Scene> {
    let (see, seen) = (values.see, values.seen);
    let title = title(&seen.text);
    // All setters of a caption, on any scene.
    macro_rules! captioned {
        ($scene:expr) => {
            $scene.title(title).note(note).language(output.language.into()).into()
        };
    }
    let ((layer, head), view) = match (selection, see.view) {
        (Selection::All, _) => return Ok(captioned!(values.grid(output)?)),
        (Selection::Layer(layer), Some(View::Lines)) => {
            let (TokenAxis { labels: rows, .. }, TokenAxis { labels: cols, .. }) = values.axes();
            let heads = (0..seen.heads()).map(|head| Ok((head.to_string(), values.matrix(layer, head)?)));
            let lines = Lines::heads(heads.collect::<Result<_>>()?, rows, cols)?;
            return Ok(captioned!(of_token(lines, values.token()?)));
        }
        (Selection::Layer(layer), _) => return Ok(captioned!(values.grid_of_layer(layer, output)?)),
        (Selection::Head(layer, head), view) => ((layer, head), view.unwrap_or(View::Heatmap)),
    };
    let (rows, cols) = (values.axes().0.labels, values.axes().1.labels);
    let (matrix, token) = (values.matrix(layer, head)?, values.token()?);
    Ok(match view {
        View::Lines => captioned!(of_token(Lines::new(matrix, rows, cols)?, token)),
        View::Bars => {
            let query = token.unwrap_or(rows.len() - 1);
            let bars = Bars::of_row(&matrix, query, cols)?.title(title).language(output.language.into());
            let name = output.language.of("Query", "쿼리");
            bars.note(format!("{note} · {name} {query}: {}", rows[query].trim())).into()
        }
        View::Heatmap | View::Grid if seen.is_cross() => captioned!(Heatmap::alignment(matrix, rows, cols)?),
        View::Heatmap | View::Grid => captioned!(Heatmap::new(matrix, rows, cols)?),
    })
}

/// The lines of one query, if one is asked for.
fn of_token(lines: Lines, token: Option<usize>) -> Lines {
    match token {
        Some(token) => lines.token(token),
        None => lines,
    }
}
