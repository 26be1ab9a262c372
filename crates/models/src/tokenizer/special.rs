use std::path::Path;

use serde_json::Value;

use crate::checkpoint::Config;
use crate::{Error, Result};

/// The names of the roles in the files of a tokenizer.
pub(super) const ROLES: [&str; 7] =
    ["bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token"];

/// The ids of the tokens that have a role, where a tokenizer has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begins a text.
    pub bos: Option<u32>,
    /// Ends a text.
    pub eos: Option<u32>,
    /// Fills up a batch.
    pub pad: Option<u32>,
    /// Stands for what the vocabulary lacks.
    pub unk: Option<u32>,
    /// Stands before a text for the whole of it (BERT).
    pub cls: Option<u32>,
    /// Stands between and after texts (BERT).
    pub sep: Option<u32>,
    /// Stands for a word to be guessed (BERT).
    pub mask: Option<u32>,
}

impl SpecialTokens {
    fn roles(&mut self) -> impl Iterator<Item = (&'static str, &mut Option<u32>)> {
        let SpecialTokens { bos, eos, pad, unk, cls, sep, mask } = self;
        ROLES.into_iter().zip([bos, eos, pad, unk, cls, sep, mask])
    }

    /// The token of a role by its name, as `bos_token`.
    pub(super) fn get(mut self, name: &str) -> Option<u32> {
        self.roles().find(|(role, _)| *role == name).and_then(|(_, id)| *id)
    }

    /// From `tokenizer_config.json` and `special_tokens_map.json`, which name the tokens; else by the names that the
    /// first models gave them.
    pub(super) fn from_folder(folder: &Path, id: impl Fn(&str) -> Option<u32>) -> Result<Self> {
        let mut special = SpecialTokens::default();
        for file in ["tokenizer_config.json", "special_tokens_map.json"] {
            let path = folder.join(file);
            if path.exists() {
                let config = Config::read(&path)?;
                for (key, role) in special.roles() {
                    *role = role.or_else(|| id(content(config.get(key)?)?));
                }
            }
        }
        special.fill_by_name(id);
        Ok(special)
    }

    /// The roles that are still empty, by the usual names.
    pub(super) fn fill_by_name(&mut self, id: impl Fn(&str) -> Option<u32>) {
        let first = |names: &[&str]| names.iter().find_map(|name| id(name));
        self.bos = self.bos.or_else(|| first(&["<|endoftext|>", "<s>"]));
        self.eos = self.eos.or_else(|| first(&["<|endoftext|>", "</s>"]));
        self.pad = self.pad.or_else(|| first(&["[PAD]", "<pad>"]));
        self.unk = self.unk.or_else(|| first(&["[UNK]", "<unk>"]));
        self.cls = self.cls.or_else(|| id("[CLS]"));
        self.sep = self.sep.or_else(|| id("[SEP]"));
        self.mask = self.mask.or_else(|| id("[MASK]"));
    }

    /// The roles that are still empty, by the ids in a model's configuration. An id that is no token's means that there is
    /// none: GPT-2's configuration has 50256 by default, also for smaller vocabularies, and others have −1.
    pub(super) fn fill_from_config(&mut self, config: &Config, vocabulary: usize) -> Result<()> {
        for (key, role) in self.roles() {
            let key = format!("{key}_id");
            let value = config.get(&key);
            // Some models have several tokens that end a text, as a list.
            if role.is_some() || value.is_some_and(|value| value.is_array() || value.as_i64() == Some(-1)) {
                continue;
            }
            *role = config.index(&key)?.filter(|&id| id < vocabulary).map(|id| id as u32);
        }
        Ok(())
    }

    /// From an id for each role, none of which may lie outside the vocabulary.
    pub(super) fn from_ids(vocabulary: usize, source: &Path, find: impl Fn(&str) -> Option<u32>) -> Result<Self> {
        let mut special = SpecialTokens::default();
        for (key, role) in special.roles() {
            *role = find(key);
            if let Some(id) = role.filter(|&id| id as usize >= vocabulary) {
                let problem = format!("the {key} has the id {id}, but there are {vocabulary} tokens");
                return Err(Error::Tokenizer { source: source.to_path_buf(), problem });
            }
        }
        Ok(special)
    }
}

/// A token is named by its text, or by an object that has it as `content`.
pub(super) fn content(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}
