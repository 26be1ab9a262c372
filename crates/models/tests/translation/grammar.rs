//! Rules that every sentence of the grammar keeps.

use std::collections::{HashMap, HashSet};

use foveal_models::layer::Random;
use foveal_models::translation::{Certainty, Grammar, Pair, Place, Sizes, Word, tokens};

fn samples(count: usize) -> impl Iterator<Item = Pair> {
    let mut random = Random::new(11);
    std::iter::repeat_with(move || Grammar::new().sample(&mut random)).take(count)
}

/// The English words that need no link: they say nothing by themselves, or Korean says it with an ending.
#[rustfmt::skip]
const GRAMMATICAL: &[&str] = &[
    "a", "an", "the", "there", "of", "do", "does", "did", "am", "is", "are", "was", "were", "be", "and", "to", "for", "with", "by", "in", "at", "on",
];

fn plain(word: impl ToString) -> String {
    word.to_string().trim_end_matches(['.', '?']).to_lowercase()
}

#[test]
fn alignments_are_well_formed() {
    for pair in samples(20_000) {
        let text = format!("{} = {}", pair.english_text(), pair.korean_text());
        for link in &pair.links {
            assert!(link.english.piece < pair.english[link.english.word].pieces.len(), "{text}");
            assert!(link.korean.piece < pair.korean[link.korean.word].pieces.len(), "{text}");
        }
        let sure = pair.word_links(Certainty::Sure);
        let all: HashSet<_> = pair.word_links(Certainty::Possible).into_iter().collect();
        assert!(sure.iter().all(|link| all.contains(link)), "{text}");
        for (i, word) in pair.english.iter().enumerate() {
            let linked = sure.iter().any(|link| link.0 == i);
            assert!(linked || GRAMMATICAL.contains(&plain(word).as_str()), "{word} in {text}");
            assert!(!linked || !["a", "an", "the", "of", "there"].contains(&plain(word).as_str()), "{word} in {text}");
        }
        for (i, word) in pair.korean.iter().enumerate() {
            assert!(sure.iter().any(|link| link.1 == i), "{word} in {text}");
        }
        // A piece's place in the sentence is its place among the tokens.
        let (english, korean) = (tokens(&pair.english), tokens(&pair.korean));
        for link in &pair.links {
            let piece = |words: &[Word], place: Place| words[place.word].pieces[place.piece].clone();
            let found = pair.piece_links(Certainty::Possible).iter().any(|&(e, k)| {
                english[e].trim_start_matches("##") == piece(&pair.english, link.english)
                    && korean[k].trim_start_matches("##") == piece(&pair.korean, link.korean)
            });
            assert!(found, "{text}");
        }
    }
}

#[test]
fn the_verb_comes_last_in_korean() {
    for pair in samples(5_000) {
        let last = plain(pair.korean.last().unwrap());
        assert!(last.ends_with('요'), "{}", pair.korean_text());
        let object = pair.korean.iter().position(|word| {
            matches!(word.pieces.last().map(String::as_str), Some("을" | "를")) && word.pieces.len() > 1
        });
        assert!(object.is_none_or(|object| object + 1 < pair.korean.len()), "{}", pair.korean_text());
    }
    // Subject, verb, object becomes subject, object, verb: the last two change places.
    let crossing = samples(5_000).filter(|pair| {
        let links = pair.word_links(Certainty::Sure);
        links.iter().any(|a| links.iter().any(|b| a.0 < b.0 && a.1 > b.1))
    });
    assert!(crossing.count() > 4_000);
}

#[test]
fn the_grammar_has_all_it_should() {
    let all: String =
        samples(20_000).map(|pair| format!("{} \t{} \n", pair.english_text(), pair.korean_text())).collect();
    let parts = [
        "은 ",
        "는 ",
        "이 ",
        "가 ",
        "을 ",
        "를 ",
        "와 ",
        "과 ",
        "로 ",
        "으로 ",
        "에 ",
        "에서 ",
        "에게 ",
        "의 ",
        "들",
        " 않아요.",
        " 않았어요.",
        " 거예요",
        " 거예요?",
        "고 있어요",
        "예요.",
        "이에요.",
        "였어요.",
        "아니에요.",
        "될 거예요",
        " 없어요.",
        " 두 ",
        " 마리",
        " 권",
        " 명",
        " 잔",
        "몇 ",
        "누가",
        "무엇을",
        "어디에",
        "어디에서",
        "언제",
        "왜",
        "우리 어머니",
        "제 ",
        "그녀의",
        "아주",
        "위에",
        "안에",
    ];
    for part in parts {
        assert!(all.contains(part), "{part}");
    }
}

#[test]
fn a_sentence_has_one_translation() {
    let mut known = HashMap::new();
    for pair in samples(100_000) {
        let (english, korean) = (pair.english_text(), pair.korean_text());
        let before = known.entry(english.clone()).or_insert_with(|| korean.clone());
        assert_eq!(*before, korean, "{english}");
    }
    assert!(known.len() > 80_000, "{} distinct of 100000", known.len());
}

#[test]
fn sentences_are_of_moderate_length() {
    let (english, korean): (Vec<usize>, Vec<usize>) =
        samples(20_000).map(|pair| (tokens(&pair.english).len(), tokens(&pair.korean).len())).unzip();
    let largest = (english.iter().max().unwrap(), korean.iter().max().unwrap());
    assert!(*largest.0 <= 24 && *largest.1 <= 28, "{largest:?}");
    assert!(english.iter().all(|&length| length >= 3) && korean.iter().all(|&length| length >= 3));
}

#[test]
fn a_seed_gives_the_same_sentences() {
    let one: Vec<Pair> = samples(100).collect();
    assert_eq!(one, samples(100).collect::<Vec<_>>());
    let sizes = Sizes { train: 2_000, sentences: 100, combinations: 100 };
    let corpus = Grammar::new().corpus(3, sizes);
    assert_eq!(corpus, Grammar::new().corpus(3, sizes));
    assert_ne!(corpus.kept_back, Grammar::new().corpus(4, sizes).kept_back);
    let more = Grammar::new().corpus(3, Sizes { train: 3_000, ..sizes });
    assert_eq!(
        (&more.sentences, &more.combinations, &more.kept_back),
        (&corpus.sentences, &corpus.combinations, &corpus.kept_back)
    );
    assert_eq!(more.train[..2_000], corpus.train);
}

#[test]
fn tests_hold_nothing_that_is_learned_from() {
    let corpus = Grammar::new().corpus(1, Sizes { train: 40_000, sentences: 1_000, combinations: 1_000 });
    let mut texts = HashSet::new();
    for pair in corpus.train.iter().chain(&corpus.sentences).chain(&corpus.combinations) {
        assert!(texts.insert(pair.english_text()), "{}", pair.english_text());
    }
    let kept: HashSet<_> = corpus.kept_back.iter().collect();
    assert!(kept.len() > 100);
    for pair in corpus.train.iter().chain(&corpus.sentences) {
        assert!(!pair.combinations.iter().any(|c| kept.contains(c)), "{}", pair.english_text());
    }
    let tested: HashSet<_> =
        corpus.combinations.iter().flat_map(|pair| &pair.combinations).filter(|c| kept.contains(c)).collect();
    assert!(tested.len() > 60, "{}", tested.len());
    for pair in &corpus.combinations {
        assert!(pair.combinations.iter().any(|c| kept.contains(c)), "{}", pair.english_text());
    }
    // Every word and every piece of the tests is learned, if in other company.
    for side in [|pair: &Pair| tokens(&pair.english), |pair: &Pair| tokens(&pair.korean)] {
        let learned: HashSet<String> = corpus.train.iter().flat_map(side).map(|token| token.to_lowercase()).collect();
        for pair in corpus.sentences.iter().chain(&corpus.combinations) {
            for token in side(pair) {
                assert!(learned.contains(&token.to_lowercase()), "{token} in {}", pair.english_text());
            }
        }
    }
}

#[test]
fn combinations_are_those_that_the_grammar_lists() {
    let all: HashSet<_> = Grammar::new().combinations().into_iter().collect();
    for pair in samples(20_000) {
        for combination in &pair.combinations {
            assert!(all.contains(combination), "{combination:?}");
        }
    }
}
