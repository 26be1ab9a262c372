//! `foveal generate`: writing on, token by token.

use anyhow::Result;
use foveal_models::ReadOptions;
use foveal_models::generate::{Choice, End, GenerateOptions, Overflow, Sampling};
use serde_json::json;

use crate::arguments::Generate;
use crate::output::Output;
use crate::{model, source};

pub fn run(generate: &Generate, output: Output) -> Result<()> {
    let text = source::text(generate.text.text.as_deref(), generate.text.file.as_deref())?;
    let open = model::open(&generate.model, "shakespeare")?;
    let tokenizer = open.tokenizer()?;
    let options = ReadOptions { chat: generate.chat, ..ReadOptions::default() };
    let prompt = options.encode(&open, &text)?;
    let by_chance = generate.temperature.is_some() || generate.top_k.is_some() || generate.top_p.is_some();
    let sampling =
        Sampling { temperature: generate.temperature.unwrap_or(1.0), top_k: generate.top_k, top_p: generate.top_p };
    let choice = if by_chance { Choice::Sample(sampling) } else { Choice::Greedy };
    let options = GenerateOptions { most: generate.most, choice, seed: generate.seed, stop: open.stop.clone() };
    let overflow = if generate.slide { Overflow::Slide } else { Overflow::Refuse };
    let mut session = open.session()?.on_overflow(overflow);
    let mut generation = session.generate(prompt.ids(), options)?;
    let mut stream = tokenizer.stream_after(prompt.ids())?;
    let mut written = String::new();
    // Of a conversation the answer alone is shown.
    if !output.is_json() && !generate.chat {
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
        let figures = json!({ "model": open.name, "prompt": text, "written": written, "tokens": tokens, "end": end });
        return output.line(&serde_json::to_string_pretty(&figures)?);
    }
    output.line(&rest)
}
