//! Text to tokens and back, one type for all the tokenizers that checkpoints come with.
//!
//! ```no_run
//! use foveal_models::{Checkpoint, Tokenizer};
//!
//! let checkpoint = Checkpoint::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
//! let tokenizer = Tokenizer::of(&checkpoint)?;
//! let encoding = tokenizer.encode("The capital of France is")?;
//! assert_eq!(encoding.ids(), [504, 3575, 282, 4649, 314]);
//! assert_eq!(encoding.labels(), ["The", " capital", " of", " France", " is"]);
//! assert_eq!(tokenizer.decode(encoding.ids())?, "The capital of France is");
//! # Ok::<(), foveal_models::Error>(())
//! ```
//!
//! The work is done by Hugging Face's `tokenizers`, so the ids are theirs. Added here: the files it has no reader for,
//! checks of files that would make it panic, exact places of tokens in the text, labels and words.

mod around;
mod bytes;
mod chat;
mod encoding;
mod files;
mod gguf;
mod kind;
mod learned;
mod outline;
mod settings;
mod special;
mod stream;

use std::path::{Path, PathBuf};

use tokenizers::{DecoderWrapper, Tokenizer as Inner};

pub use self::chat::{ChatTemplate, Message};
pub use self::encoding::Encoding;
pub use self::kind::TokenizerKind;
pub use self::special::SpecialTokens;
pub use self::stream::Stream;
use crate::checkpoint::write_whole;
use crate::train::Fingerprint;
use crate::{Checkpoint, Error, Result};

/// A tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: Inner,
    special: SpecialTokens,
    /// One more than the largest id.
    vocabulary: usize,
    spelling: Spelling,
    chat: Option<ChatTemplate>,
}

/// What the text of a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// A character for each byte, as in GPT-2. Tokens may cut characters.
    Bytes,
    /// Whatever the decoder makes of it.
    Text,
}

impl Tokenizer {
    /// The tokenizer of a checkpoint: from the metadata of a GGUF file, or from the files beside the weights.
    ///
    /// # Errors
    /// As [`from_folder`](Self::from_folder).
    pub fn of(checkpoint: &Checkpoint) -> Result<Self> {
        if let Some(metadata) = checkpoint.gguf() {
            let mut tokenizer = gguf::from_metadata(metadata)?;
            let text = |role: &str| tokenizer.inner.id_to_token(tokenizer.special.get(role)?);
            tokenizer.chat = ChatTemplate::from_metadata(metadata, text);
            return Ok(tokenizer);
        }
        let mut tokenizer = Tokenizer::from_folder(checkpoint.folder().unwrap_or(checkpoint.path()))?;
        tokenizer.special.fill_from_config(checkpoint.config(), tokenizer.vocabulary)?;
        Ok(tokenizer)
    }

    /// The tokenizer of a folder: `tokenizer.json`, else GPT-2's `vocab.json` and `merges.txt` (also as `encoder.json`
    /// and `vocab.bpe`), else BERT's `vocab.txt`.
    ///
    /// # Errors
    /// If there is none, or a file cannot be read or makes no sense.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        Ok(Tokenizer { chat: ChatTemplate::from_folder(folder)?, ..files::from_folder(folder)? })
    }

    /// The tokenizer of a `tokenizer.json`, given as its bytes; `name` is what errors call it. The special tokens have their
    /// usual names.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn from_json(name: &str, json: &[u8]) -> Result<Self> {
        let inner = files::parsed(Path::new(name), json)?;
        Tokenizer::from_inner(inner)
    }

    /// A tokenizer made here. The special tokens have their usual names.
    pub(crate) fn from_inner(inner: Inner) -> Result<Self> {
        let mut special = SpecialTokens::default();
        special.fill_by_name(|token| inner.token_to_id(token));
        Tokenizer::new(inner, special, Path::new(""))
    }

    /// Saves the tokenizer as `tokenizer.json` in `folder`, which is made if it is not there, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written; then nothing has changed.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let json = self.inner.to_string(true).map_err(|error| problem(Path::new(""), error))?;
        write_whole(&folder.join("tokenizer.json"), |file| file.write_all(json.as_bytes()))
    }

    /// Puts a tokenizer of Hugging Face's together with its special tokens. `source` is where it comes from.
    fn new(mut inner: Inner, special: SpecialTokens, source: &Path) -> Result<Self> {
        // A text is never cut or filled up behind the user's back, whatever the file asks for.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| problem(source, error))?;
        let largest = inner.get_vocab(true).into_values().max();
        let vocabulary = largest.map_or(0, |id| id as usize + 1);
        let spelling = if inner.get_decoder().is_some_and(is_byte_level) { Spelling::Bytes } else { Spelling::Text };
        Ok(Tokenizer { inner, special, vocabulary, spelling, chat: None })
    }

    /// The tokens of a text, with those around it that the model was trained with (BERT's `[CLS]` and `[SEP]`).
    ///
    /// # Errors
    /// If the text has a character that the vocabulary lacks and has no token for unknown ones.
    pub fn encode(&self, text: &str) -> Result<Encoding> {
        Encoding::of(self, text, true)
    }

    /// The tokens of a text and nothing around it: for a text that goes on from another.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_bare(&self, text: &str) -> Result<Encoding> {
        Encoding::of(self, text, false)
    }

    /// The tokens of a conversation, up to where the answer begins, in the words of the model's own template, which says all
    /// there is around it.
    ///
    /// # Errors
    /// If the model brings no template, or it refuses the conversation.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Encoding> {
        let fit = "a model that was trained to answer, or give the text as it is";
        let template = self.chat.as_ref().ok_or(Error::MissingPart { part: "a chat template", fit })?;
        self.encode_bare(&template.render(messages)?)
    }

    /// The template of conversations; none for a model that was not trained for them.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.chat.as_ref()
    }

    /// The text of tokens, without special ones. Bytes that are no UTF-8 become `�`.
    ///
    /// # Errors
    /// If an id is not in the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        for &id in ids {
            self.token(id)?;
        }
        match self.spelling {
            Spelling::Bytes => {
                let spoken = ids.iter().filter(|&&id| !self.is_special(id));
                let bytes: Vec<u8> = spoken.flat_map(|&id| self.bytes(id).unwrap_or_default()).collect();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Spelling::Text => self.inner.decode(ids, true).map_err(|error| problem(Path::new(""), error)),
        }
    }

    /// Decodes tokens one by one, as they are generated.
    pub fn stream(&self) -> Stream<'_> {
        Stream::after(self, &[]).expect("no token is outside the vocabulary")
    }

    /// The same for tokens that go on from others. The first token of a text is not spelled as it is after another: SentencePiece
    /// puts a space before every text, which decoding takes off again.
    ///
    /// # Errors
    /// If an id is not in the vocabulary.
    pub fn stream_after(&self, before: &[u32]) -> Result<Stream<'_>> {
        Stream::after(self, before)
    }

    /// The places, labels and words of tokens whose text is not known, as when a model made them. The text is what
    /// they decode to; special tokens have no place in it.
    ///
    /// # Errors
    /// If an id is not in the vocabulary.
    pub fn describe(&self, ids: &[u32]) -> Result<Encoding> {
        Encoding::of_ids(self, &[], ids)
    }

    /// The same for tokens that go on from others: their text begins with the space between the two, if there is one.
    ///
    /// # Errors
    /// If an id is not in the vocabulary.
    pub fn describe_after(&self, before: &[u32], ids: &[u32]) -> Result<Encoding> {
        Encoding::of_ids(self, before, ids)
    }

    /// What tells this vocabulary from others, as a fact of this name.
    pub(crate) fn fingerprint(&self, name: &str) -> Fingerprint {
        let json = self.inner.to_string(false).unwrap_or_default();
        Fingerprint::default().data(name, json.bytes())
    }

    /// The number of ids: one more than the largest.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The special tokens that have a role.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Whether a token stands for something other than its text.
    pub fn is_special(&self, id: u32) -> bool {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        added.get(&id).is_some_and(|token| token.special)
    }

    /// A token as the vocabulary spells it: `Ġcapital`, `##ing`, `[CLS]`.
    ///
    /// # Errors
    /// If the id is not in the vocabulary.
    pub fn token(&self, id: u32) -> Result<String> {
        self.inner.id_to_token(id).ok_or(Error::TokenId { id, vocabulary: self.vocabulary })
    }

    /// The id of a token as the vocabulary spells it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The bytes that a token of a byte-level vocabulary stands for.
    fn bytes(&self, id: u32) -> Result<Vec<u8>> {
        let token = self.token(id)?;
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder().contains_key(&id);
        let bytes = if added { None } else { token.chars().map(bytes::byte_of).collect() };
        Ok(bytes.unwrap_or_else(|| token.into_bytes()))
    }
}

fn is_byte_level(decoder: &DecoderWrapper) -> bool {
    match decoder {
        DecoderWrapper::ByteLevel(_) => true,
        DecoderWrapper::Sequence(steps) => steps.get_decoders().iter().any(is_byte_level),
        _ => false,
    }
}

/// An error of the `tokenizers` library, or of ours.
fn problem(source: &Path, error: impl std::fmt::Display) -> Error {
    Error::Tokenizer { source: PathBuf::from(source), problem: error.to_string() }
}
