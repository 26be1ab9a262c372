//! The bytes of a checkpoint: of a file, which is mapped here and nowhere else, or of the program itself. They are read from
//! the page cache as they are needed; nothing is copied on opening.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use crate::{Error, Result};

/// A file in memory. Clones share the mapping.
#[derive(Clone, Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
enum Bytes {
    Mapped(Arc<Mmap>),
    Embedded(&'static [u8]),
}

impl MappedFile {
    #[allow(unsafe_code)]
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(Error::NoCheckpoint { path: path.to_path_buf(), missing: "it is not a regular file".into() });
        }
        // SAFETY: the mapping is read-only and private to this process, and every access goes through `bytes`, whose
        // length is fixed here. What is left is the rule of all memory-mapped readers: no other process may shorten
        // the file meanwhile. Saving in this crate keeps it: it renames a new file over the old name, and a mapping of
        // the old one stays whole.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Ok(MappedFile { path: path.to_path_buf(), bytes: Bytes::Mapped(Arc::new(map)) })
    }

    /// Bytes that are part of the program; `name` is what errors call them.
    pub(crate) fn embedded(name: &str, bytes: &'static [u8]) -> Self {
        MappedFile { path: name.into(), bytes: Bytes::Embedded(bytes) }
    }

    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Embedded(bytes) => bytes,
        }
    }

    /// Gives the memory of these bytes of the file, which were read, back to the system. They may be read again: they are then
    /// taken from the page cache, or from the disk.
    #[allow(unsafe_code)]
    pub(crate) fn release(&self, bytes: &[u8]) {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = &self.bytes
            && let Some(start) = (bytes.as_ptr() as usize).checked_sub(map.as_ptr() as usize)
            && start + bytes.len() <= map.len()
        {
            // SAFETY: the mapping is of a file and read-only, so no page of it holds anything but what the file does; one that is
            // dropped here is read from the file again when it is touched.
            let released = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, bytes.len()) };
            // Only less memory was asked for; without it everything is as it was.
            let _ = released;
        }
    }

    /// The error of this file: `at` names the part, `problem` what is wrong with it.
    pub(crate) fn format_error(&self, at: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Format { path: self.path.clone(), at: at.into(), problem: problem.into() }
    }
}
