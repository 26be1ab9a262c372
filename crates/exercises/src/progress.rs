//! What a learner has done, kept in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is known of one exercise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Whether it was answered rightly once.
    pub done: bool,
    /// Answers that were judged.
    pub attempts: u32,
    /// Hints that were shown.
    pub hints: usize,
}

/// The records of all exercises that were begun.
#[derive(Clone, Debug)]
pub struct Progress {
    path: PathBuf,
    records: BTreeMap<String, Record>,
}

impl Progress {
    /// Reads the file; without one, nothing is done yet.
    ///
    /// # Errors
    /// If there is a file that cannot be read or is no file of progress.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let records = read(&path)?;
        Ok(Progress { path, records })
    }

    /// What is known of an exercise.
    pub fn of(&self, name: &str) -> Record {
        self.records.get(name).copied().unwrap_or_default()
    }

    /// How many of these are done.
    pub fn done<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> usize {
        names.into_iter().filter(|name| self.of(name).done).count()
    }

    /// Changes a record, and writes the file at once: whole or not at all. What another process has written since is kept.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Record)) -> Result<()> {
        self.records = read(&self.path)?;
        change(self.records.entry(name.to_owned()).or_default());
        self.write()
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn reset(&mut self) -> Result<()> {
        self.records.clear();
        self.write()
    }

    fn write(&self) -> Result<()> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let text = serde_json::to_string_pretty(&self.records).unwrap_or_default() + "\n";
        Ok(foveal_view::write(&self.path, text.as_bytes())?)
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Record>> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| Error::Progress { path: path.into(), message: error.to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(Error::io(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_kept_and_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/progress.json");
        let mut one = Progress::open(&path).unwrap();
        let mut other = Progress::open(&path).unwrap();
        one.change("mix", |record| record.done = true).unwrap();
        other.change("score", |record| record.hints += 2).unwrap();
        let read = Progress::open(&path).unwrap();
        assert!(read.of("mix").done && !read.of("score").done && read.of("score").hints == 2);
        assert_eq!(read.done(["mix", "score", "other"]), 1);
        // No temporary file is left beside it.
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        one.reset().unwrap();
        assert_eq!(Progress::open(&path).unwrap().of("mix"), Record::default());
        std::fs::write(&path, "no progress").unwrap();
        let error = one.change("mix", |_| {}).unwrap_err();
        assert!(error.to_string().contains("remove it to begin anew"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no progress", "what cannot be read is not overwritten");
    }
}
