//! Sentence pairs from a file: a line each, the sentence and its translation with a tab between.
//!
//! What people bring has flaws: a tab too many, a line in another encoding. Such lines are left out and told, with their
//! number and what is wrong with them; the rest is used.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::checkpoint::write_whole;
use crate::{Error, Result};

/// A sentence of ordinary text has some hundred bytes. A line beyond this is no sentence, and is not even kept.
const MAX_LINE: usize = 64 << 10;

/// A sentence and its translation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextPair {
    /// The sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
}

/// The pairs of a file, and the lines that are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairFile {
    /// The pairs, in the order of the file.
    pub pairs: Vec<TextPair>,
    /// What is wrong with the other lines. Empty ones are not among them.
    pub problems: Vec<Problem>,
}

/// A line that is no pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line's number in the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// What can be wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// It does not have one tab, but so many.
    Tabs(usize),
    /// There is nothing before the tab.
    NoSource,
    /// There is nothing after the tab.
    NoTarget,
    /// It is no UTF-8 from this byte of the line on.
    Encoding(usize),
    /// It is longer than 64 KiB.
    Length,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match self.kind {
            ProblemKind::Tabs(0) => write!(f, "no tab, expected one between the sentence and its translation"),
            ProblemKind::Tabs(tabs) => write!(f, "{tabs} tabs, expected one between the sentence and its translation"),
            ProblemKind::NoSource => write!(f, "nothing before the tab, expected a sentence"),
            ProblemKind::NoTarget => write!(f, "nothing after the tab, expected a translation"),
            ProblemKind::Encoding(at) => write!(f, "byte {at} is not UTF-8; save the file as UTF-8"),
            ProblemKind::Length => write!(f, "longer than {MAX_LINE} bytes, which is no sentence; cut it"),
        }
    }
}

impl PairFile {
    /// Reads a file of pairs: UTF-8, with or without a byte order mark, lines ending in `\n` or `\r\n`.
    ///
    /// ```
    /// # use foveal_models::translation::PairFile;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pairs.tsv");
    /// std::fs::write(&path, "The sun shines.\t태양이 빛나요.\nno translation\n").unwrap();
    /// let found = PairFile::read(&path)?;
    /// assert_eq!(found.pairs[0].target, "태양이 빛나요.");
    /// let told = found.problems[0].to_string();
    /// assert_eq!(told, "line 2: no tab, expected one between the sentence and its translation");
    /// # Ok::<(), foveal_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or no line of it is a pair.
    pub fn read(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_path_buf(), source };
        PairFile::from_reader(path, BufReader::new(File::open(path).map_err(io)?))
    }

    /// As [`read`](Self::read), from anything; `path` is what errors name as the source.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_reader(path: &Path, mut reader: impl BufRead) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_path_buf(), source };
        let mut found = PairFile::default();
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            line.clear();
            // One byte past the limit, the line's end and a carriage return, so that a line that is too long is noticed.
            reader.by_ref().take(MAX_LINE as u64 + 3).read_until(b'\n', &mut line).map_err(io)?;
            if line.is_empty() {
                break;
            }
            number += 1;
            if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MAX_LINE {
                reader.skip_until(b'\n').map_err(io)?;
            }
            line.pop_if(|last| *last == b'\r');
            let text = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
            match pair(text) {
                Ok(pair) => found.pairs.extend(pair),
                Err(kind) => found.problems.push(Problem { line: number, kind }),
            }
        }
        if found.pairs.is_empty() {
            let problem = match found.problems.first() {
                Some(first) => format!("none of its {number} lines is a pair; {first}"),
                None => "it is empty; each line should have a sentence, a tab and a translation".into(),
            };
            return Err(Error::Format { path: path.to_path_buf(), at: "the whole file".into(), problem });
        }
        Ok(found)
    }
}

/// The pair of a line; none if the line is empty.
fn pair(line: &[u8]) -> Result<Option<TextPair>, ProblemKind> {
    if line.len() > MAX_LINE {
        return Err(ProblemKind::Length);
    }
    let line = str::from_utf8(line).map_err(|error| ProblemKind::Encoding(error.valid_up_to() + 1))?;
    if line.trim().is_empty() && !line.contains('\t') {
        return Ok(None);
    }
    let tabs = line.matches('\t').count();
    match line.split_once('\t') {
        Some((source, target)) if tabs == 1 => match (source.trim(), target.trim()) {
            ("", _) => Err(ProblemKind::NoSource),
            (_, "") => Err(ProblemKind::NoTarget),
            (source, target) => Ok(Some(TextPair { source: source.into(), target: target.into() })),
        },
        _ => Err(ProblemKind::Tabs(tabs)),
    }
}

/// Writes pairs to a file that [`PairFile::read`] reads, whole or not at all. Tabs and line ends within a sentence become
/// spaces.
///
/// # Errors
/// If the file cannot be written; then nothing has changed.
pub fn write_pairs<'a>(path: &Path, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let flat = |text: &str| text.split(['\t', '\n', '\r']).collect::<Vec<_>>().join(" ");
    write_whole(path, |file| {
        for (source, target) in pairs {
            writeln!(file, "{}\t{}", flat(source), flat(target))?;
        }
        Ok(())
    })
}
