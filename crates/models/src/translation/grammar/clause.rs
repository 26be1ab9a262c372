//! A sentence with a verb, from its parts. English and Korean have the same parts in another order:
//!
//! | | |
//! |---|---|
//! | English | question word, (auxiliary), subject, (auxiliary), not, often, verb, object, to whom, how, where, with whom, by what, when |
//! | Korean | subject, when, often, with whom, by what, where, to whom, object, how, verb |

use super::determiner::Role;
use super::lexicon::{
    CITIES, DAYTIME, FREQUENCY, FUTURE, HARD, Kinds, Manner, NOW, PAST, PLACES, PRESENT, QUIET, SPEED, THINGS, Time,
    WELL, Which, kind, preposition,
};
use super::noun_phrase::NounPhrase;
use super::predicate::{Predicate, Tense};
use super::writer::{English, Korean, Phrase, Writer};
use crate::translation::korean::Particle;

/// How a sentence asks, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Statement,
    /// Does she?
    Whether,
    Who,
    What,
    HowMany,
    Where,
    When,
    Why,
}

impl Mood {
    /// Whether English puts the auxiliary first.
    pub(super) fn inverts(self) -> bool {
        !matches!(self, Mood::Statement | Mood::Who)
    }

    pub(super) fn mark(self) -> &'static str {
        if self == Mood::Statement { "." } else { "?" }
    }
}

/// The parts of a sentence; those that it does not have are empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Clause {
    /// The English question word.
    pub(super) front: Vec<English>,
    pub(super) subject: Phrase,
    pub(super) predicate: Predicate,
    pub(super) inverted: bool,
    pub(super) object: Phrase,
    pub(super) recipient: Phrase,
    pub(super) companion: Phrase,
    pub(super) place: Phrase,
    pub(super) means: Phrase,
    pub(super) manner: Phrase,
    pub(super) frequency: Phrase,
    pub(super) time: Phrase,
}

impl Clause {
    pub(super) fn phrase(self) -> Phrase {
        let Predicate { auxiliary, not, verb, korean } = self.predicate;
        let (first, second) =
            if self.inverted { (auxiliary, self.subject.english) } else { (self.subject.english, auxiliary) };
        let english = [
            self.front,
            first,
            second,
            not,
            self.frequency.english,
            verb,
            self.object.english,
            self.recipient.english,
            self.manner.english,
            self.place.english,
            self.companion.english,
            self.means.english,
            self.time.english,
        ];
        let korean = [
            self.subject.korean,
            self.time.korean,
            self.frequency.korean,
            self.companion.korean,
            self.means.korean,
            self.place.korean,
            self.recipient.korean,
            self.object.korean,
            self.manner.korean,
            korean,
        ];
        Phrase { english: english.concat(), korean: korean.concat() }
    }
}

impl Writer<'_> {
    /// A time that goes with a tense. `clear` leaves out those that go with several.
    pub(super) fn time(&mut self, tense: Tense, progressive: bool, clear: bool) -> Option<Phrase> {
        let now = tense == Tense::Present && progressive;
        let times: &[Time] = match tense {
            Tense::Past => PAST,
            _ if now => NOW,
            Tense::Present => PRESENT,
            Tense::Future => FUTURE,
        };
        if !clear && !now && self.choices.percent(30) {
            let (english, korean) = self.choices.one_of(DAYTIME)?;
            let english = self.words(english);
            let korean = Korean::new(korean, &[english.last()?.name]).particle(Particle::At);
            let at = Some(english.first()?.name);
            return Some(Phrase { english, korean: vec![korean.perhaps(at)] });
        }
        let time = self.choices.one_of(times)?;
        Some(self.said_time(time))
    }

    /// Last year, next year.
    pub(super) fn year(&mut self, tense: Tense) -> Option<Phrase> {
        let times = if tense == Tense::Past { PAST } else { FUTURE };
        let year = times.iter().find(|(english, _)| english.contains(&"year"))?;
        Some(self.said_time(*year))
    }

    fn said_time(&mut self, (english, korean): Time) -> Phrase {
        let english = self.words(english);
        let korean = korean.iter().map(|&(text, particle, stands_for)| {
            let names: Vec<_> = stands_for.iter().map(|&word| english[word].name).collect();
            let word = Korean::new(text, &names);
            if particle.is_empty() { word } else { word.and(particle) }
        });
        Phrase { korean: korean.collect(), english }
    }

    /// A place of some kinds with its preposition, or with another one.
    pub(super) fn place(&mut self, kinds: Kinds, other: Option<&str>, particle: Particle) -> Option<Phrase> {
        let places: Vec<_> = PLACES.iter().filter(|place| place.is(kinds)).collect();
        let cities = if kinds & kind::CITY == 0 { 0 } else { 3 };
        let city = self.choices.weighted(&[(cities, true), (if places.is_empty() { 0 } else { 7 }, false)])?;
        let (before, mut phrase) = if city {
            let (english, korean) = self.proper(CITIES)?;
            // One arrives at a station, but in Seoul.
            let before = self.word(other.filter(|other| *other != "at").unwrap_or("in"));
            let Phrase { english, mut korean } = self.simple(english, korean);
            let word = korean.pop()?.particle(particle).perhaps(Some(before.name));
            (before, Phrase { english, korean: vec![word] })
        } else {
            let place = self.noun(&places)?;
            let before = self.word(other.unwrap_or(preposition(place.english)));
            let phrase = self.noun_phrase(place, Role::Place)?.with(particle, Some(before.name));
            (before, phrase)
        };
        phrase.english.insert(0, before);
        Some(phrase)
    }

    pub(super) fn often(&mut self) -> Option<Phrase> {
        let (english, korean) = self.choices.one_of(FREQUENCY)?;
        Some(self.simple(english, korean))
    }

    pub(super) fn how(&mut self, manner: Manner) -> Option<Phrase> {
        let adverbs = match manner {
            Manner::Any => return None,
            Manner::Speed => SPEED,
            Manner::Hard => HARD,
            Manner::Well => WELL,
            Manner::Quiet => QUIET,
        };
        let (english, korean) = self.choices.one_of(adverbs)?;
        Some(self.simple(english, korean))
    }

    /// By bus.
    pub(super) fn by(&mut self) -> Option<Phrase> {
        let noun = self.noun(&Which::any(kind::RIDE).nouns())?;
        let by = self.word("by");
        let Phrase { english, mut korean } = self.simple(noun.english, noun.korean);
        let word = korean.pop()?.particle(Particle::By).perhaps(Some(by.name));
        Some(Phrase { english: [vec![by], english].concat(), korean: vec![word] })
    }

    /// With a pencil.
    pub(super) fn tool(&mut self, kinds: Kinds) -> Option<Phrase> {
        let tools: Vec<_> = THINGS.iter().filter(|thing| thing.is(kinds)).collect();
        let noun = self.noun(&tools)?;
        let with = self.word("with");
        let mut phrase = self.noun_phrase(noun, Role::Second)?.with(Particle::By, Some(with.name));
        phrase.english.insert(0, with);
        Some(phrase)
    }

    /// With Minsu, with my friend.
    pub(super) fn companion(&mut self) -> Option<Phrase> {
        let with = self.word("with");
        let who: NounPhrase = if self.choices.percent(50) {
            self.name()?
        } else {
            let friend = self.noun(&Which::any(kind::KIN).nouns())?;
            self.noun_phrase(friend, Role::Place)?
        };
        let mut phrase = who.with(Particle::And, Some(with.name));
        phrase.english.insert(0, with);
        Some(phrase)
    }
}
