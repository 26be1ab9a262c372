//! Whether the words go together.

use std::collections::HashSet;

use super::*;

#[test]
fn there_are_two_thousand_content_words() {
    assert!(content_words().len() >= 2_000, "{}", content_words().len());
}

#[test]
fn every_noun_goes_with_something() {
    let mut used = HashSet::new();
    for verb in verbs() {
        let nouns = [&verb.who, &verb.what, &verb.place, &verb.tools];
        used.extend(nouns.into_iter().flatten().map(|noun| noun.english));
    }
    used.extend(adjectives().iter().flat_map(|adjective| &adjective.fits).map(|noun| noun.english));
    // What sentences of their own are about.
    used.extend(["illness", "structure", "event", "owned"].into_iter().flat_map(of_kind).map(|noun| noun.english));
    let alone: Vec<_> = nouns().iter().filter(|noun| !used.contains(noun.english)).map(|noun| noun.english).collect();
    assert!(alone.is_empty(), "{alone:?}");
}

#[test]
fn common_words_are_words() {
    let known: HashSet<String> = nouns()
        .iter()
        .flat_map(|noun| [noun.english.to_owned(), noun.plural.clone()])
        .chain(verbs().iter().map(|verb| verb.english.base.clone()))
        .chain(adjectives().iter().map(|adjective| adjective.english.to_owned()))
        .collect();
    for line in include_str!("../../data/common.txt").lines().filter(|line| !line.starts_with('#')) {
        for word in line.split_whitespace().map(|word| word.replace('_', " ")) {
            assert!(known.contains(&word), "{word}");
        }
    }
}

#[test]
fn names_of_nouns_in_other_files_are_nouns() {
    let known: HashSet<&str> = nouns().iter().map(|noun| noun.english).collect();
    for file in [include_str!("../../data/verbs.txt"), include_str!("../../data/adjectives.txt")] {
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            for word in line.split_whitespace().filter_map(|word| word.trim_start_matches('-').strip_prefix('=')) {
                assert!(known.contains(word.replace('_', " ").as_str()), "{word} in {line}");
            }
        }
    }
    let kinds: HashSet<&str> = nouns().iter().flat_map(Noun::kinds).copied().collect();
    for verb in include_str!("../../data/verbs.txt").lines().filter(|line| line.contains('|') && !line.starts_with('#'))
    {
        for column in verb.split('|').skip(2).take(3) {
            for word in column.split_whitespace().map(|word| word.trim_start_matches('-')) {
                let known =
                    word.is_empty() || word.starts_with('=') || matches!(word, "to" | "for") || kinds.contains(word);
                assert!(known, "{word} in {verb}");
            }
        }
    }
}

#[test]
fn what_stands_before_nouns_alone_is_no_stem() {
    for adjective in adjectives() {
        match adjective.korean {
            Attribute::Before(korean) | Attribute::Colour(korean) => assert!(!korean.ends_with('다'), "{korean}"),
            Attribute::Stem(said) => assert!(said.stem.dictionary().ends_with('다'), "{}", adjective.english),
        }
    }
}
