//! JSON from files that nobody vouches for: bounded in size, and no key twice.
//!
//! A parsed JSON value takes up to some thirty times the room of its text, so the text is bounded first. Of two equal
//! keys `serde_json` keeps the last, other readers the first: a file that has both means different things to different
//! programs, and is refused.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::{Error, Result};

/// The bytes of a file of at most `limit` bytes, without the byte order mark that some editors put in front.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let io = |source| Error::Io { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut bytes = Vec::new();
    // One byte past the limit, so that a file that grows meanwhile, or has no length at all, is noticed too.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > limit {
        return Err(Error::Format {
            path: path.to_path_buf(),
            at: "the whole file".into(),
            problem: format!("{} bytes, expected at most {limit}", length.max(bytes.len() as u64)),
        });
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    Ok(bytes)
}

/// Parses a whole file's bytes.
pub(crate) fn parse<'a, T: Deserialize<'a>>(path: &Path, bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Format {
        path: path.to_path_buf(),
        at: format!("line {} column {}", error.line(), error.column()),
        problem: format!("not the JSON that belongs here: {error}"),
    })
}

/// The entries of a JSON object in their order, none of them twice.
pub(crate) struct Unique<K, V>(pub(crate) Vec<(K, V)>);

impl<'de, K, V> Deserialize<'de> for Unique<K, V>
where
    K: Deserialize<'de> + AsRef<str>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for UniqueVisitor<K, V>
where
    K: Deserialize<'de> + AsRef<str>,
    V: Deserialize<'de>,
{
    type Value = Unique<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut entries: Vec<(K, V)> = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(serde::de::Error::custom(format!("the key {:?} is there twice", pair[0])));
        }
        Ok(Unique(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_is_refused() {
        let parse = |text: &str| parse::<Unique<String, i32>>(Path::new("x.json"), text.as_bytes()).map(|u| u.0.len());
        assert_eq!(parse(r#"{"a": 1, "b": 2}"#).unwrap(), 2);
        let error = parse(r#"{"a": 1, "\u0061": 2}"#).unwrap_err().to_string();
        assert!(error.contains("\"a\" is there twice"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_length_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, b"\xef\xbb\xbf{}").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"{}");
        assert!(read_bounded(&path, 4).is_err());
    }
}
