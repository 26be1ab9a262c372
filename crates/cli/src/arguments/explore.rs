//! What can be said about the explorer.

use std::path::PathBuf;

use clap::Args;

use super::TextChoice;

#[derive(Args, Debug)]
#[command(after_help = "\
The page is served on this machine alone. Its link is printed; it opens once, and a new one is printed when it has been used.
In the page: choose model, layer and head, zoom from the whole map to single weights, switch heads off, write on.
Models are those inside, those in the Hugging Face cache, and those named here. Ctrl-C ends it.

Examples:
  foveal explore
  foveal explore \"The cat sat on the mat\" --model gpt2
  foveal explore --model SmolLM2.gguf --file book.txt --context 16384
  foveal explore --image digit.png
  foveal explore --model gpt2 --model distilgpt2          # two models to compare
  foveal explore --port 8123 --no-open                    # for a forwarded port: ssh -L 8123:localhost:8123")]
pub struct Explore {
    #[command(flatten)]
    pub text: TextChoice,
    /// A folder, a .gguf file, a name on the Hugging Face hub, or one of those inside; the first begins, others can be chosen
    #[arg(short, long, value_name = "PATH|NAME")]
    pub model: Vec<String>,
    /// An image to begin with, for a vision model: PNG or JPEG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "file"])]
    pub image: Option<PathBuf>,
    /// The port to serve on [default: any that is free]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub port: u16,
    /// Print the link and open no browser
    #[arg(long)]
    pub no_open: bool,
    /// Let the model see this many tokens, where its positions allow it
    #[arg(long, value_name = "N")]
    pub context: Option<usize>,
    /// Keep the attention of these layers alone, from 0 [default: all]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    pub layers: Vec<usize>,
    /// Memory for what has been read, in GiB; the oldest is forgotten
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..), value_name = "GIB")]
    pub memory: u16,
}
