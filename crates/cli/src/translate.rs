//! `foveal translate`: sentences, and what each word of the translation was made from.

use anyhow::{Result, bail};
use foveal_models::Model;
use foveal_models::analysis::words;
use foveal_models::generate::beam::{Search, search, watch};
use foveal_models::model::Transformer;
use foveal_models::trace::Capture;
use foveal_models::translation::attention;
use foveal_view::{Heatmap, Scene};
use serde_json::{Value, json};

use crate::arguments::{Translate, Unit, Which};
use crate::model::Loaded;
use crate::output::Output;
use crate::report::Report;
use crate::see::Side;
use crate::source;

pub fn run(translate: &Translate, output: Output) -> Result<()> {
    output.check_file()?;
    let text = source::text(translate.text.text.as_deref(), translate.text.file.as_deref())?;
    let loaded = Loaded::open(&translate.model, "translate-en-ko")?;
    let Model::Transformer(model) = &loaded.model else {
        bail!("{} does not translate; take an encoder-decoder, or leave out --model for the one inside", loaded.name)
    };
    let sentences: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut report = Report::default();
    let mut figures = Vec::new();
    for sentence in &sentences {
        let one = translated(translate, &loaded, model, sentence, &output)?;
        report.about.push(if sentences.len() == 1 { one.text } else { format!("{sentence}\t{}", one.text) });
        report.scenes.push(one.scene);
        figures.push(one.figures);
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
    figures: Value,
}

fn translated(
    translate: &Translate,
    loaded: &Loaded,
    model: &Transformer,
    sentence: &str,
    output: &Output,
) -> Result<Translated> {
    let (source, frame) = (loaded.tokenizer()?.encode_bare(sentence)?, loaded.frame()?);
    let limits = Search { beams: translate.beams.max(1), ..Search::default() };
    let found = search(model, source.ids(), frame, limits)?;
    let target = loaded.target()?.describe(&found[0].tokens)?;
    let trace = watch(model, source.ids(), &found[0].tokens, frame, Capture::All)?;
    let (layer, head) = place(translate, model)?;
    let weights = attention::weights(&trace, layer, head)?;
    let (read, written) = (Side::new(&source), Side::predicting(&target, "</s>"));
    let weights = match translate.tokens {
        Unit::Tokens => weights,
        Unit::Words => words::merge(&weights, &written.groups, &read.groups)?,
    };
    let (rows, columns) = (written.of(translate.tokens).labels, read.of(translate.tokens).labels);
    let text = target.text().trim().to_owned();
    let ko = |english, korean| output.language.of(english, korean);
    let head = match head {
        Some(head) => format!("{} {head}", ko("head", "헤드")),
        None => ko("mean of the heads", "헤드 평균").to_owned(),
    };
    let note = format!("{} · {} {layer}, {head}", loaded.name, ko("layer", "층"));
    let figures = json!({
        "source": sentence, "translation": text, "log_probability": found[0].log_probability, "layer": layer,
        "rows": rows, "columns": columns, "weights": weights.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>(),
    });
    let scene = Heatmap::alignment(weights, rows, columns)?.title(format!("{sentence} → {text}")).note(note);
    Ok(Translated { text, scene: scene.language(output.language.into()).into(), figures })
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
