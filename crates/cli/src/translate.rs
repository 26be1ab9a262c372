//! `foveal translate`: sentences, what each word of the translation was made from, and how sure the translator is.

use anyhow::{Result, bail};
use foveal_models::analysis::words;
use foveal_models::generate::beam::Search;
use foveal_models::model::Transformer;
use foveal_models::model::transformer::Alignment;
use foveal_models::trace::Kind;
use foveal_models::translation::{Sentence, Unknown, attention, sentences};
use foveal_models::{Error, Observation, OpenModel, ReadOptions};
use foveal_view::{Format, Heatmap, Page, Scene};
use serde_json::{Value, json};

use crate::arguments::{Translate, Unit, Which};
use crate::output::Output;
use crate::report::Report;
use crate::{model, page, source};

/// From here on a translation is called sure, and below this it is not to be trusted.
const SURE: f32 = 0.9;
const DOUBTFUL: f32 = 0.5;
/// Stands after a word that is not known.
const MARK: char = '*';

pub fn run(translate: &Translate, output: Output) -> Result<()> {
    output.check_file()?;
    let text = source::text(translate.text.text.as_deref(), translate.text.file.as_deref())?;
    let open = model::open(&translate.model, "translate-en-ko")?;
    if open.translator().is_err() {
        bail!("{} does not translate; take an encoder-decoder, or leave out --model for the one inside", open.name)
    }
    let sentences: Vec<&str> = sentences(&text).collect();
    let mut report = Report::default();
    let mut figures = Vec::new();
    for sentence in &sentences {
        let Translated { text, remarks, scene, page, figures: one } = translated(translate, &open, sentence, &output)?;
        if sentences.len() == 1 {
            report.notes = [vec![text], remarks].concat();
        } else {
            report.notes.push(format!("{sentence}\t{text}\t{}", remarks.join(" ")));
        }
        report.scenes.extend(scene);
        report.page = page;
        figures.push(one);
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
    remarks: Vec<String>,
    scene: Option<Scene>,
    /// All layers, heads and kinds of attention, where a page is asked for.
    page: Option<Page>,
    figures: Value,
}

fn translated(translate: &Translate, open: &OpenModel, sentence: &str, output: &Output) -> Result<Translated> {
    if let Some(why) = refusal(&Sentence::read(open.tokenizer()?, sentence)?, sentence, output) {
        let figures = json!({ "source": sentence, "translation": null, "confidence": 0.0, "refused": why });
        return Ok(Translated { text: why, remarks: vec![], scene: None, page: None, figures });
    }
    let search = Search { beams: translate.beams.into(), ..Search::default() };
    let options = ReadOptions { kind: Some(Kind::Cross), search, ..ReadOptions::default() };
    let seen = match Observation::of(open, sentence, &options) {
        Err(Error::Context { tokens, limit }) => bail!(
            "a sentence of {tokens} words and marks; the translator reads {limit} at most: cut it into shorter sentences"
        ),
        seen => seen?,
    };
    let written = seen.written.as_ref().expect("a translation writes");
    let Alignment { layer, head, guided } = place(translate, open.translator()?)?;
    let weights = attention::weights(&seen.trace, layer, head)?;
    let weights = match translate.tokens {
        Unit::Tokens => weights,
        Unit::Words => words::merge(&weights, &seen.queries.groups, &seen.keys.groups)?,
    };
    let marked = |labels: Vec<String>| labels.into_iter().map(|label| mark(label, &written.unknown));
    let (rows, columns) = (translate.tokens.of(&seen.queries).labels, translate.tokens.of(&seen.keys).labels);
    let remarks = remarks(written.confidence, &written.unknown, &written.text, output);
    let tr = |english, korean| output.language.of(english, korean);
    let page = if output.format() == Some(Format::Html) {
        let page = page::of(&seen, (layer, head.unwrap_or(0)), &translate.page, output)?
            .title(format!("{sentence} → {}", written.text))
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
    let taught = tr(" (taught with the grammar's alignments)", " (문법의 정렬로 지도 학습함)");
    let place = format!("{} · {} {layer}, {head}{}", open.name, tr("layer", "층"), if guided { taught } else { "" });
    let note = [vec![place], remarks.clone()].concat().join(" · ");
    let figures = json!({
        "source": sentence, "translation": written.text, "confidence": written.confidence,
        "unknown": written.unknown.iter().map(|unknown| json!({
            "word": unknown.word, "copied": written.text.contains(&unknown.word) })).collect::<Vec<_>>(),
        "log_probability": written.log_probability, "layer": layer, "taught": guided,
        "rows": rows, "columns": columns, "weights": weights.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>(),
    });
    let scene = Heatmap::alignment(weights, marked(rows), marked(columns))?;
    let scene = scene.title(format!("{sentence} → {}", written.text)).note(note).language(output.language.into());
    Ok(Translated { text: written.text.clone(), remarks, scene: Some(scene.into()), page, figures })
}

/// Why a sentence is not translated at all: there is not a word in it that the translator knows.
fn refusal(sentence: &Sentence, text: &str, output: &Output) -> Option<String> {
    let unknown = |label: &str| sentence.unknown.iter().any(|unknown| unknown.word == label.trim());
    let words = || sentence.encoding.labels().iter().filter(|label| label.chars().any(char::is_alphanumeric));
    let marks = words().count() == 0;
    if !marks && !words().all(|label| unknown(label)) {
        return None;
    }
    let korean = text.chars().any(|c| ('가'..='힣').contains(&c));
    let (english, korean) = match (marks, korean) {
        (true, _) => ("There is no word in it to translate.", "번역할 낱말이 없습니다."),
        (_, true) => (
            "This is Korean, but the translator inside reads English and writes Korean. Give it an English sentence.",
            "한국어 문장입니다. 이 번역기는 영어를 읽고 한국어로 옮깁니다. 영어 문장을 넣어 주십시오.",
        ),
        _ => (
            "It knows none of these words, so it does not translate the sentence.",
            "아는 낱말이 하나도 없어 번역하지 않습니다.",
        ),
    };
    Some(output.language.of(english, korean).to_owned())
}

/// What a reader should know of a translation: words that were copied, and how sure the translator is.
fn remarks(confidence: Option<f32>, unknown: &[Unknown], translation: &str, output: &Output) -> Vec<String> {
    let tr = |english, korean| output.language.of(english, korean);
    let mut remarks = Vec::new();
    for (copied, english, korean) in [
        (true, "not known, copied as it is", "모르는 낱말, 그대로 옮겨 적음"),
        (false, "not known, left out", "모르는 낱말, 빠짐"),
    ] {
        let words = unknown.iter().filter(|unknown| translation.contains(&unknown.word) == copied);
        let words: Vec<String> = words.map(|unknown| format!("{}{MARK}", unknown.word)).collect();
        if !words.is_empty() {
            remarks.push(format!("{}: {}", words.join(", "), tr(english, korean)));
        }
    }
    let Some(confidence) = confidence else { return remarks };
    let says = match confidence {
        sure if sure >= SURE => "",
        doubtful if doubtful >= DOUBTFUL => tr(", not quite sure", ", 확실하지 않음"),
        _ if unknown.is_empty() => {
            tr(", unlike what it has learned: do not trust it", ", 배운 것과 다른 문장: 믿을 수 없음")
        }
        _ => tr(", do not trust it", ", 믿을 수 없음"),
    };
    remarks.push(format!("{} {confidence:.2}{says}", tr("confidence", "확신도")));
    remarks
}

/// A label with a mark if it has a word that is not known.
fn mark(label: String, unknown: &[Unknown]) -> String {
    match unknown.iter().any(|unknown| !unknown.word.is_empty() && label.contains(&unknown.word)) {
        true => format!("{label}{MARK}"),
        false => label,
    }
}

/// The layer and head to show: those asked for, else those that align best, else the mean of the last layer.
fn place(translate: &Translate, model: &Transformer) -> Result<Alignment> {
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
    let guided = known.is_some_and(|known| known.guided && known.head == head);
    Ok(Alignment { layer, head, guided })
}
