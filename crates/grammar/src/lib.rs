//! A grammar of English and Korean that writes sentence pairs and knows which word stands for which.
//!
//! | English | Korean |
//! |---|---|
//! | subject, verb, object | subject, object, verb |
//! | articles | none; what is known is the topic (은/는), what is new the subject (이/가) |
//! | prepositions | particles, in the shape that the noun's last sound calls for |
//! | two books | 책 두 권: a counter for each kind of thing |
//! | does not, will, can, must, wants to | one stem after the other: 읽지 않아요, 읽을 거예요, 읽을 수 있어요 |
//! | question words in front | question words where the answer stands |
//! | and, but, because, if, when, who, that | endings in place of 어요: 고, 지만, 어서, 으면, 을 때, 는, 다고 |
//! | wears a hat, a coat, shoes | 쓰다, 입다, 신다: the object chooses the verb |
//! | I lost my wallet | 저는 지갑을 잃어버렸어요: what goes without saying is not said |
//! | The teacher gave me a pen | 선생님이 저에게 펜을 주셨어요: 시 of whom one looks up to |
//!
//! The lexicon has some 2,100 content words, in the text files of `data/`; they make about 10²⁶ sentences of twenty
//! kinds ([`Construction`]), of 1 to some 30 words. Words of everyday speech are chosen more often than others.
//!
//! Korean is in the polite style of everyday speech (해요). The translation of a sentence is a function of it: no English
//! sentence has two. The pairs serve both directions.
//!
//! # Alignment
//! Words are what spaces divide, and Korean words are divided further into stem and particle or ending. Links are
//! *sure* between words of the same meaning:
//!
//! - nouns, verbs, adjectives, adverbs, pronouns, numbers and question words with theirs; a counter with the noun it counts;
//! - "not" with 않아요, 아니에요 or 없어요, "will" with 거예요, "can" with 수 있어요, "must" with 해요, the "is" of "is reading" with
//!   있어요, "on" with 위에, "when" with 때, "before" with 전에;
//! - "every day" and the like, whole with 매일.
//!
//! They are *possible* between an English word and a piece that says the same by grammar alone: prepositions, "and", "but",
//! "because" and "if" with particles and endings, "is" with the ending of an adjective or 이에요, "does" and "did" with the
//! ending that has their tense, a pronoun that Korean leaves out with the verb or noun that implies it. Articles, "there",
//! "of", "it" of the weather, the prepositions of "listen to" and "wait for", and punctuation have no links. Every Korean
//! word has at least one sure link, and so has every English [content word](Part).
//!
//! # Sentences to be tested on
//! Sixty everyday sentences ([`everyday`]) and some two hundred others are never written, so that whoever has learned from
//! the grammar can be tested on them ([`HeldOut`]). [`Grammar::corpus`] also keeps back combinations of words.

#![forbid(unsafe_code)]

mod choices;
mod held_out;
pub mod korean;
mod lexicon;
mod outside;
mod pair;
mod random;
mod sentence;
mod split;
mod unknown;

use std::collections::BTreeSet;

pub use self::held_out::{HeldOut, everyday, normalised};
pub use self::outside::Outside;
pub use self::pair::{
    Certainty, Combination, Construction, Link, Pair, Part, Place, Relation, Role, Tag, Word, tokens,
};
pub use self::random::Random;
use self::sentence::Writer;
pub use self::split::{Corpus, Learning, Sizes};
pub use self::unknown::{SLOTS, slot};

/// The grammar. It never writes a sentence that is held out: those of [`everyday`], and what it was told to exclude.
#[derive(Clone, Debug)]
pub struct Grammar {
    held_out: HeldOut,
}

impl Default for Grammar {
    fn default() -> Self {
        Grammar::new()
    }
}

impl Grammar {
    /// The grammar.
    pub fn new() -> Self {
        Grammar { held_out: HeldOut::everyday() }
    }

    /// Leaves out more sentences, in either language: whoever is tested on them should not have learned them.
    ///
    /// ```
    /// use foveal_grammar::{Grammar, Random};
    ///
    /// let first = Grammar::new().sample(&mut Random::new(1));
    /// let without = Grammar::new().excluding([first.english_text()]);
    /// assert_ne!(without.sample(&mut Random::new(1)), first);
    /// ```
    pub fn excluding<S: AsRef<str>>(mut self, sentences: impl IntoIterator<Item = S>) -> Self {
        sentences.into_iter().for_each(|sentence| self.held_out.insert(sentence.as_ref()));
        self
    }

    /// A sentence at random.
    ///
    /// ```
    /// use foveal_grammar::{Grammar, Random};
    ///
    /// let pair = Grammar::new().sample(&mut Random::new(1));
    /// assert_eq!(pair, Grammar::new().sample(&mut Random::new(1)));
    /// ```
    pub fn sample(&self, random: &mut Random) -> Pair {
        loop {
            if let (Some(pair), _) = Writer::new(random).sentence()
                && !self.held_out.holds(&pair)
            {
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
        let owned = ["goods", "pet", "sibling", "kin", "money"].into_iter().flat_map(lexicon::of_kind);
        all.extend(owned.map(|noun| Combination { head: "have", noun: noun.english }));
        for verb in lexicon::verbs() {
            all.extend(verb.what.iter().map(|noun| Combination { head: verb.dictionary(), noun: noun.english }));
        }
        for adjective in lexicon::adjectives() {
            all.extend(adjective.fits.iter().map(|noun| Combination { head: adjective.english, noun: noun.english }));
        }
        all.into_iter().collect()
    }

    /// How many content words the lexicon has: nouns, verbs, adjectives, adverbs, names and numbers, as the English
    /// dictionary has them.
    pub fn words(&self) -> usize {
        lexicon::content_words().len()
    }

    /// Every English word that a sentence may have, in all its forms, in lower case and without punctuation: a translator
    /// that has learned from the grammar has never seen any other.
    ///
    /// ```
    /// use foveal_grammar::Grammar;
    ///
    /// let words = Grammar::new().english_vocabulary();
    /// assert!(words.contains("mice") && words.contains("swam") && !words.contains("blockchain"));
    /// ```
    pub fn english_vocabulary(&self) -> BTreeSet<String> {
        lexicon::english_vocabulary()
    }
}
