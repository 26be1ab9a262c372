//! `foveal generate`: writing on, token by token.

use anyhow::Result;
use foveal_models::generate::{Choice, End, Overflow, Sampling, Session, Writing};
use serde_json::json;

use crate::arguments::Generate;
use crate::model::Loaded;
use crate::output::Output;
use crate::source;

pub fn run(generate: &Generate, output: Output) -> Result<()> {
    let text = source::text(generate.text.text.as_deref(), generate.text.file.as_deref())?;
    let loaded = Loaded::open(&generate.model, "shakespeare")?;
    let (tokenizer, model) = (loaded.tokenizer()?, loaded.model.as_language_model()?);
    let prompt = tokenizer.encode(&text)?;
    let by_chance = generate.temperature.is_some() || generate.top_k.is_some() || generate.top_p.is_some();
    let sampling =
        Sampling { temperature: generate.temperature.unwrap_or(1.0), top_k: generate.top_k, top_p: generate.top_p };
    let choice = if by_chance { Choice::Sample(sampling) } else { Choice::Greedy };
    let writing = Writing { most: generate.most, choice, seed: generate.seed, stop: loaded.stop.clone() };
    let overflow = if generate.slide { Overflow::Slide } else { Overflow::Refuse };
    let mut session = Session::new(model).on_overflow(overflow);
    let mut generation = session.generate(prompt.ids(), writing)?;
    let mut stream = tokenizer.stream();
    let mut written = String::new();
    if !output.is_json() {
        output.text(&text)?;
    }
    for token in generation.by_ref() {
        let piece = stream.push(token?)?;
        if !output.is_json() {
            output.text(&piece)?;
        }
        written.push_str(&piece);
    }
    let rest = stream.finish();
    written.push_str(&rest);
    let end = match generation.end() {
        Some(End::Stop(_)) => "stop token",
        _ => "length",
    };
    if output.is_json() {
        let tokens = session.tokens()[prompt.len()..].to_vec();
        let figures = json!({ "model": loaded.name, "prompt": text, "written": written, "tokens": tokens, "end": end });
        return output.line(&serde_json::to_string_pretty(&figures)?);
    }
    output.line(&rest)
}
