//! What the translator inside is trained on: sentences of the grammar as tokens, without end.
//!
//! Of a hundred, 64 are the grammar's own; 14 have words that nobody knows, in slots; 22 are spoilt, and all there is to
//! write for those is `<unsure>`. Some lose the mark at their end, or have digits, as people type.

use std::collections::HashMap;

use anyhow::Result;
use foveal_grammar::{Certainty, Corpus, Grammar, Learning, Outside, Pair, Part, Random, Word, tokens};
use foveal_models::generate::beam::UNSURE;
use foveal_models::layer;
use foveal_models::train::Example;
use foveal_models::translation::{Case, Languages, Vocabulary};

/// Sentences that what is inside the grammar is known from, at most.
const INSIDE: usize = 300_000;
/// Sentences that the vocabulary is made from, at most.
const SPELT: usize = 200_000;
/// How often a piece must be among these to be learned at all.
const LEAST: usize = 2;
/// Of a hundred sentences, those that are spoilt, and those with unknown words.
const SPOILT: usize = 22;
const UNKNOWN: usize = 14;

/// Numbers as they are also written.
const DIGITS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Sentences without end.
pub struct Material<'g> {
    learning: Learning<'g>,
    outside: Outside,
}

/// A pair in pieces: what is read, what is written, and which stand for each other.
struct Spelt {
    english: Vec<String>,
    korean: Vec<String>,
    links: Vec<(usize, usize)>,
}

impl<'g> Material<'g> {
    /// For a run that learns from so many sentences: of a short one, less is prepared.
    pub fn new(grammar: &'g Grammar, corpus: &Corpus, sentences: usize, seed: u64) -> Self {
        let outside = Outside::new(grammar, INSIDE.min(20 * sentences), seed);
        Material { learning: corpus.learning(grammar), outside }
    }

    /// The pieces that the run will see: those that it hardly ever would are not learned, and not known.
    pub fn languages(&self, sentences: usize, seed: u64) -> Result<Languages> {
        let (mut english, mut korean) = (HashMap::<String, usize>::new(), HashMap::<String, usize>::new());
        let mut random = Random::stream(seed, 5);
        for _ in 0..SPELT.min(20 * sentences) {
            let spelt = self.spell(&mut random);
            spelt.english.into_iter().for_each(|piece| *english.entry(piece).or_default() += 1);
            spelt.korean.into_iter().for_each(|piece| *korean.entry(piece).or_default() += 1);
        }
        let seen = |pieces: HashMap<String, usize>| {
            pieces.into_iter().filter(|(_, times)| *times >= LEAST).map(|(piece, _)| piece).collect::<Vec<_>>()
        };
        Ok(Languages {
            source: Vocabulary::pieces(seen(english), Case::Lower)?,
            target: Vocabulary::pieces(seen(korean), Case::Keep)?,
        })
    }

    /// A pair to learn from.
    pub fn draw(&self, languages: &Languages, random: &mut layer::Random) -> Example {
        let mut random = Random::new(random.bits());
        loop {
            let Spelt { english, korean, links } = self.spell(&mut random);
            let source: Option<Vec<u32>> = english.iter().map(|piece| languages.source.id(piece)).collect();
            let target: Option<Vec<u32>> = korean.iter().map(|piece| languages.target.id(piece)).collect();
            if let (Some(source), Some(target)) = (source, target) {
                return Example { source, target, links };
            }
        }
    }

    fn spell(&self, random: &mut Random) -> Spelt {
        let pair = self.learning.draw(random);
        let kind = random.below(100);
        if kind < SPOILT
            && let Some(words) = self.outside.spoil(&pair, &self.learning.draw(random), random)
        {
            return Spelt { english: typed(&words, random), korean: vec![UNSURE.into()], links: vec![] };
        }
        let unknown = (kind >= 100 - UNKNOWN).then(|| pair.with_unknown(1 + random.below(3), random)).flatten();
        spelt(&unknown.unwrap_or(pair), random)
    }
}

fn spelt(pair: &Pair, random: &mut Random) -> Spelt {
    let links = links(pair);
    let mut words = pair.english.clone();
    if random.below(100) < 8 {
        for (word, _) in words.iter_mut().zip(&pair.tags).filter(|(_, tag)| tag.part == Part::Number) {
            let number = DIGITS.iter().position(|name| word.pieces[0].eq_ignore_ascii_case(name));
            if let Some(number) = number {
                word.pieces[0] = (number + 1).to_string();
            }
        }
    }
    let english = typed(&words, random);
    let links = links.into_iter().filter(|(source, _)| *source < english.len()).collect();
    Spelt { english, korean: tokens(&pair.korean), links }
}

/// The tokens of a sentence as people type it, in lower case: sometimes without the mark at its end.
fn typed(words: &[Word], random: &mut Random) -> Vec<String> {
    let mut typed: Vec<String> = tokens(words).iter().map(|token| token.to_lowercase()).collect();
    let marked = typed.len() > 1 && typed.last().is_some_and(|last| matches!(last.as_str(), "." | "?" | "!"));
    match random.below(100) {
        0..8 if marked => drop(typed.pop()),
        8..12 if marked && typed.last().is_some_and(|last| last == ".") => {
            typed.pop();
            typed.push("!".into());
        }
        _ => {}
    }
    typed
}

/// Where each Korean piece comes from: the English words that its word stands for; the mark at the end, from that of the
/// English sentence.
fn links(pair: &Pair) -> Vec<(usize, usize)> {
    let starts = |words: &[Word]| -> Vec<usize> {
        words.iter().scan(0, |at, word| Some(std::mem::replace(at, *at + word.pieces.len()))).collect()
    };
    let (english, korean) = (starts(&pair.english), starts(&pair.korean));
    let mut links = Vec::new();
    for (source, target) in pair.word_links(Certainty::Sure) {
        let pieces = pair.korean[target].pieces.iter().enumerate();
        let spoken = pieces.filter(|(_, piece)| !matches!(piece.as_str(), "." | "?" | "!" | ","));
        links.extend(spoken.map(|(piece, _)| (english[source], korean[target] + piece)));
    }
    let last = |words: &[Word], starts: &[usize]| {
        let (word, start) = (words.last()?, starts.last()?);
        matches!(word.pieces.last()?.as_str(), "." | "?" | "!").then(|| start + word.pieces.len() - 1)
    };
    links.extend(last(&pair.english, &english).zip(last(&pair.korean, &korean)));
    links
}
