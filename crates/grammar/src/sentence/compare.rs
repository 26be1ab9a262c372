//! Faster than, the biggest, as tall as.

use super::act::agree;
use super::chain::{Chain, Tense};
use super::clause::{Clause, Mood};
use super::determiner::Use;
use super::noun_phrase::{NounPhrase, attributive};
use super::writer::{Korean, Phrase, Writer, ids};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Adjective, Countable, Names, Noun, adjectives, names, predicates};
use crate::pair::{Combination, Part};

impl Writer<'_> {
    /// This car is faster than that bus: 이 자동차는 저 버스보다 더 빨라요.
    pub(crate) fn comparison(&mut self) -> Option<(Clause, Mood)> {
        let graded: Vec<_> = predicates().iter().copied().filter(|a| a.grades() && a.said().is_some()).collect();
        let adjective = self.choices.one_of(&graded)?;
        let mood = self.mood(&[]);
        let mut shape = self.being(mood);
        shape.negative = false;
        if shape.tense == Tense::Future {
            shape.tense = Tense::Present;
        }
        let subject = self.compared_one(adjective, None)?;
        let other = self.compared_one(adjective, subject.pronoun.map(|pronoun| pronoun.subject))?;
        agree(&mut shape, &subject);
        let heads = subject.heads.clone();
        self.combinations.extend(heads.into_iter().map(|noun| Combination { head: adjective.english, noun }));
        let (mut predicate, be) = self.be(shape);
        let much = self.choices.percent(10).then(|| self.say("much", Part::Adverb));
        let (more, word) = self.graded(adjective, false);
        let than = self.word("than");
        let other = other.with(Particle::Than, Some(than.id));
        let stands_for = ids(&word);
        let mut korean = Vec::new();
        korean.extend(much.as_ref().map(|much| Korean::new("훨씬", &[much.id])));
        let by = if more.is_empty() { stands_for.clone() } else { ids(&more) };
        korean.push(Korean::new("더", &by));
        predicate.chain = Chain::adjective(adjective.said()?, &stands_for, shape.honoured)
            .perhaps(&[be])
            .before_verb(korean)
            .before_all(other.korean);
        predicate.chain.tense = shape.tense;
        predicate.chain.honoured = shape.honoured;
        predicate.verb.extend(much);
        predicate.verb.extend(more);
        predicate.verb.extend(word);
        predicate.verb.push(than);
        predicate.verb.extend(other.english);
        let clause = self.about(subject, shape, predicate);
        self.construction = Construction::Comparison;
        Some((clause, mood))
    }

    /// Bigger, or more beautiful; the biggest, the most beautiful.
    fn graded(
        &mut self,
        adjective: &Adjective,
        most: bool,
    ) -> (Vec<super::writer::English>, Vec<super::writer::English>) {
        match &adjective.compared {
            Some((more, top)) => (Vec::new(), self.say_all(if most { top } else { more }, Part::Adjective)),
            None => {
                let more = self.say(if most { "most" } else { "more" }, Part::Adverb);
                (vec![more], self.say_all(adjective.english, Part::Adjective))
            }
        }
    }

    /// One of two that are compared: a certain one.
    fn compared_one(&mut self, adjective: &'static Adjective, other_than: Option<&str>) -> Option<NounPhrase> {
        if adjective.persons && self.choices.percent(55) {
            let phrase = match (other_than, self.choices.percent(50)) {
                (_, true) => self.name()?,
                (None, false) => {
                    let n = self.choices.one_of(&[0, 1, 2, 3, 4, 5])?;
                    self.pronoun(&crate::lexicon::PRONOUNS[n], false)
                }
                (Some(_), false) => self.other_pronoun()?,
            };
            self.speaker = self.speaker.or(phrase.pronoun);
            return Some(phrase);
        }
        let noun = self.noun(&adjective.fits)?;
        if matches!(noun.countable, Countable::Mass | Countable::Unique) {
            return Some(self.the(noun));
        }
        self.noun_phrase(noun, Use::Theme)
    }

    /// Seoul is the biggest city in Korea; Tom is the tallest student in the class.
    pub(crate) fn superlative(&mut self) -> Option<(Clause, Mood)> {
        let graded: Vec<_> = adjectives().iter().filter(|a| a.grades() && a.precedes() && a.said().is_some()).collect();
        // Cities have a country of their own to be the biggest in.
        let cities = self.choices.percent(20);
        let city = |noun: &&'static Noun| noun.english == "city";
        let graded: Vec<_> = graded.into_iter().filter(|a| !cities || a.fits.iter().any(city)).collect();
        let adjective = self.choices.one_of(&graded)?;
        let noun = match adjective.fits.iter().copied().find(city).filter(|_| cities) {
            Some(city) => city,
            None => self.noun(&adjective.fits)?,
        };
        if !matches!(noun.countable, Countable::Each | Countable::Many) || noun.any(&["body", "kin"]) {
            return None;
        }
        let mood = self.mood(&[]);
        let mut shape = self.being(mood);
        shape.negative = false;
        shape.tense = Tense::Present;
        let (subject, place) = self.topmost(noun)?;
        agree(&mut shape, &subject);
        shape.honoured = false;
        self.combinations.push(Combination { head: adjective.english, noun: noun.english });
        let the = self.word("the");
        let (most, word) = self.graded(adjective, true);
        let stands_for = ids(&word);
        let by = if most.is_empty() { stands_for.clone() } else { ids(&most) };
        let named = self.simple(noun.english, noun.korean, Part::Noun);
        let mut korean = place.korean;
        korean.push(Korean::new("가장", &by));
        korean.extend(attributive(adjective, &stands_for));
        korean.extend(named.korean);
        let english = [vec![the], most, word, named.english, place.english].concat();
        let predicate = self.copula(Phrase { english, korean }, shape);
        let clause = self.about(subject, shape, predicate);
        self.construction = Construction::Superlative;
        Some((clause, mood))
    }

    /// Who or what is the most so, and among what.
    fn topmost(&mut self, noun: &'static Noun) -> Option<(NounPhrase, Phrase)> {
        if noun.is("city") {
            let all = names(Names::Cities);
            let city = &all[self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?];
            let country = names(Names::Countries).iter().find(|name| name.english == city.country)?;
            if noun.english != "city" || country.english == "Netherlands" || country.english == "Philippines" {
                return None;
            }
            let Phrase { english, korean } = self.simple(city.english, city.korean, Part::Name);
            let subject = NounPhrase::new(english, korean, crate::lexicon::Agreement::Singular);
            let within = self.within(country.english, country.korean, Part::Name, false);
            return Some((subject, within));
        }
        let within = match self.choices.weighted(&[(3, 0), (3, 1), (2, 2), (3, 3)])? {
            0 => {
                let country = self
                    .proper(Names::Countries)
                    .filter(|c| c.english != "Netherlands" && c.english != "Philippines")?;
                self.within(country.english, country.korean, Part::Name, false)
            }
            1 => self.within("world", "세계", Part::Noun, true),
            2 if noun.is("person") => self.within("class", "반", Part::Noun, true),
            2 => self.within("city", "도시", Part::Noun, true),
            _ => Phrase::default(),
        };
        let subject = if noun.is("person") && self.choices.percent(70) {
            if self.choices.percent(50) {
                self.name()?
            } else {
                let n = self.choices.one_of(&[1, 2, 3])?;
                self.pronoun(&crate::lexicon::PRONOUNS[n], false)
            }
        } else {
            let (english, korean) = self.choices.one_of(&[("this", "이것"), ("that", "저것"), ("it", "그것")])?;
            let Phrase { english, korean } = if noun.is("person") {
                return None;
            } else {
                self.simple(english, korean, Part::Pronoun)
            };
            NounPhrase::new(english, korean, crate::lexicon::Agreement::Singular)
        };
        Some((subject, within))
    }

    /// In Korea, in the world: 한국에서, 세계에서.
    fn within(&mut self, english: &str, korean: &str, part: Part, the: bool) -> Phrase {
        let before = self.word("in");
        let the = the.then(|| self.word("the"));
        let Phrase { english, korean } = self.simple(english, korean, part);
        let korean = super::writer::mark(korean, Particle::In, Some(before.id));
        Phrase { english: [before].into_iter().chain(the).chain(english).collect(), korean }
    }
}
