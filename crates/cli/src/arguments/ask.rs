//! What can be said about a question.

use std::path::PathBuf;

use clap::Args;

use super::ModelChoice;

#[derive(Args, Debug)]
#[command(after_help = "\
How it works (Fusion-in-Decoder, Izacard and Grave 2020):
  1. The texts are cut into passages: by paragraph, long ones between sentences, with one sentence of overlap.
  2. The passages are ranked by the words they share with the question (BM25), or by meaning (--embed).
  3. Each of the best is read by itself, together with the question, so the work grows with their number, not its square.
  4. The decoder attends to all of them at once and writes the answer. What it attends to is what you see.

The reader inside was trained on simple facts in English and Korean: who, where, when, what, how many. It copies names it
has never seen, and says so when no passage answers. With --model, a language model of yours gets the passages in its prompt.
Attention shows where the model looked. That is a hint, not a proof, of why it said what it said.

Examples:
  foveal ask \"Where does Anna live?\" --passages notes/*.txt
  foveal ask \"열쇠는 어디에 있어요?\" --passages notes/ -o where.svg
  cat diary.txt | foveal ask \"Who bought the lamp?\" --passages - --json
  foveal ask \"Who wrote it?\" --passages book.txt --model SmolLM2.gguf --top 3

설명 (한국어): 글을 문단으로 나누고, 질문과 겹치는 말로 순위를 매긴 뒤, 상위 글을 하나씩 질문과 함께 읽고,
디코더가 모두를 한꺼번에 보며 답을 씁니다. 답이 없으면 없다고 말합니다. --lang ko는 설명을 한국어로 보여 줍니다.")]
pub struct Ask {
    /// The question
    pub question: String,
    /// Texts to find the answer in: files, folders with .txt and .md files, or - for standard input
    #[arg(short, long, required = true, num_args = 1.., value_name = "PATH")]
    pub passages: Vec<PathBuf>,
    #[command(flatten)]
    pub model: ModelChoice,
    /// Rank the passages by meaning, with the vectors of this BERT model
    #[arg(long, value_name = "PATH|NAME")]
    pub embed: Option<String>,
    /// Passages to read
    #[arg(short = 'k', long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=200), value_name = "K")]
    pub top: u16,
}
