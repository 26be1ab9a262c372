//! What can be said about a training run.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use foveal_models::layer::Family;

#[derive(Args, Debug)]
pub struct Train {
    #[command(subcommand)]
    pub task: TrainTask,
}

/// What to learn.
#[derive(Debug, Subcommand)]
pub enum TrainTask {
    /// The next token of a text
    Text(TrainText),
    /// Translation: the grammar inside, or any file of pairs
    Pairs(TrainPairs),
    /// Random tokens that repeat, in which induction heads form
    Repeats(TrainRepeats),
    /// Handwritten digits
    Digits(TrainDigits),
    /// Answers from passages: generated facts in English and Korean
    Questions(TrainQuestions),
}

/// What every training run understands.
#[derive(Args, Debug)]
pub struct Run {
    /// The folder for the model, its state and its losses
    #[arg(short = 'd', long, value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Go on from the state in the folder
    #[arg(long)]
    pub resume: bool,
    /// Steps [default: by the task]
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Examples of a step [default: by the task]
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// The largest learning rate [default: by the task]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<f32>,
    /// The share of values dropped [default: by the task]
    #[arg(long, value_name = "P")]
    pub dropout: Option<f32>,
    /// Steps between evaluations
    #[arg(long, value_name = "N")]
    pub evaluate_every: Option<usize>,
    /// End when this many evaluations bring nothing better
    #[arg(long, value_name = "N")]
    pub patience: Option<usize>,
    /// Steps between states on disk
    #[arg(long, default_value_t = 250, value_name = "N")]
    pub save_every: usize,
    /// Random seed
    #[arg(long, default_value_t = 1337, value_name = "N")]
    pub seed: u64,
    /// Width of the model
    #[arg(long, value_name = "N")]
    pub dims: Option<usize>,
    /// Heads of each layer
    #[arg(long, value_name = "N")]
    pub heads: Option<usize>,
    /// Layers
    #[arg(long, value_name = "N")]
    pub layers: Option<usize>,
    /// How tokens attend: softmax, dot, additive, longformer, bigbird, strided, fixed, swin, linear, favor or fourier, with
    /// sizes such as longformer:window=16,globals=1
    #[arg(long, default_value_t = Family::Softmax, value_name = "KIND")]
    pub attention: Family,
    /// Save the model with numbers of 16 bits
    #[arg(long)]
    pub half: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShapeChoice {
    Gpt2,
    Llama,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal train text shakespeare.txt -d out/play
  foveal train text shakespeare.txt --also plays.txt -d out/plays --vocabulary 4096 --context 256
  foveal train text book.txt -d out/book --shape llama --vocabulary 2000 --steps 5000")]
pub struct TrainText {
    /// The text
    pub path: PathBuf,
    #[command(flatten)]
    pub run: Run,
    /// The kind of model
    #[arg(long, value_enum, default_value_t = ShapeChoice::Gpt2)]
    pub shape: ShapeChoice,
    /// Byte pairs of this number of tokens [default: characters]
    #[arg(long, value_name = "N")]
    pub vocabulary: Option<usize>,
    /// More text to learn from, none of which is held out
    #[arg(long, value_name = "FILE")]
    pub also: Vec<PathBuf>,
    /// Tokens that the model sees
    #[arg(long, value_name = "N")]
    pub context: Option<usize>,
    /// Write on from this after each evaluation
    #[arg(long, value_name = "TEXT")]
    pub sample: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Without a file, sentences come from the grammar inside, English to Korean.

Examples:
  foveal train pairs -d out/translate
  foveal train pairs strings.tsv -d out/strings --vocabulary 8000 --steps 6000")]
pub struct TrainPairs {
    /// A file with a pair on each line, the two parted by a tab
    pub path: Option<PathBuf>,
    #[command(flatten)]
    pub run: Run,
    /// Byte pairs of this number of tokens [default: words, or the pieces of the grammar]
    #[arg(long, value_name = "N")]
    pub vocabulary: Option<usize>,
    /// Keep the cross-attention of this sentence at the beginning, at every evaluation and at the end
    #[arg(long, value_name = "SENTENCE")]
    pub snapshot: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal train repeats -d out/induction")]
pub struct TrainRepeats {
    #[command(flatten)]
    pub run: Run,
    /// Tokens that the model sees
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub context: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal train digits train-images-idx3-ubyte train-labels-idx1-ubyte -d out/digits")]
pub struct TrainDigits {
    /// Images in MNIST's format (IDX), which may be compressed
    pub images: PathBuf,
    /// Their digits, in the same format
    pub labels: PathBuf,
    /// Height and width of a patch [default: 4, or 2 where images cannot be cut into those]
    #[arg(long, value_name = "PIXELS")]
    pub patch: Option<usize>,
    #[command(flatten)]
    pub run: Run,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Every step draws new questions, about names that hardly ever come twice: they can be copied, not learned.

Examples:
  foveal train questions -d out/reader
  foveal train questions -d out/reader --steps 1000 --seed 3")]
pub struct TrainQuestions {
    #[command(flatten)]
    pub run: Run,
}
