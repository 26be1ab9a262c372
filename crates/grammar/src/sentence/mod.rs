//! Sentences: each kind is written in both languages at once, part by part.

mod act;
mod chain;
mod circumstance;
mod clause;
mod clock;
mod command;
mod compare;
mod condition;
mod contraction;
mod count;
mod determiner;
mod existence;
mod greeting;
mod introduction;
mod joined;
mod noun_phrase;
mod over;
mod owner;
mod predicate;
mod relative;
mod state;
mod time;
mod weather;
mod writer;

pub(crate) use self::count::{english_number, ordinal};
pub(crate) use self::over::Over;
pub(crate) use self::weather::weather_words;
pub(crate) use self::writer::Writer;

use std::sync::LazyLock;

use self::act::Wanted;
use self::clause::{Clause, Mood};
use self::writer::Phrase;

use crate::lexicon::phrases;
use crate::pair::Pair;
use crate::{Construction, HeldOut};

impl Writer<'_> {
    /// A sentence of any kind, and how likely it was. None if a choice led nowhere.
    pub(crate) fn sentence(mut self) -> (Option<Pair>, f64) {
        let written = self.written();
        let contract = self.choices.percent(10);
        let probability = self.choices.probability;
        let pair = written.map(|(phrase, mark)| self.finish(phrase, mark, contract));
        // What people say to each other has a translation of its own.
        let own = |pair: &Pair| pair.construction == Construction::Greeting || !FIXED.contains(&pair.english_text());
        (pair.filter(own), probability)
    }

    fn written(&mut self) -> Option<(Phrase, &'static str)> {
        // Some kinds fail more often than others; these weights give about the shares that are wanted.
        let kind = self.choices.weighted(&KINDS)?;
        let (clause, mood) = match kind {
            Construction::Greeting => return self.greeting(),
            Construction::Command => return self.command(),
            Construction::Coordination => {
                let (phrase, mood) = self.joined()?;
                return Some((phrase, mood.mark()));
            }
            Construction::Action => self.action(),
            Construction::Quality => self.quality(None),
            Construction::Identity => match self.choices.percent(50) {
                true => self.identity(None),
                false => self.introduction(),
            },
            Construction::Existence => self.existence(),
            Construction::Location => self.location(),
            Construction::Possession => match self.choices.weighted(&[(16, 0), (3, 1), (3, 2)])? {
                0 => self.possession(None),
                1 => self.illness(),
                _ => self.ache(),
            },
            Construction::Comparison => self.comparison(),
            Construction::Superlative => self.superlative(),
            Construction::Weather => self.weather(),
            Construction::Clock => self.measured(),
            Construction::Question => self.question(),
            Construction::Relative => self.relative(),
            Construction::Thought => self.thought(),
            _ => self.purpose(),
        }?;
        Some((clause.phrase(), mood.mark()))
    }

    /// Something is done, perhaps suddenly.
    fn action(&mut self) -> Option<(Clause, Mood)> {
        let (mut clause, mood) = match self.choices.percent(8) {
            true => self.promise()?,
            false => self.act(Wanted::default())?,
        };
        self.construction = match mood {
            Mood::Statement | Mood::Whether => Construction::Action,
            _ => Construction::Question,
        };
        let plain = mood == Mood::Statement && clause.time.is_empty() && !clause.dropped;
        if plain && self.choices.percent(4) {
            self.sentence_adverb(&mut clause)?;
        }
        Some((clause, mood))
    }
}

/// Fixed expressions as sentences.
static FIXED: LazyLock<HeldOut> = LazyLock::new(|| {
    let mut fixed = HeldOut::default();
    phrases().iter().for_each(|phrase| fixed.insert(&phrase.english.join(" ")));
    fixed
});

const KINDS: [(usize, Construction); 18] = [
    (440, Construction::Action),
    (50, Construction::Greeting),
    (110, Construction::Command),
    (330, Construction::Coordination),
    (80, Construction::Quality),
    (40, Construction::Identity),
    (35, Construction::Existence),
    (30, Construction::Location),
    (35, Construction::Possession),
    (30, Construction::Comparison),
    (25, Construction::Superlative),
    (35, Construction::Weather),
    (45, Construction::Clock),
    (25, Construction::Question),
    (50, Construction::Relative),
    (60, Construction::Thought),
    (40, Construction::Purpose),
    (0, Construction::Because),
];

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::{Random, everyday, normalised};

    /// The grammar can write sentences that are held out, and then writes them as they should be.
    #[test]
    fn held_out_sentences_are_within_reach() {
        let expected: HashMap<String, &str> =
            everyday().map(|(english, korean)| (normalised(english), korean)).collect();
        let mut random = Random::new(5);
        let mut found = HashSet::new();
        for _ in 0..400_000 {
            let (Some(pair), _) = Writer::new(&mut random).sentence() else { continue };
            let english = normalised(&pair.english_text());
            if let Some(korean) = expected.get(&english) {
                assert_eq!(
                    pair.korean_text().trim_end_matches(['.', '?', '!']),
                    korean.trim_end_matches(['.', '?', '!']),
                    "{english}"
                );
                found.insert(english);
            }
        }
        assert!(found.len() >= 15, "{found:?}");
    }
}
