//! `foveal translate`: sentences, and what each word of the translation was made from.

use anyhow::{Result, bail};
use foveal_models::analysis::words;
use foveal_models::generate::beam::Search;
use foveal_models::model::Transformer;
use foveal_models::trace::Kind;
use foveal_models::translation::attention;
use foveal_models::{Observation, OpenModel, ReadOptions};
use foveal_view::{Format, Heatmap, Page, Scene};
use serde_json::{Value, json};

use crate::arguments::{Translate, Unit, Which};
use crate::output::Output;
use crate::report::Report;
use crate::{model, page, source};

pub fn run(translate: &Translate, output: Output) -> Result<()> {
    output.check_file()?;
    let text = source::text(translate.text.text.as_deref(), translate.text.file.as_deref())?;
    let open = model::open(&translate.model, "translate-en-ko")?;
    if open.translator().is_err() {
        bail!("{} does not translate; take an encoder-decoder, or leave out --model for the one inside", open.name)
    }
    let sentences: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut report = Report::default();
    let mut figures = Vec::new();
    for sentence in &sentences {
        let one = translated(translate, &open, sentence, &output)?;
        report.notes.push(if sentences.len() == 1 { one.text } else { format!("{sentence}\t{}", one.text) });
        report.scenes.push(one.scene);
        report.page = one.page;
        figures.push(one.figures);
    }
    // A page holds one sentence; of many, each has a picture in a file of its own.
    if sentences.len() > 1 {
        report.page = None;
    }
    // Of many sentences the translations alone; a picture of each would hide them.
    if sentences.len() > 1 && output.file().is_none() {
        report.scenes.clear();
    }
    report.figures = if figures.len() == 1 { figures.remove(0) } else { Value::Array(figures) };
    output.show(&report)
}

struct Translated {
    text: String,
    scene: Scene,
    /// All layers, heads and kinds of attention, where a page is asked for.
    page: Option<Page>,
    figures: Value,
}

fn translated(translate: &Translate, open: &OpenModel, sentence: &str, output: &Output) -> Result<Translated> {
    let search = Search { beams: translate.beams.max(1), ..Search::default() };
    let options = ReadOptions { kind: Some(Kind::Cross), search, ..ReadOptions::default() };
    let seen = Observation::of(open, sentence, &options)?;
    let written = seen.written.as_ref().expect("a translation writes");
    let (layer, head) = place(translate, open.translator()?)?;
    let weights = attention::weights(&seen.trace, layer, head)?;
    let weights = match translate.tokens {
        Unit::Tokens => weights,
        Unit::Words => words::merge(&weights, &seen.queries.groups, &seen.keys.groups)?,
    };
    let (rows, columns) = (translate.tokens.of(&seen.queries).labels, translate.tokens.of(&seen.keys).labels);
    let text = written.text.clone();
    let tr = |english, korean| output.language.of(english, korean);
    let page = if output.format() == Some(Format::Html) {
        let page = page::of(&seen, (layer, head.unwrap_or(0)), &translate.page, output)?
            .title(format!("{sentence} → {text}"))
            .model(&open.name)
            .view("unit", translate.tokens.name());
        Some(if head.is_none() { page.view("head", "-1") } else { page })
    } else {
        None
    };
    let head = match head {
        Some(head) => format!("{} {head}", tr("head", "헤드")),
        None => tr("mean of the heads", "헤드 평균").to_owned(),
    };
    let note = format!("{} · {} {layer}, {head}", open.name, tr("layer", "층"));
    let figures = json!({
        "source": sentence, "translation": text, "log_probability": written.log_probability, "layer": layer,
        "rows": rows, "columns": columns, "weights": weights.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>(),
    });
    let scene = Heatmap::alignment(weights, rows, columns)?.title(format!("{sentence} → {text}")).note(note);
    Ok(Translated { text, page, scene: scene.language(output.language.into()).into(), figures })
}

/// The layer and head to show: those asked for, else those that align best, else the mean of the last layer.
fn place(translate: &Translate, model: &Transformer) -> Result<(usize, Option<usize>)> {
    let config = model.config();
    let known = config.alignment.filter(|known| translate.layer.is_none_or(|layer| layer == known.layer));
    let layer = translate.layer.or(known.map(|known| known.layer)).unwrap_or(config.decoder_layers - 1);
    let head = match translate.head {
        Some(Which::One(head)) => Some(head),
        Some(Which::All) => None,
        None => known.and_then(|known| known.head),
    };
    if layer >= config.decoder_layers {
        bail!("there is no layer {layer}; there are {}, counted from 0", config.decoder_layers);
    }
    if let Some(head) = head.filter(|head| *head >= config.heads) {
        bail!("there is no head {head}; there are {}, counted from 0", config.heads);
    }
    Ok((layer, head))
}
