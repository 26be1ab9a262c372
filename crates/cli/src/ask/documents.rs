//! The texts that passages come from.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use foveal_models::retrieval::cut;

/// Characters of a passage at most: four to six sentences, which the reader inside sees whole.
const PASSAGE: usize = 320;
/// Bytes of all texts together at most: thirty books.
const MOST: u64 = 32 << 20;
/// Files of a folder that are read.
const ENDINGS: [&str; 3] = ["txt", "md", "text"];

/// Texts with their names.
pub struct Documents(Vec<(String, String)>);

/// A part of a text.
pub struct Passage<'a> {
    /// The name of the text.
    pub source: &'a str,
    pub text: &'a str,
}

impl AsRef<str> for Passage<'_> {
    fn as_ref(&self) -> &str {
        self.text
    }
}

impl Documents {
    /// Reads files, folders and, for `-`, standard input.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut all = Documents(Vec::new());
        let mut left = MOST;
        for path in paths {
            if path.as_os_str() == "-" {
                all.add("-", std::io::stdin().lock(), &mut left)?;
            } else if path.is_dir() {
                for file in files(path)? {
                    all.open(&file, &mut left)?;
                }
            } else {
                all.open(path, &mut left)?;
            }
        }
        Ok(all)
    }

    fn open(&mut self, path: &Path, left: &mut u64) -> Result<()> {
        let file = std::fs::File::open(path).with_context(|| {
            format!(
                "cannot read {}; give a file, a folder with .txt or .md files, or - for standard input",
                path.display()
            )
        })?;
        self.add(&path.display().to_string(), file, left)
    }

    fn add(&mut self, name: &str, from: impl Read, left: &mut u64) -> Result<()> {
        let mut bytes = Vec::new();
        from.take(*left + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
        if bytes.len() as u64 > *left {
            bail!("{name} makes more than {} MB of text; give fewer or smaller files", MOST >> 20);
        }
        *left -= bytes.len() as u64;
        if bytes.contains(&0) {
            bail!("{name} is no text but binary data; give text files (UTF-8)");
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            anyhow::anyhow!("{name} is not UTF-8 text (byte {at} is not); save it as UTF-8")
        })?;
        self.0.push((name.to_owned(), text));
        Ok(())
    }

    /// What they are called, together.
    pub fn names(&self) -> String {
        self.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Their parts.
    pub fn passages(&self) -> Vec<Passage<'_>> {
        let parts = self.0.iter().flat_map(|(name, text)| {
            cut(text, PASSAGE).into_iter().map(move |place| Passage { source: name, text: &text[place] })
        });
        parts.collect()
    }
}

/// The texts of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let is_text = |path: &PathBuf| {
        path.is_file()
            && path.extension().is_some_and(|ending| ENDINGS.iter().any(|text| ending.eq_ignore_ascii_case(text)))
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_text).collect();
    files.sort();
    if files.is_empty() {
        bail!("{} has no .txt or .md files; name the files themselves", folder.display());
    }
    Ok(files)
}
