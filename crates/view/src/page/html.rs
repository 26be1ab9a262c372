//! The document: shell, style, program and data, and the policy that allows just these.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ndarray::Array2;
use sha2::{Digest, Sha256};

use super::encode::{chunk, f16s, f32s, f64s, packed};
use super::layer::{Data, Layer};
use super::meta::{File, Stored, meta};
use super::pictures::{LARGE, LONG, Pictures, SMALL, of_layer};
use super::program::{ENGINE, SHELL, STYLE, messages, page_script, palettes, worker_script};
use super::{Group, Page, Storage};
use crate::pool::pool;
use crate::svg::canvas::escape;
use crate::{Error, Language};

/// Bytes of queries and keys up to which they are stored in 32 bits by default.
const SMALL_FILE: usize = 6_000_000;

/// Decimals that a page prints, of numbers stored in 32 and in 16 bits.
const DIGITS: (u8, u8) = (4, 2);

pub(super) fn file(page: &Page) -> Result<String, Error> {
    let half = match page.storage {
        Storage::Exact => false,
        Storage::Half => true,
        Storage::Fitting => {
            let layers = page.groups.iter().flat_map(|group| &group.layers);
            layers.map(|(_, layer)| layer.bytes(4)).sum::<usize>() > SMALL_FILE
        }
    };
    let mut chunks = String::new();
    let mut sites = Vec::new();
    for (site, group) in page.groups.iter().enumerate() {
        let mut stored = Stored::of(group, half);
        stored_chunks(&mut chunks, site, group, &mut stored, half)?;
        sites.push(stored);
    }
    chunks.push_str(&packed("wasm", ENGINE)?);
    let data = File { meta: meta(page, if half { DIGITS.1 } else { DIGITS.0 }), sites };
    let json = serde_json::to_string(&data)
        .map_err(|e| Error::Internal { doing: "writing the page", problem: e.to_string() })?;
    chunks.push_str(&json_script("data", &json));
    let title = if page.caption.title.is_empty() { page.caption.language.attention() } else { &page.caption.title };
    document("file", page.caption.language, title, &chunks)
}

pub(super) fn shell(source: &str, language: Language) -> Result<String, Error> {
    document(source, language, language.attention(), "")
}

/// All chunks of a site; fills in what is known only now.
fn stored_chunks(out: &mut String, site: usize, group: &Group, stored: &mut Stored, half: bool) -> Result<(), Error> {
    let (mut small, mut small_norms) = (Pictures::default(), Pictures::default());
    for (at, (_, layer)) in group.layers.iter().enumerate() {
        let id = |name: &str| format!("{name}-{site}-{at}");
        let rounded;
        let layer = match &layer.data {
            Data::Scores(scores) if half => {
                rounded = Layer { data: Data::Scores(Box::new(scores.rounded()?)), ..layer.clone() };
                &rounded
            }
            _ => layer,
        };
        array_chunks(out, &id, layer, half)?;
        let (rows, cols) = layer.size();
        let long = rows.max(cols) > LONG;
        let pictures = of_layer(layer, if long { LARGE } else { SMALL }, None)?;
        if long {
            let large = Pictures::of(&pictures);
            out.push_str(&packed(&id("pyramid"), &large.codes)?);
            stored.layers[at].pyramid = (rows.min(LARGE), cols.min(LARGE));
            stored.layers[at].pyramid_max = large.max;
        }
        let reduced: Vec<Array2<f32>> = pictures.iter().map(|picture| pool(picture.view(), SMALL, SMALL)).collect();
        small.extend(&reduced);
        if let Some(norms) = &layer.norms {
            small_norms.extend(&of_layer(layer, SMALL, Some(norms))?);
        }
    }
    for (name, pictures) in [("weights", small), ("norms", small_norms)] {
        if !pictures.codes.is_empty() {
            out.push_str(&packed(&format!("small-{site}-{name}"), &pictures.codes)?);
        }
        stored.max.push(pictures.max);
    }
    Ok(())
}

fn array_chunks(out: &mut String, id: &dyn Fn(&str) -> String, layer: &Layer, half: bool) -> Result<(), Error> {
    match &layer.data {
        Data::Weights(heads) => {
            out.push_str(&packed(&id("w"), &f32s(heads.iter().flatten()))?);
        }
        Data::Scores(scores) => {
            // A chunk for each head: what is not looked at is never decoded.
            for (name, array) in [("q", &scores.q), ("k", &scores.k)] {
                for (head, numbers) in array.outer_iter().enumerate() {
                    let bytes = if half { f16s(numbers) } else { f32s(numbers) };
                    out.push_str(&chunk(&format!("{}-{head}", id(name)), &bytes));
                }
            }
            out.push_str(&chunk(&id("lse"), &f64s(&scores.lse)));
        }
    }
    if let Some(norms) = &layer.norms {
        out.push_str(&chunk(&id("norm"), &f32s(norms)));
    }
    if let Some(values) = &layer.values {
        out.push_str(&chunk(&id("v"), &f32s(&values.v)));
        out.push_str(&chunk(&id("wo"), &f32s(&values.output)));
    }
    Ok(())
}

/// `</script>` in a label must not end the script.
fn json_script(id: &str, json: &str) -> String {
    format!("<script type=\"application/json\" id=\"{id}\">{}</script>\n", json.replace('<', "\\u003c"))
}

fn document(source: &str, language: Language, title: &str, chunks: &str) -> Result<String, Error> {
    let joined = |problem| Error::Internal { doing: "joining the page's program", problem };
    let program = page_script().map_err(joined)?;
    let worker = if source == "file" { worker_script().map_err(joined)? } else { String::new() };
    let mut inside = json_script("messages", messages());
    inside.push_str(&json_script("palettes", &palettes()));
    if !worker.is_empty() {
        inside.push_str(&format!(
            "<script type=\"text/plain\" id=\"worker\">{}</script>\n",
            worker.replace("</", "<\\/")
        ));
    }
    inside.push_str(chunks);
    let policy = format!(
        "default-src 'none'; script-src {} 'wasm-unsafe-eval'; style-src {}; worker-src blob:; img-src data: blob:; \
         connect-src {}; form-action 'none'; base-uri 'none'",
        hash(&program),
        hash(STYLE),
        if source == "server" { "'self'" } else { "'none'" },
    );
    Ok(fill(&[
        ("LANGUAGE", language.code()),
        ("SOURCE", source),
        ("POLICY", &policy),
        ("TITLE", &escape(title)),
        ("STYLE", STYLE),
        ("DATA", &inside),
        ("PROGRAM", &program),
    ]))
}

/// What a policy calls an inline script or style by.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// The shell with its marks replaced; what is put in is not searched again.
fn fill(parts: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(SHELL.len() + parts.iter().map(|p| p.1.len()).sum::<usize>());
    let mut rest = SHELL;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find("}}").map_or(rest.len(), |end| start + end);
        let name = &rest[start + 2..end];
        out.push_str(parts.iter().find(|p| p.0 == name).map_or("", |p| p.1));
        rest = rest.get(end + 2..).unwrap_or("");
    }
    out + rest
}
