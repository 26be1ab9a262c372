//! Vocabularies made from the texts of a corpus, by Hugging Face's `tokenizers`.
//!
//! | | tokens | unknown words |
//! |---|---|---|
//! | [`Vocabulary::words`] | words and punctuation marks, the most frequent first | `<unk>` |
//! | [`Vocabulary::byte_pairs`] | runs of bytes that occur often (GPT-2's way), so that any text can be written | none |
//! | [`Vocabulary::pieces`] | given pieces of words, as a grammar has them: 학생 ##은 | `<unk>` |
//!
//! All have `<pad>`, `<s>`, `</s>` and `<unk>` as tokens 0 to 3, and [`Tokenizer::encode`] puts `<s>` before a text and `</s>`
//! after it.

use std::collections::BTreeSet;
use std::path::Path;

use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::models::wordlevel::{WordLevel, WordLevelTrainer};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::Lowercase;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer as Inner};

use crate::{Error, Result, Tokenizer};

const SPECIAL: [&str; 4] = ["<pad>", "<s>", "</s>", "<unk>"];

/// Stands for a space within tokens that are words, as in SentencePiece.
const SPACE: char = '▁';

/// What a vocabulary does with capital letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// "The" and "the" are two words.
    #[default]
    Keep,
    /// "The" and "the" are one word. What is decoded has no capitals.
    Lower,
}

/// How to make a vocabulary.
///
/// ```
/// use foveal_models::translation::Vocabulary;
///
/// let tokenizer = Vocabulary::words().train(["The cat sleeps.", "The dog sleeps."])?;
/// let encoding = tokenizer.encode("The cow sleeps.")?;
/// assert_eq!(encoding.labels(), ["<s>", "The", " cow", " sleeps", ".", "</s>"]);
/// assert_eq!(encoding.ids()[2], tokenizer.special().unk.unwrap());
/// # Ok::<(), foveal_models::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    kind: TokenKind,
    size: usize,
    least: u64,
    case: Case,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Words,
    BytePairs,
}

impl Vocabulary {
    /// Of words and punctuation marks: at most 30,000, each of which occurs at least once.
    pub fn words() -> Self {
        Vocabulary { kind: TokenKind::Words, size: 30_000, least: 1, case: Case::Keep }
    }

    /// Of byte pairs: `size` tokens at most, each of which occurs at least twice; 260 at least, one for each byte and the
    /// special ones.
    pub fn byte_pairs(size: usize) -> Self {
        Vocabulary { kind: TokenKind::BytePairs, size: size.max(256 + SPECIAL.len()), least: 2, case: Case::Keep }
    }

    /// Sets the largest number of tokens, the special ones among them.
    pub fn size(self, size: usize) -> Self {
        let smallest = if self.kind == TokenKind::BytePairs { 256 } else { 0 } + SPECIAL.len();
        Vocabulary { size: size.max(smallest), ..self }
    }

    /// Sets how often a token must occur to be one.
    pub fn least(self, times: u64) -> Self {
        Vocabulary { least: times, ..self }
    }

    /// Sets what becomes of capital letters.
    pub fn case(self, case: Case) -> Self {
        Vocabulary { case, ..self }
    }

    /// Makes the vocabulary of some texts; the same for the same texts.
    ///
    /// # Errors
    /// If the texts hold no word at all.
    pub fn train<S: AsRef<str> + Send>(self, texts: impl IntoIterator<Item = S, IntoIter: Send>) -> Result<Tokenizer> {
        let special: Vec<AddedToken> = SPECIAL.iter().map(|token| AddedToken::from(*token, true)).collect();
        let (mut inner, mut trainer) = match self.kind {
            TokenKind::Words => {
                let model = WordLevel::builder().unk_token("<unk>".into()).build().map_err(failed)?;
                let mut inner = Inner::new(model);
                let space = Metaspace::new(SPACE, PrependScheme::Always, true);
                inner.with_decoder(Some(space.clone()));
                let marks = Punctuation::new(SplitDelimiterBehavior::Isolated);
                inner.with_pre_tokenizer(Some(Sequence::new(vec![space.into(), marks.into()])));
                let trainer = WordLevelTrainer::builder()
                    .vocab_size(self.size)
                    .min_frequency(self.least)
                    .show_progress(false)
                    .special_tokens(special)
                    .build()
                    .map_err(failed)?;
                (inner, TrainerWrapper::WordLevelTrainer(trainer))
            }
            TokenKind::BytePairs => {
                let mut inner = Inner::new(BPE::default());
                inner.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
                inner.with_decoder(Some(ByteLevel::default()));
                let trainer = BpeTrainer::builder()
                    .vocab_size(self.size)
                    .min_frequency(self.least)
                    .show_progress(false)
                    .special_tokens(special)
                    .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
                    .build();
                (inner, TrainerWrapper::BpeTrainer(trainer))
            }
        };
        lower(&mut inner, self.case)?;
        inner.train(&mut trainer, texts.into_iter()).map_err(failed)?;
        let is_word = |token: &String| !SPECIAL.contains(&token.as_str()) && token.chars().any(|c| c != SPACE);
        if !inner.get_vocab(true).keys().any(is_word) {
            return Err(failed("the texts it should be made of hold no word; give it some sentences"));
        }
        finish(inner)
    }

    /// A vocabulary of given pieces, those within a word with `##` before them. A word is cut into the longest pieces from
    /// its beginning on; points, commas, exclamation and question marks stand alone.
    ///
    /// # Errors
    /// If there is no piece.
    pub fn pieces<S: AsRef<str>>(pieces: impl IntoIterator<Item = S>, case: Case) -> Result<Tokenizer> {
        let fold = |piece: &str| if case == Case::Lower { piece.to_lowercase() } else { piece.to_owned() };
        let pieces: BTreeSet<String> = pieces.into_iter().map(|piece| fold(piece.as_ref())).collect();
        let own = pieces.iter().filter(|piece| !SPECIAL.contains(&piece.as_str())).cloned();
        let all = SPECIAL.iter().map(|token| token.to_string()).chain(own);
        let vocabulary: Vocab = all.zip(0..).collect();
        if vocabulary.len() == SPECIAL.len() {
            return Err(failed("there are no pieces to make it of"));
        }
        let model = WordPiece::builder().vocab(vocabulary).unk_token("<unk>".into()).build().map_err(failed)?;
        let mut inner = Inner::new(model);
        let marks = Split::new(SplitPattern::Regex("[.,!?]".into()), SplitDelimiterBehavior::Isolated, false);
        inner.with_pre_tokenizer(Some(Sequence::new(vec![WhitespaceSplit.into(), marks.map_err(failed)?.into()])));
        inner.with_decoder(Some(tokenizers::decoders::wordpiece::WordPiece::new("##".into(), true)));
        lower(&mut inner, case)?;
        inner.add_special_tokens(SPECIAL.map(|token| AddedToken::from(token, true))).map_err(failed)?;
        finish(inner)
    }
}

fn lower(inner: &mut Inner, case: Case) -> Result<()> {
    if case == Case::Lower {
        inner.with_normalizer(Some(Lowercase)).map_err(failed)?;
    }
    Ok(())
}

fn finish(mut inner: Inner) -> Result<Tokenizer> {
    let ids = ["<s>", "</s>"].map(|token| (token.to_owned(), inner.token_to_id(token).unwrap_or(0)));
    let template = TemplateProcessing::builder()
        .try_single("<s> $A </s>")
        .map_err(failed)?
        .special_tokens(ids.to_vec())
        .build()
        .map_err(failed)?;
    inner.with_post_processor(Some(template));
    Tokenizer::from_inner(inner)
}

fn failed(problem: impl std::fmt::Display) -> Error {
    Error::Tokenizer { source: Path::new("").into(), problem: problem.to_string() }
}
