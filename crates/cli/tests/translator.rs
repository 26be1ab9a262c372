//! The translator inside: what it gets right, how sure it is, what it copies and what it refuses.

mod support;

use std::path::PathBuf;

use foveal_grammar::{Grammar, Pair, Random, Sizes, everyday};
use foveal_models::OpenModel;
use foveal_models::translation::score::{Tokens, bleu, chrf};
use foveal_models::translation::{Languages, Translation};
use support::{json, printed};

/// From here on the translator counts as sure.
const SURE: f32 = 0.9;

/// Sentences that the grammar has not, of words that it mostly has.
const OUTSIDE: &str = include_str!("outside.txt");

fn translations<S: AsRef<str>>(sentences: &[S]) -> Vec<Translation> {
    let open = OpenModel::open("translate-en-ko").unwrap();
    let languages =
        Languages { source: open.tokenizer().unwrap().clone(), target: open.target_tokenizer().unwrap().clone() };
    languages.translations(open.translator().unwrap(), sentences.iter().map(AsRef::as_ref)).unwrap()
}

fn sure(translations: &[Translation]) -> f64 {
    share(translations.iter().map(|translation| translation.confidence >= SURE))
}

fn share(of: impl Iterator<Item = bool>) -> f64 {
    let all: Vec<bool> = of.collect();
    all.iter().filter(|yes| **yes).count() as f64 / all.len().max(1) as f64
}

#[test]
fn what_it_is_sure_of_is_right() {
    // The sentences that training held out.
    let held_out = Grammar::new().corpus(1337, Sizes { train: 0, sentences: 1000, combinations: 0 }).sentences;
    let texts: Vec<String> = held_out.iter().map(Pair::english_text).collect();
    let translated = translations(&texts);
    let right = translated.iter().zip(&held_out).filter(|(one, _)| one.confidence >= SURE);
    let right = share(right.map(|(one, pair)| one.text == pair.korean_text()));
    println!("{:.3} of held-out sentences sure, of these {right:.3} right", sure(&translated));
    assert!(sure(&translated) >= 0.8 && right >= 0.95, "{} sure, of these {right} right", sure(&translated));
    let mut random = Random::new(3);
    let shuffled: Vec<String> = texts.iter().filter_map(|text| shuffled(text, &mut random)).collect();
    assert!(sure(&translations(&shuffled)) <= 0.1, "{} of shuffled sentences", sure(&translations(&shuffled)));
    let outside: Vec<&str> = OUTSIDE.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(sure(&translations(&outside)) <= 0.1, "{} of sentences outside", sure(&translations(&outside)));
}

fn shuffled(text: &str, random: &mut Random) -> Option<String> {
    let mut words: Vec<&str> = text.trim_end_matches(['.', '?', '!']).split_whitespace().collect();
    for i in (1..words.len()).rev() {
        words.swap(i, random.below(i + 1));
    }
    let mixed = format!("{}.", words.join(" "));
    (words.len() >= 4 && mixed != text).then_some(mixed)
}

#[test]
fn sixty_everyday_sentences_are_right_or_doubted() {
    let (english, korean): (Vec<_>, Vec<_>) = everyday().unzip();
    let translated = translations(&english);
    let wrong = translated.iter().zip(&korean).filter(|(one, korean)| one.text != **korean);
    let wrong: Vec<_> = wrong.map(|(one, korean)| (&one.text, *korean, one.confidence)).collect();
    assert!(wrong.len() <= 10, "{wrong:#?}");
    assert!(wrong.iter().all(|(_, _, confidence)| *confidence < SURE), "{wrong:#?}");
}

#[test]
fn unknown_words_are_copied_and_marked() {
    for (sentence, word) in [("I like blockchain.", "blockchain"), ("Zorblat sleeps.", "Zorblat")] {
        let figures = json(&["translate", sentence]);
        assert!(figures["translation"].as_str().unwrap().contains(word), "{figures}");
        assert_eq!(figures["unknown"][0]["word"], word);
        assert!(figures["confidence"].as_f64().unwrap() < 0.9);
    }
    assert!(printed(&["translate", "hello"]).starts_with("안녕하세요"));
    let korean = json(&["translate", "고양이가 쥐를 잡았다"]);
    assert!(korean["translation"].is_null() && korean["refused"].as_str().unwrap().contains("English"));
}

/// Sentences of others, in plain style (빛난다) where the grammar writes polite style (빛나요): most cannot be right to the letter.
/// The scores stand in the model's card.
#[test]
fn sentences_of_others_are_scored() {
    let Some((english, korean)) = others() else { return };
    assert_eq!((english.len(), korean.len()), (218, 218));
    let translated = translations(&english);
    let pairs = || translated.iter().map(|one| one.text.as_str()).zip(korean.iter().map(String::as_str));
    let (bleu, chrf) = (bleu(pairs(), Tokens::Characters).score, chrf(pairs()));
    println!("218 sentences of others: BLEU (characters) {bleu:.1}, chrF {chrf:.1}, {:.3} sure", sure(&translated));
    assert!(bleu > 5.0 && chrf > 5.0, "BLEU {bleu}, chrF {chrf}");
}

/// Those that `make data` has fetched, in both languages.
fn others() -> Option<(Vec<String>, Vec<String>)> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || var("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let folder = var("FOVEAL_TEST_CACHE").or_else(|| Some(caches()?.join("foveal-test")))?.join("everyday");
    let required = std::env::var_os("FOVEAL_TEST_DATA").is_some_and(|value| value == "required");
    let Ok(korean) = std::fs::read_to_string(folder.join("translations.jsonl")) else {
        assert!(!required, "{} is not there: run make data", folder.display());
        return None;
    };
    let line =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    let english = std::fs::read_to_string(folder.join("essential-218.js")).unwrap();
    let english = english.lines().filter_map(|line| line.trim().strip_prefix("text: "));
    let english = english.map(|text| serde_json::from_str(text.trim_end_matches(',')).unwrap());
    Some((english.collect(), korean.lines().map(line).collect()))
}
