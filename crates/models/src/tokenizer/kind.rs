use std::fmt;

use tokenizers::ModelWrapper;

use super::{Spelling, Tokenizer};

/// How a tokenizer cuts words into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenizerKind {
    /// Byte pair encoding of characters (SentencePiece).
    Bpe,
    /// Byte pair encoding of bytes (GPT-2, Llama 3).
    ByteLevelBpe,
    /// The longest piece that fits, from the left (BERT).
    WordPiece,
    /// The most probable pieces (SentencePiece).
    Unigram,
    /// Whole words.
    WordLevel,
}

impl fmt::Display for TokenizerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TokenizerKind::Bpe => "BPE",
            TokenizerKind::ByteLevelBpe => "byte-level BPE",
            TokenizerKind::WordPiece => "WordPiece",
            TokenizerKind::Unigram => "Unigram",
            TokenizerKind::WordLevel => "words",
        })
    }
}

impl Tokenizer {
    /// How it cuts words into tokens.
    pub fn kind(&self) -> TokenizerKind {
        match (self.inner.get_model(), self.spelling) {
            (ModelWrapper::BPE(_), Spelling::Bytes) => TokenizerKind::ByteLevelBpe,
            (ModelWrapper::BPE(_), Spelling::Text) => TokenizerKind::Bpe,
            (ModelWrapper::WordPiece(_), _) => TokenizerKind::WordPiece,
            (ModelWrapper::Unigram(_), _) => TokenizerKind::Unigram,
            (ModelWrapper::WordLevel(_), _) => TokenizerKind::WordLevel,
        }
    }
}
