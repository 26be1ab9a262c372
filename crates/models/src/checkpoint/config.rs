//! A model's configuration, read with care. Hugging Face's `config.json` is JSON that anyone may have edited, so every
//! value is checked as it is read, and the error names the file, the key, what was expected and what was there.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::json::{Unique, parse, read_bounded};
use crate::{Error, Result};

/// Real ones have some kilobytes; those with a thousand class names some tens.
const MAX_BYTES: u64 = 4 << 20;

/// No size in a configuration (width, heads, layers, vocabulary, positions) comes near this.
const MAX_SIZE: u64 = 1 << 28;

/// The configuration of a model, under Hugging Face's key names.
///
/// A key whose value is `null` counts as absent, as `transformers` writes it for "the default".
///
/// ```
/// # use foveal_models::Config;
/// let config = Config::from_json("config.json", br#"{"hidden_size": 576, "num_attention_heads": 9}"#)?;
/// assert_eq!(config.size("hidden_size")?, 576);
/// assert_eq!(config.divisor("num_attention_heads", "hidden_size")?, 9);
/// assert_eq!(config.float_or("rms_norm_eps", 1e-6)?, 1e-6);
/// let error = config.size("num_hidden_layers").unwrap_err();
/// assert_eq!(error.to_string(), "config.json: num_hidden_layers is absent, expected a whole number from 1 to 268435456");
/// # Ok::<(), foveal_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    path: PathBuf,
    /// What stands before each key in an error, for a section.
    prefix: String,
    values: Map<String, Value>,
}

impl Config {
    /// Wraps values; `path` is what errors name as their source.
    pub fn new(path: impl Into<PathBuf>, values: Map<String, Value>) -> Self {
        Config { path: path.into(), prefix: String::new(), values }
    }

    /// Reads a `config.json`.
    ///
    /// # Errors
    /// If it cannot be read, is over 4 MiB, is not JSON, is not an object or has a key twice.
    pub fn read(path: &Path) -> Result<Self> {
        Config::from_json(path, &read_bounded(path, MAX_BYTES)?)
    }

    /// Parses the text of a `config.json`; `path` is what errors name as their source.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_json(path: impl Into<PathBuf>, bytes: &[u8]) -> Result<Self> {
        let path = path.into();
        let Unique(values) = parse::<Unique<String, Value>>(&path, bytes)?;
        Ok(Config::new(path, values.into_iter().collect()))
    }

    /// Where the configuration comes from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All values, as JSON.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// The value of a key, if it is there and not `null`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// A width, a count: a whole number from 1 to 2²⁸.
    ///
    /// # Errors
    /// If the key is absent or its value anything else.
    pub fn size(&self, key: &str) -> Result<usize> {
        self.required(key, &size_range(1), |value| whole(value, 1))
    }

    /// As [`size`](Self::size), with a value for when the key is absent.
    ///
    /// # Errors
    /// If the value is no such number.
    pub fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        self.optional(key, &size_range(1), |value| whole(value, 1)).map(|value| value.unwrap_or(default))
    }

    /// A token id or an index: a whole number from 0 to 2²⁸, if the key is there.
    ///
    /// # Errors
    /// If the value is no such number.
    pub fn index(&self, key: &str) -> Result<Option<usize>> {
        self.optional(key, &size_range(0), |value| whole(value, 0))
    }

    /// A size that divides another one evenly, as the number of heads divides the width.
    ///
    /// # Errors
    /// If either is absent or no size, or the first does not divide the second.
    pub fn divisor(&self, key: &str, of: &str) -> Result<usize> {
        let (size, whole) = (self.size(key)?, self.size(of)?);
        if !whole.is_multiple_of(size) {
            return Err(self.error(key, format!("a divisor of {of} = {whole}"), size));
        }
        Ok(size)
    }

    /// A number.
    ///
    /// # Errors
    /// If the key is absent or its value is no number.
    pub fn float(&self, key: &str) -> Result<f64> {
        self.required(key, "a number", Value::as_f64)
    }

    /// As [`float`](Self::float), with a value for when the key is absent.
    ///
    /// # Errors
    /// If the value is no number.
    pub fn float_or(&self, key: &str, default: f64) -> Result<f64> {
        self.optional(key, "a number", Value::as_f64).map(|value| value.unwrap_or(default))
    }

    /// `true` or `false`, with a value for when the key is absent.
    ///
    /// # Errors
    /// If the value is neither.
    pub fn flag_or(&self, key: &str, default: bool) -> Result<bool> {
        self.optional(key, "true or false", Value::as_bool).map(|value| value.unwrap_or(default))
    }

    /// A text.
    ///
    /// # Errors
    /// If the key is absent or its value is no text.
    pub fn text(&self, key: &str) -> Result<&str> {
        self.required(key, "a text", Value::as_str)
    }

    /// As [`text`](Self::text), with a value for when the key is absent.
    ///
    /// # Errors
    /// If the value is no text.
    pub fn text_or<'a>(&'a self, key: &str, default: &'a str) -> Result<&'a str> {
        self.optional(key, "a text", Value::as_str).map(|value| value.unwrap_or(default))
    }

    /// An object within the configuration, such as `rope_scaling`, if the key is there.
    ///
    /// # Errors
    /// If the value is no object.
    pub fn section(&self, key: &str) -> Result<Option<Config>> {
        let values = self.optional(key, "an object", Value::as_object)?;
        Ok(values.map(|values| Config {
            path: self.path.clone(),
            prefix: format!("{}{key}.", self.prefix),
            values: values.clone(),
        }))
    }

    /// The error for a value that was read well but does not fit: what it may be, and what it was.
    pub fn error(&self, key: &str, expected: impl Into<String>, got: impl std::fmt::Display) -> Error {
        Error::Config {
            path: self.path.clone(),
            key: format!("{}{key}", self.prefix),
            expected: expected.into(),
            got: got.to_string(),
        }
    }

    fn required<'a, T>(&'a self, key: &str, expected: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<T> {
        self.optional(key, expected, read)?.ok_or_else(|| self.error(key, expected, "absent"))
    }

    fn optional<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.error(key, expected, shown(value)))
    }
}

fn size_range(from: u64) -> String {
    format!("a whole number from {from} to {MAX_SIZE}")
}

fn whole(value: &Value, from: u64) -> Option<usize> {
    value.as_u64().filter(|size| (from..=MAX_SIZE).contains(size)).map(|size| size as usize)
}

/// The value as it stands in the file, cut where it would fill the screen.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Config {
        Config::from_json("config.json", json.as_bytes()).unwrap()
    }

    #[test]
    fn a_size_is_a_positive_whole_number_of_sane_size() {
        for bad in ["0", "-3", "12.0", "12.5", "\"12\"", "1e18", "1000000000000000000", "true", "[12]", "{}"] {
            let error = config(&format!(r#"{{"n": {bad}}}"#)).size("n").unwrap_err();
            assert!(matches!(&error, Error::Config { key, .. } if key == "n"), "{bad}: {error}");
            assert!(config(&format!(r#"{{"n": {bad}}}"#)).size_or("n", 3).is_err(), "{bad}");
        }
        assert_eq!(config(r#"{"n": 12}"#).size("n").unwrap(), 12);
        assert_eq!(config(r#"{"n": null}"#).size_or("n", 7).unwrap(), 7);
        assert_eq!(config("{}").index("n").unwrap(), None);
        assert_eq!(config(r#"{"n": 0}"#).index("n").unwrap(), Some(0));
        assert!(config(r#"{"n": -1}"#).index("n").is_err());
    }

    #[test]
    fn each_kind_refuses_the_others() {
        let config = config(r#"{"size": 3, "eps": 1e-5, "flag": true, "text": "gelu", "scaling": {"factor": "x"}}"#);
        assert_eq!(config.float("size").unwrap(), 3.0);
        assert_eq!(config.float("eps").unwrap(), 1e-5);
        assert!(config.flag_or("flag", false).unwrap());
        assert_eq!(config.text("text").unwrap(), "gelu");
        assert!(config.float("text").is_err() && config.text("flag").is_err() && config.flag_or("size", true).is_err());
        let error = config.section("scaling").unwrap().unwrap().float("factor").unwrap_err().to_string();
        assert_eq!(error, "config.json: scaling.factor is \"x\", expected a number");
        assert!(config.section("text").is_err() && config.section("other").unwrap().is_none());
    }

    #[test]
    fn heads_that_do_not_divide_the_width_are_named() {
        let error = config(r#"{"heads": 5, "width": 12}"#).divisor("heads", "width").unwrap_err().to_string();
        assert_eq!(error, "config.json: heads is 5, expected a divisor of width = 12");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bad in ["", "[]", "3", "{", "{\"a\": 1, \"a\": 2}", "\u{0}", "{\"a\": NaN}"] {
            assert!(Config::from_json("config.json", bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
