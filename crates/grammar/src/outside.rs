//! Sentences that the grammar cannot have written, to learn what is outside of it.
//!
//! A sentence is spoilt: words change places, go, come, or are taken from another sentence. That may well give another
//! sentence of the grammar. So words are put into classes, words of grammar each in its own, others by what they are, and a
//! spoilt sentence counts only if it has three classes in a row that no sentence of a large sample has.

use std::collections::HashSet;

use crate::held_out::hash;
use crate::pair::{Pair, Part, Tag, Word};
use crate::{Grammar, Random};

/// What three words in a row may be.
#[derive(Clone, Debug)]
pub struct Outside {
    seen: HashSet<u64>,
}

/// How many times a sentence is spoilt anew before it is given up.
const TRIALS: usize = 8;

/// The class before the first and after the last word.
const EDGE: u64 = 0;

impl Outside {
    /// Learns what is inside from so many sentences.
    pub fn new(grammar: &Grammar, samples: usize, seed: u64) -> Self {
        let mut random = Random::stream(seed, 4);
        let mut outside = Outside { seen: HashSet::new() };
        for _ in 0..samples {
            let pair = grammar.sample(&mut random);
            let classes: Vec<u64> = pair.english.iter().zip(&pair.tags).map(class).collect();
            outside.seen.extend(triples(&classes));
        }
        outside
    }

    /// A sentence made of this one, and of another, that is outside the grammar; none if none was found. The words keep their
    /// pieces; the mark at the end stays there.
    pub fn spoil(&self, pair: &Pair, other: &Pair, random: &mut Random) -> Option<Vec<Word>> {
        let words = |pair: &Pair| -> Vec<(Word, u64)> {
            let classes = pair.english.iter().zip(&pair.tags).map(class);
            pair.english.iter().map(without_mark).zip(classes).collect()
        };
        let (own, others) = (words(pair), words(other));
        for _ in 0..TRIALS {
            let mut spoilt = own.clone();
            for _ in 0..1 + random.below(3) {
                spoil_once(&mut spoilt, &others, random);
            }
            let classes: Vec<u64> = spoilt.iter().map(|(_, class)| *class).collect();
            if !spoilt.is_empty() && triples(&classes).any(|triple| !self.seen.contains(&triple)) {
                let mut words: Vec<Word> = spoilt.into_iter().map(|(word, _)| word).collect();
                if let (Some(last), Some(mark)) = (words.last_mut(), mark(&pair.english)) {
                    last.pieces.push(mark);
                }
                return Some(words);
            }
        }
        None
    }
}

fn spoil_once(words: &mut Vec<(Word, u64)>, others: &[(Word, u64)], random: &mut Random) {
    let n = words.len();
    if n == 0 || others.is_empty() {
        return;
    }
    let (at, to) = (random.below(n), random.below(n));
    let other = others[random.below(others.len())].clone();
    match random.below(6) {
        0 => words.swap(at, (at + 1) % n),
        1 => {
            let word = words.remove(at);
            words.insert(to, word);
        }
        2 => drop(words.remove(at)),
        3 => words.insert(at, other),
        4 => words[at] = other,
        _ => {
            words.truncate(at + 1);
            words.extend_from_slice(&others[random.below(others.len())..]);
        }
    }
}

/// A class: the word itself if it is one of grammar, else its part of speech and its form.
fn class((word, tag): (&Word, &Tag)) -> u64 {
    let text = without_mark(word).to_string().to_lowercase();
    let form = ["ing", "ed", "s", "est", "er", ","].iter().position(|ending| text.ends_with(ending)).unwrap_or(9);
    match tag.part {
        Part::Function | Part::Pronoun | Part::Question => mixed(&[hash(&text)]),
        part => mixed(&[part as u64, form as u64]),
    }
}

fn triples(classes: &[u64]) -> impl Iterator<Item = u64> {
    let mut around = Vec::with_capacity(classes.len() + 2);
    around.push(EDGE);
    around.extend_from_slice(classes);
    around.push(EDGE);
    (2..around.len()).map(move |end| mixed(&around[end - 2..=end]))
}

/// The mark that ends a sentence.
fn mark(words: &[Word]) -> Option<String> {
    words.last()?.pieces.last().filter(|piece| matches!(piece.as_str(), "." | "?" | "!")).cloned()
}

fn without_mark(word: &Word) -> Word {
    let pieces = word.pieces.iter().filter(|piece| !matches!(piece.as_str(), "." | "?" | "!"));
    Word { pieces: pieces.cloned().collect() }
}

fn mixed(numbers: &[u64]) -> u64 {
    numbers
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, number| (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoilt_is_no_sentence_and_what_is_not_is_one() {
        let grammar = Grammar::new();
        let outside = Outside::new(&grammar, 60_000, 1);
        let mut random = Random::new(9);
        let (mut inside, mut spoilt) = (0, 0);
        for _ in 0..1_000 {
            let [pair, other] = [(); 2].map(|()| grammar.sample(&mut random));
            let classes: Vec<u64> = pair.english.iter().zip(&pair.tags).map(class).collect();
            inside += usize::from(triples(&classes).all(|triple| outside.seen.contains(&triple)));
            if let Some(words) = outside.spoil(&pair, &other, &mut random) {
                spoilt += 1;
                let marks =
                    words.iter().flat_map(|word| &word.pieces).filter(|piece| matches!(piece.as_str(), "." | "?"));
                assert!(marks.count() <= 1);
            }
        }
        assert!(inside > 900 && spoilt > 950, "{inside} {spoilt}");
    }
}
