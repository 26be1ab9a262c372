//! Rules that every exercise keeps.

use std::collections::BTreeSet;

use foveal_facts::{Exercise, Facts, Language, Settings, is_held_out};
use foveal_grammar::Random;

fn exercises(settings: &Settings, count: usize, seed: u64) -> Vec<Exercise> {
    let (facts, mut random) = (Facts::new(), Random::new(seed));
    (0..count).map(|_| facts.exercise(settings, &mut random)).collect()
}

#[test]
fn an_answer_stands_in_its_passage_and_not_in_the_question() {
    for language in Language::ALL {
        for exercise in exercises(&Settings::learned(language, 3), 2000, 7) {
            assert_eq!(exercise.passages.len(), 3);
            assert!(exercise.passages.iter().all(|passage| !passage.trim().is_empty()), "{exercise:?}");
            assert!(!exercise.question.contains(['{', '}', '|']), "{exercise:?}");
            let Some(answer) = &exercise.answer else { continue };
            assert!(
                exercise.passages[answer.passage].to_lowercase().contains(&answer.text.to_lowercase()),
                "{exercise:?}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_exercises() {
    let settings = Settings::learned(Language::Korean, 2);
    assert_eq!(exercises(&settings, 50, 3), exercises(&settings, 50, 3));
    assert_ne!(exercises(&settings, 50, 3), exercises(&settings, 50, 4));
}

#[test]
fn as_many_have_no_answer_as_asked_for() {
    for (percent, least, most) in [(0, 0, 0), (17, 250, 450), (100, 2000, 2000)] {
        let settings = Settings::learned(Language::English, 1).unanswerable(percent);
        let without = exercises(&settings, 2000, 5).iter().filter(|exercise| exercise.answer.is_none()).count();
        assert!((least..=most).contains(&without), "{without} of 2000 at {percent} %");
    }
}

#[test]
fn held_out_names_are_never_learned() {
    // Capital words that are not at the beginning of a sentence are names, days, months and titles.
    let names = |exercises: &[Exercise]| -> BTreeSet<String> {
        let questions = exercises.iter().flat_map(|exercise| exercise.question.split([' ', '?', '\'']).skip(1));
        questions.filter(|word| word.starts_with(char::is_uppercase) && word.len() > 3).map(str::to_owned).collect()
    };
    let learned = names(&exercises(&Settings::learned(Language::English, 1), 4000, 1));
    let held_out = names(&exercises(&Settings::held_out(Language::English, 1), 1000, 2));
    let both: Vec<_> = learned.intersection(&held_out).filter(|name| is_held_out(name)).collect();
    // What both have are words of titles, which no hash divides.
    let titles = include_str!("../data/english-words.txt").lines().find(|line| line.starts_with("title")).unwrap();
    assert!(both.iter().all(|name| titles.contains(name.as_str())), "{both:?}");
    assert!(held_out.iter().filter(|name| is_held_out(name)).count() > 300);
}

#[test]
fn names_do_not_come_twice() {
    let mut questions = BTreeSet::new();
    let all = exercises(&Settings::learned(Language::Korean, 1), 3000, 9);
    all.iter().for_each(|exercise| _ = questions.insert(&exercise.question));
    // Shops, events and buildings have no names of their own, and are asked about again.
    assert!(questions.len() > 2500, "{} different questions of 3000", questions.len());
}
