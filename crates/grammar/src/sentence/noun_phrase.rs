//! Nouns with what stands before them: articles, owners, numbers, adjectives.

use super::determiner::{Determiner, Use, determiners, measures, takes_plural};
use super::writer::{English, Id, Korean, Phrase, Writer, ids, korean_words, mark};
use crate::korean::{Ending, Particle, native_number};
use crate::lexicon::{
    Adjective, Agreement, Attribute, Countable, Name, Names, Noun, PRONOUNS, Pronoun, article, before, names,
};
use crate::pair::{Combination, Part};

/// A noun phrase that has no particle yet.
#[derive(Clone, Debug)]
pub(crate) struct NounPhrase {
    pub(crate) english: Vec<English>,
    pub(crate) korean: Vec<Korean>,
    /// The number and its counter: 두 권.
    pub(crate) counted: Vec<Korean>,
    pub(crate) agreement: Agreement,
    /// Whether the listener knows which one: it is then the topic.
    pub(crate) known: bool,
    /// "The cat": known, but no more than that.
    pub(crate) the: bool,
    /// Which pronoun it is, if it is one.
    pub(crate) pronoun: Option<&'static Pronoun>,
    /// Its nouns, as the dictionary has them.
    pub(crate) heads: Vec<&'static str>,
    /// The English words that are its nouns.
    pub(crate) head_ids: Vec<Id>,
    /// Verbs of it take 시.
    pub(crate) honoured: bool,
    /// One gives to them in other words.
    pub(crate) elder: bool,
    pub(crate) female: bool,
}

impl NounPhrase {
    pub(crate) fn new(english: Vec<English>, korean: Vec<Korean>, agreement: Agreement) -> Self {
        let head_ids = english.last().map(|word| word.id).into_iter().collect();
        NounPhrase {
            english,
            korean,
            counted: Vec::new(),
            agreement,
            known: true,
            the: false,
            pronoun: None,
            heads: Vec::new(),
            head_ids,
            honoured: false,
            elder: false,
            female: false,
        }
    }

    /// With a particle. A number stands between noun and particle in a subject (학생 두 명이), after both elsewhere
    /// (책을 두 권). `perhaps` is an English preposition that the particle may stand for.
    pub(crate) fn with(mut self, particle: Particle, perhaps: Option<Id>) -> Phrase {
        let floats = matches!(particle, Particle::Object);
        if !floats {
            self.korean.append(&mut self.counted);
        }
        self.korean = mark(self.korean, particle, perhaps);
        self.korean.append(&mut self.counted);
        Phrase { english: self.english, korean: self.korean }
    }

    /// As what there is: 책이 두 권. What is counted after "and" stays whole: 언니 두 명과 오빠 한 명이.
    pub(crate) fn into_existing(mut self) -> Phrase {
        if self.heads.len() > 1 {
            return self.with(Particle::Subject, None);
        }
        let mut counted = std::mem::take(&mut self.counted);
        let mut phrase = self.with(Particle::Subject, None);
        phrase.korean.append(&mut counted);
        phrase
    }

    /// Without a particle.
    pub(crate) fn bare(mut self) -> Phrase {
        self.korean.append(&mut self.counted);
        Phrase { english: self.english, korean: self.korean }
    }

    /// One and another.
    pub(crate) fn and(self, other: NounPhrase, writer: &mut Writer<'_>) -> NounPhrase {
        let (known, the) = (self.known && other.known, self.the && other.the);
        let heads = [self.heads.as_slice(), &other.heads].concat();
        let head_ids = [self.head_ids.as_slice(), &other.head_ids].concat();
        let honoured = self.honoured && other.honoured;
        let and = writer.word("and");
        let mut one = self;
        one.korean.append(&mut one.counted);
        let Phrase { mut english, mut korean } = one.with(Particle::And, Some(and.id));
        english.push(and);
        english.extend(other.english);
        korean.extend(other.korean);
        let phrase = NounPhrase::new(english, korean, Agreement::Plural);
        NounPhrase { counted: other.counted, known, the, heads, head_ids, honoured, ..phrase }
    }
}

impl Writer<'_> {
    /// Who or what does something, or is something.
    pub(crate) fn subject(&mut self, who: &[&'static Noun], persons: bool, role: Use) -> Option<NounPhrase> {
        let named = usize::from(persons);
        let subject =
            match self.choices.weighted(&[(46 * named, 0), (12 * named, 1), (4 * named, 2), (36, 3), (3, 4)])? {
                0 => {
                    let pronoun = self.choices.one_of(&[0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5])?;
                    self.pronoun(&PRONOUNS[pronoun], false)
                }
                1 => self.name()?,
                2 => {
                    let (one, other) = (self.name()?, self.name()?);
                    one.and(other, self)
                }
                3 => {
                    let noun = self.noun(who)?;
                    self.noun_phrase(noun, role)?
                }
                _ => {
                    let alike: Vec<_> = who.iter().copied().filter(|noun| noun.countable == Countable::Each).collect();
                    let one = self.noun(&alike)?;
                    let group = ["person", "animal", "food", "goods"].into_iter().find(|kind| one.is(kind))?;
                    let others: Vec<_> =
                        alike.iter().copied().filter(|noun| noun.is(group) && !noun.is("kin")).collect();
                    let other = self.noun(&others)?;
                    if one.is("kin") {
                        return None;
                    }
                    let (one, other) = (self.the(one), self.the(other));
                    one.and(other, self)
                }
            };
        self.speaks_of(&subject);
        Some(subject)
    }

    /// Remembers whom a clause is about: "Tom lost his wallet" is his own, and nobody helps himself.
    pub(crate) fn speaks_of(&mut self, subject: &NounPhrase) {
        let named = subject.heads.is_empty() && subject.head_ids.len() == 1;
        let he_or_she = named.then_some(&PRONOUNS[if subject.female { 3 } else { 2 }]);
        self.speaker = subject.pronoun.or(he_or_she);
        self.woman = subject.female;
    }

    /// The cat.
    pub(crate) fn the(&mut self, noun: &'static Noun) -> NounPhrase {
        let the = self.word("the");
        let Phrase { english, korean } = self.simple(noun.english, noun.korean, Part::Noun);
        let english = [vec![the], english].concat();
        let phrase = NounPhrase::new(english, korean, Agreement::Singular);
        NounPhrase {
            the: true,
            heads: vec![noun.english],
            honoured: noun.is("honoured"),
            elder: noun.is("elder"),
            ..phrase
        }
    }

    /// What something is done to by someone.
    pub(crate) fn object(&mut self, what: &[&'static Noun], persons: bool, role: Use) -> Option<NounPhrase> {
        if persons && self.choices.percent(30) {
            return self.other_pronoun();
        }
        if persons && self.choices.percent(20) {
            return self.name();
        }
        let noun = self.noun(what)?;
        let one = self.noun_phrase(noun, role)?;
        let groups = ["food", "drink", "animal", "clothes", "pen", "subject", "sport", "furniture", "fruit", "person"];
        if matches!(role, Use::Object | Use::New) && self.choices.percent(10) {
            let group = groups.into_iter().find(|kind| noun.is(kind) && !noun.is("kin"))?;
            let alike: Vec<_> = what.iter().copied().filter(|noun| noun.is(group) && !noun.is("kin")).collect();
            let other = self.noun(&alike)?;
            let role = if one.counted.is_empty() { Use::Second } else { role };
            let other = self.noun_phrase(other, role)?;
            // "The apples and a pear" begins one way and ends the other.
            let both_counted = one.counted.is_empty() == other.counted.is_empty() && one.known == other.known;
            return both_counted.then(|| one.and(other, self));
        }
        Some(one)
    }

    /// Me, you, him: another one than who does it.
    pub(crate) fn other_pronoun(&mut self) -> Option<NounPhrase> {
        let by = self.speaker;
        let others: Vec<_> = PRONOUNS.iter().filter(|pronoun| is_another(pronoun, by)).collect();
        let pronoun = self.choices.one_of(&others)?;
        Some(self.pronoun(pronoun, true))
    }

    pub(crate) fn pronoun(&mut self, pronoun: &'static Pronoun, as_object: bool) -> NounPhrase {
        let word = self.say(if as_object { pronoun.object } else { pronoun.subject }, Part::Pronoun);
        let korean = vec![Korean::new(pronoun.korean, &[word.id])];
        let phrase = NounPhrase::new(vec![word], korean, pronoun.agreement);
        NounPhrase { pronoun: Some(pronoun), female: pronoun.subject == "she", ..phrase }
    }

    /// One of some names, other than those that the sentence has.
    pub(crate) fn proper(&mut self, which: Names) -> Option<&'static Name> {
        let all = names(which);
        let name = &all[self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?];
        if self.used.contains(&name.english) {
            return None;
        }
        self.used.push(name.english);
        Some(name)
    }

    pub(crate) fn name(&mut self) -> Option<NounPhrase> {
        let name = self.proper(Names::People)?;
        let Phrase { english, korean } = self.simple(name.english, name.korean, Part::Name);
        Some(NounPhrase { female: name.female, ..NounPhrase::new(english, korean, Agreement::Singular) })
    }

    pub(crate) fn noun_phrase(&mut self, noun: &'static Noun, role: Use) -> Option<NounPhrase> {
        let (determiner, plural) = self.choices.weighted(&determiners(noun, role))?;
        let counts = matches!(determiner, Determiner::Number | Determiner::Measure);
        let number = if counts { Some(self.number()?) } else { None };
        let several = number.as_ref().is_some_and(|(english, _)| english != "one" && english != "a");
        let plural = plural || several && determiner == Determiner::Number;
        let adjective = self.adjective_for(noun, role, determiner);
        let text = if plural { noun.plural.as_str() } else { noun.english };
        let head = self.say_all(text, Part::Noun);
        let head_ids = ids(&head);
        let first = adjective.map_or(text, |(adjective, degree)| if degree { "very" } else { adjective.english });
        let mut said = self.determined(noun, determiner, plural, (first, &head_ids))?;
        if let Some((number, native)) = number {
            let word = if number == "one" && determiner == Determiner::Measure { "a".to_owned() } else { number };
            let count = self.say(&word, if word == "a" { Part::Function } else { Part::Number });
            let counts = count.id;
            said.english.push(count);
            if determiner == Determiner::Measure {
                let (one, more, korean) = self.choices.one_of(measures(noun))?;
                let unit = self.say_all(if several { more } else { one }, Part::Noun);
                // "A cup of": the cup is one.
                said.counted.push(Korean::new(&native, &[if word == "a" { unit[0].id } else { counts }]));
                said.counted.push(Korean::new(korean, &[unit[0].id]));
                said.english.extend(unit);
            } else {
                said.counted.push(Korean::new(&native, &[counts]));
                said.counted.push(Korean::new(noun.counter, &head_ids));
            }
        }
        if let Some((adjective, degree)) = adjective {
            let attribute = self.attribute(adjective, degree, noun);
            said.english.extend(attribute.english);
            said.korean.extend(attribute.korean);
        }
        let mut words = self.said(noun, &head_ids, said.by_woman);
        if plural
            && takes_plural(noun, determiner)
            && let Some(last) = words.pop()
        {
            words.push(last.and("들"));
        }
        if let Some(last) = words.pop() {
            words.push(last.perhaps(said.dropped));
        }
        said.korean.extend(words);
        said.english.extend(head);
        let many = plural || noun.countable == Countable::Pair || several && determiner == Determiner::Measure;
        let indefinite = [
            Determiner::None,
            Determiner::A,
            Determiner::Number,
            Determiner::Many,
            Determiner::Measure,
            Determiner::Some,
            Determiner::All,
            Determiner::Every,
        ];
        let phrase =
            NounPhrase::new(said.english, said.korean, if many { Agreement::Plural } else { Agreement::Singular });
        Some(NounPhrase {
            counted: said.counted,
            known: !indefinite.contains(&determiner) || noun.countable == Countable::Bare,
            the: matches!(determiner, Determiner::The | Determiner::This | Determiner::That),
            heads: vec![noun.english],
            honoured: noun.is("honoured"),
            elder: noun.is("elder"),
            female: is_female(noun),
            ..phrase
        })
    }

    /// The Korean words of a noun.
    fn said(&self, noun: &Noun, ids: &[Id], by_woman: bool) -> Vec<Korean> {
        korean_words(noun.womans.filter(|_| by_woman).unwrap_or(noun.korean), ids)
    }

    /// A number of things: mostly small.
    fn number(&mut self) -> Option<(String, String)> {
        let n = self.choices.weighted(&[(4, 1), (6, 2), (6, 3), (4, 4), (4, 5), (3, 0)])?;
        let n = if n == 0 { self.choices.one_of(&[6, 7, 8, 9, 10, 11, 12, 15, 20])? } else { n };
        Some((super::count::english_number(n), native_number(n)?))
    }

    fn adjective_for(
        &mut self,
        noun: &'static Noun,
        role: Use,
        determiner: Determiner,
    ) -> Option<(&'static Adjective, bool)> {
        let share = match role {
            Use::Theme | Use::Second => 0,
            Use::Place | Use::Known => 10,
            _ => 22,
        };
        if noun.countable == Countable::Unique || !self.choices.percent(share) {
            return None;
        }
        let adjective = self.choices.favoured(before(noun), |adjective| adjective.common)?;
        let fits = match determiner {
            Determiner::The => true,
            Determiner::Owner | Determiner::OwnedBy => !adjective.has("the"),
            _ => !adjective.has("the") && !adjective.has("own") && !adjective.has("ordinal"),
        };
        let fits = fits && (!adjective.has("own") || determiner != Determiner::The);
        let very = adjective.grades() && self.choices.percent(10);
        fits.then_some((adjective, very))
    }

    /// An adjective before its noun.
    pub(crate) fn attribute(&mut self, adjective: &'static Adjective, very: bool, noun: &'static Noun) -> Phrase {
        self.combinations.push(Combination { head: adjective.english, noun: noun.english });
        let mut phrase = if very { self.simple("very", "아주", Part::Adverb) } else { Phrase::default() };
        let english = self.say_all(adjective.english, Part::Adjective);
        phrase.korean.extend(attributive(adjective, &ids(&english)));
        phrase.english.extend(english);
        phrase
    }
}

/// The Korean of an adjective before a noun: 큰, 키가 큰, 새, 초록색.
pub(crate) fn attributive(adjective: &Adjective, stands_for: &[Id]) -> Vec<Korean> {
    match adjective.korean {
        // A hungry dog is 배고픈, though it is 배가 고파요.
        Attribute::Stem(said) if said.before == "배가" && said.stem.dictionary() == "고프다" => {
            vec![Korean::form(crate::korean::Stem::regular("배고프다").with(Ending::Modifier), stands_for)]
        }
        Attribute::Stem(said) => {
            let before = said.before.split(' ').filter(|word| !word.is_empty());
            let mut words: Vec<_> = before.map(|word| Korean::cut(word, stands_for)).collect();
            let ending =
                if adjective.has("verb") || adjective.has("neun") { Ending::Relative } else { Ending::Modifier };
            words.push(Korean::form(said.stem.with(ending), stands_for));
            words
        }
        Attribute::Before(korean) | Attribute::Colour(korean) => korean_words(korean, stands_for),
    }
}

fn is_female(noun: &Noun) -> bool {
    const WOMEN: [&str; 19] = [
        "woman",
        "girl",
        "mother",
        "mom",
        "aunt",
        "daughter",
        "wife",
        "grandmother",
        "grandma",
        "queen",
        "princess",
        "granddaughter",
        "girlfriend",
        "mother-in-law",
        "sister",
        "younger sister",
        "twin sister",
        "little girl",
        "lady",
    ];
    WOMEN.contains(&noun.english)
}

/// Nobody helps himself, and "we" are not told apart from "I" or "you".
fn is_another(pronoun: &Pronoun, by: Option<&Pronoun>) -> bool {
    let speaks = |pronoun: &Pronoun| matches!(pronoun.subject, "I" | "we" | "you");
    by.is_none_or(|by| by.subject != pronoun.subject && !(by.subject == "we" && speaks(pronoun)))
        && !(pronoun.subject == "we" && by.is_some_and(speaks))
}

/// "A" or "an" before a word.
pub(crate) fn a_or_an(writer: &mut Writer<'_>, next: &str) -> English {
    writer.word(article(next))
}
