//! Tokenizers for a language model, made from the text that it will learn.

use std::collections::BTreeSet;

use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer as Inner};

use super::{Tokenizer, problem};
use crate::Result;

/// Stands for a character that the text did not have.
const UNKNOWN: &str = "<unk>";

impl Tokenizer {
    /// A token for each character of the text, in the order of their numbers, and one for all others.
    ///
    /// ```
    /// let tokenizer = foveal_models::Tokenizer::of_characters("to be or not to be")?;
    /// assert_eq!(tokenizer.vocabulary(), 1 + 7);
    /// let encoding = tokenizer.encode("to bed")?;
    /// assert_eq!(encoding.labels(), ["t", "o", " ", "b", "e", "d"]);
    /// assert_eq!(encoding.ids()[5], tokenizer.special().unk.unwrap());
    /// assert_eq!(tokenizer.decode(&encoding.ids()[..5])?, "to be");
    /// # Ok::<(), foveal_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text is empty.
    pub fn of_characters(text: &str) -> Result<Self> {
        let characters: BTreeSet<char> = text.chars().collect();
        if characters.is_empty() {
            return Err(problem("".as_ref(), "a vocabulary needs a text, and this one is empty"));
        }
        let tokens = std::iter::once(UNKNOWN.to_owned()).chain(characters.into_iter().map(String::from));
        let vocabulary: Vocab = tokens.zip(0..).collect();
        let model = BPE::builder().vocab_and_merges(vocabulary, Vec::new()).unk_token(UNKNOWN.into()).build();
        let mut inner = Inner::new(model.map_err(|error| problem("".as_ref(), error))?);
        inner.with_decoder(Some(tokenizers::decoders::fuse::Fuse::new()));
        Tokenizer::from_inner(inner)
    }

    /// Byte pairs (GPT-2's way): the bytes, and `size` − 256 runs of them that occur often. Any text can be written with them.
    ///
    /// ```
    /// let text = "the cat and the dog and the cat ".repeat(20);
    /// let tokenizer = foveal_models::Tokenizer::of_byte_pairs(&text, 280)?;
    /// assert_eq!(tokenizer.encode("the cat")?.labels(), ["the", " cat"]);
    /// # Ok::<(), foveal_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the size is under 256.
    pub fn of_byte_pairs(text: &str, size: usize) -> Result<Self> {
        if size < 256 {
            return Err(problem("".as_ref(), format!("{size} tokens are fewer than the 256 bytes; take at least 256")));
        }
        let mut inner = Inner::new(BPE::default());
        inner.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        inner.with_decoder(Some(ByteLevel::default()));
        let mut trainer = TrainerWrapper::BpeTrainer(
            BpeTrainer::builder()
                .vocab_size(size)
                .min_frequency(2)
                .show_progress(false)
                .special_tokens(Vec::<AddedToken>::new())
                .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
                .build(),
        );
        inner
            .train(&mut trainer, text.lines().map(|line| format!("{line}\n")))
            .map_err(|error| problem("".as_ref(), error))?;
        Tokenizer::from_inner(inner)
    }
}
