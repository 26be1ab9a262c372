//! What `tokenizer_config.json` and `added_tokens.json` say beside a vocabulary.
//!
//! transformers makes a tokenizer of a class, which the settings name or which follows from the model's kind, and some classes
//! put their settings in the place of what `tokenizer.json` says: BERT's whether accents and capitals are kept, GPT-2's
//! whether a space is put before a text. So it is here, with the same defaults.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::{AddedToken, NormalizerWrapper, PreTokenizerWrapper, Tokenizer as Inner};

use super::around::Around;
use super::special::{ROLES, content};
use super::{SpecialTokens, problem};
use crate::Result;
use crate::checkpoint::Config;
use crate::checkpoint::json::{Unique, parse, read_bounded};

/// A file of added tokens has a line for each; vocabularies have some thousand at most.
const MAX_BYTES: u64 = 16 << 20;

/// What becomes of letters before BERT cuts a text into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letters {
    pub(super) lowercase: bool,
    /// Whether accents are taken off; where it is not said, with capitals.
    pub(super) strip_accents: Option<bool>,
    /// Whether each Chinese character is a word.
    pub(super) chinese: bool,
}

impl Default for Letters {
    fn default() -> Self {
        Letters { lowercase: true, strip_accents: None, chinese: true }
    }
}

impl Letters {
    pub(super) fn normalizer(self) -> BertNormalizer {
        BertNormalizer::new(true, self.chinese, self.strip_accents, self.lowercase)
    }
}

/// The settings of a folder.
pub(super) struct Settings {
    folder: PathBuf,
    /// `tokenizer_config.json`; empty where there is none.
    config: Config,
    class: Class,
}

/// The kind of tokenizer, as far as its settings matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Bert,
    Gpt2,
    /// One that is what its `tokenizer.json` says.
    Other,
}

impl Settings {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            if path.exists() { Config::read(&path) } else { Ok(Config::new(path, serde_json::Map::new())) }
        };
        let config = read("tokenizer_config.json")?;
        let model = read("config.json")?;
        let said = |config: &Config, key: &str| config.get(key).and_then(Value::as_str).map(str::to_owned);
        let class = said(&config, "tokenizer_class").or_else(|| said(&model, "tokenizer_class"));
        let class = match class.as_deref().map(|class| class.trim_end_matches("Fast")) {
            Some("BertTokenizer") => Class::Bert,
            Some("GPT2Tokenizer") => Class::Gpt2,
            Some(_) => Class::Other,
            None => match said(&model, "model_type").as_deref() {
                Some("bert") => Class::Bert,
                Some("gpt2") => Class::Gpt2,
                _ => Class::Other,
            },
        };
        Ok(Settings { folder: folder.to_path_buf(), config, class })
    }

    pub(super) fn letters(&self) -> Result<Letters> {
        let strip = "strip_accents";
        Ok(Letters {
            lowercase: self.config.flag_or("do_lower_case", true)?,
            strip_accents: self.config.get(strip).map(|_| self.config.flag_or(strip, false)).transpose()?,
            chinese: self.config.flag_or("tokenize_chinese_chars", true)?,
        })
    }

    /// Whether a space is put before a text.
    pub(super) fn prefix_space(&self) -> Result<bool> {
        self.config.flag_or("add_prefix_space", false)
    }

    /// The tokens around every text of a tokenizer that comes without a `tokenizer.json`, which would say.
    pub(super) fn around(&self, special: &SpecialTokens) -> Result<Around> {
        let begin = self.config.flag_or("add_bos_token", false)?;
        let end = self.config.flag_or("add_eos_token", false)?;
        Ok(Around { begin: special.bos.filter(|_| begin), end: special.eos.filter(|_| end) })
    }

    /// Puts the settings of BERT's and GPT-2's classes in the place of what a `tokenizer.json` says.
    pub(super) fn change(&self, inner: &mut Inner, source: &Path) -> Result<()> {
        match self.class {
            Class::Bert => {
                let letters = self.letters()?.normalizer();
                if matches!(inner.get_normalizer(), Some(NormalizerWrapper::BertNormalizer(_))) {
                    inner.with_normalizer(Some(letters)).map_err(|error| problem(source, error))?;
                }
            }
            Class::Gpt2 => {
                let space = self.prefix_space()?;
                if let Some(PreTokenizerWrapper::ByteLevel(bytes)) = inner.get_pre_tokenizer() {
                    let mut bytes = *bytes;
                    bytes.add_prefix_space = space;
                    inner.with_pre_tokenizer(Some(bytes));
                }
            }
            Class::Other => {}
        }
        Ok(())
    }

    /// Adds the tokens that the folder lists beside its vocabulary, each with the id it claims.
    pub(super) fn add_tokens(&self, inner: &mut Inner) -> Result<()> {
        let (source, mut added) = self.added()?;
        added.sort_by_key(|(id, _)| *id);
        for (id, token) in added {
            let name = token.content.clone();
            if token.special {
                inner.add_special_tokens([token]).map_err(|error| problem(&source, error))?;
            } else {
                inner.add_tokens([token]).map_err(|error| problem(&source, error))?;
            }
            let got = inner.token_to_id(&name);
            if got != Some(id) {
                let problem_is =
                    format!("the added token {name:?} has the id {id} in the file, but {got:?} by its place");
                return Err(problem(&source, problem_is));
            }
        }
        Ok(())
    }

    /// `added_tokens_decoder` of the settings, else `added_tokens.json`; and where they stand.
    fn added(&self) -> Result<(PathBuf, Vec<(u32, AddedToken)>)> {
        if let Some(section) = self.config.section("added_tokens_decoder")? {
            let mut added = Vec::new();
            for (id, token) in section.values() {
                let expected = "an id and an object with the content of a token";
                let refused = || section.error(id, expected, token);
                let parsed: AddedToken = serde_json::from_value(token.clone()).map_err(|_| refused())?;
                added.push((id.parse().map_err(|_| refused())?, parsed));
            }
            return Ok((self.config.path().to_path_buf(), added));
        }
        let path = self.folder.join("added_tokens.json");
        if !path.exists() {
            return Ok((path, Vec::new()));
        }
        let Unique(tokens) = parse::<Unique<String, u32>>(&path, &read_bounded(&path, MAX_BYTES)?)?;
        let token = |(name, id): (String, u32)| {
            let special = self.names(&name);
            (id, AddedToken::from(name, special).normalized(!special))
        };
        Ok((path, tokens.into_iter().map(token).collect()))
    }

    /// Whether the settings give a token a role.
    fn names(&self, token: &str) -> bool {
        ROLES.iter().any(|role| self.config.get(role).and_then(content) == Some(token))
    }
}
