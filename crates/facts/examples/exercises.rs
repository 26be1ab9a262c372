//! Prints exercises: `cargo run -p foveal-facts --example exercises -- [number] [seed] [passages]`.

use foveal_facts::{Facts, Language, Settings};
use foveal_grammar::Random;

fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|argument| argument.parse().ok());
    let mut next = |otherwise: usize| numbers.next().unwrap_or(otherwise);
    let (count, seed, passages) = (next(10), next(1), next(1));
    let (facts, mut random) = (Facts::new(), Random::new(seed as u64));
    for number in 0..count {
        let exercise = facts.exercise(&Settings::learned(Language::ALL[number % 2], passages), &mut random);
        exercise.passages.iter().for_each(|passage| println!("{passage}"));
        println!("  {}", exercise.question);
        println!("  {}\n", exercise.answer.map_or("-".to_owned(), |answer| answer.text));
    }
}
