use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  foveal model
  foveal model gpt2
  foveal model SmolLM2.gguf --json")]
pub struct ShowModel {
    /// A folder, a .gguf file, a name on the Hugging Face hub, or one of those inside: shakespeare, translate-en-ko,
    /// digits, reader
    #[arg(default_value = "shakespeare", value_name = "PATH|NAME")]
    pub model: String,
}
