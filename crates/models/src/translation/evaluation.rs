//! How good a translator is on pairs that it has not learned from: which pairs to hold out, and the scores on them.

use super::Languages;
use super::score::{Tokens, bleu, chrf, exact_match};
use crate::Result;
use crate::layer::Random;
use crate::model::Transformer;

/// Data in two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split<T> {
    /// What is learned from.
    pub learned: Vec<T>,
    /// What is never learned from.
    pub held_out: Vec<T>,
}

impl<T> Split<T> {
    /// Holds out a twentieth, at least one and at most a thousand, chosen at random; the same for the same seed. At least one is
    /// left to learn from.
    ///
    /// ```
    /// use foveal_models::translation::Split;
    ///
    /// let split = Split::at_random((0..100).collect(), 1337);
    /// assert_eq!((split.learned.len(), split.held_out.len()), (95, 5));
    /// ```
    pub fn at_random(mut all: Vec<T>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        for i in (1..all.len()).rev() {
            all.swap(i, random.below(i + 1));
        }
        let held = (all.len() / 20).clamp(1, 1000).min(all.len().saturating_sub(1));
        let learned = all.split_off(held);
        Split { learned, held_out: all }
    }
}

/// A translation beside what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The sentence.
    pub source: String,
    /// What the model made of it.
    pub translation: String,
    /// What it should be.
    pub expected: String,
}

/// Translations of held-out sentences, and their scores, each of 100.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The translations, in the order of the sentences.
    pub judged: Vec<Judged>,
}

impl Evaluation {
    /// Translates the first of each pair.
    ///
    /// # Errors
    /// As [`Languages::translate`].
    pub fn of<'a>(
        languages: &Languages,
        model: &Transformer,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self> {
        let (sources, expected): (Vec<&str>, Vec<&str>) = pairs.into_iter().unzip();
        let translations = languages.translate(model, sources.iter().copied())?;
        let judged = translations.into_iter().zip(sources.into_iter().zip(expected));
        let judged = judged.map(|(translation, (source, expected))| Judged {
            source: source.to_owned(),
            translation,
            expected: expected.to_owned(),
        });
        Ok(Evaluation { judged: judged.collect() })
    }

    /// How many are right to the letter, in percent.
    pub fn exact_match(&self) -> f64 {
        exact_match(self.pairs())
    }

    /// BLEU.
    pub fn bleu(&self, tokens: Tokens) -> f64 {
        bleu(self.pairs(), tokens).score
    }

    /// chrF.
    pub fn chrf(&self) -> f64 {
        chrf(self.pairs())
    }

    /// (translation, reference), as the scores take them.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.judged.iter().map(|judged| (judged.translation.as_str(), judged.expected.as_str()))
    }
}
