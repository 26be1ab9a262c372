//! The `foveal` command: thin, over the engine, the models and the pictures.

#![deny(unsafe_code)]

mod arguments;
mod ask;
mod bench;
mod completions;
mod explore;
mod generate;
mod heads;
mod lab;
mod language;
mod learn;
mod map;
mod model;
mod output;
mod page;
mod prose;
mod report;
mod see;
mod source;
mod table;
mod train;
mod translate;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use output::Output;

/// `lab memory` counts what attention allocates.
#[global_allocator]
static ALLOCATOR: foveal_compute::CountingAllocator = foveal_compute::CountingAllocator;

fn main() -> ExitCode {
    foveal_compute::keep_memory();
    foveal_compute::large_pages();
    let arguments = Arguments::parse();
    if matches!(arguments.command, Command::Explore(_)) {
        // A server waits, and what waits must not take a thread of the pool.
        return run(arguments);
    }
    // On a thread of the pool: what is shared out from there finds the others without waiting to be woken itself.
    rayon::scope(|_| run(arguments))
}

fn run(arguments: Arguments) -> ExitCode {
    let output = Output::new(&arguments.common);
    let done = match arguments.command {
        Command::See(see) => see::run(&see, output),
        Command::Explore(explore) => explore::run(&explore, output),
        Command::Heads(heads) => heads::run(&heads, output),
        Command::Map(map) => map::run(&map, output),
        Command::Generate(generate) => generate::run(&generate, output),
        Command::Model(model) => model::run(&model, output),
        Command::Translate(translate) => translate::run(&translate, output),
        Command::Ask(ask) => ask::run(&ask, output),
        Command::Train(train) => train::run(&train, output),
        Command::Lab(lab) => lab::run(&lab, output),
        Command::Learn(learn) => learn::run(&learn, output),
        Command::Bench(bench) => bench::run(&bench, output),
        Command::Completions(completions) => completions::run(&completions, output),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough, as in `foveal … | head`.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<learn::WrongAnswer>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("foveal: {error:#}");
            ExitCode::FAILURE
        }
    }
}
