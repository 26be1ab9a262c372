//! Models and training as `make compare` measures them.
//!
//! `--worker` serves a coordinator, see `worker.rs`; `--first-token MODEL TEXT` is a whole program: it loads a checkpoint, reads
//! the text and prints the token that comes next.

mod worker;
mod works;

use foveal_models::generate::{Choice, GenerateOptions, Session};
use foveal_models::{Checkpoint, Model, Tokenizer};

fn main() -> Result<(), String> {
    foveal_compute::keep_memory();
    foveal_compute::large_pages();
    // On a thread of the pool, as the `foveal` command does.
    rayon::scope(|_| run().map_err(|error| error.to_string()))
}

fn run() -> works::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--worker", ..] => worker::serve(),
        ["--first-token", model, text] => first_token(model, text),
        _ => {
            println!("measured by `make compare`");
            Ok(())
        }
    }
}

fn first_token(model: &str, text: &str) -> works::Result<()> {
    let checkpoint = Checkpoint::open(model)?;
    let (tokenizer, model) = (Tokenizer::of(&checkpoint)?, Model::load(&checkpoint)?);
    let mut session = Session::new(model.as_language_model()?);
    let options = GenerateOptions { most: 1, choice: Choice::Greedy, ..GenerateOptions::default() };
    let prompt = tokenizer.encode(text)?;
    for token in session.generate(prompt.ids(), options)? {
        println!("{}", tokenizer.decode(&[token?])?);
    }
    Ok(())
}
