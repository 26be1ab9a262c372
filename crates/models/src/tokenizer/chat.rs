//! Conversations as the text that a model was trained to answer. A checkpoint brings the template for it, a small program in
//! Jinja, as transformers and llama.cpp run it.
//!
//! ```no_run
//! use foveal_models::OpenModel;
//! use foveal_models::tokenizer::Message;
//!
//! let open = OpenModel::open("HuggingFaceTB/SmolLM2-135M-Instruct")?;
//! let encoding = open.tokenizer()?.encode_chat(&[Message::user("What is attention?")])?;
//! assert!(encoding.text().ends_with("<|im_start|>assistant\n")); // the answer comes next
//! # Ok::<(), foveal_models::Error>(())
//! ```

use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, ErrorKind, Output, State, Value};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::special::{ROLES, content};
use crate::checkpoint::Config;
use crate::checkpoint::gguf::Metadata;
use crate::checkpoint::json::read_bounded;
use crate::{Error, Result};

/// The longest real ones have some 10 kB.
const MAX_BYTES: u64 = 1 << 20;
/// Steps that a template may take: a thousand times those of a long conversation.
const STEPS: u64 = 10_000_000;

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// What a user says.
    pub fn user(content: impl Into<String>) -> Self {
        Message { role: "user".into(), content: content.into() }
    }
}

/// The template that a checkpoint brings for conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatTemplate {
    /// Where it stands.
    source: PathBuf,
    template: String,
    /// The special tokens it may name: `bos_token` and its text, and so on.
    tokens: Vec<(&'static str, String)>,
}

impl ChatTemplate {
    /// `chat_template.jinja`, else `chat_template` of `tokenizer_config.json`: a text, or a list of which the one named
    /// `default` counts. None where there is neither.
    pub(super) fn from_folder(folder: &Path) -> Result<Option<Self>> {
        let configs = ["tokenizer_config.json", "special_tokens_map.json"].map(|name| folder.join(name));
        let configs = configs.iter().filter(|path| path.exists()).map(|path| Config::read(path));
        let configs: Vec<Config> = configs.collect::<Result<_>>()?;
        let named = |role: &&'static str| {
            let text = configs.iter().find_map(|config| content(config.get(role)?))?;
            Some((*role, text.to_owned()))
        };
        let tokens = ROLES.iter().filter_map(named).collect();
        let file = folder.join("chat_template.jinja");
        if file.exists() {
            let template = String::from_utf8(read_bounded(&file, MAX_BYTES)?)
                .map_err(|error| problem(&file, format!("not UTF-8: {error}")))?;
            return Ok(Some(ChatTemplate { source: file, template, tokens }));
        }
        let settings = configs.first().filter(|config| config.path().ends_with("tokenizer_config.json"));
        let Some((settings, value)) = settings.and_then(|settings| Some((settings, settings.get("chat_template")?)))
        else {
            return Ok(None);
        };
        let listed = || {
            let default = value.as_array()?.iter().find(|entry| entry["name"] == "default")?;
            default["template"].as_str()
        };
        let expected = "a template, or a list of them with one named default";
        let template = value.as_str().or_else(listed);
        let template = template.ok_or_else(|| settings.error("chat_template", expected, "something else"))?.to_owned();
        Ok(Some(ChatTemplate { source: settings.path().to_path_buf(), template, tokens }))
    }

    /// `tokenizer.chat_template` of a GGUF file. `token` gives the text of a token with a role.
    pub(super) fn from_metadata(metadata: &Metadata, token: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let template = metadata.text("tokenizer.chat_template")?.to_owned();
        let tokens = ROLES.iter().filter_map(|role| Some((*role, token(role)?))).collect();
        Some(ChatTemplate { source: metadata.file().path().to_path_buf(), template, tokens })
    }

    /// The template itself.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// A conversation as text, up to where the answer begins.
    ///
    /// The date is not told to templates that ask for it: the same conversation is the same text on every day.
    ///
    /// # Errors
    /// If the template makes no sense, or refuses the conversation.
    pub fn render(&self, messages: &[Message]) -> Result<String> {
        let environment = environment();
        let tokens = self.tokens.iter().map(|(role, text)| (*role, Value::from(text.as_str())));
        let messages = messages
            .iter()
            .map(|message| Value::from_pairs([("role", message.role.as_str()), ("content", message.content.as_str())]));
        let given = [
            ("messages", Value::from(messages.collect::<Vec<_>>())),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
            ("add_generation_prompt", Value::from(true)),
        ];
        let context = Value::from_pairs(given.into_iter().chain(tokens));
        let rendered = environment.render_str(&self.template, context);
        rendered.map_err(|error| problem(&self.source, format!("the chat template fails: {error}")))
    }
}

fn problem(source: &Path, problem: String) -> Error {
    Error::Tokenizer { source: source.to_path_buf(), problem }
}

/// Jinja as transformers sets it up.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters"));
    environment.set_fuel(Some(STEPS));
    environment.set_formatter(print);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", to_json);
    environment.add_function("raise_exception", |text: String| -> Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, text))
    });
    environment
}

/// Python's spelling of what Jinja spells otherwise here.
fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    let python = match value.kind() {
        ValueKind::None => "None",
        ValueKind::Bool if value.is_true() => "True",
        ValueKind::Bool => "False",
        _ => return minijinja::escape_formatter(out, state, value),
    };
    out.write_str(python).map_err(minijinja::Error::from)
}

/// JSON as Python writes it.
fn to_json(value: &Value, options: Kwargs) -> Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Characters beyond ASCII are kept by default, and so they are here.
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let written = match indent {
        Some(indent) => {
            let spaces = " ".repeat(indent.min(16));
            value.serialize(&mut Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(spaces.as_bytes())))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)),
    };
    written.map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(out).map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// `{"a": 1, "b": [2, 3]}`: a space after every comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}
