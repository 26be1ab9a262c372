//! The tokenizer in a GGUF file's metadata: a list of tokens, for some kinds a list of merges or scores, and the name of
//! the rule by which text is cut into words before.

use std::collections::HashMap;
use std::path::Path;

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::replace::Replace;
use tokenizers::normalizers::{Prepend, Sequence as Normalizers};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, PreTokenizerWrapper, Tokenizer as Inner};

use super::around::Around;
use super::files::{byte_level, word_piece};
use super::settings::Letters;
use super::{SpecialTokens, Tokenizer, outline, problem};
use crate::Result;
use crate::checkpoint::gguf::{Metadata, Value};

/// What GGUF says of each token, as far as it matters here.
const CONTROL: i128 = 3;
const USER_DEFINED: i128 = 4;

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(super) fn from_metadata(metadata: &Metadata) -> Result<Tokenizer> {
    let source = metadata.file().path();
    let Some(tokens) = metadata.texts("tokenizer.ggml.tokens") else {
        return Err(problem(source, "its metadata has no tokenizer.ggml.tokens"));
    };
    let tokens: Vec<String> = tokens.map(str::to_owned).collect();
    let types = types(metadata, tokens.len())?;
    let mut special = SpecialTokens::from_ids(tokens.len(), source, |role| role_id(metadata, role))?;
    let (mut inner, begins) = match metadata.text("tokenizer.ggml.model") {
        Some("gpt2") => {
            let pre = Pre::of(source, metadata.text("tokenizer.ggml.pre"))?;
            (gpt2(metadata, &tokens, &pre)?, pre.begins)
        }
        Some("llama") => {
            // The ids that llama.cpp takes for granted of this kind.
            let known = |id: u32| Some(id).filter(|&id| (id as usize) < tokens.len());
            special.unk = special.unk.or_else(|| known(0));
            special.bos = special.bos.or_else(|| known(1));
            special.eos = special.eos.or_else(|| known(2));
            (sentence_piece(metadata, &tokens, special.unk)?, true)
        }
        Some("bert") => {
            let lowercase = metadata.flag("tokenizer.ggml.lowercase").unwrap_or(true);
            let letters = Letters { lowercase, ..Letters::default() };
            let inner = word_piece(source, hash_marks(&tokens, &types), letters)?;
            special.fill_by_name(|token| inner.token_to_id(token));
            return Tokenizer::new(inner, special, source);
        }
        other => {
            let other = other.unwrap_or("absent");
            return Err(problem(source, format!("tokenizer.ggml.model is {other}, expected gpt2, llama or bert")));
        }
    };
    for (kind, special) in [(CONTROL, true), (USER_DEFINED, false)] {
        let added = tokens.iter().zip(&types).filter(|(token, of)| **of == kind && !token.is_empty());
        let added: Vec<_> = added.map(|(token, _)| AddedToken::from(token, special).normalized(false)).collect();
        inner.add_tokens(added).map_err(|error| problem(source, error))?;
    }
    let around = Around {
        begin: role(metadata, "add_bos_token", begins, special.bos, "tokenizer.ggml.bos_token_id")?,
        end: role(metadata, "add_eos_token", false, special.eos, "tokenizer.ggml.eos_token_id")?,
    };
    around.apply(&mut inner, source)?;
    Tokenizer::new(inner, special, source)
}

/// The type of each token; all are plain where the file does not say.
fn types(metadata: &Metadata, count: usize) -> Result<Vec<i128>> {
    let key = "tokenizer.ggml.token_type";
    let Some(types) = metadata.numbers(key) else { return Ok(vec![1; count]) };
    let types: Vec<i128> = types.map(|kind| if let Value::Whole(kind) = kind { kind } else { 1 }).collect();
    if types.len() != count {
        return Err(problem(metadata.file().path(), format!("{key} has {} entries for {count} tokens", types.len())));
    }
    Ok(types)
}

fn role_id(metadata: &Metadata, role: &str) -> Option<u32> {
    let name = match role {
        "bos_token" => "bos",
        "eos_token" => "eos",
        "pad_token" => "padding",
        "unk_token" => "unknown",
        "cls_token" => "cls",
        "sep_token" => "seperator", // as GGUF spells it
        "mask_token" => "mask",
        _ => return None,
    };
    metadata.whole(&format!("tokenizer.ggml.{name}_token_id"))
}

/// What llama.cpp knows of a vocabulary by the name in `tokenizer.ggml.pre` and of which the file says nothing else.
struct Pre {
    words: Words,
    /// A word that is a token is taken whole, whether or not the merges lead to it.
    ignores_merges: bool,
    /// A token stands before every text, unless `add_bos_token` says no.
    begins: bool,
}

/// How text is cut into words before merges are applied.
enum Words {
    /// GPT-2's rule, built into `tokenizers`.
    Gpt2,
    /// The same, and every digit stands alone.
    Digits,
    /// A pattern of its own.
    Pattern(&'static str),
}

impl Pre {
    fn of(source: &Path, name: Option<&str>) -> Result<Self> {
        let plain = |words| Pre { words, ignores_merges: false, begins: false };
        Ok(match name {
            None | Some("default" | "gpt-2") => plain(Words::Gpt2),
            Some("smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b") => {
                plain(Words::Digits)
            }
            Some("llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0" | "lfm2") => {
                Pre { words: Words::Pattern(LLAMA3), ignores_merges: true, begins: true }
            }
            Some("smaug-bpe" | "dbrx") => plain(Words::Pattern(LLAMA3)),
            Some("qwen2" | "deepseek-r1-qwen" | "megrez") => plain(Words::Pattern(QWEN2)),
            Some(other) => {
                let expected = "expected gpt-2, smollm, llama-bpe or qwen2";
                return Err(problem(source, format!("tokenizer.ggml.pre is {other:?}, {expected}")));
            }
        })
    }

    fn splitter(&self, source: &Path) -> Result<PreTokenizerWrapper> {
        let bytes = |use_regex| PreTokenizerWrapper::from(ByteLevel::new(false, true, use_regex));
        Ok(match self.words {
            Words::Gpt2 => bytes(true),
            Words::Digits => Sequence::new(vec![Digits::new(true).into(), bytes(true)]).into(),
            Words::Pattern(pattern) => {
                let pattern = SplitPattern::Regex(pattern.to_owned());
                let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
                let split = split.map_err(|error| problem(source, error))?;
                Sequence::new(vec![split.into(), bytes(false)]).into()
            }
        })
    }
}

/// Byte-level BPE.
fn gpt2(metadata: &Metadata, tokens: &[String], pre: &Pre) -> Result<Inner> {
    let source = metadata.file().path();
    let vocabulary = vocabulary(source, tokens)?;
    let Some(merges) = metadata.texts("tokenizer.ggml.merges") else {
        return Err(problem(source, "its metadata has no tokenizer.ggml.merges"));
    };
    let merges = outline::pairs(source, merges)?;
    let mut inner = byte_level(source, vocabulary, merges, pre.ignores_merges)?;
    inner.with_pre_tokenizer(Some(pre.splitter(source)?));
    Ok(inner)
}

/// SentencePiece's BPE, as of Llama 1 and 2: `▁` for a space, bytes as `<0xED>` for what the vocabulary lacks. The file
/// has scores in place of merges; every way to put a token together from two others is a merge, the best score first.
fn sentence_piece(metadata: &Metadata, tokens: &[String], unknown: Option<u32>) -> Result<Inner> {
    let source = metadata.file().path();
    let vocabulary = vocabulary(source, tokens)?;
    let scores: Vec<f64> = metadata
        .numbers("tokenizer.ggml.scores")
        .map(|scores| scores.map(|score| if let Value::Float(score) = score { score } else { 0.0 }).collect())
        .unwrap_or_default();
    if scores.len() != tokens.len() {
        let problem_is = format!("tokenizer.ggml.scores has {} entries for {} tokens", scores.len(), tokens.len());
        return Err(problem(source, problem_is));
    }
    let merges = merges_by_score(tokens, &scores, &vocabulary);
    let unknown = unknown.and_then(|id| tokens.get(id as usize));
    let mut model = BPE::builder().fuse_unk(true).byte_fallback(true);
    if let Some(unknown) = unknown {
        model = model.unk_token(unknown.clone());
    }
    let model = model.vocab_and_merges(vocabulary.into_iter().collect::<Vocab>(), merges).build();
    let mut inner = Inner::new(model.map_err(|error| problem(source, error))?);
    let replace = |from: &str, to: &str| Replace::new(from, to).map_err(|error| problem(source, error));
    let mut steps = vec![replace(" ", "▁")?.into()];
    let mut decoders = vec![replace("▁", " ")?.into(), ByteFallback::default().into(), Fuse::default().into()];
    if metadata.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true) {
        steps.insert(0, Prepend::new("▁".into()).into());
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    inner.with_normalizer(Some(Normalizers::new(steps))).map_err(|error| problem(source, error))?;
    inner.with_decoder(Some(Decoders::new(decoders)));
    Ok(inner)
}

/// Tokens of more characters than this are runs of spaces or lines of dashes, and no longer than a hundred or so.
const MAX_PIECE: usize = 256;

fn merges_by_score(tokens: &[String], scores: &[f64], vocabulary: &HashMap<String, u32>) -> Vec<(String, String)> {
    let mut merges: Vec<(f64, &str, &str)> = Vec::new();
    for (token, &score) in tokens.iter().zip(scores).filter(|(token, _)| token.len() <= MAX_PIECE) {
        let splits = token.char_indices().skip(1).map(|(at, _)| token.split_at(at));
        let mut known: Vec<_> =
            splits.filter_map(|(a, b)| Some((*vocabulary.get(a)?, *vocabulary.get(b)?, a, b))).collect();
        known.sort_unstable();
        merges.extend(known.into_iter().map(|(_, _, a, b)| (score, a, b)));
    }
    let length = |text: &str| text.chars().count();
    merges.sort_by(|x, y| {
        let by_length = || (length(y.1), length(y.2)).cmp(&(length(x.1), length(x.2)));
        y.0.total_cmp(&x.0).then_with(by_length)
    });
    merges.into_iter().map(|(_, a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// GGUF marks the pieces that begin a word with `▁`; BERT's own vocabulary marks the others with `##`.
fn hash_marks(tokens: &[String], types: &[i128]) -> Vec<(String, u32)> {
    let mark = |(token, kind): (&String, &i128)| match token.strip_prefix('▁') {
        Some(word) => word.to_owned(),
        None if *kind == CONTROL || (token.starts_with('[') && token.ends_with(']')) => token.clone(),
        None => format!("##{token}"),
    };
    tokens.iter().zip(types).map(mark).zip(0..).collect()
}

fn vocabulary(source: &Path, tokens: &[String]) -> Result<HashMap<String, u32>> {
    let mut vocabulary = HashMap::with_capacity(tokens.len());
    for (id, token) in (0..).zip(tokens) {
        if let Some(other) = vocabulary.insert(token.clone(), id) {
            return Err(problem(source, format!("the tokens {other} and {id} are both {token:?}")));
        }
    }
    Ok(vocabulary)
}

/// The token that stands before or after every text, if the file or else its kind says that there is one.
fn role(metadata: &Metadata, key: &str, otherwise: bool, id: Option<u32>, named: &str) -> Result<Option<u32>> {
    let key = format!("tokenizer.ggml.{key}");
    let wanted = match metadata.get(&key) {
        None => otherwise,
        Some(&Value::Bool(flag)) => flag,
        Some(_) => return Err(problem(metadata.file().path(), format!("{key} is neither true nor false"))),
    };
    match (wanted, id) {
        (false, _) => Ok(None),
        (true, Some(id)) => Ok(Some(id)),
        (true, None) => {
            let problem_is = format!("{named} is absent, expected the token that is put around every text");
            Err(problem(metadata.file().path(), problem_is))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_give_the_merges() {
        let tokens: Vec<String> = ["a", "b", "c", "ab", "bc", "abc"].map(str::to_owned).into();
        let vocabulary = vocabulary(Path::new(""), &tokens).unwrap();
        let merges = merges_by_score(&tokens, &[0.0, 0.0, 0.0, -2.0, -1.0, -3.0], &vocabulary);
        let merges: Vec<_> = merges.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(merges, [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")]);
    }

    #[test]
    fn marks_of_bert() {
        let tokens: Vec<String> = ["[CLS]", "▁the", "ing", "▁[x"].map(str::to_owned).into();
        let marked = hash_marks(&tokens, &[3, 1, 1, 1]);
        let marked: Vec<_> = marked.iter().map(|(token, _)| token.as_str()).collect();
        assert_eq!(marked, ["[CLS]", "the", "##ing", "[x"]);
    }
}
