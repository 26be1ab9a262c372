//! What is held out is never learned from, though sentences like it are.

use std::collections::HashSet;

use foveal_grammar::{Grammar, HeldOut, Random, everyday, normalised};

#[test]
fn no_sentence_is_one_of_those_held_out() {
    assert_eq!(everyday().count(), 60);
    let held_out = HeldOut::everyday();
    let (english, korean): (HashSet<_>, HashSet<_>) = everyday().map(|(e, k)| (normalised(e), normalised(k))).unzip();
    let grammar = Grammar::new();
    let mut random = Random::new(21);
    for _ in 0..500_000 {
        let pair = grammar.sample(&mut random);
        assert!(!english.contains(&normalised(&pair.english_text())), "{}", pair.english_text());
        assert!(!korean.contains(&normalised(&pair.korean_text())), "{}", pair.korean_text());
        assert!(!held_out.holds(&pair));
    }
}

#[test]
fn what_is_excluded_does_not_come() {
    let mut random = Random::new(4);
    let some: Vec<String> = (0..2_000).map(|_| Grammar::new().sample(&mut random).english_text()).collect();
    let grammar = Grammar::new().excluding(&some);
    let mut random = Random::new(4);
    let excluded: HashSet<_> = some.iter().map(|sentence| normalised(sentence)).collect();
    for _ in 0..4_000 {
        assert!(!excluded.contains(&normalised(&grammar.sample(&mut random).english_text())));
    }
}

#[test]
fn every_word_of_what_is_held_out_is_known() {
    let words = Grammar::new().english_vocabulary();
    for (english, _) in everyday() {
        for word in english.to_lowercase().split_whitespace() {
            let word = word.trim_end_matches(['.', ',', '?', '!']);
            assert!(words.contains(word), "{word} in {english}");
        }
    }
}
