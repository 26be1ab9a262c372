//! Sentences to learn from, and sentences to be tested on.
//!
//! Two things are tested: sentences that were not seen, and *combinations* that were not seen. For the latter some pairs of
//! a verb and its object, and of an adjective and its noun, are kept back: no sentence with such a pair is learned from,
//! though each of its words is, in other company. Who has learned "reads the letter" and "writes the poem" should know "reads
//! the poem".

use std::collections::{HashMap, HashSet};

use super::{Combination, Construction, Grammar, Pair, Part};
use crate::Random;

/// How many sentences of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// To learn from.
    pub train: usize,
    /// Not seen, of seen combinations.
    pub sentences: usize,
    /// With a combination that is not seen.
    pub combinations: usize,
}

/// Sentences to learn from and to be tested on. No sentence is there twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// To learn from.
    pub train: Vec<Pair>,
    /// Other sentences of the same combinations.
    pub sentences: Vec<Pair>,
    /// Sentences that each have a combination of [`kept_back`](Self::kept_back).
    pub combinations: Vec<Pair>,
    /// The combinations that no sentence of the other two has.
    pub kept_back: Vec<Combination>,
}

/// Of all combinations, this part is kept back.
const KEPT_BACK: f64 = 0.05;

/// Of the combinations of one word, this part at most.
const AT_MOST: usize = 5;

impl Grammar {
    /// Sentences to learn from and to be tested on, the same for a seed. Which combinations are kept back, and which
    /// sentences the tests have, depends on the seed and the sizes of the tests, but not on the size of the training set.
    ///
    /// ```
    /// use foveal_grammar::{Grammar, Sizes};
    ///
    /// let corpus = Grammar::new().corpus(7, Sizes { train: 1000, sentences: 100, combinations: 100 });
    /// assert_eq!((corpus.train.len(), corpus.sentences.len(), corpus.combinations.len()), (1000, 100, 100));
    /// ```
    pub fn corpus(&self, seed: u64, sizes: Sizes) -> Corpus {
        let kept_back = kept_back(self.combinations(), &mut Random::stream(seed, 0));
        let known: HashSet<Combination> = kept_back.iter().copied().collect();
        let mut seen = HashSet::new();
        let mut draw = |stream: u64, size: usize, (new, tested): (bool, bool)| {
            let mut random = Random::stream(seed, stream);
            let mut pairs = Vec::with_capacity(size);
            while pairs.len() < size {
                let pair = self.sample(&mut random);
                // A fixed expression is learned, but never tested: nobody could guess it.
                let fixed =
                    pair.construction == Construction::Greeting && !pair.tags.iter().any(|tag| tag.part == Part::Name);
                if tested && fixed {
                    continue;
                }
                let has_new = pair.combinations.iter().any(|combination| known.contains(combination));
                if has_new == new && seen.insert(pair.english_text()) {
                    pairs.push(pair);
                }
            }
            pairs
        };
        let sentences = draw(1, sizes.sentences, (false, true));
        let combinations = draw(2, sizes.combinations, (true, true));
        let train = draw(3, sizes.train, (false, false));
        Corpus { train, sentences, combinations, kept_back }
    }
}

/// Sentences to learn from, without end.
#[derive(Clone, Debug)]
pub struct Learning<'g> {
    grammar: &'g Grammar,
    kept_back: HashSet<Combination>,
    tested: HashSet<String>,
}

impl Corpus {
    /// More sentences to learn from: none is tested on, and none has a combination that is kept back.
    ///
    /// ```
    /// use foveal_grammar::{Grammar, Random, Sizes};
    ///
    /// let grammar = Grammar::new();
    /// let corpus = grammar.corpus(7, Sizes { train: 0, sentences: 100, combinations: 100 });
    /// let pair = corpus.learning(&grammar).draw(&mut Random::new(1));
    /// assert!(!corpus.sentences.contains(&pair) && !corpus.combinations.contains(&pair));
    /// ```
    pub fn learning<'g>(&self, grammar: &'g Grammar) -> Learning<'g> {
        let tested = self.sentences.iter().chain(&self.combinations).map(Pair::english_text).collect();
        Learning { grammar, kept_back: self.kept_back.iter().copied().collect(), tested }
    }
}

impl Learning<'_> {
    /// A sentence at random.
    pub fn draw(&self, random: &mut Random) -> Pair {
        loop {
            let pair = self.grammar.sample(random);
            let new = pair.combinations.iter().any(|combination| self.kept_back.contains(combination));
            if !new && !self.tested.contains(&pair.english_text()) {
                return pair;
            }
        }
    }
}

/// Chooses the combinations to keep back so that every word keeps most of its own.
fn kept_back(mut all: Vec<Combination>, random: &mut Random) -> Vec<Combination> {
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i + 1));
    }
    let mut totals = HashMap::<&str, usize>::new();
    for combination in &all {
        for word in [combination.head, combination.noun] {
            *totals.entry(word).or_default() += 1;
        }
    }
    let wanted = (all.len() as f64 * KEPT_BACK) as usize;
    let mut kept = HashMap::<&str, usize>::new();
    let mut back = Vec::with_capacity(wanted);
    for combination in all {
        let words = [combination.head, combination.noun];
        let spare = |word: &&str| (kept.get(word).copied().unwrap_or(0) + 1) * AT_MOST <= totals[word];
        if back.len() < wanted && words.iter().all(spare) {
            for word in words {
                *kept.entry(word).or_default() += 1;
            }
            back.push(combination);
        }
    }
    back.sort_unstable();
    back
}
