//! What can be said on the command line.

mod ask;
mod explore;
mod learn;
mod model;
mod page;
mod train;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use foveal_models::TokenAxis;
use foveal_models::trace::Kind;

pub use self::ask::Ask;
pub use self::explore::Explore;
pub use self::learn::Learn;
pub use self::model::ShowModel;
pub use self::page::PageOptions;
pub use self::train::{
    Run, ShapeChoice, Train, TrainDigits, TrainPairs, TrainQuestions, TrainRepeats, TrainTask, TrainText,
};
use crate::language::Language;

/// Exact attention, and a way to look at all of it.
#[derive(Debug, Parser)]
#[command(name = "foveal", version, propagate_version = true, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  foveal see \"ROMEO: But soft, what light through yonder window breaks?\"
  foveal see --model gpt2 --head all \"The cat sat on the mat\" -o heads.svg
  foveal see --image digit.png
  foveal translate \"The student reads two books.\"
  foveal ask \"Where does Anna live?\" --passages notes/*.txt
  foveal heads --model SmolLM2.gguf
  foveal map --model SmolLM2.gguf book.txt -o map.png
  foveal lab by-hand
  foveal learn";

/// What every command understands.
#[derive(Args, Debug)]
pub struct Common {
    /// Write the picture or the figures to a file: .svg, .png, .html, .json or .csv
    #[arg(short, long, global = true, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the figures as JSON instead of text and pictures
    #[arg(long, global = true)]
    pub json: bool,
    /// The language of explanations [default: that of the locale]
    #[arg(long, global = true, value_enum, value_name = "LANGUAGE")]
    pub lang: Option<Language>,
    /// Columns to draw in [default: those of the terminal]
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(20..), value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// Draw files on a dark ground
    #[arg(long, global = true)]
    pub dark: bool,
    /// The terminal has a light ground
    #[arg(long, global = true)]
    pub light: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See the attention of a text or an image
    See(See),
    /// Look at all of a model's attention in the browser, live
    Explore(Explore),
    /// What each head of a model does: scores, and where they are highest
    Heads(Heads),
    /// The attention of a long text as one picture
    Map(Map),
    /// Write on from a text
    Generate(Generate),
    /// What a model is: architecture, sizes, type, tokenizer, context
    Model(ShowModel),
    /// Translate English to Korean, and see what each word was made from
    Translate(Translate),
    /// Answer a question from passages, and see which of them were looked at
    Ask(Ask),
    /// Train a model: on a text, on pairs of sentences, or on digits
    Train(Train),
    /// Experiments with attention, each explained
    Lab(Lab),
    /// Exercises that check themselves
    Learn(Learn),
    /// How fast attention is on this machine
    Bench(Bench),
    /// Completions for a shell, or the manual page
    Completions(Completions),
}

/// Which model.
#[derive(Args, Clone, Debug, Default)]
pub struct ModelChoice {
    /// A folder, a .gguf file, a name on the Hugging Face hub, or one of those inside: shakespeare, translate-en-ko,
    /// digits, reader
    #[arg(short, long, value_name = "PATH|NAME")]
    pub model: Option<String>,
}

/// Where a text comes from.
#[derive(Args, Clone, Debug, Default)]
pub struct TextChoice {
    /// The text, or the path of a file with it; - for standard input
    pub text: Option<String>,
    /// A file with the text
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// One, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    One(usize),
}

fn which(text: &str) -> Result<Which, String> {
    match text {
        "all" => Ok(Which::All),
        number => number.parse().map(Which::One).map_err(|_| "expected a number from 0, or all".into()),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// As the model sees them
    #[default]
    Tokens,
    /// Keys of a word added up, queries averaged
    Words,
}

impl Unit {
    /// As links of a page call it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Tokens => "tokens",
            Unit::Words => "words",
        }
    }

    /// The first token of the entry with this number.
    pub fn first(self, axis: &TokenAxis, entry: usize) -> usize {
        match self {
            Unit::Tokens => entry,
            Unit::Words => axis.groups.get(entry).map_or(0, |group| group.tokens.start),
        }
    }

    /// An axis of tokens in this unit.
    pub fn of(self, axis: &TokenAxis) -> TokenAxis {
        match self {
            Unit::Tokens => axis.clone(),
            Unit::Words => axis.words(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// The attention weights
    #[default]
    Weights,
    /// Weights times the size of what they look up, after the output projection
    Norm,
    /// Where information has come from through all layers so far
    Rollout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// A matrix with the tokens at its sides
    Heatmap,
    /// Lines from each query to its keys
    Lines,
    /// One token's attention
    Bars,
    /// All heads, small
    Grid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindChoice {
    Encoder,
    Decoder,
    Cross,
}

impl From<KindChoice> for Kind {
    fn from(choice: KindChoice) -> Self {
        match choice {
            KindChoice::Encoder => Kind::Encoder,
            KindChoice::Decoder => Kind::Decoder,
            KindChoice::Cross => Kind::Cross,
        }
    }
}

#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Without --layer and --head the head is shown that attends most to other tokens than itself and the first one.

Examples:
  foveal see \"The cat sat on the mat\"
  foveal see \"나는 학교에 갑니다\" --tokens words --view lines
  echo \"to be or not to be\" | foveal see --layer 2 --head all
  foveal see \"The cat sat\" -o attention.html      # all layers and heads, to explore
  foveal see --model bert-base-uncased \"The cat [MASK] on the mat.\"
  foveal see --model SmolLM2.gguf --chat \"What is attention?\"
  foveal see --image digit.png")]
pub struct See {
    #[command(flatten)]
    pub text: TextChoice,
    #[command(flatten)]
    pub model: ModelChoice,
    /// An image for a vision model: PNG or JPEG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "file"])]
    pub image: Option<PathBuf>,
    /// A layer from 0, or all
    #[arg(long, value_parser = which, value_name = "N|all")]
    pub layer: Option<Which>,
    /// A head from 0, or all
    #[arg(long, value_parser = which, value_name = "N|all")]
    pub head: Option<Which>,
    /// Tokens, or whole words [default: tokens, but the bytes of one character together; words in a page]
    #[arg(long, value_enum)]
    pub tokens: Option<Unit>,
    /// What the cells show
    #[arg(long, value_enum, default_value_t)]
    pub show: Show,
    /// How they are drawn [default: heatmap, or grid for several heads]
    #[arg(long, value_enum)]
    pub view: Option<View>,
    /// The query that bars and lines are drawn for, from 0
    #[arg(long, value_name = "N")]
    pub token: Option<usize>,
    /// Which attention of an encoder-decoder [default: cross]
    #[arg(long, value_enum)]
    pub kind: Option<KindChoice>,
    /// At most this many tokens from the beginning [default: all]
    #[arg(long, value_name = "N")]
    pub most: Option<NonZeroUsize>,
    /// The text is what a user says: put it into the model's own chat template
    #[arg(long)]
    pub chat: bool,
    #[command(flatten)]
    pub page: PageOptions,
}

#[derive(Args, Debug)]
#[command(after_help = "\
previous, next: weight on the token before and after · duplicate: on earlier equal tokens · induction: on what followed them
separator: on special tokens · sink: the largest share that one early token gets · entropy: in nats, low where a head is sure
class: what takes at least half of the weight that is not left at the first token or at special tokens, and three times what
equal weights would give it

Examples:
  foveal heads
  foveal heads --model SmolLM2.gguf --by induction --top 5
  foveal heads --model all-MiniLM-L6-v2 --by next
  foveal heads --model gpt2 --file text.txt -o heads.svg")]
pub struct Heads {
    #[command(flatten)]
    pub text: TextChoice,
    #[command(flatten)]
    pub model: ModelChoice,
    /// The score to sort by [default: induction; previous for an encoder]
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// How many heads to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top: usize,
    /// Also switch each head off by itself, and list what the text loses by it (slow)
    #[arg(long)]
    pub ablate: bool,
    /// Random tokens that come twice, for induction
    #[arg(long, default_value_t = NonZeroUsize::new(64).expect("above 0"), value_name = "N")]
    pub period: NonZeroUsize,
    /// Which random tokens
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Previous,
    Next,
    Duplicate,
    Induction,
    Separator,
    Sink,
    Entropy,
    Confidence,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal map --model SmolLM2.gguf book.txt
  foveal map --model SmolLM2.gguf book.txt --layer 17 --head 3 --rows 1000..2000 -o part.png")]
pub struct Map {
    #[command(flatten)]
    pub text: TextChoice,
    #[command(flatten)]
    pub model: ModelChoice,
    /// The layer, from 0 [default: the middle one]
    #[arg(long, value_name = "N")]
    pub layer: Option<usize>,
    /// The head, from 0
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub head: usize,
    /// At most this many tokens from the beginning [default: the model's context]
    #[arg(long, value_name = "N")]
    pub most: Option<NonZeroUsize>,
    /// The queries to look at
    #[arg(long, value_parser = range, value_name = "FROM..TO")]
    pub rows: Option<std::ops::Range<usize>>,
    /// The keys to look at
    #[arg(long, value_parser = range, value_name = "FROM..TO")]
    pub columns: Option<std::ops::Range<usize>>,
    /// Pixels of a file, a side
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub pixels: usize,
    /// How the weights in a pixel become one
    #[arg(long, value_enum, default_value_t = PoolChoice::Max)]
    pub pool: PoolChoice,
    #[command(flatten)]
    pub page: PageOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PoolChoice {
    Max,
    Mean,
    Sum,
}

fn range(text: &str) -> Result<std::ops::Range<usize>, String> {
    let expected = || "expected two numbers, FROM..TO, the second larger".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let (from, to): (usize, usize) = (from.parse().map_err(|_| expected())?, to.parse().map_err(|_| expected())?);
    if from < to { Ok(from..to) } else { Err(expected()) }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal generate \"ROMEO:\"
  foveal generate --model SmolLM2.gguf \"The capital of France is\" --most 20
  foveal generate --model SmolLM2.gguf --chat \"What is the capital of France?\"
  foveal generate \"To be\" --temperature 0.8 --top-k 40 --seed 7
  foveal generate \"To be\" -o written.html     # the attention of the text and of what was written")]
pub struct Generate {
    #[command(flatten)]
    pub text: TextChoice,
    #[command(flatten)]
    pub model: ModelChoice,
    /// Tokens to write at most
    #[arg(short = 'n', long, default_value_t = 100, value_name = "N")]
    pub most: usize,
    /// Choose by chance: below 1 likely tokens become likelier [default: 0, the likeliest each time]
    #[arg(short, long, value_name = "T")]
    pub temperature: Option<f32>,
    /// Choose among the K likeliest
    #[arg(long, value_name = "K")]
    pub top_k: Option<usize>,
    /// Choose among the likeliest that have probability P together
    #[arg(long, value_name = "P")]
    pub top_p: Option<f32>,
    /// What chance follows from
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// The text is what a user says: put it into the model's own chat template, and write the answer
    #[arg(long)]
    pub chat: bool,
    /// Past the model's context, forget the older half instead of stopping with an error
    #[arg(long)]
    pub slide: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal translate \"The student reads two books.\"
  foveal translate \"I do not eat apples.\" -o alignment.svg
  foveal translate --file sentences.txt --json")]
pub struct Translate {
    #[command(flatten)]
    pub text: TextChoice,
    #[command(flatten)]
    pub model: ModelChoice,
    /// Beginnings that the search keeps, at most 64; 1 is greedy
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64), value_name = "N")]
    pub beams: u8,
    /// The layer of cross-attention [default: the one that aligns best]
    #[arg(long, value_name = "N")]
    pub layer: Option<usize>,
    /// Its head, or all for their mean [default: the one that aligns best; in another layer the mean]
    #[arg(long, value_parser = which, value_name = "N|all")]
    pub head: Option<Which>,
    /// Tokens, or whole words
    #[arg(long, value_enum, default_value_t = Unit::Words)]
    pub tokens: Unit,
    #[command(flatten)]
    pub page: PageOptions,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal lab                       # what there is
  foveal lab by-hand
  foveal lab scale --dims 4,64,1024 --seed 3
  foveal lab heads --lang ko -o heads.svg")]
pub struct Lab {
    /// Which experiment; all are listed without one
    pub name: Option<String>,
    /// Dimensions to try
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    pub dims: Vec<usize>,
    /// Numbers of heads to try
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    pub heads: Vec<usize>,
    /// Numbers of tokens to try
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    pub tokens: Vec<usize>,
    /// Steps of training
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// What random numbers follow from
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub model: ModelChoice,
}

#[derive(Args, Debug)]
pub struct Bench {
    /// Tokens
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub tokens: usize,
    /// Heads
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub heads: usize,
    /// Dimension of a head
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub dims: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal completions bash > ~/.local/share/bash-completion/completions/foveal
  foveal completions man > foveal.1")]
pub struct Completions {
    /// The shell, or man
    #[arg(value_enum)]
    pub shell: ShellChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShellChoice {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
    /// The manual page
    Man,
}
