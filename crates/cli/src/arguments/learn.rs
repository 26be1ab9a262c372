//! What `foveal learn` understands.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = "\
At the prompt: an answer, or hint, skip, list, solution, quit. Numbers are separated by spaces; options are letters; a head is
layer.head; a program is a file of Rust, which Enter has checked.

Examples:
  foveal learn                                   # goes on where you stopped
  foveal learn ko                                # in Korean
  foveal learn --list
  foveal learn weights
  foveal learn weights --answer \"0.186 0.307 0.506\"
  foveal learn softmax --watch                   # checks a program whenever you save it")]
pub struct Learn {
    /// A language, ko or en, and the name of an exercise [default: the first that is not done]
    #[arg(num_args = 0..=2, value_name = "LANGUAGE|NAME")]
    pub words: Vec<String>,
    /// Check this answer and end: with success if it is right; of a program, a file
    #[arg(long, value_name = "TEXT|FILE", conflicts_with_all = ["list", "watch", "reset"])]
    pub answer: Option<String>,
    /// Show the next hint and end
    #[arg(long, conflicts_with_all = ["answer", "list", "watch", "reset"])]
    pub hint: bool,
    /// List all exercises, and which are done
    #[arg(long)]
    pub list: bool,
    /// Answer in a file, which is checked whenever it is saved
    #[arg(long, conflicts_with = "list")]
    pub watch: bool,
    /// Forget what is done
    #[arg(long)]
    pub reset: bool,
    /// Where progress and your files are kept [default: the user's data folder]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}
