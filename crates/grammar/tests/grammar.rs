//! Rules that every sentence of the grammar keeps.

use std::collections::{HashMap, HashSet};

use foveal_grammar::{Certainty, Construction, Grammar, Pair, Part, Place, Random, Role, Sizes, Word, tokens};

fn samples(count: usize) -> impl Iterator<Item = Pair> {
    let mut random = Random::new(11);
    let grammar = Grammar::new();
    std::iter::repeat_with(move || grammar.sample(&mut random)).take(count)
}

/// "Is" is a verb, but Korean may say it with an ending alone.
const BE: [&str; 15] = [
    "be", "am", "is", "are", "was", "were", "i'm", "he's", "she's", "it's", "that's", "there's", "you're", "we're",
    "they're",
];

fn plain(word: impl ToString) -> String {
    word.to_string().trim_end_matches(['.', '?', '!', ',']).to_lowercase()
}

fn shown(pair: &Pair) -> String {
    format!("{} = {}", pair.english_text(), pair.korean_text())
}

#[test]
fn every_content_word_stands_beside_its_word() {
    for pair in samples(50_000) {
        let text = shown(&pair);
        assert_eq!(pair.tags.len(), pair.english.len(), "{text}");
        for link in &pair.links {
            assert!(link.english.piece < pair.english[link.english.word].pieces.len(), "{text}");
            assert!(link.korean.piece < pair.korean[link.korean.word].pieces.len(), "{text}");
        }
        let sure = pair.word_links(Certainty::Sure);
        let all: HashSet<_> = pair.word_links(Certainty::Possible).into_iter().collect();
        assert!(sure.iter().all(|link| all.contains(link)), "{text}");
        for (i, (word, tag)) in pair.english.iter().zip(&pair.tags).enumerate() {
            let linked = sure.iter().any(|link| link.0 == i);
            let content = !matches!(tag.part, Part::Function | Part::Pronoun) && !BE.contains(&plain(word).as_str());
            assert!(linked || !content, "{word} ({:?}) in {text}", tag.part);
            let article = ["a", "an", "the", "of", "than"].contains(&plain(word).as_str());
            assert!(!linked || !article, "{word} in {text}");
        }
        for (i, word) in pair.korean.iter().enumerate() {
            assert!(sure.iter().any(|link| link.1 == i), "{word} in {text}");
        }
    }
}

#[test]
fn pieces_are_numbered_as_the_tokens_are() {
    for pair in samples(5_000) {
        let (english, korean) = (tokens(&pair.english), tokens(&pair.korean));
        let piece = |words: &[Word], place: Place| words[place.word].pieces[place.piece].clone();
        let numbered = pair.piece_links(Certainty::Possible);
        for link in &pair.links {
            let found = numbered.iter().any(|&(e, k)| {
                english[e].trim_start_matches("##") == piece(&pair.english, link.english)
                    && korean[k].trim_start_matches("##") == piece(&pair.korean, link.korean)
            });
            assert!(found, "{}", shown(&pair));
        }
    }
}

#[test]
fn subjects_and_objects_belong_to_verbs() {
    let mut seen = HashMap::<Role, usize>::new();
    for pair in samples(20_000) {
        for relation in pair.relations() {
            let (verb, word) = (pair.tags[relation.verb], pair.tags[relation.word]);
            assert_eq!((verb.role, word.role), (Some(Role::Verb), Some(relation.role)), "{}", shown(&pair));
            assert_eq!(verb.part, Part::Verb, "{}", shown(&pair));
            let noun = matches!(word.part, Part::Noun | Part::Name | Part::Pronoun | Part::Question | Part::Adverb);
            assert!(noun || pair.english[relation.word].pieces[0].contains('\''), "{} {relation:?}", shown(&pair));
            *seen.entry(relation.role).or_default() += 1;
        }
        for relation in pair.korean_relations() {
            assert!(relation.verb < pair.korean.len() && relation.word < pair.korean.len());
        }
    }
    assert!(seen[&Role::Subject] > 12_000 && seen[&Role::Object] > 6_000, "{seen:?}");
    let short = |pair: &Pair| pair.english.len() == 3 && pair.korean.len() == 3 && pair.relations().len() == 2;
    let pair = samples(200_000).find(short).expect("a sentence of a subject, a verb and an object");
    // English has the verb between them, Korean at the end.
    assert_eq!(pair.relations()[0].verb, 1);
    assert!(pair.korean_relations().iter().all(|relation| relation.verb == pair.korean.len() - 1), "{}", shown(&pair));
}

#[test]
fn the_verb_comes_last_in_korean() {
    let spoken = |pair: &Pair| pair.construction == Construction::Greeting;
    for pair in samples(20_000).filter(|pair| !spoken(pair)) {
        let last = plain(pair.korean.last().unwrap());
        assert!(last.ends_with('요'), "{}", shown(&pair));
        let object = pair.korean.iter().position(|word| {
            matches!(word.pieces.last().map(String::as_str), Some("을" | "를")) && word.pieces.len() > 1
        });
        assert!(object.is_none_or(|object| object + 1 < pair.korean.len()), "{}", shown(&pair));
    }
    // Subject, verb, object becomes subject, object, verb: the last two change places.
    let crossing = samples(5_000).filter(|pair| {
        let links = pair.word_links(Certainty::Sure);
        links.iter().any(|a| links.iter().any(|b| a.0 < b.0 && a.1 > b.1))
    });
    assert!(crossing.count() > 3_000);
}

#[test]
fn particles_agree_with_what_they_follow() {
    let closed = |c: char| ('가'..='힣').contains(&c) && !(c as u32 - 0xAC00).is_multiple_of(28);
    for pair in samples(30_000) {
        for word in pair.korean.iter().filter(|word| word.pieces.len() >= 2) {
            let (before, particle) = (word.pieces[0].chars().next_back().unwrap(), word.pieces[1].as_str());
            let fits = match particle {
                "은" | "이" | "을" | "과" => closed(before),
                "는" | "가" | "를" | "와" => {
                    !closed(before) || word.pieces[0].ends_with(['있', '없', '않', '읽', '듣'])
                }
                _ => true,
            };
            // 는 and 은 also end verbs: 읽는, 좋은.
            let verb = matches!(particle, "는" | "은" | "을") && !fits;
            assert!(fits || verb, "{word} in {}", shown(&pair));
        }
    }
}

#[test]
fn a_sentence_has_one_translation() {
    let mut known = HashMap::new();
    for pair in samples(300_000) {
        let (english, korean) = (pair.english_text(), pair.korean_text());
        let before = known.entry(english.clone()).or_insert_with(|| korean.clone());
        assert_eq!(*before, korean, "{english}");
    }
    assert!(known.len() > 240_000, "{} distinct of 300000", known.len());
}

#[test]
fn sentences_are_of_moderate_length() {
    let (english, korean): (Vec<usize>, Vec<usize>) =
        samples(50_000).map(|pair| (tokens(&pair.english).len(), tokens(&pair.korean).len())).unzip();
    let largest = (english.iter().max().unwrap(), korean.iter().max().unwrap());
    assert!(*largest.0 <= 32 && *largest.1 <= 40, "{largest:?}");
    let mean = english.iter().sum::<usize>() as f64 / english.len() as f64;
    assert!((5.0..10.0).contains(&mean), "{mean}");
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
    let corpus = Grammar::new().corpus(1, Sizes { train: 250_000, sentences: 1_000, combinations: 1_000 });
    let mut texts = HashSet::new();
    for pair in corpus.train.iter().chain(&corpus.sentences).chain(&corpus.combinations) {
        assert!(texts.insert(pair.english_text()), "{}", pair.english_text());
    }
    let kept: HashSet<_> = corpus.kept_back.iter().collect();
    assert!(kept.len() > 500);
    for pair in corpus.train.iter().chain(&corpus.sentences) {
        assert!(!pair.combinations.iter().any(|c| kept.contains(c)), "{}", pair.english_text());
    }
    let tested: HashSet<_> =
        corpus.combinations.iter().flat_map(|pair| &pair.combinations).filter(|c| kept.contains(c)).collect();
    assert!(tested.len() > 300, "{}", tested.len());
    for pair in &corpus.combinations {
        assert!(pair.combinations.iter().any(|c| kept.contains(c)), "{}", pair.english_text());
    }
    // The words and pieces of the tests are learned, if in other company; a few forms are rarer than that.
    let mut unseen = HashSet::new();
    for side in [|pair: &Pair| tokens(&pair.english), |pair: &Pair| tokens(&pair.korean)] {
        let learned: HashSet<String> = corpus.train.iter().flat_map(side).map(|token| token.to_lowercase()).collect();
        let tested =
            corpus.sentences.iter().chain(&corpus.combinations).flat_map(side).map(|token| token.to_lowercase());
        unseen.extend(tested.filter(|token| !learned.contains(token)));
    }
    assert!(unseen.len() <= 5, "{unseen:?}");
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
