//! The three sets of files that a tokenizer comes in.

use std::path::Path;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{AddedToken, Tokenizer as Inner};

use super::outline::{self, Vocabulary};
use super::settings::{Letters, Settings};
use super::{SpecialTokens, Tokenizer, problem};
use crate::Result;
use crate::checkpoint::json::{Unique, parse, read_bounded};

/// The longest real ones, of vocabularies of a quarter million, have 35 MB.
const MAX_BYTES: u64 = 256 << 20;

pub(super) fn from_folder(folder: &Path) -> Result<Tokenizer> {
    let json = folder.join("tokenizer.json");
    if json.exists() {
        return from_json(folder, &json);
    }
    for (vocabulary, merges) in [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")] {
        let (vocabulary, merges) = (folder.join(vocabulary), folder.join(merges));
        if vocabulary.exists() && merges.exists() {
            return from_gpt2(folder, &vocabulary, &merges);
        }
    }
    let words = folder.join("vocab.txt");
    if words.exists() {
        return from_bert(folder, &words);
    }
    Err(problem(folder, "it has neither tokenizer.json, nor vocab.json and merges.txt, nor vocab.txt"))
}

fn from_json(folder: &Path, path: &Path) -> Result<Tokenizer> {
    let mut inner = parsed(path, &read_bounded(path, MAX_BYTES)?)?;
    Settings::read(folder)?.change(&mut inner, path)?;
    let special = SpecialTokens::from_folder(folder, |token| inner.token_to_id(token))?;
    Tokenizer::new(inner, special, path)
}

/// The tokenizer of a `tokenizer.json`, checked for what would make the library panic or go wrong.
pub(super) fn parsed(path: &Path, bytes: &[u8]) -> Result<Inner> {
    let added = outline::check(path, bytes)?;
    let inner = Inner::from_bytes(bytes).map_err(|error| problem(path, error))?;
    // The library gives added tokens the next free ids, whatever ids the file says.
    if let Some((token, id)) = added.iter().find(|(token, id)| inner.token_to_id(token) != Some(*id)) {
        let got = inner.token_to_id(token);
        return Err(problem(
            path,
            format!("the added token {token:?} has the id {id} in the file, but {got:?} by its place"),
        ));
    }
    Ok(inner)
}

fn from_gpt2(folder: &Path, vocabulary: &Path, merges: &Path) -> Result<Tokenizer> {
    let Unique(tokens) = parse(vocabulary, &read_bounded(vocabulary, MAX_BYTES)?)?;
    let tokens = outline::check_ids(vocabulary, tokens)?;
    let lines = text(merges)?;
    let lines = lines.lines().filter(|line| !line.starts_with("#version") && !line.trim().is_empty());
    let pairs = outline::pairs(merges, lines)?;
    let mut inner = byte_level(merges, tokens, pairs, false)?;
    let settings = Settings::read(folder)?;
    inner.with_pre_tokenizer(Some(ByteLevel::new(settings.prefix_space()?, true, true)));
    if let Some(end) = ["<|endoftext|>"].into_iter().find(|token| inner.token_to_id(token).is_some()) {
        inner.add_special_tokens([AddedToken::from(end, true)]).map_err(|error| problem(vocabulary, error))?;
    }
    settings.add_tokens(&mut inner)?;
    let special = SpecialTokens::from_folder(folder, |token| inner.token_to_id(token))?;
    settings.around(&special)?.apply(&mut inner, vocabulary)?;
    Tokenizer::new(inner, special, vocabulary)
}

/// A byte-level BPE without a rule yet for cutting text into words.
pub(super) fn byte_level(
    source: &Path,
    tokens: Vocabulary,
    merges: Vec<(String, String)>,
    ignore_merges: bool,
) -> Result<Inner> {
    outline::check_merges(source, &tokens, &merges, "")?;
    let model = BPE::builder().vocab_and_merges(tokens.into_iter().collect::<Vocab>(), merges);
    let model = model.ignore_merges(ignore_merges).build();
    let mut inner = Inner::new(model.map_err(|error| problem(source, error))?);
    inner.with_decoder(Some(ByteLevel::default()));
    Ok(inner)
}

fn from_bert(folder: &Path, path: &Path) -> Result<Tokenizer> {
    let lines = text(path)?;
    let tokens = lines.lines().zip(0..).map(|(token, id)| (token.trim_end().to_owned(), id)).collect();
    let settings = Settings::read(folder)?;
    let mut inner = word_piece(path, tokens, settings.letters()?)?;
    settings.add_tokens(&mut inner)?;
    let special = SpecialTokens::from_folder(folder, |token| inner.token_to_id(token))?;
    Tokenizer::new(inner, special, path)
}

/// BERT's WordPiece: words and punctuation, the pieces after a word's first marked with `##`.
pub(super) fn word_piece(source: &Path, tokens: Vec<(String, u32)>, letters: Letters) -> Result<Inner> {
    let mut names: Vec<&str> = tokens.iter().map(|(token, _)| token.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(problem(source, format!("the token {:?} is there twice", pair[0])));
    }
    let tokens = outline::check_ids(source, tokens)?;
    let id = |token: &str| {
        let id = tokens.get(token).copied();
        id.map(|id| (token.to_owned(), id)).ok_or_else(|| problem(source, format!("it has no token {token}")))
    };
    let (sep, cls) = (id("[SEP]")?, id("[CLS]")?);
    id("[UNK]")?;
    let model = WordPiece::builder().vocab(tokens.into_iter().collect::<Vocab>()).build();
    let mut inner = Inner::new(model.map_err(|error| problem(source, error))?);
    inner.with_normalizer(Some(letters.normalizer())).map_err(|error| problem(source, error))?;
    inner.with_pre_tokenizer(Some(BertPreTokenizer));
    inner.with_post_processor(Some(BertProcessing::new(sep, cls)));
    inner.with_decoder(Some(tokenizers::decoders::wordpiece::WordPiece::default()));
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(|token| AddedToken::from(token, true));
    let known: Vec<_> = special.into_iter().filter(|token| inner.token_to_id(&token.content).is_some()).collect();
    inner.add_special_tokens(known).map_err(|error| problem(source, error))?;
    Ok(inner)
}

fn text(path: &Path) -> Result<String> {
    String::from_utf8(read_bounded(path, MAX_BYTES)?).map_err(|error| problem(path, format!("not UTF-8: {error}")))
}
