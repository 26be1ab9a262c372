//! The `foveal-mpi` command: what Foveal does on many machines. It is started by `mpirun -n RANKS foveal-mpi …`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use foveal_cluster::{Saving, World, train};
use foveal_models::layer::Random;
use foveal_models::model::{Gpt2, Gpt2Config};
use foveal_models::train::{Plan, Text};

/// Attention and training over MPI
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Threads of a rank
    #[arg(long, global = true, default_value_t = 1)]
    threads: usize,
}

#[derive(Subcommand)]
enum Command {
    /// Show the ranks
    Ranks,
    /// Train a language model on the bytes of a text, each rank on its share of every batch
    TrainText(TrainText),
}

#[derive(Args)]
struct TrainText {
    /// The text
    text: PathBuf,
    /// The state of the run: the run goes on from it if it is there
    #[arg(long)]
    state: PathBuf,
    /// Steps between two states
    #[arg(long, default_value_t = 50)]
    save_every: usize,
    /// Steps in all
    #[arg(long, default_value_t = 500)]
    steps: usize,
    /// Windows of a batch, over all ranks
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Tokens of a window
    #[arg(long, default_value_t = 64)]
    window: usize,
    /// Width of the model
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Heads of a layer
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Layers
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Share of values that are dropped
    #[arg(long, default_value_t = 0.1)]
    dropout: f32,
    /// Random seed
    #[arg(long, default_value_t = 1337)]
    seed: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("foveal-mpi: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads);
    pool.build_global().context("the threads of this rank")?;
    let world = Arc::new(World::start()?);
    if world.rank() == 0 {
        eprint!("{}", world.table());
    }
    match &arguments.command {
        Command::Ranks => Ok(()),
        Command::TrainText(options) => options.run(&world),
    }
}

impl TrainText {
    fn run(&self, world: &Arc<World>) -> Result<()> {
        let text = std::fs::read(&self.text).with_context(|| format!("{}", self.text.display()))?;
        let task = Text::new(text.into_iter().map(u32::from).collect(), self.window, self.batch)?;
        let config = Gpt2Config {
            vocabulary: 256,
            context: self.window,
            width: self.width,
            heads: self.heads,
            layers: self.layers,
            hidden: 4 * self.width,
            ..Gpt2Config::nano()
        };
        let model = Gpt2::new(&config, &mut Random::new(self.seed))?;
        let plan = Plan {
            steps: self.steps,
            warmup: (self.steps / 10).max(1),
            dropout: self.dropout,
            seed: self.seed,
            ..Plan::default()
        };
        let saving = Saving { path: &self.state, every: self.save_every };
        train(world, &task, model, plan, Some(saving), &mut |record| {
            let held_out = record.held_out.map_or(String::new(), |loss| format!("  held out {loss:.4}"));
            if world.rank() == 0 {
                println!("step {}  loss {:.6}{held_out}", record.step, record.loss);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }
}
