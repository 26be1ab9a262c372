//! Adjectives and what they fit.

use std::sync::LazyLock;

use super::english::compared;
use super::noun::{Noun, is_common, nouns, which};
use super::verb::Said;

/// What stands for an adjective in Korean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// A word that can end a sentence, too: 큰 집, 집이 커요.
    Stem(Said),
    /// Before nouns only: 새 집.
    Before(&'static str),
    /// A noun for a colour: 초록색 가방, 가방이 초록색이에요.
    Colour(&'static str),
}

/// An adjective.
#[derive(Clone, Debug)]
pub(crate) struct Adjective {
    pub(crate) english: &'static str,
    /// Bigger and biggest; none for "more".
    pub(crate) compared: Option<(String, String)>,
    pub(crate) korean: Attribute,
    pub(crate) fits: Vec<&'static Noun>,
    /// Whether it is said of people, so that pronouns and names may stand for them.
    pub(crate) persons: bool,
    /// Whether everyday speech has it often.
    pub(crate) common: bool,
    /// Whether all that it is said of are things.
    pub(crate) things: bool,
    flags: Vec<&'static str>,
}

impl Adjective {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether something can be more or less so.
    pub(crate) fn grades(&self) -> bool {
        matches!(self.korean, Attribute::Stem(_)) && !self.has("plain") && !self.has("past")
    }

    /// Whether it may stand before a noun.
    pub(crate) fn precedes(&self) -> bool {
        !self.has("after")
    }

    /// Its stem, if it can end a sentence.
    pub(crate) fn said(&self) -> Option<Said> {
        match self.korean {
            Attribute::Stem(said) => Some(said),
            _ => None,
        }
    }
}

static ADJECTIVES: LazyLock<Vec<Adjective>> =
    LazyLock::new(|| include_str!("../../data/adjectives.txt").lines().filter_map(read).collect());

static PREDICATES: LazyLock<Vec<&'static Adjective>> =
    LazyLock::new(|| adjectives().iter().filter(|adjective| !adjective.has("before")).collect());

/// All adjectives.
pub(crate) fn adjectives() -> &'static [Adjective] {
    &ADJECTIVES
}

/// Those that may end a sentence.
pub(crate) fn predicates() -> &'static [&'static Adjective] {
    &PREDICATES
}

static BEFORE: LazyLock<Vec<Vec<&'static Adjective>>> = LazyLock::new(|| {
    let mut before = vec![Vec::new(); nouns().len()];
    for adjective in adjectives().iter().filter(|adjective| adjective.precedes()) {
        adjective.fits.iter().for_each(|noun| before[noun.number].push(adjective));
    }
    before
});

/// Those that may stand before a noun.
pub(crate) fn before(noun: &Noun) -> &'static [&'static Adjective] {
    &BEFORE[noun.number]
}

fn read(line: &'static str) -> Option<Adjective> {
    let mut columns = line.split('|').map(str::trim);
    let (english, korean, fits) = (columns.next()?, columns.next()?, columns.next()?);
    if english.starts_with('#') {
        return None;
    }
    let flags: Vec<&str> = columns.next().unwrap_or("").split_whitespace().collect();
    let korean = match () {
        () if flags.contains(&"before") && !korean.ends_with('다') => Attribute::Before(korean),
        () if flags.contains(&"colour") => Attribute::Colour(korean),
        () => Attribute::Stem(Said::read(korean)),
    };
    let persons = fits.split_whitespace().any(|kind| kind == "person");
    let fits = which(fits);
    let things = fits.iter().all(|noun| !noun.any(&["person", "animal"]));
    Some(Adjective {
        english,
        compared: compared(english),
        korean,
        fits,
        persons,
        common: is_common(english),
        things,
        flags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_adjective_fits_something_and_no_noun_fits_two_meanings() {
        for (n, adjective) in adjectives().iter().enumerate() {
            assert!(!adjective.fits.is_empty(), "{}", adjective.english);
            for other in adjectives()[..n].iter().filter(|other| other.english == adjective.english) {
                let clash = other.fits.iter().find(|noun| adjective.fits.contains(noun));
                assert!(clash.is_none() || other.korean == adjective.korean, "{} {clash:?}", adjective.english);
            }
        }
    }
}
