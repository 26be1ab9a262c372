//! Sentences in which something is, is somewhere, or belongs to someone.

use super::clause::{Clause, Mood};
use super::determiner::Role;
use super::lexicon::{
    ADJECTIVES, Adjective, Agreement, Attribute, BESIDE, Countable, HAVE, Kinds, PEOPLE, THINGS, Which, kind,
};
use super::noun_phrase::article;
use super::predicate::Tense;
use super::writer::{Korean, Phrase, Writer};
use crate::translation::korean::{Particle, Stem};

/// The places where things, animals and people are.
const PLACES: Kinds =
    kind::STUDY | kind::HOME | kind::OUTDOORS | kind::EATERY | kind::STOP | kind::SHOP | kind::CULTURE;

impl Writer<'_> {
    /// The house is big.
    pub(super) fn quality(&mut self) -> Option<(Clause, Mood)> {
        let adjectives: Vec<(&'static Adjective, Stem)> = ADJECTIVES
            .iter()
            .filter_map(|adjective| match adjective.korean {
                Attribute::Stem(stem) => Some((adjective, stem)),
                Attribute::Before(_) => None,
            })
            .collect();
        let (adjective, stem) = self.choices.one_of(&adjectives)?;
        let mood = self.mood(&[]);
        let mut shape = self.shape(mood, false);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        let subject = self.subject(adjective.fits, Role::Theme)?;
        shape.agreement = subject.agreement;
        self.combine(adjective.english, &subject);
        clause.subject = subject.into_subject();
        let persons = adjective.fits.any & kind::PERSON != 0;
        if persons && shape.tense != Tense::Present && self.choices.percent(20) {
            clause.time = self.time(shape.tense, false, true)?;
        }
        let very = !shape.negative && self.choices.percent(20);
        clause.predicate = self.adjective(adjective.english, very, stem, shape);
        Some((clause, mood))
    }

    /// My father is a doctor.
    pub(super) fn identity(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[]);
        let mut shape = self.shape(mood, false);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        let subject = self.subject(Which::any(kind::PERSON).but(kind::JOB), Role::Theme)?;
        shape.agreement = subject.agreement;
        // You may be many, but are more often one.
        let plural = shape.agreement == Agreement::Plural && subject.pronoun.is_none_or(|p| p.subject != "you");
        clause.subject = subject.into_subject();
        let jobs: Vec<_> = PEOPLE.iter().filter(|noun| noun.is(kind::JOB)).collect();
        let noun = self.noun(&jobs)?;
        let Countable::Each { plural: many, .. } = noun.countable else { return None };
        let adjectives: Vec<_> = ADJECTIVES.iter().filter(|adjective| adjective.fits.fits(noun)).collect();
        let adjective = if self.choices.percent(25) { self.choices.one_of(&adjectives) } else { None };
        let mut phrase = match adjective {
            Some(adjective) => self.attribute(adjective, false, noun),
            None => Phrase::default(),
        };
        if !plural {
            let a = self.word(article(adjective.map_or(noun.english, |adjective| adjective.english)));
            phrase.english.insert(0, a);
        }
        let Phrase { english, korean } = self.simple(if plural { many } else { noun.english }, noun.korean);
        phrase.english.extend(english);
        phrase.korean.extend(korean);
        clause.predicate = self.copula(phrase, shape);
        Some((clause, mood))
    }

    /// There are three cats in the garden.
    pub(super) fn existence(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[]);
        let mut shape = self.shape(mood, false);
        shape.negative = false;
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        clause.subject.english.push(self.word("there"));
        let (which, place) = self.whereabouts()?;
        // "There is a daughter" asks whose.
        let noun = self.noun(&which.but(which.but | kind::SHARED).nouns())?;
        let thing = self.noun_phrase(noun, Role::New)?;
        shape.agreement = thing.agreement;
        clause.object = thing.into_existing();
        clause.place = place;
        clause.predicate = self.exists(shape);
        Some((clause, mood))
    }

    /// The cat is on the chair.
    pub(super) fn location(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[(3, Mood::Where)]);
        let mut shape = self.shape(mood, false);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        let (which, place) = self.whereabouts()?;
        let thing = self.subject(which, Role::Theme)?;
        shape.agreement = thing.agreement;
        clause.subject = thing.into_subject();
        clause.place = match mood {
            Mood::Where => self.asked(&mut clause, "where", "어디", Some(Particle::At)),
            _ => place,
        };
        clause.predicate = self.exists(shape);
        Some((clause, mood))
    }

    /// I have two dogs.
    pub(super) fn possession(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[(2, Mood::Who)]);
        let mut shape = self.shape(mood, false);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        if mood == Mood::Who {
            clause.subject = self.simple("who", "누가");
        } else {
            let owner = self.subject(Which::any(kind::PERSON), Role::Theme)?;
            shape.agreement = owner.agreement;
            clause.subject = owner.into_subject();
        }
        let noun = self.noun(&HAVE.nouns())?;
        let thing = self.noun_phrase(noun, if shape.negative { Role::Absent } else { Role::New })?;
        self.combine("have", &thing);
        clause.object = thing.into_existing();
        clause.predicate = self.has(shape);
        Some((clause, mood))
    }

    /// Where something may be, and what: people and animals in places, things on furniture and in bags.
    fn whereabouts(&mut self) -> Option<(Which, Phrase)> {
        let small = Which::any(kind::GOODS | kind::BALL | kind::CUTLERY)
            .but(kind::SURFACE | kind::VEHICLE | kind::CONTAINER | kind::RIDE | kind::HEAVY);
        match self.choices.weighted(&[(4, 0), (4, 1), (2, 2)])? {
            0 => {
                let place = self.place(PLACES, None, Particle::At)?;
                Some((Which::any(kind::PERSON | kind::PET), place))
            }
            1 => {
                let (english, korean) = self.choices.one_of(BESIDE)?;
                let which = Which { any: small.any | kind::PET, but: small.but };
                Some((which, self.beside(kind::SURFACE, english, korean)?))
            }
            _ => Some((small, self.beside(kind::CONTAINER, &["in"], "안")?)),
        }
    }

    /// On the chair: 의자 위에.
    fn beside(&mut self, kinds: Kinds, english: &[&str], korean: &str) -> Option<Phrase> {
        let noun = self.noun(&THINGS.iter().filter(|thing| thing.is(kinds)).collect::<Vec<_>>())?;
        let before = self.words(english);
        let names: Vec<_> = before.iter().map(|word| word.name).collect();
        let mut phrase = self.noun_phrase(noun, Role::Place)?.bare();
        phrase.english.splice(..0, before);
        phrase.korean.push(Korean::new(korean, &names).particle(Particle::At));
        Some(phrase)
    }
}
