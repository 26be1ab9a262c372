//! `foveal train text`: a language model of any text.

use anyhow::{Result, bail};
use foveal_models::Tokenizer;
use foveal_models::generate::{Choice, GenerateOptions, Overflow, Sampling, Session};
use foveal_models::layer::Random;
use foveal_models::model::{Gpt2, Gpt2Config, LanguageModel, Llama, LlamaConfig, Trained};
use foveal_models::train::{Plan, Text};
use serde_json::json;

use super::{curve, ending};
use crate::arguments::{ShapeChoice, TrainText};
use crate::output::Output;
use crate::report::Report;
use crate::source;

pub fn run(arguments: &TrainText, output: Output) -> Result<()> {
    output.check_file()?;
    let corpus = Corpus::read(arguments)?;
    let tokenizer = match arguments.vocabulary {
        Some(size) => Tokenizer::of_byte_pairs(&corpus.learned, size)?,
        None => Tokenizer::of_characters(&[&*corpus.learned, &*corpus.held_out].concat())?,
    };
    let run = &arguments.run;
    let nano = Gpt2Config::nano();
    let (width, heads) = (run.dims.unwrap_or(nano.width), run.heads.unwrap_or(nano.heads));
    let (layers, context) = (run.layers.unwrap_or(nano.layers), arguments.context.unwrap_or(nano.context));
    let mut random = Random::new(run.seed);
    match arguments.shape {
        ShapeChoice::Gpt2 => {
            let sizes = Gpt2Config {
                vocabulary: tokenizer.vocabulary(),
                context,
                width,
                layers,
                heads,
                hidden: 4 * width,
                attention: run.attention,
                ..nano
            };
            let model = Gpt2::new(&sizes, &mut random)?;
            train(arguments, (&tokenizer, &corpus), context, model, &output, |model, folder, dtype| {
                model.save(folder, dtype)
            })
        }
        ShapeChoice::Llama => {
            if heads == 0 || !width.is_multiple_of(2 * heads) {
                bail!("dims {width} must divide by twice the {heads} heads: rotary positions turn pairs");
            }
            let nano = LlamaConfig::nano();
            let key_heads = if heads.is_multiple_of(2) { heads / 2 } else { heads };
            // SwiGLU has three matrices where others have two: 8/3 instead of 4 makes it as large.
            let hidden = (8 * width / 3).next_multiple_of(32);
            let sizes =
                LlamaConfig { vocabulary: tokenizer.vocabulary(), context, width, layers, heads, key_heads, ..nano };
            let model = Llama::new(
                &LlamaConfig { head_dim: width / heads, hidden, attention: run.attention, ..sizes },
                &mut random,
            )?;
            train(arguments, (&tokenizer, &corpus), context, model, &output, |model, folder, dtype| {
                model.save(folder, dtype)
            })
        }
    }
}

fn train<M: Trained>(
    arguments: &TrainText,
    (tokenizer, corpus): (&Tokenizer, &Corpus),
    context: usize,
    model: M,
    output: &Output,
    save: impl Fn(&M, &std::path::Path, foveal_models::Dtype) -> foveal_models::Result<()>,
) -> Result<()> {
    let run = &arguments.run;
    let encode = |text: &str| -> Result<Vec<u32>> { Ok(tokenizer.encode_bare(text)?.ids().to_vec()) };
    let (learned, held_out) = (encode(&corpus.learned)?, encode(&corpus.held_out)?);
    let count = learned.len() + held_out.len();
    let task = Text::of_parts(learned, held_out, context, run.batch.unwrap_or(12))?.with_vocabulary(tokenizer);
    let parameters = model.parameter_count();
    let mut trainer = run.trainer(&task, model, run.plan(Plan::default()))?;
    let ended = run.train(&mut trainer, &mut |trainer, progress| {
        let Some(beginning) = &arguments.sample else { return Ok(()) };
        let written = sample(trainer.model(), tokenizer, beginning)?;
        progress.line(&format!("  {}", written.replace('\n', "\n  ")));
        Ok(())
    })?;
    save(trainer.best(), &run.folder, run.dtype())?;
    tokenizer.save(&run.folder)?;
    let last = trainer.records().last().copied();
    let best = trainer.records().iter().filter_map(|record| record.held_out).fold(f32::INFINITY, f32::min);
    // Tokens of different vocabularies cannot be compared; characters can.
    let per_character = task.surprise(trainer.best())? / corpus.held_out.chars().count() as f64;
    let title =
        format!("{}: {parameters} parameters, {} tokens of {}", run.folder.display(), count, tokenizer.vocabulary());
    output.show(&Report {
        title,
        notes: vec![
            format!("held-out loss {best:.4}, {per_character:.4} nats a character"),
            ending(ended, run, output),
        ],
        scenes: vec![curve(&trainer, output)],
        figures: json!({ "parameters": parameters, "tokens": count, "vocabulary": tokenizer.vocabulary(),
                         "steps": trainer.records().len(), "loss": last.map(|record| record.loss), "held_out_loss": best,
                         "held_out_per_character": per_character }),
        ..Report::default()
    })
}

/// What is learned from, and what is not.
struct Corpus {
    learned: String,
    held_out: String,
}

impl Corpus {
    /// The last tenth of the text's characters is held out, as nanoGPT does; of what is learned beside it, nothing.
    fn read(arguments: &TrainText) -> Result<Self> {
        let mut learned = source::read(&arguments.path)?;
        let characters = learned.chars().count();
        let cut = learned.char_indices().nth(characters - characters / 10).map_or(learned.len(), |(at, _)| at);
        let held_out = learned.split_off(cut);
        for path in &arguments.also {
            // After the text itself: windows across the seam are few.
            learned.push_str("\n\n");
            learned.push_str(&source::read(path)?);
        }
        Ok(Corpus { learned, held_out })
    }
}

/// Some tokens from a beginning, by chance.
fn sample(model: &dyn LanguageModel, tokenizer: &Tokenizer, beginning: &str) -> Result<String> {
    let mut session = Session::new(model).on_overflow(Overflow::Slide);
    let sampling = Sampling { temperature: 0.8, top_k: Some(50), top_p: None };
    let options = GenerateOptions { most: 100, choice: Choice::Sample(sampling), ..GenerateOptions::default() };
    session.generate(tokenizer.encode_bare(beginning)?.ids(), options)?.try_for_each(|token| token.map(drop))?;
    Ok(tokenizer.decode(session.tokens())?)
}
