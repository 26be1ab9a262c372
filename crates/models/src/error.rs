use std::fmt;
use std::path::PathBuf;

use crate::checkpoint::{Architecture, Dtype};
use crate::trace::{Head, Kind, Site};

/// What can be wrong with a file, a configuration, a text or a call. Every variant says what was found, what was
/// expected, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read or written.
    Io {
        /// Which one.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A path is there, but it is no checkpoint: a file that a checkpoint must have is absent.
    NoCheckpoint {
        /// Where it was looked for.
        path: PathBuf,
        /// What is absent.
        missing: String,
    },
    /// A file breaks the rules of its format.
    Format {
        /// Which file.
        path: PathBuf,
        /// The part that is wrong: a header field, a tensor, a key.
        at: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A configuration value is absent or makes no sense.
    Config {
        /// Where the configuration comes from.
        path: PathBuf,
        /// Which key.
        key: String,
        /// What it may be.
        expected: String,
        /// What it was.
        got: String,
    },
    /// The checkpoint is of a kind that there is no model for.
    Architecture {
        /// Where the checkpoint is.
        path: PathBuf,
        /// The name it gives itself.
        got: String,
        /// The names there are models for.
        known: Vec<&'static str>,
    },
    /// A model needs a tensor that the checkpoint does not have.
    MissingTensor {
        /// Where the checkpoint is.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// The most similar name there is.
        nearest: Option<String>,
    },
    /// A tensor has another shape than the configuration calls for.
    Shape {
        /// The tensor's name.
        name: String,
        /// The shape that the configuration calls for.
        expected: Vec<usize>,
        /// The shape in the checkpoint.
        got: Vec<usize>,
    },
    /// A tensor holds no numbers that can be read as f32.
    Dtype {
        /// The tensor's name.
        name: String,
        /// Its type.
        got: String,
    },
    /// A tensor that is to be saved has a number too large for the type to be saved as.
    Range {
        /// The tensor's name.
        name: String,
        /// The number.
        value: f32,
        /// The type.
        dtype: Dtype,
        /// Types that can hold it.
        fit: &'static str,
    },
    /// A tokenizer cannot be built, or cannot do what was asked.
    Tokenizer {
        /// Where it comes from; the tokenizer itself if no file is to blame.
        source: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A token id outside the vocabulary.
    TokenId {
        /// The id.
        id: u32,
        /// The number of tokens there are.
        vocabulary: usize,
    },
    /// A model is not on this machine and cannot be had from the hub.
    Download {
        /// The model's name.
        name: String,
        /// Why not.
        problem: String,
    },
    /// More tokens than the model has positions for.
    Context {
        /// How many tokens there are.
        tokens: usize,
        /// How many positions the model has.
        limit: usize,
    },
    /// A layer's attention was asked for that the run did not keep.
    NotCaptured {
        /// Which layer.
        site: Site,
        /// Those that were kept.
        captured: Vec<Site>,
    },
    /// Fewer tokens than the call needs.
    TooShort {
        /// How many there are.
        tokens: usize,
        /// How many it takes.
        least: usize,
    },
    /// A model of this kind cannot do what was asked.
    Unfit {
        /// The kind of model.
        architecture: Architecture,
        /// What it was to do.
        wanted: &'static str,
        /// What can.
        fit: &'static str,
    },
    /// A model that reads images was to read a text.
    NoText {
        /// What it is called.
        name: String,
    },
    /// A model has no attention of the kind that was asked for.
    NoAttention {
        /// What it is called.
        name: String,
        /// The kind that was asked for.
        wanted: Kind,
        /// The kind that it has.
        has: Kind,
    },
    /// A trace was made without something that the call needs.
    NotTraced {
        /// What is absent: a method of [`LayerTraceBuilder`](crate::trace::LayerTraceBuilder).
        part: &'static str,
    },
    /// The scores of the next token are no numbers to choose by.
    Scores {
        /// The first token whose score is NaN or +∞; none if there are no scores.
        token: Option<usize>,
    },
    /// A head that the model does not have.
    NoHead {
        /// Which one.
        head: Head,
        /// The layers there are.
        layers: usize,
        /// The heads in each.
        heads: usize,
    },
    /// Rollout of attention between two sequences, which has no past to roll out.
    CrossRollout,
    /// Whoever watched the run has ended it.
    Stopped,
    /// The loss or a gradient is no longer a finite number.
    Diverged {
        /// In which step, counted from 1.
        step: usize,
        /// The loss.
        loss: f32,
        /// The norm of all gradients together.
        gradient: f32,
        /// The learning rate.
        learning_rate: f32,
    },
    /// The state of a run was made with another plan than it is to go on with.
    OtherPlan {
        /// Where the state is.
        path: PathBuf,
        /// Where the plans differ.
        differences: Vec<String>,
    },
    /// The state of a run was made on another task than it is to go on with.
    OtherTask {
        /// Where the state is.
        path: PathBuf,
        /// Where the tasks differ.
        differences: Vec<String>,
    },
    /// A model lacks a part that the call needs.
    MissingPart {
        /// Which part.
        part: &'static str,
        /// The kind of checkpoint that has it.
        fit: &'static str,
    },
    /// Images cannot be cut into whole patches.
    PatchSize {
        /// Height and width of an image.
        image: usize,
        /// Height and width of a patch.
        patch: usize,
    },
    /// A layer's width cannot be cut into its heads.
    HeadWidth {
        /// d_model.
        width: usize,
        /// The number of heads.
        heads: usize,
    },
    /// A kind of attention where the mathematics does not allow it.
    Family {
        /// Which one.
        family: &'static str,
        /// Where it can be.
        fits: &'static str,
    },
    /// A kind of attention that there is not, or with sizes that it does not have.
    FamilyName {
        /// What was said.
        got: String,
        /// What can be.
        known: Vec<String>,
    },
    /// The engine refuses a call.
    Engine(foveal::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Error::NoCheckpoint { path, missing } => write!(
                f,
                "{} is no checkpoint: {missing}; give a folder with config.json and model.safetensors, or a .gguf file",
                path.display()
            ),
            Error::Format { path, at, problem } => {
                write!(f, "{}: {at}: {problem}; the file is damaged or not what its name says", path.display())
            }
            Error::Config { path, key, expected, got } => {
                write!(f, "{}: {key} is {got}, expected {expected}", path.display())
            }
            Error::Architecture { path, got, known } => write!(
                f,
                "{}: there is no model for the architecture {got}; there are models for {}",
                path.display(),
                known.join(", ")
            ),
            Error::MissingTensor { path, name, nearest } => {
                write!(f, "{} has no tensor {name}", path.display())?;
                match nearest {
                    Some(nearest) => write!(f, "; the nearest name it has is {nearest}"),
                    None => write!(f, "; it has no tensor at all"),
                }
            }
            Error::Shape { name, expected, got } => write!(
                f,
                "tensor {name} has shape {got:?}, but the configuration calls for {expected:?}; they belong to different models"
            ),
            Error::Dtype { name, got } => {
                write!(
                    f,
                    "tensor {name} has type {got}, which is not read here; convert it to F32, F16 or BF16, or in a GGUF file \
                     to Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1 or Q4_0"
                )
            }
            Error::Range { name, value, dtype, fit } => {
                write!(
                    f,
                    "tensor {name} has the number {value:e}, which would be infinite as {dtype}; save it as {fit}"
                )
            }
            Error::Tokenizer { source, problem } if source.as_os_str().is_empty() => {
                write!(f, "the tokenizer cannot do this: {problem}")
            }
            Error::Tokenizer { source, problem } => {
                write!(f, "{}: no tokenizer can be made of it: {problem}", source.display())
            }
            Error::TokenId { id, vocabulary } => {
                write!(f, "there is no token {id}; the vocabulary has {vocabulary} tokens")
            }
            Error::Download { name, problem } => {
                write!(
                    f,
                    "{name} is neither a path nor a model in the local cache, and cannot be downloaded: {problem}"
                )
            }
            Error::Context { tokens, limit } => write!(
                f,
                "{tokens} tokens, but the model has {limit} positions; shorten the text or choose a sliding window"
            ),
            Error::NotCaptured { site: Site { kind, layer }, captured } => {
                write!(f, "the {kind} attention of layer {layer} was not captured; ")?;
                let [first, .., last] = &captured[..] else {
                    return match captured.first() {
                        Some(only) => write!(f, "the {} attention of layer {} was", only.kind, only.layer),
                        None => write!(f, "nothing was: run with Capture::All"),
                    };
                };
                write!(
                    f,
                    "there are {} layers from {} {} to {} {}",
                    captured.len(),
                    first.kind,
                    first.layer,
                    last.kind,
                    last.layer
                )
            }
            Error::TooShort { tokens, least } => {
                write!(f, "{tokens} tokens, but this takes at least {least}; give a longer text")
            }
            Error::Unfit { architecture, wanted, fit } => {
                write!(f, "a model of the architecture {architecture} cannot {wanted}; take one of {fit}")
            }
            Error::NoText { name } => {
                write!(f, "{name} reads no text; give it an image, or take a model that comes with a tokenizer")
            }
            Error::NoAttention { name, wanted, has } => {
                write!(f, "{name} has {has} attention and no {wanted} attention; ask for {has}")
            }
            Error::NotTraced { part } => {
                write!(f, "the trace was made without its {part}; give them to LayerTraceBuilder::{part}")
            }
            Error::Scores { token: Some(token) } => write!(
                f,
                "the model's score for token {token} is not a finite number; the weights are damaged, or of another model"
            ),
            Error::Scores { token: None } => write!(f, "there are no scores to choose a token by"),
            Error::NoHead { head: Head { site: Site { kind, layer }, head }, layers, heads } => write!(
                f,
                "there is no head {head} in the {kind} attention of layer {layer}; there are {layers} layers of {heads} heads, \
                 counted from 0"
            ),
            Error::CrossRollout => {
                write!(
                    f,
                    "rollout follows a sequence through its layers; ask for encoder or decoder attention instead of cross"
                )
            }
            Error::Stopped => write!(f, "the run was stopped"),
            Error::Diverged { step, loss, gradient, learning_rate } => write!(
                f,
                "training broke down in step {step}: the loss is {loss} and the norm of its gradient {gradient}, at a learning \
                 rate of {learning_rate}; the model is as before this step. Take a smaller learning rate, a longer warm-up, or \
                 clip the gradients"
            ),
            Error::OtherPlan { path, differences } => write!(
                f,
                "{} is the state of a run with another plan ({}); go on with the same, or begin elsewhere",
                path.display(),
                differences.join("; ")
            ),
            Error::OtherTask { path, differences } => write!(
                f,
                "{} is the state of a run on another task ({}); go on with the same data, batch and sizes, or begin elsewhere",
                path.display(),
                differences.join("; ")
            ),
            Error::MissingPart { part, fit } => write!(f, "the checkpoint lacks {part}; take {fit}"),
            Error::PatchSize { image, patch } => {
                write!(f, "images of {image} pixels cannot be cut into patches of {patch}; take a divisor of {image}")
            }
            Error::HeadWidth { width, heads: 0 } => {
                write!(f, "d_model is {width} and there are 0 heads; attention needs at least one")
            }
            Error::HeadWidth { width, heads } => {
                let (below, above) = (width / heads * heads, (width / heads + 1) * heads);
                write!(f, "d_model {width} does not divide by {heads} heads; ")?;
                match below {
                    0 => write!(f, "take a d_model of {above}, or fewer heads"),
                    _ => write!(f, "take a d_model of {below} or {above}, or another number of heads"),
                }
            }
            Error::Family { family, fits } => write!(f, "{family} cannot be used here; its place is {fits}"),
            Error::FamilyName { got, known } => {
                write!(f, "there is no attention {got:?}; there are {}, with these sizes or others", known.join(", "))
            }
            Error::Engine(error) => error.fmt(f),
        }
    }
}

/// The message says all: no cause is given beside it, which programs that print the whole chain would print twice.
impl std::error::Error for Error {}

impl From<foveal::Error> for Error {
    fn from(error: foveal::Error) -> Self {
        Error::Engine(error)
    }
}

impl From<foveal_compute::Error> for Error {
    fn from(error: foveal_compute::Error) -> Self {
        Error::Engine(error.into())
    }
}
