//! A small grammar of English and Korean that writes sentence pairs and knows which word stands for which.
//!
//! | English | Korean |
//! |---|---|
//! | subject, verb, object | subject, object, verb |
//! | articles | none; what is known is the topic (은/는), what is new the subject (이/가) |
//! | prepositions | particles, in the shape that the noun's last sound calls for |
//! | two books | 책 두 권: a counter for each kind of thing |
//! | does not, will, is … -ing | words after the verb: 않아요, 거예요, 있어요 |
//! | question words in front | question words where the answer stands |
//! | wears a hat, a coat, shoes | 쓰다, 입다, 신다: the object chooses the verb |
//!
//! The lexicon has some 450 words; they make about 10¹⁵ sentences, of 2 to some 18 words.
//!
//! Korean is in the polite style of everyday speech (해요), without the honorific 시. The translation of a sentence is a
//! function of it: no English sentence has two.
//!
//! # Alignment
//! Words are what spaces divide, and Korean words are divided further into stem and particle or ending. Links are
//! *sure* between words of the same meaning:
//!
//! - nouns, verbs, adjectives, adverbs, pronouns, numbers and question words with theirs; a counter with the noun it counts;
//! - "not" with 않아요, 아니에요 or 없어요, "will" with 거예요, the "is" of "is reading" with 있어요, "on" with 위에;
//! - "every day" and the like, whole with 매일.
//!
//! They are *possible* between an English word and a piece that says the same by grammar alone: prepositions and "and" with
//! particles, "is" with the ending of an adjective or 이에요, "does" and "did" with the ending that has their tense. Articles,
//! "there", "of", the prepositions of "listen to" and "wait for", and punctuation have no links. Every Korean word has
//! at least one sure link.

mod actions;
mod choices;
mod clause;
mod determiner;
mod lexicon;
mod noun_phrase;
mod pair;
mod predicate;
mod sentence;
mod split;
mod states;
mod writer;

use std::collections::BTreeSet;

pub use self::pair::{Certainty, Combination, Link, Pair, Place, Word, tokens};
pub use self::split::{Corpus, Sizes};
use self::writer::Writer;
use crate::layer::Random;

/// The grammar.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grammar;

impl Grammar {
    /// The grammar.
    pub fn new() -> Self {
        Grammar
    }

    /// A sentence at random.
    ///
    /// ```
    /// use foveal_models::layer::Random;
    /// use foveal_models::translation::Grammar;
    ///
    /// let pair = Grammar::new().sample(&mut Random::new(1));
    /// assert_eq!(pair, Grammar::new().sample(&mut Random::new(1)));
    /// ```
    pub fn sample(&self, random: &mut Random) -> Pair {
        loop {
            if let (Some(pair), _) = Writer::new(random).sentence() {
                return pair;
            }
        }
    }

    /// About how many sentences there are, by Knuth's method (1975): a sentence that was chosen with probability p counts
    /// for 1/p, and the mean of that over many choices is the number of all.
    pub fn size(&self, samples: usize, random: &mut Random) -> f64 {
        let mut sum = 0.0;
        for _ in 0..samples {
            if let (Some(_), probability) = Writer::new(random).sentence() {
                sum += 1.0 / probability;
            }
        }
        sum / samples.max(1) as f64
    }

    /// All verbs with their objects and adjectives with their nouns that sentences may have.
    pub fn combinations(&self) -> Vec<Combination> {
        let mut all = BTreeSet::new();
        let have = lexicon::HAVE.nouns().into_iter().map(|noun| Combination { head: "have", noun: noun.english });
        all.extend(have);
        for verb in lexicon::TRANSITIVE.iter().chain([&lexicon::GIVE]) {
            let head = verb.english[0];
            all.extend(verb.what.nouns().into_iter().map(|noun| Combination { head, noun: noun.english }));
        }
        for adjective in lexicon::ADJECTIVES {
            let head = adjective.english;
            all.extend(adjective.fits.nouns().into_iter().map(|noun| Combination { head, noun: noun.english }));
        }
        all.into_iter().collect()
    }

    /// How many words the lexicon has: nouns, verbs, adjectives and the rest, as the English dictionary has them.
    pub fn words(&self) -> usize {
        lexicon::count()
    }
}
