//! Vocabularies made from texts.

use foveal_grammar::{Corpus, Grammar, Pair, Random, Sizes, tokens};
use foveal_models::Tokenizer;
use foveal_models::translation::{Case, Vocabulary};

const TEXTS: [&str; 4] = ["The cat sleeps.", "The dog sleeps, too.", "고양이가 자요.", "고양이는 자지 않아요?"];

fn special(tokenizer: &Tokenizer) -> [Option<u32>; 4] {
    let special = tokenizer.special();
    [special.pad, special.bos, special.eos, special.unk]
}

/// Saved and read again, a tokenizer does the same.
fn survives(tokenizer: &Tokenizer, texts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    tokenizer.save(folder.path()).unwrap();
    let again = Tokenizer::from_folder(folder.path()).unwrap();
    assert_eq!((again.vocabulary(), special(&again)), (tokenizer.vocabulary(), special(tokenizer)));
    for text in texts {
        assert_eq!(again.encode(text).unwrap(), tokenizer.encode(text).unwrap());
    }
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["tokenizer.json"]);
}

#[test]
fn words_come_back_as_they_were() {
    let tokenizer = Vocabulary::words().train(TEXTS).unwrap();
    assert_eq!(special(&tokenizer), [Some(0), Some(1), Some(2), Some(3)]);
    for text in TEXTS {
        let encoding = tokenizer.encode(text).unwrap();
        assert_eq!((encoding.ids()[0], *encoding.ids().last().unwrap()), (1, 2));
        assert_eq!(tokenizer.decode(encoding.ids()).unwrap(), text);
    }
    let encoding = tokenizer.encode_bare("The bird sleeps.").unwrap();
    assert_eq!(encoding.ids().iter().filter(|&&id| id == 3).count(), 1);
    assert_eq!(encoding.words(), [Some(0), Some(1), Some(2), Some(2)]);
    survives(&tokenizer, &TEXTS);
    let few = Vocabulary::words().size(6).train(TEXTS).unwrap();
    assert_eq!(few.vocabulary(), 6);
    let frequent = Vocabulary::words().least(2).train(TEXTS).unwrap();
    assert!(frequent.id("▁sleeps").is_some() && frequent.id("▁cat").is_none());
    let lower = Vocabulary::words().case(Case::Lower).train(TEXTS).unwrap();
    assert_eq!(lower.encode_bare("THE").unwrap().ids(), lower.encode_bare("the").unwrap().ids());
    assert_eq!(lower.encode_bare("THE").unwrap().labels(), ["THE"]);
}

#[test]
fn byte_pairs_write_any_text() {
    let tokenizer = Vocabulary::byte_pairs(400).train(TEXTS).unwrap();
    assert_eq!(special(&tokenizer), [Some(0), Some(1), Some(2), Some(3)]);
    assert!(tokenizer.vocabulary() > 260 && tokenizer.vocabulary() <= 400);
    let odd = ["", "뷁 😀\n\t x  y ", "<s> is spelt", "The cat sleeps."];
    for text in TEXTS.into_iter().chain(odd) {
        let encoding = tokenizer.encode(text).unwrap();
        assert!(!encoding.ids().contains(&3));
        if !text.contains("<s>") {
            assert_eq!(tokenizer.decode(encoding.ids()).unwrap(), text);
        }
    }
    survives(&tokenizer, &TEXTS);
    assert_eq!(Vocabulary::byte_pairs(1).train(TEXTS).unwrap().vocabulary(), 260);
}

#[test]
fn the_same_texts_give_the_same_vocabulary() {
    let mut random = Random::new(2);
    let texts: Vec<String> = (0..500).map(|_| Grammar::new().sample(&mut random).korean_text()).collect();
    for vocabulary in [Vocabulary::words(), Vocabulary::byte_pairs(600)] {
        let ids = |tokenizer: Tokenizer| {
            texts.iter().map(|text| tokenizer.encode(text).unwrap().ids().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(ids(vocabulary.train(&texts).unwrap()), ids(vocabulary.train(&texts).unwrap()));
    }
}

#[test]
fn nothing_to_learn_from_is_an_error() {
    for texts in [&[][..], &[""], &["  "]] {
        assert!(Vocabulary::words().train(texts.iter().copied()).is_err(), "{texts:?}");
    }
    assert!(Vocabulary::pieces([""; 0], Case::Keep).is_err());
    assert!(Vocabulary::byte_pairs(300).train([""; 0]).is_ok());
}

/// The pieces that the grammar cuts words into are those that the tokenizer finds in the text, but for words that can be
/// cut in two ways: 사고 is "an accident" and "buys, and".
fn found_again(corpus: &Corpus, pieces: fn(&Pair) -> Vec<String>, text: fn(&Pair) -> String, case: Case) {
    let folded = |text: String| if case == Case::Lower { text.to_lowercase() } else { text };
    let tokenizer = Vocabulary::pieces(corpus.train.iter().flat_map(pieces), case).unwrap();
    assert_eq!(special(&tokenizer), [Some(0), Some(1), Some(2), Some(3)]);
    let (mut alike, mut sentences) = (0, 0);
    for pair in corpus.train.iter().take(5_000).chain(&corpus.sentences).chain(&corpus.combinations) {
        let encoding = tokenizer.encode_bare(&text(pair)).unwrap();
        let found: Vec<String> = encoding.ids().iter().map(|&id| tokenizer.token(id).unwrap()).collect();
        // A form that is too rare to be in the training set is an unknown word.
        if encoding.ids().contains(&3) {
            continue;
        }
        sentences += 1;
        assert_eq!(tokenizer.decode(encoding.ids()).unwrap(), folded(text(pair)));
        assert_eq!(tokenizer.describe(encoding.ids()).unwrap().words(), encoding.words());
        // Attention to tokens can be held against links of words: both number them alike.
        let sides = [&pair.english, &pair.korean];
        let side = sides.into_iter().find(|side| tokens(side) == pieces(pair)).unwrap();
        assert_eq!(encoding.words().iter().flatten().max(), Some(&(side.len() - 1)));
        let expected = side.iter().enumerate().flat_map(|(i, word)| word.pieces.iter().map(move |_| Some(i)));
        if found == pieces(pair).into_iter().map(folded).collect::<Vec<_>>() {
            assert_eq!(encoding.words(), expected.collect::<Vec<_>>());
            alike += 1;
        }
    }
    assert!(sentences >= 5_990 && alike * 100 >= sentences * 97, "{alike} of {sentences}");
    survives(&tokenizer, &[&text(&corpus.train[0])]);
    assert_eq!(tokenizer.encode("xyzzy").unwrap().ids(), [1, 3, 2]);
}

#[test]
fn pieces_are_found_again() {
    let corpus = Grammar::new().corpus(1, Sizes { train: 120_000, sentences: 500, combinations: 500 });
    found_again(&corpus, |pair| tokens(&pair.english), Pair::english_text, Case::Lower);
    found_again(&corpus, |pair| tokens(&pair.korean), Pair::korean_text, Case::Keep);
}
