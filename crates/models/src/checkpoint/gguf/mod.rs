//! GGUF, the file format of llama.cpp: metadata, then the places of the tensors, then the tensors.
//!
//! ```text
//! "GGUF"  version:u32  tensors:u64  values:u64
//! values ×  ( key:text  type:u32  value )
//! tensors × ( name:text  dims:u32  dim:u64 ×dims  type:u32  offset:u64 )     innermost dimension first
//! padding to the alignment
//! data                                                                       offsets count from here
//! ```
//!
//! A text is a length (u64) and UTF-8. All of it is checked on opening, before anything is allocated for it: lengths
//! against the rest of the file, shapes against bytes, tensors against one another.

mod config;
mod cursor;
mod names;
mod parts;
mod value;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use self::cursor::{Cursor, Problem};
pub(super) use self::parts::{is_later_part, siblings};
pub(crate) use self::value::{Kind, Value};
use super::file::MappedFile;
use super::{Config, Dtype};
use crate::Result;

/// Where the tensors begin to be aligned, unless `general.alignment` says otherwise.
const ALIGNMENT: usize = 32;

/// The metadata of a GGUF file.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    file: MappedFile,
    values: BTreeMap<String, Value>,
}

/// A tensor as the file describes it.
#[derive(Debug)]
pub(super) struct Info {
    /// GGUF's name for it.
    pub(super) name: String,
    /// Its shape, outermost dimension first.
    pub(super) shape: Vec<usize>,
    pub(super) dtype: Dtype,
    /// Which of the files it is in, and where its bytes are there.
    pub(super) file: usize,
    pub(super) range: Range<usize>,
}

/// A whole model: its metadata, the configuration under Hugging Face's names, the tensors under theirs, and the files that
/// they are in, of which there are several if it was split.
pub(super) struct Opened {
    pub(super) metadata: Metadata,
    pub(super) config: Config,
    pub(super) tensors: Vec<names::Named>,
    pub(super) files: Vec<MappedFile>,
}

pub(super) fn open(path: &Path) -> Result<Opened> {
    let (metadata, tensors, files) = parts::open(path)?;
    let config = config::from_metadata(&metadata, &tensors)?;
    let tensors = names::to_hugging_face(&metadata, &config, tensors)?;
    Ok(Opened { metadata, config, tensors, files })
}

fn parse(file: &MappedFile) -> Result<(Metadata, Vec<Info>)> {
    let mut cursor = Cursor::new(file.bytes());
    let (tensors, values) = header(&mut cursor).map_err(|problem| file.format_error("header", problem))?;
    let mut map = BTreeMap::new();
    for i in 0..values {
        let key = cursor.text().map_err(|problem| file.format_error(format!("key of metadata value {i}"), problem))?;
        let value = value::read(&mut cursor).map_err(|problem| file.format_error(key, problem))?;
        if map.insert(key.to_owned(), value).is_some() {
            return Err(file.format_error(key, "the key is there twice"));
        }
    }
    let metadata = Metadata { file: file.clone(), values: map };
    let alignment = match metadata.values.get("general.alignment") {
        None => ALIGNMENT,
        Some(&Value::Whole(n)) if (1..=1 << 20).contains(&n) && n.count_ones() == 1 => n as usize,
        Some(other) => {
            return Err(file.format_error("general.alignment", format!("{other:?}, expected a power of two")));
        }
    };
    let mut infos = Vec::new();
    for i in 0..tensors {
        infos.push(info(&mut cursor, alignment).map_err(|(name, problem)| {
            file.format_error(name.map_or_else(|| format!("tensor {i}"), |name| format!("tensor {name}")), problem)
        })?);
    }
    place(&mut infos, cursor.position().next_multiple_of(alignment), alignment, file)?;
    Ok((metadata, infos))
}

/// The numbers of tensors and of metadata values.
fn header(cursor: &mut Cursor<'_>) -> Result<(usize, usize), Problem> {
    let magic = cursor.take(4)?;
    if magic != b"GGUF" {
        return Err(format!("the file begins with {:?}, expected \"GGUF\"", String::from_utf8_lossy(magic)));
    }
    match cursor.u32()? {
        2 | 3 => {}
        1 => return Err("version 1 is out of use; convert the file anew with llama.cpp".into()),
        version if (1..=3).contains(&version.swap_bytes()) => {
            return Err("the file is big-endian, expected little-endian".into());
        }
        version => return Err(format!("version {version}, expected 2 or 3")),
    }
    // A tensor takes a name's length, dims, type and offset at least; a value a key's length, a type and a byte.
    Ok((cursor.count(24)?, cursor.count(13)?))
}

/// One tensor. Its range is that of its bytes within the data, until [`place`] moves it to where the data is. The
/// error comes with the tensor's name, if that was still readable.
fn info(cursor: &mut Cursor<'_>, alignment: usize) -> Result<Info, (Option<String>, Problem)> {
    let name = cursor.text().map_err(|problem| (None, problem))?.to_owned();
    let rest = |cursor: &mut Cursor<'_>| {
        let dims = cursor.u32()? as usize;
        if !(1..=4).contains(&dims) {
            return Err(format!("{dims} dimensions, expected 1 to 4"));
        }
        let mut shape = Vec::with_capacity(dims);
        for _ in 0..dims {
            let dim = cursor.u64()?;
            shape.push(usize::try_from(dim).map_err(|_| format!("a dimension of {dim}"))?);
        }
        shape.reverse();
        let (dtype, block) = dtype(cursor.u32()?)?;
        let offset = cursor.u64()?;
        let length = length(&shape, dtype, block)?;
        let start = usize::try_from(offset).ok().filter(|start| start.is_multiple_of(alignment));
        let start = start.ok_or_else(|| format!("its offset is {offset}, expected a multiple of {alignment}"))?;
        let end = start.checked_add(length).ok_or_else(|| format!("its offset is {offset}, past every file"))?;
        Ok((shape, dtype, start..end))
    };
    match rest(cursor) {
        Ok((shape, dtype, range)) => Ok(Info { name, shape, dtype, file: 0, range }),
        Err(problem) => Err((Some(name), problem)),
    }
}

/// A type by its number, with how many numbers make a block and how many bytes a block takes.
fn dtype(number: u32) -> Result<(Dtype, (usize, usize)), Problem> {
    let read = Dtype::GGUF.into_iter().find(|&(known, _)| known == number);
    let read = read.and_then(|(_, dtype)| Some((dtype, dtype.block()?)));
    let unread = || Dtype::GGUF_UNREAD.into_iter().find(|&(known, ..)| known == number);
    read.or_else(|| unread().map(|(_, name, block)| (Dtype::Other(name), block)))
        .ok_or_else(|| format!("it has GGUF's type number {number}, which no version of llama.cpp known here has"))
}

/// The bytes that a tensor takes.
fn length(shape: &[usize], dtype: Dtype, (block, block_bytes): (usize, usize)) -> Result<usize, Problem> {
    let row = *shape.last().expect("a tensor has a dimension");
    if !row.is_multiple_of(block) {
        return Err(format!("rows of {row} numbers, expected a multiple of {block} for {dtype}"));
    }
    let count = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    let bytes = count.and_then(|count| (count / block).checked_mul(block_bytes));
    bytes.ok_or_else(|| format!("shape {shape:?} has more numbers than can be counted"))
}

/// Moves every range to where the data begins, and checks that the tensors fill the data: no two on the same bytes,
/// nothing between them but padding, none past the end, none twice.
fn place(infos: &mut [Info], data: usize, alignment: usize, file: &MappedFile) -> Result<()> {
    let mut order: Vec<usize> = (0..infos.len()).collect();
    order.sort_unstable_by(|&a, &b| infos[a].name.cmp(&infos[b].name));
    if let Some(pair) = order.windows(2).find(|pair| infos[pair[0]].name == infos[pair[1]].name) {
        return Err(file.format_error(format!("tensor {}", infos[pair[0]].name), "it is there twice"));
    }
    order.sort_unstable_by_key(|&i| (infos[i].range.start, infos[i].range.end));
    let mut expected = 0;
    for i in order {
        let Info { name, range, .. } = &mut infos[i];
        if range.start != expected {
            let problem = if range.start < expected { "it overlaps the tensor before it" } else { "a hole before it" };
            return Err(
                file.format_error(format!("tensor {name}"), format!("its offset is {}: {problem}", range.start))
            );
        }
        let end = data.checked_add(range.end).filter(|&end| end <= file.bytes().len()).ok_or_else(|| {
            let there = file.bytes().len().saturating_sub(data);
            file.format_error(
                format!("tensor {name}"),
                format!("it ends at byte {} of {there} bytes of data", range.end),
            )
        })?;
        expected = range.end.next_multiple_of(alignment);
        *range = data + range.start..end;
    }
    Ok(())
}

impl Metadata {
    pub(crate) fn file(&self) -> &MappedFile {
        &self.file
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// All keys that begin with a name and a dot.
    pub(crate) fn under(&self, name: &str) -> impl Iterator<Item = (&str, &Value)> {
        let prefix = format!("{name}.");
        let values = self.values.range(prefix.clone()..);
        values.take_while(move |(key, _)| key.starts_with(&prefix)).map(|(key, value)| (key.as_str(), value))
    }

    /// A text, if the key is there and holds one.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(range) => std::str::from_utf8(&self.file.bytes()[range.clone()]).ok(),
            _ => None,
        }
    }

    /// A whole number from 0 to u32::MAX, if the key is there and holds one.
    pub(crate) fn whole(&self, key: &str) -> Option<u32> {
        match self.get(key)? {
            Value::Whole(n) => u32::try_from(*n).ok(),
            _ => None,
        }
    }

    /// A truth value, if the key is there and holds one.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The elements of an array of texts, if the key is there and holds one.
    pub(crate) fn texts(&self, key: &str) -> Option<impl Iterator<Item = &str>> {
        match self.get(key)? {
            Value::Array(Kind::Text, count, range) => Some(value::texts(&self.file.bytes()[range.clone()], *count)),
            _ => None,
        }
    }

    /// The elements of an array of numbers, if the key is there and holds one.
    pub(crate) fn numbers(&self, key: &str) -> Option<impl Iterator<Item = Value>> {
        match self.get(key)? {
            Value::Array(Kind::Text | Kind::Array | Kind::Bool, ..) => None,
            Value::Array(kind, _, range) => Some(value::numbers(*kind, &self.file.bytes()[range.clone()])),
            _ => None,
        }
    }
}
