//! `foveal generate`: writing on, token by token.

use anyhow::{Context, Result, bail};
use foveal_models::generate::{Choice, End, GenerateOptions, Overflow, Sampling};
use foveal_models::{Error, ReadOptions};
use foveal_view::Format;
use serde_json::json;

use crate::arguments::{Generate, See};
use crate::output::Output;
use crate::report::Report;
use crate::{model, see, source};

pub fn run(generate: &Generate, output: Output) -> Result<()> {
    output.check_file()?;
    let pictured = output.file().is_some() && output.format() != Some(Format::Json);
    if pictured && generate.chat {
        bail!("with --chat, -o writes .json; for a picture, give the whole text to `foveal see`");
    }
    let text = source::text(generate.text.text.as_deref(), generate.text.file.as_deref())?;
    let open = model::open(&generate.model, "shakespeare")?;
    let tokenizer = open.tokenizer()?;
    let options = ReadOptions { chat: generate.chat, ..ReadOptions::default() };
    let prompt = options.encode(&open, &text)?;
    let sampling = |temperature| Sampling { temperature, top_k: generate.top_k, top_p: generate.top_p };
    let choice = match generate.temperature {
        Some(0.0) => Choice::Greedy,
        None if generate.top_k.is_none() && generate.top_p.is_none() => Choice::Greedy,
        temperature => Choice::Sample(sampling(temperature.unwrap_or(1.0))),
    };
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
        let token = token.map_err(|error| match error {
            Error::Context { .. } => anyhow::Error::new(error)
                .context("the model's context is full; --slide forgets the older half and goes on"),
            error => error.into(),
        });
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
    let tokens = session.tokens()[prompt.len()..].to_vec();
    let figures = json!({ "model": open.name, "prompt": text, "written": written, "tokens": tokens, "end": end });
    if !output.is_json() {
        output.line(&rest)?;
    }
    if !output.is_json() && output.file().is_none() {
        return Ok(());
    }
    // In a file, the attention of the text with what was written.
    let seen = match pictured {
        true => see::of_text(&See::default(), &open, &format!("{text}{written}"), &output)
            .context("the text is written, but its attention cannot be shown")?,
        false => Report::default(),
    };
    output.show(&Report { scenes: seen.scenes, page: seen.page, figures, ..Report::default() })
}
