//! A model in several files, as `llama-gguf-split` makes them: `name-00001-of-00003.gguf` and so on. The first has all of
//! the metadata; each has some of the tensors, and says under `split.no` and `split.count` which part it is.

use std::path::{Path, PathBuf};

use super::{Info, Metadata, parse};
use crate::checkpoint::file::MappedFile;
use crate::{Error, Result};

/// The metadata, all tensors, and the files that they are in. Any of the parts may be named.
pub(super) fn open(path: &Path) -> Result<(Metadata, Vec<Info>, Vec<MappedFile>)> {
    let file = MappedFile::open(path)?;
    let (metadata, tensors) = parse(&file)?;
    let count = metadata.whole("split.count").unwrap_or(1);
    if count <= 1 {
        return Ok((metadata, tensors, vec![file]));
    }
    let paths = siblings(path);
    if paths.len() != count as usize {
        let expected = format!("name-00001-of-{count:05}.gguf, by which the other parts are found");
        return Err(file.format_error("split.count", format!("{count} parts, but the file is not called {expected}")));
    }
    let (mut first, mut all, mut files) = (None, Vec::new(), Vec::new());
    for (number, path) in (0..).zip(&paths) {
        let file = MappedFile::open(path)?;
        let (metadata, tensors) = parse(&file)?;
        let said = (metadata.whole("split.no"), metadata.whole("split.count"));
        if said != (Some(number), Some(count)) {
            let problem = format!("part {:?} of {:?}, expected part {number} of {count}", said.0, said.1);
            return Err(file.format_error("split.no", problem));
        }
        all.extend(tensors.into_iter().map(|info| Info { file: number as usize, ..info }));
        files.push(file);
        first.get_or_insert(metadata);
    }
    let metadata = first.expect("there are at least two parts");
    match metadata.whole("split.tensors.count") {
        Some(expected) if expected as usize != all.len() => {
            let problem = format!("{expected} tensors, but the {count} parts have {}", all.len());
            Err(Error::Format { path: path.to_path_buf(), at: "split.tensors.count".into(), problem })
        }
        _ => Ok((metadata, all, files)),
    }
}

/// What `stem-00002-of-00003.gguf` says: the stem, 2 and 3.
fn part_name(path: &Path) -> Option<(String, u32, u32)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, of) = name.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let parse = |digits: &str| digits.parse().ok().filter(|_| digits.len() == 5);
    Some((stem.to_owned(), parse(number)?, parse(of)?))
}

/// All parts of the model that a file is by its name a part of; the file itself if it is none.
pub(in crate::checkpoint) fn siblings(path: &Path) -> Vec<PathBuf> {
    let Some((stem, _, of)) = part_name(path) else { return vec![path.to_path_buf()] };
    (1..=of).map(|number| path.with_file_name(format!("{stem}-{number:05}-of-{of:05}.gguf"))).collect()
}

/// Whether a file is by its name a part of a model after the first.
pub(in crate::checkpoint) fn is_later_part(path: &Path) -> bool {
    part_name(path).is_some_and(|(_, number, _)| number > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let of = |name: &str| part_name(Path::new(name));
        assert_eq!(of("a/x-y-00002-of-00003.gguf"), Some(("x-y".into(), 2, 3)));
        for other in
            ["x.gguf", "x-00002-of-00003.bin", "x-2-of-3.gguf", "x-00002-of-0000three.gguf", "00002-of-00003.gguf"]
        {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(is_later_part("x-00002-of-00003.gguf".as_ref()) && !is_later_part("x-00001-of-00003.gguf".as_ref()));
        let all = siblings("a/x-00002-of-00002.gguf".as_ref());
        assert_eq!(all, ["a/x-00001-of-00002.gguf", "a/x-00002-of-00002.gguf"].map(PathBuf::from));
        assert_eq!(siblings("a/x.gguf".as_ref()), [PathBuf::from("a/x.gguf")]);
    }
}
