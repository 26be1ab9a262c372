//! `foveal map`: the attention of a long text as one picture, at any zoom.

use std::ops::Range;

use anyhow::{Result, bail};
use foveal::Pool;
use foveal_models::TokenAxis;
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_view::{Format, Map as Picture, Steps};
use serde_json::json;

use crate::arguments::{Map, PoolChoice};
use crate::output::Output;
use crate::report::Report;
use crate::{model, page, prose, see, source};

/// Pixels of a terminal's picture, a side: more than any has rows or columns.
const TERMINAL: usize = 256;

pub fn run(map: &Map, output: Output) -> Result<()> {
    output.check_file()?;
    let text = source::text(map.text.text.as_deref(), map.text.file.as_deref())?;
    let open = model::open(&map.model, "shakespeare")?;
    let model = open.model.as_language_model()?;
    let shape = model.shape();
    let all = open.tokenizer()?.encode(&text)?;
    let (count, most) = (all.len(), map.most.map_or(shape.context, usize::from).min(shape.context));
    let encoding = all.truncated(most);
    let tokens = encoding.ids();
    let tr = |english, korean| output.language.of(english, korean);
    if tokens.len() < count {
        eprintln!("foveal: {} of {count} tokens: the model sees {} at a time", tokens.len(), shape.context);
    }
    let layer = map.layer.unwrap_or(shape.layers / 2);
    if layer >= shape.layers || map.head >= shape.heads {
        bail!(
            "there is no head {} in layer {layer}; there are {} layers of {} heads",
            map.head,
            shape.layers,
            shape.heads
        );
    }
    let mut probe = Probe::new(Capture::Layers(vec![layer]));
    let mut read = Ok(());
    // Within the pool, so that no step of the model has to be handed over to it.
    rayon::scope(|_| read = model.infer(tokens, 1, None, &mut probe).map(drop));
    read?;
    let trace = probe.into_trace();
    let traced = trace.layer(Kind::Decoder, layer)?;
    let within = |range: &Option<Range<usize>>| match range {
        Some(range) if range.end > tokens.len() => {
            bail!("tokens {range:?} are asked for, but there are {}", tokens.len())
        }
        range => Ok(range.clone().unwrap_or(0..tokens.len())),
    };
    let (rows, columns) = (within(&map.rows)?, within(&map.columns)?);
    if output.format() == Some(Format::Html) {
        let axis = TokenAxis::of(&encoding);
        let group = page::group(&trace, Kind::Decoder, (&axis, &axis), &map.page)?.salient(layer, map.head);
        let part = format!("{},{},{},{}", rows.start, columns.start, rows.end, columns.end);
        let page = page::page(vec![group], &map.page, &output)
            .title(format!("{} × {} {}", rows.len(), columns.len(), tr("tokens", "토큰")))
            .model(&open.name)
            .view("unit", "tokens")
            .view("at", part);
        return output.show(&Report { page: Some(page), ..Report::default() });
    }
    let side = if output.file().is_some() || output.is_json() { map.pixels.max(1) } else { TERMINAL };
    let pixels = (side.min(rows.len()), side.min(columns.len()));
    let pool = match map.pool {
        PoolChoice::Max => Pool::Max,
        PoolChoice::Mean => Pool::Mean,
        PoolChoice::Sum => Pool::Sum,
    };
    let picture = traced.map((0, map.head), rows.clone(), columns.clone(), pixels, pool)?;
    let figures = json!({
        "model": open.name, "tokens": tokens.len(), "layer": layer, "head": map.head,
        "rows": [rows.start, rows.end], "columns": [columns.start, columns.end],
        "pixels": picture.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>(),
    });
    let note = format!("{} · {} {layer}, {} {}", open.name, tr("layer", "층"), tr("head", "헤드"), map.head);
    let title = format!("{} × {} {}", rows.len(), columns.len(), tr("tokens", "토큰"));
    let scene = Picture::new(picture, rows, columns)?.steps(Steps::Log).title(title).note(note);
    let notes = see::character_note(&open, &text, output.language)?.map(|note| prose::wrap(&note, output.width()));
    let notes = notes.unwrap_or_default();
    output.show(&Report {
        notes,
        scenes: vec![scene.language(output.language.into()).into()],
        figures,
        ..Report::default()
    })
}
