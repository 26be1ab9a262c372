//! The text of a command: from an argument, a file or standard input.

use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// No text that anyone looks at is longer.
const MOST: u64 = 256 << 20;

/// The text: the argument, or the file, or standard input if the argument is `-` or there is none and something is piped in.
/// An argument that is the path of a file stands for its text, which is told. Line ends at the end are not part of it.
pub fn text(argument: Option<&str>, file: Option<&Path>) -> Result<String> {
    let text = match (argument, file) {
        (Some(_), Some(file)) => bail!("there is a text and a file, {}; give one of them", file.display()),
        (Some(path), None) if is_file(path) => {
            eprintln!("foveal: reading the file {path}");
            read(Path::new(path))?
        }
        (Some(text), None) if text != "-" => text.to_owned(),
        (None, Some(file)) => read(file)?,
        (None, None) if std::io::stdin().is_terminal() => {
            bail!("there is no text; give it as an argument, with --file, or by a pipe")
        }
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(MOST).read_to_string(&mut text);
            read.context("cannot read standard input as text (UTF-8)")?;
            text
        }
    };
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    if text.trim().is_empty() {
        bail!("the text is empty; give some words");
    }
    Ok(text)
}

/// Whether an argument is the path of a file. No path has several lines, or more bytes than systems allow.
fn is_file(argument: &str) -> bool {
    argument.len() < 4096 && !argument.contains('\n') && Path::new(argument).is_file()
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > MOST {
        bail!("{} has {size} bytes; at most {MOST} are read as one text", path.display());
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {} as text (UTF-8)", path.display()))
}
