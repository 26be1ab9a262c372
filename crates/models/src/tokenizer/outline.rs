//! Checks of a `tokenizer.json` before the `tokenizers` library sees it: it panics on some merges whose result is not in
//! the vocabulary and on templates with tokens they do not define, and lets two tokens share an id.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::problem;
use crate::checkpoint::json::{Unique, parse};
use crate::{Error, Result};

/// The largest vocabularies have some hundred thousand tokens. An id beyond this is a mistake, and a table by id would
/// take all memory.
const MAX_ID: u32 = 1 << 24;

/// Tokens and their ids.
pub(super) type Vocabulary = HashMap<String, u32>;

/// Checks that no two tokens share an id and none is out of all bounds.
pub(super) fn check_ids(source: &Path, tokens: Vec<(String, u32)>) -> Result<Vocabulary> {
    let mut by_id: Vec<(u32, &str)> = tokens.iter().map(|(token, id)| (*id, token.as_str())).collect();
    by_id.sort_unstable();
    if let Some(pair) = by_id.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(problem(source, format!("{:?} and {:?} both have the id {}", pair[0].1, pair[1].1, pair[0].0)));
    }
    if let Some((id, token)) = by_id.last().filter(|(id, _)| *id > MAX_ID) {
        return Err(problem(source, format!("{token:?} has the id {id}, expected at most {MAX_ID}")));
    }
    Ok(tokens.into_iter().collect())
}

/// Checks that every merge joins two tokens to a third; `prefix` is what the second one loses on joining.
pub(super) fn check_merges(
    source: &Path,
    vocabulary: &Vocabulary,
    merges: &[(String, String)],
    prefix: &str,
) -> Result<()> {
    let mut joined = String::new();
    for (rank, (a, b)) in merges.iter().enumerate() {
        let absent = |token: &str| {
            let problem_is =
                format!("merge {rank}, {a:?} with {b:?}, needs the token {token:?}, which is not in the vocabulary");
            problem(source, problem_is)
        };
        for token in [a, b] {
            if !vocabulary.contains_key(token) {
                return Err(absent(token));
            }
        }
        joined.clear();
        joined.push_str(a);
        joined.push_str(b.strip_prefix(prefix).ok_or_else(|| absent(&format!("{prefix}{b}")))?);
        if !vocabulary.contains_key(&joined) {
            return Err(absent(&joined));
        }
    }
    Ok(())
}

/// The parts of a `tokenizer.json` that are checked.
#[derive(Deserialize)]
struct Outline {
    model: Model,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    post_processor: Value,
    // Read for their syntax alone: on a text that is none, such as half a surrogate pair, the library panics.
    #[serde(default, rename = "decoder")]
    _decoder: Value,
    #[serde(default, rename = "normalizer")]
    _normalizer: Value,
    #[serde(default, rename = "pre_tokenizer")]
    _pre_tokenizer: Value,
}

#[derive(Deserialize)]
struct Model {
    vocab: Unique<String, u32>,
    #[serde(default)]
    merges: Option<Merges>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
}

/// Merges are pairs, or in older files texts with a space between the two.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merges {
    Pairs(Vec<(String, String)>),
    Lines(Vec<String>),
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

/// Just enough to know the kind: Unigram's vocabulary has another form.
#[derive(Deserialize)]
struct Kind {
    model: KindOfModel,
}

#[derive(Deserialize)]
struct KindOfModel {
    r#type: Option<String>,
    #[serde(default)]
    merges: Option<IgnoredAny>,
}

/// Checks a `tokenizer.json`, and gives its added tokens with the ids they claim.
pub(super) fn check(source: &Path, json: &[u8]) -> Result<Vec<(String, u32)>> {
    let Kind { model } = parse(source, json)?;
    let bpe = match model.r#type.as_deref() {
        Some("BPE") => true,
        Some("WordPiece" | "WordLevel") => false,
        None => model.merges.is_some(),
        Some(other) => {
            return Err(problem(source, format!("its model is {other:?}, expected BPE, WordPiece or WordLevel")));
        }
    };
    let Outline { model, added_tokens, post_processor, .. } = parse(source, json)?;
    check_template(source, &post_processor)?;
    let vocabulary = check_ids(source, model.vocab.0)?;
    if let (Some(merges), true) = (model.merges, bpe) {
        let merges = match merges {
            Merges::Pairs(pairs) => pairs,
            Merges::Lines(lines) => pairs(source, lines.iter().map(String::as_str))?,
        };
        check_merges(source, &vocabulary, &merges, model.continuing_subword_prefix.as_deref().unwrap_or(""))?;
    }
    check_added(source, &vocabulary, &added_tokens)?;
    Ok(added_tokens.into_iter().map(|token| (token.content, token.id)).collect())
}

fn check_added(source: &Path, vocabulary: &Vocabulary, added: &[Added]) -> Result<()> {
    let ids: HashSet<u32> = vocabulary.values().copied().collect();
    let mut seen = HashSet::new();
    for Added { id, content } in added {
        let expected = vocabulary.get(content);
        let clash = expected.is_none_or(|expected| expected != id) && ids.contains(id);
        if expected.is_some_and(|expected| expected != id) || clash || !seen.insert(id) || *id > MAX_ID {
            return Err(problem(
                source,
                format!("the added token {content:?} cannot have the id {id}: it is taken or absurd"),
            ));
        }
    }
    Ok(())
}

/// Every token that a template puts around a text must be among its `special_tokens`.
fn check_template(source: &Path, processor: &Value) -> Result<()> {
    for inner in processor["processors"].as_array().into_iter().flatten() {
        check_template(source, inner)?;
    }
    for piece in ["single", "pair"].into_iter().filter_map(|part| processor[part].as_array()).flatten() {
        if let Some(id) = piece["SpecialToken"]["id"].as_str()
            && processor["special_tokens"][id].is_null()
        {
            return Err(problem(source, format!("its template has the token {id:?}, but does not say what that is")));
        }
    }
    Ok(())
}

/// Lines of two tokens with a space between them.
pub(super) fn pairs<'a>(source: &Path, lines: impl Iterator<Item = &'a str>) -> Result<Vec<(String, String)>> {
    let pair = |line: &str| match line.split_once(' ') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains(' ') => Ok((a.to_owned(), b.to_owned())),
        _ => Err::<_, Error>(problem(source, format!("the merge {line:?}, expected two tokens and a space between"))),
    };
    lines.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str, part: &str) {
        let error = check(Path::new("tokenizer.json"), json.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let bpe = |vocab: &str, merges: &str| {
            format!(r#"{{"model": {{"type": "BPE", "vocab": {vocab}, "merges": {merges}}}}}"#)
        };
        assert!(check(Path::new("t"), bpe(r#"{"a": 0, "b": 1, "ab": 2}"#, r#"["a b"]"#).as_bytes()).is_ok());
        assert!(check(Path::new("t"), bpe(r#"{"a": 0, "b": 1, "ab": 2}"#, r#"[["a", "b"]]"#).as_bytes()).is_ok());
        refused(&bpe(r#"{"a": 0, "b": 1}"#, r#"["a b"]"#), "\"ab\", which is not in the vocabulary");
        refused(&bpe(r#"{"a": 0}"#, r#"["a b"]"#), "\"b\", which is not in the vocabulary");
        refused(&bpe(r#"{"a": 0}"#, r#"["a"]"#), "expected two tokens");
        refused(&bpe(r#"{"a": 0, "b": 0}"#, "[]"), "both have the id 0");
        refused(&bpe(r#"{"a": 0, "a": 1}"#, "[]"), "there twice");
        refused(&bpe(r#"{"a": 4000000000}"#, "[]"), "expected at most");
        refused(&bpe(r#"{"a": -1}"#, "[]"), "JSON that belongs here");
        refused(&bpe(r#"{"a": 1e30}"#, "[]"), "JSON that belongs here");
        refused(r#"{"model": {"type": "Unigram", "vocab": [["a", 0.5]]}}"#, "expected BPE, WordPiece");
        refused(
            r#"{"added_tokens": [{"id": 0, "content": "x"}], "model": {"type": "WordLevel", "vocab": {"a": 0}}}"#,
            "cannot have the id 0",
        );
        refused("{}", "missing field `model`");
    }

    #[test]
    fn half_a_surrogate_pair_is_an_error_in_every_section() {
        for section in ["decoder", "normalizer", "pre_tokenizer", "post_processor"] {
            let json = |text: &str| {
                format!(
                    r#"{{"model": {{"type": "WordLevel", "vocab": {{"a": 0}}}}, "{section}": {{"type": "{text}"}}}}"#
                )
            };
            let checked = |text: &str| check(Path::new("tokenizer.json"), json(text).as_bytes());
            assert!(checked("Fuse").is_ok() && checked("\\ud800").is_err(), "{section}");
        }
    }
}
