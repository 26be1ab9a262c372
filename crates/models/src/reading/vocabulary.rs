//! The vocabulary of a reader.
//!
//! English is cut into byte pairs learned from a text; digits and Hangul syllables stand alone, so that a name can be copied
//! without the particle after it; whatever else there is becomes bytes. Spaces belong to the English word that follows.

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::normalizers::Replace;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::{AddedToken, DecoderWrapper, SplitDelimiterBehavior, Tokenizer as Inner};

use super::input::SPECIAL;
use crate::{Error, Result, Tokenizer};

/// A vocabulary with `pairs` byte pairs of these English texts and with these syllables.
///
/// ```
/// use foveal_models::reading::reader_vocabulary;
///
/// let tokenizer = reader_vocabulary(["Tom lives in Rome. Tom has a key."; 20], '가'..='힣', 40)?;
/// let encoding = tokenizer.encode_bare("Tom, 서울에 7 \u{1f511}")?;
/// assert_eq!(encoding.labels()[..7], ["Tom", ",", " ", "서", "울", "에", " "]);
/// assert_eq!(tokenizer.decode(encoding.ids())?, "Tom, 서울에 7 \u{1f511}");
/// # Ok::<(), foveal_models::Error>(())
/// ```
///
/// # Errors
/// If the texts hold no word.
pub fn reader_vocabulary<S: AsRef<str> + Send>(
    texts: impl IntoIterator<Item = S, IntoIter: Send>,
    syllables: impl IntoIterator<Item = char>,
    pairs: usize,
) -> Result<Tokenizer> {
    let alphabet: std::collections::HashSet<char> = (' '..='~').filter(|c| *c != ' ').chain(['▁']).collect();
    let mut inner = Inner::new(BPE::default());
    inner.with_pre_tokenizer(Some(pieces()));
    let trainer = BpeTrainer::builder()
        .vocab_size(alphabet.len() + pairs)
        .min_frequency(2)
        .show_progress(false)
        .limit_alphabet(alphabet.len())
        .initial_alphabet(alphabet)
        .build();
    inner.train(&mut TrainerWrapper::BpeTrainer(trainer), texts.into_iter()).map_err(failed)?;
    let learned = inner.get_model();
    let tokenizers::ModelWrapper::BPE(learned) = learned else { unreachable!("it was made of byte pairs") };
    let mut tokens: Vec<(String, u32)> = learned.get_vocab().into_iter().collect();
    tokens.sort_by_key(|(_, id)| *id);
    let bytes = (0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>"));
    let special = SPECIAL.into_iter().map(str::to_owned);
    let all = special.chain(bytes).chain(tokens.into_iter().map(|(token, _)| token));
    let mut vocabulary = Vocab::default();
    for token in all.chain(syllables.into_iter().map(String::from)) {
        let next = vocabulary.len() as u32;
        vocabulary.entry(token).or_insert(next);
    }
    let merges = serde_json::to_value(learned).ok().and_then(|model| merges(&model)).unwrap_or_default();
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .unk_token("<unk>".into())
        .byte_fallback(true)
        .build()
        .map_err(failed)?;
    let mut inner = Inner::new(model);
    inner.with_pre_tokenizer(Some(pieces()));
    let space = Replace::new("▁", " ").map_err(failed)?;
    let steps: Vec<DecoderWrapper> =
        vec![space.into(), ByteFallback::new().into(), Fuse::new().into(), Strip::new(' ', 1, 0).into()];
    inner.with_decoder(Some(Decoders::new(steps)));
    inner.add_special_tokens(SPECIAL.map(|token| AddedToken::from(token, true))).map_err(failed)?;
    Tokenizer::from_inner(inner)
}

/// Words with the space before them; digits and punctuation marks alone.
fn pieces() -> Sequence {
    Sequence::new(vec![
        Metaspace::new('▁', PrependScheme::Always, true).into(),
        Digits::new(true).into(),
        Punctuation::new(SplitDelimiterBehavior::Isolated).into(),
    ])
}

/// The merges of a model as it is saved: pairs, in order.
fn merges(model: &serde_json::Value) -> Option<Vec<(String, String)>> {
    let pair = |pair: &serde_json::Value| match pair {
        serde_json::Value::String(pair) => {
            pair.split_once(' ').map(|(left, right)| (left.to_owned(), right.to_owned()))
        }
        pair => Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned())),
    };
    model.get("merges")?.as_array()?.iter().map(pair).collect()
}

fn failed(problem: impl std::fmt::Display) -> Error {
    Error::Tokenizer { source: std::path::PathBuf::new(), problem: problem.to_string() }
}
