//! Weights in safetensors: one file, or several with an index that says which tensor is in which.
//!
//! The `safetensors` crate checks the header: its length, that it is UTF-8 and JSON of known types, that the tensors
//! fill the file without holes or overlaps, and that shape times type is the number of bytes. What it does not check is
//! added here: keys that are there twice, and offsets so large that adding the header's length wraps around.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde::Deserialize;

use super::file::MappedFile;
use super::json::{Unique, parse, read_bounded};
use super::{Dtype, Error};
use crate::Result;

/// An index has a line for each tensor; those of the largest models have some hundred kilobytes.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// A tensor as its file describes it.
pub(super) struct Info {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: Dtype,
    /// Where its bytes are in the file.
    pub(super) range: Range<usize>,
}

/// The tensors of one file, and what it says about itself.
pub(super) fn read(file: &MappedFile) -> Result<(Vec<Info>, BTreeMap<String, String>)> {
    check_keys(file)?;
    let (header, metadata) = SafeTensors::read_metadata(file.bytes()).map_err(|error| {
        let at = match &error {
            safetensors::SafeTensorError::InvalidOffset(name) => format!("offsets of tensor {name}"),
            _ => "header".into(),
        };
        file.format_error(at, error.to_string())
    })?;
    let data = 8 + header;
    let infos = metadata.tensors().into_iter().map(|(name, info)| Info {
        name,
        shape: info.shape.clone(),
        dtype: info.dtype.into(),
        range: data + info.data_offsets.0..data + info.data_offsets.1,
    });
    let infos = infos.collect();
    let stated = metadata.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    Ok((infos, stated.collect()))
}

/// What is looked at of each entry before the `safetensors` crate looks at the rest.
#[derive(Deserialize)]
struct Place {
    data_offsets: Option<(u64, u64)>,
}

fn check_keys(file: &MappedFile) -> Result<()> {
    let bytes = file.bytes();
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(file.format_error("header", format!("{} bytes, expected at least 8", bytes.len())));
    };
    let length = u64::from_le_bytes(*length);
    let Some(header) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
        return Err(file.format_error("header", format!("its length is {length}, but {} bytes are left", rest.len())));
    };
    let Unique(entries) = serde_json::from_slice::<Unique<String, Place>>(header)
        .map_err(|error| file.format_error("header", format!("not the JSON that belongs here: {error}")))?;
    let data = (rest.len() - header.len()) as u64;
    for (name, place) in entries {
        if let Some((start, end)) = place.data_offsets
            && (start > end || end > data)
        {
            let problem = format!("{start} to {end}, but there are {data} bytes of data");
            return Err(file.format_error(format!("offsets of tensor {name}"), problem));
        }
    }
    Ok(())
}

/// `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    weight_map: Unique<String, String>,
}

/// The files that an index names, each with the tensors it must hold.
pub(super) fn shards(index: &Path) -> Result<BTreeMap<PathBuf, Vec<String>>> {
    let Index { weight_map: Unique(entries) } = parse(index, &read_bounded(index, MAX_INDEX_BYTES)?)?;
    let folder = index.parent().unwrap_or(Path::new(""));
    let mut shards: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for (tensor, shard) in entries {
        if !is_file_name(&shard) {
            return Err(Error::Format {
                path: index.to_path_buf(),
                at: format!("weight_map of tensor {tensor}"),
                problem: format!("{shard:?}, expected the name of a .safetensors file in the same folder"),
            });
        }
        shards.entry(folder.join(shard)).or_default().push(tensor);
    }
    Ok(shards)
}

/// A name within the folder: no way out of it, on any system.
fn is_file_name(name: &str) -> bool {
    name.ends_with(".safetensors") && !name.starts_with('.') && !name.contains(['/', '\\', ':', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_a_name_in_the_folder() {
        assert!(is_file_name("model-00001-of-00002.safetensors"));
        for bad in [
            "",
            "../x.safetensors",
            "/x.safetensors",
            "a/x.safetensors",
            "C:x.safetensors",
            "x.bin",
            "..\\x.safetensors",
        ] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
    }
}
