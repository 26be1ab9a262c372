//! Nouns with what stands before them: articles, owners, numbers, adjectives.

use super::determiner::{Determiner, Role, determiners, takes_plural};
use super::lexicon::{
    ADJECTIVES, Adjective, Agreement, Attribute, Countable, NAMES, NUMBERS, Noun, PRONOUNS, Pronoun, Which, kind,
};
use super::pair::Combination;
use super::writer::{English, Korean, Name, Phrase, Writer};
use crate::translation::korean::Particle;

/// A noun phrase that has no particle yet.
#[derive(Clone, Debug)]
pub(super) struct NounPhrase {
    pub(super) english: Vec<English>,
    korean: Vec<Korean>,
    /// The number and its counter: 두 권.
    counted: Vec<Korean>,
    pub(super) agreement: Agreement,
    /// Whether the listener knows which one: it is then the topic.
    known: bool,
    /// Which pronoun it is, if it is one.
    pub(super) pronoun: Option<&'static Pronoun>,
    /// Its nouns, as the dictionary has them.
    pub(super) heads: Vec<&'static str>,
}

impl NounPhrase {
    /// With a particle. A number stands between noun and particle in a subject (학생 두 명이), after both elsewhere
    /// (책을 두 권). `perhaps` is an English preposition that the particle may stand for.
    pub(super) fn with(mut self, particle: Particle, perhaps: Option<Name>) -> Phrase {
        let floats = matches!(particle, Particle::Object);
        if !floats {
            self.korean.append(&mut self.counted);
        }
        if let Some(last) = self.korean.pop() {
            self.korean.push(last.particle(particle).perhaps(perhaps));
        }
        self.korean.append(&mut self.counted);
        Phrase { english: self.english, korean: self.korean }
    }

    /// As the subject of a sentence: the topic if it is known.
    pub(super) fn into_subject(self) -> Phrase {
        let particle = if self.known { Particle::Topic } else { Particle::Subject };
        self.with(particle, None)
    }

    /// As what there is: 책이 두 권.
    pub(super) fn into_existing(mut self) -> Phrase {
        let mut counted = std::mem::take(&mut self.counted);
        let mut phrase = self.with(Particle::Subject, None);
        phrase.korean.append(&mut counted);
        phrase
    }

    /// Without a particle.
    pub(super) fn bare(self) -> Phrase {
        Phrase { english: self.english, korean: self.korean }
    }

    /// One and another.
    fn and(self, other: NounPhrase, writer: &mut Writer<'_>) -> NounPhrase {
        let known = self.known && other.known;
        let heads = [self.heads.as_slice(), &other.heads].concat();
        let and = writer.word("and");
        let Phrase { mut english, mut korean } = self.with(Particle::And, Some(and.name));
        english.push(and);
        english.extend(other.english);
        korean.extend(other.korean);
        NounPhrase {
            english,
            korean,
            counted: other.counted,
            agreement: Agreement::Plural,
            known,
            pronoun: None,
            heads,
        }
    }
}

impl Writer<'_> {
    /// Who or what does something, or is something.
    pub(super) fn subject(&mut self, which: Which, role: Role) -> Option<NounPhrase> {
        let persons = which.any & kind::PERSON != 0;
        let named = if persons { 1 } else { 0 };
        match self.choices.weighted(&[(30 * named, 0), (15 * named, 1), (6 * named, 2), (60, 3)])? {
            0 => {
                let pronoun = self.choices.one_of(&[0, 1, 2, 3, 4, 5])?;
                Some(self.pronoun(&PRONOUNS[pronoun], false))
            }
            1 => self.name(),
            2 => {
                let (one, other) = (self.name()?, self.name()?);
                Some(one.and(other, self))
            }
            _ => {
                let noun = self.noun(&which.nouns())?;
                self.noun_phrase(noun, role)
            }
        }
    }

    /// What something is done to by someone.
    pub(super) fn object(&mut self, which: Which, by: Option<&Pronoun>, role: Role) -> Option<NounPhrase> {
        let persons = which.any & kind::PERSON != 0;
        if persons && self.choices.percent(25) {
            return self.other_pronoun(by);
        }
        if persons && self.choices.percent(20) {
            return self.name();
        }
        let noun = self.noun(&which.nouns())?;
        let one = self.noun_phrase(noun, role)?;
        let pairs = kind::FOOD | kind::DRINK | kind::ANIMAL | kind::CLOTHES | kind::PEN;
        if role == Role::Object && one.counted.is_empty() && noun.is(pairs) && self.choices.percent(10) {
            let alike = Which { any: noun.kinds & pairs & which.any, but: which.but };
            if alike.any != 0 {
                let noun = self.noun(&alike.nouns())?;
                let other = self.noun_phrase(noun, Role::Second)?;
                return Some(one.and(other, self));
            }
        }
        Some(one)
    }

    /// Me, you, him: another one than who does it.
    pub(super) fn other_pronoun(&mut self, by: Option<&Pronoun>) -> Option<NounPhrase> {
        let others: Vec<_> = PRONOUNS.iter().filter(|pronoun| is_another(pronoun, by)).collect();
        let pronoun = self.choices.one_of(&others)?;
        Some(self.pronoun(pronoun, true))
    }

    fn pronoun(&mut self, pronoun: &'static Pronoun, as_object: bool) -> NounPhrase {
        let word = self.word(if as_object { pronoun.object } else { pronoun.subject });
        NounPhrase {
            korean: vec![Korean::new(pronoun.korean, &[word.name])],
            english: vec![word],
            counted: Vec::new(),
            agreement: pronoun.agreement,
            known: true,
            pronoun: Some(pronoun),
            heads: Vec::new(),
        }
    }

    pub(super) fn name(&mut self) -> Option<NounPhrase> {
        let (english, korean) = self.proper(NAMES)?;
        let Phrase { english, korean } = self.simple(english, korean);
        let agreement = Agreement::Singular;
        Some(NounPhrase {
            english,
            korean,
            counted: Vec::new(),
            agreement,
            known: true,
            pronoun: None,
            heads: Vec::new(),
        })
    }

    pub(super) fn noun_phrase(&mut self, noun: &'static Noun, role: Role) -> Option<NounPhrase> {
        let (determiner, plural) = self.choices.weighted(&determiners(noun, role))?;
        let number = match determiner {
            Determiner::Number | Determiner::Cups => Some(self.choices.one_of(NUMBERS)?),
            _ => None,
        };
        let plural = plural || number.is_some_and(|(english, _)| english != "one") && determiner == Determiner::Number;
        let adjective = self.adjective_for(noun, role);
        let mut english = Vec::new();
        let mut korean = Vec::new();
        let mut counted = Vec::new();
        let head = self.word(match noun.countable {
            Countable::Each { plural: many, .. } | Countable::Many { plural: many } if plural => many,
            _ => noun.english,
        });
        match determiner {
            Determiner::None => {}
            Determiner::A => {
                let next =
                    adjective.map_or(noun.english, |(adjective, very)| if very { "very" } else { adjective.english });
                english.push(self.word(article(next)));
            }
            Determiner::The => english.push(self.word("the")),
            Determiner::This | Determiner::That => {
                let (one, many, here) =
                    if determiner == Determiner::This { ("this", "these", "이") } else { ("that", "those", "그") };
                let many = if noun.countable == Countable::Pair || plural { many } else { one };
                let Phrase { english: word, korean: here } = self.simple(many, here);
                english.extend(word);
                korean.extend(here);
            }
            Determiner::Many => {
                let many = self.word("many");
                korean.push(Korean::new("많", &[many.name]).and("은"));
                english.push(many);
            }
            Determiner::Owner => {
                let pronoun = self.choices.one_of(&[0, 1, 2, 3, 4, 5])?;
                let Phrase { english: word, korean: owner } = self.owner(&PRONOUNS[pronoun], noun);
                english.extend(word);
                korean.extend(owner);
            }
            Determiner::OwnedBy => {
                let Phrase { english: words, korean: owner } = self.owning_phrase()?;
                english.extend(words);
                korean.extend(owner);
            }
            Determiner::Number | Determiner::Cups => {
                let (number, native) = number?;
                let word = self.word(number);
                let counter = match noun.countable {
                    Countable::Each { counter, .. } => counter,
                    _ => "잔",
                };
                counted.push(Korean::new(native, &[word.name]));
                english.push(word);
                if determiner == Determiner::Cups {
                    let cups = self.word(if number == "one" { "cup" } else { "cups" });
                    counted.push(Korean::new(counter, &[cups.name]));
                    english.push(cups);
                    english.push(self.word("of"));
                } else {
                    counted.push(Korean::new(counter, &[head.name]));
                }
            }
        }
        if let Some((adjective, very)) = adjective {
            let Phrase { english: words, korean: before } = self.attribute(adjective, very, noun);
            english.extend(words);
            korean.extend(before);
        }
        let mut word = Korean::new(noun.korean, &[head.name]);
        if plural && takes_plural(noun, determiner) {
            word = word.and("들");
        }
        korean.push(word);
        english.push(head);
        let many_cups = determiner == Determiner::Cups && number.is_some_and(|(english, _)| english != "one");
        let several = plural || many_cups || noun.countable == Countable::Pair;
        let agreement = if several { Agreement::Plural } else { Agreement::Singular };
        let known = !matches!(
            determiner,
            Determiner::None | Determiner::A | Determiner::Number | Determiner::Many | Determiner::Cups
        ) || noun.countable == Countable::Bare;
        Some(NounPhrase { english, korean, counted, agreement, known, pronoun: None, heads: vec![noun.english] })
    }

    /// My, your, his. Families and homes are shared: "my mother" is 우리 어머니.
    fn owner(&mut self, pronoun: &Pronoun, noun: &Noun) -> Phrase {
        let word = self.word(pronoun.owner);
        let korean = match pronoun.short {
            Some("제") if noun.is(kind::SHARED) => Korean::new("우리", &[word.name]),
            Some(short) => Korean::new(short, &[word.name]),
            None => Korean::new(pronoun.korean, &[word.name]).particle(Particle::Of).perhaps(Some(word.name)),
        };
        Phrase { english: vec![word], korean: vec![korean] }
    }

    /// Minsu's, the teacher's, my friend's.
    fn owning_phrase(&mut self) -> Option<Phrase> {
        let mut owner = match self.choices.weighted(&[(3, 0), (3, 1), (2, 2)])? {
            0 => self.name()?.bare(),
            kind_of => {
                let which = if kind_of == 1 { kind::JOB | kind::CHILD } else { kind::KIN | kind::SHARED };
                let people = Which::any(which).nouns();
                let noun = self.noun(&people.into_iter().filter(|noun| noun.is(kind::PERSON)).collect::<Vec<_>>())?;
                let mut before = if kind_of == 1 {
                    Phrase { english: vec![self.word("the")], korean: Vec::new() }
                } else {
                    self.owner(&PRONOUNS[0], noun)
                };
                let Phrase { english, korean } = self.simple(noun.english, noun.korean);
                before.english.extend(english);
                before.korean.extend(korean);
                before
            }
        };
        let (english, korean) = (owner.english.pop()?.owning(), owner.korean.pop()?);
        owner.korean.push(korean.particle(Particle::Of).of(english.name));
        owner.english.push(english);
        Some(owner)
    }

    fn adjective_for(&mut self, noun: &Noun, role: Role) -> Option<(&'static Adjective, bool)> {
        let share = match role {
            Role::Theme | Role::Second => 0,
            Role::Place => 15,
            _ => 28,
        };
        let fitting: Vec<_> = ADJECTIVES.iter().filter(|adjective| adjective.fits.fits(noun)).collect();
        if noun.countable == Countable::Unique || fitting.is_empty() || !self.choices.percent(share) {
            return None;
        }
        let adjective = self.choices.one_of(&fitting)?;
        let very = matches!(adjective.korean, Attribute::Stem(_)) && self.choices.percent(12);
        Some((adjective, very))
    }

    /// An adjective before its noun.
    pub(super) fn attribute(&mut self, adjective: &'static Adjective, very: bool, noun: &'static Noun) -> Phrase {
        self.combinations.push(Combination { head: adjective.english, noun: noun.english });
        let mut phrase = if very { self.simple("very", "아주") } else { Phrase::default() };
        let word = self.word(adjective.english);
        phrase.korean.push(match adjective.korean {
            Attribute::Stem(stem) => Korean::form(stem.modifier(), &[word.name]),
            Attribute::Before(korean) => Korean::new(korean, &[word.name]),
        });
        phrase.english.push(word);
        phrase
    }
}

/// Nobody helps himself, and "we" are not told apart from "I" or "you".
fn is_another(pronoun: &Pronoun, by: Option<&Pronoun>) -> bool {
    let speaks = |pronoun: &Pronoun| matches!(pronoun.subject, "I" | "we" | "you");
    by.is_none_or(|by| by.subject != pronoun.subject && !(by.subject == "we" && speaks(pronoun)))
        && !(pronoun.subject == "we" && by.is_some_and(speaks))
}

pub(super) fn article(next: &str) -> &'static str {
    let vowel = next.starts_with(['a', 'e', 'i', 'o', 'u']) && !next.starts_with("uni") || next == "honest";
    if vowel { "an" } else { "a" }
}
