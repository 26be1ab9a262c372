//! The words, and what goes with what: people eat food, read books and go to places; soup is hot and houses are big.
//!
//! A noun has *kinds*; a verb says which kinds of nouns do it, what they do it to and where; an adjective says which kinds
//! it fits.

mod adjectives;
mod animates;
#[cfg(test)]
mod forms;
mod function;
mod kinds;
mod places;
mod things;
mod verbs;

pub(super) use self::adjectives::{ADJECTIVES, Adjective, Attribute};
pub(super) use self::animates::{ANIMALS, NAMES, PEOPLE};
pub(super) use self::function::*;
pub(super) use self::kinds::{Kinds, kind};
pub(super) use self::places::{CITIES, PLACES, preposition};
pub(super) use self::things::THINGS;
pub(super) use self::verbs::{GIVE, HAVE, INTRANSITIVE, MOTIONS, Manner, TRANSITIVE, Verb};

/// How a noun stands with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Countable {
    /// A book, two books: the plural, and what two of them are counted in: 두 권.
    Each { plural: &'static str, counter: &'static str },
    /// A book, books: they can be many, but are rarely counted.
    Many { plural: &'static str },
    /// Water.
    Mass,
    /// Shoes: plural in English, not in Korean.
    Pair,
    /// Soccer: without an article.
    Bare,
    /// The moon.
    Unique,
}

/// A noun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noun {
    pub(super) english: &'static str,
    pub(super) korean: &'static str,
    pub(super) countable: Countable,
    pub(super) kinds: Kinds,
}

impl Noun {
    pub(super) fn is(&self, kinds: Kinds) -> bool {
        self.kinds & kinds != 0
    }
}

const fn each(
    english: &'static str,
    plural: &'static str,
    korean: &'static str,
    counter: &'static str,
    kinds: Kinds,
) -> Noun {
    Noun { english, korean, countable: Countable::Each { plural, counter }, kinds }
}

const fn many(english: &'static str, plural: &'static str, korean: &'static str, kinds: Kinds) -> Noun {
    Noun { english, korean, countable: Countable::Many { plural }, kinds }
}

const fn mass(english: &'static str, korean: &'static str, kinds: Kinds) -> Noun {
    Noun { english, korean, countable: Countable::Mass, kinds }
}

const fn pair(english: &'static str, korean: &'static str, kinds: Kinds) -> Noun {
    Noun { english, korean, countable: Countable::Pair, kinds }
}

const fn bare(english: &'static str, korean: &'static str, kinds: Kinds) -> Noun {
    Noun { english, korean, countable: Countable::Bare, kinds }
}

const fn unique(english: &'static str, korean: &'static str, kinds: Kinds) -> Noun {
    Noun { english, korean, countable: Countable::Unique, kinds }
}

/// Which nouns go with a word: those of any of some kinds, but of none of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Which {
    pub(super) any: Kinds,
    pub(super) but: Kinds,
}

impl Which {
    pub(super) const fn any(any: Kinds) -> Self {
        Which { any, but: 0 }
    }

    pub(super) const fn but(self, but: Kinds) -> Self {
        Which { but, ..self }
    }

    pub(super) fn fits(self, noun: &Noun) -> bool {
        noun.is(self.any) && !noun.is(self.but)
    }

    /// All nouns that fit.
    pub(super) fn nouns(self) -> Vec<&'static Noun> {
        nouns().filter(|noun| self.fits(noun)).collect()
    }
}

/// All nouns that may stand for a person, an animal or a thing.
pub(super) fn nouns() -> impl Iterator<Item = &'static Noun> {
    PEOPLE.iter().chain(ANIMALS).chain(THINGS).chain(PLACES)
}

/// How many words there are, as the English dictionary has them.
pub(super) fn count() -> usize {
    let mut words: Vec<&str> = nouns().map(|noun| noun.english).collect();
    words.extend(NAMES.iter().chain(CITIES).chain(NUMBERS).map(|(english, _)| english));
    let verbs = TRANSITIVE.iter().chain(INTRANSITIVE).chain([&GIVE]).chain(MOTIONS.iter().map(|motion| &motion.verb));
    words.extend(verbs.map(|verb| verb.english[0]));
    words.extend(ADJECTIVES.iter().map(|adjective| adjective.english));
    words.extend(PRONOUNS.iter().flat_map(|pronoun| [pronoun.subject, pronoun.object, pronoun.owner]));
    words.extend([PAST, PRESENT, NOW, FUTURE].into_iter().flatten().flat_map(|(english, _)| *english));
    words.extend(DAYTIME.iter().chain(BESIDE).flat_map(|(english, _)| *english));
    words.extend([FREQUENCY, SPEED, HARD, WELL, QUIET].into_iter().flatten().map(|(english, _)| english));
    words.extend(FUNCTION);
    words.sort_unstable();
    words.dedup();
    words.len()
}
