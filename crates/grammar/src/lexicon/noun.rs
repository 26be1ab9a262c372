//! Nouns and the files they are read from.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::english::with_s;

/// How a noun stands with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Countable {
    /// A book, two books, counted in something of its own: 두 권.
    Each,
    /// A school, schools: they can be many, but are rarely counted.
    Many,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noun {
    /// One or more words.
    pub(crate) english: &'static str,
    pub(crate) plural: String,
    /// One or more words.
    pub(crate) korean: &'static str,
    /// The word that a woman says: 언니 for 누나.
    pub(crate) womans: Option<&'static str>,
    pub(crate) countable: Countable,
    /// What they are counted in; empty if in nothing.
    pub(crate) counter: &'static str,
    /// What English says for being there: "at" the station. Empty for what is no place.
    pub(crate) preposition: &'static str,
    kinds: Vec<&'static str>,
    /// Whether everyday speech has it often.
    pub(crate) common: bool,
    /// Its place among all nouns.
    pub(crate) number: usize,
}

impl Noun {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kinds.contains(&kind)
    }

    #[cfg(test)]
    pub(crate) fn kinds(&self) -> &[&'static str] {
        &self.kinds
    }

    pub(crate) fn any(&self, kinds: &[&str]) -> bool {
        kinds.iter().any(|kind| self.is(kind))
    }
}

const FILES: [&str; 7] = [
    include_str!("../../data/people.txt"),
    include_str!("../../data/animals.txt"),
    include_str!("../../data/food.txt"),
    include_str!("../../data/things.txt"),
    include_str!("../../data/nature.txt"),
    include_str!("../../data/ideas.txt"),
    include_str!("../../data/places.txt"),
];

static NOUNS: LazyLock<Vec<Noun>> = LazyLock::new(|| {
    let mut nouns: Vec<Noun> = FILES.iter().flat_map(|file| read(file)).collect();
    nouns.iter_mut().enumerate().for_each(|(number, noun)| noun.number = number);
    nouns
});

static BY_KIND: LazyLock<HashMap<&'static str, Vec<&'static Noun>>> = LazyLock::new(|| {
    let mut kinds = HashMap::<_, Vec<_>>::new();
    for noun in NOUNS.iter() {
        for kind in &noun.kinds {
            kinds.entry(*kind).or_default().push(noun);
        }
    }
    kinds
});

static COMMON: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let lines = include_str!("../../data/common.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(|word| word.replace('_', " ")).collect()
});

/// Whether everyday speech has a word often.
pub(crate) fn is_common(english: &str) -> bool {
    COMMON.contains(english)
}

/// All nouns.
pub(crate) fn nouns() -> &'static [Noun] {
    &NOUNS
}

/// All nouns of a kind.
pub(crate) fn of_kind(kind: &str) -> &'static [&'static Noun] {
    BY_KIND.get(kind).map_or(&[], Vec::as_slice)
}

/// The lines of a data file under their headings (`@heading`), without comments.
pub(crate) fn sections(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut heading = "";
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(move |line| match line.strip_prefix('@') {
        Some(next) => {
            heading = next;
            None
        }
        None => Some((heading, line)),
    })
}

/// English=Korean entries that semicolons divide.
pub(crate) fn entries(line: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    line.split(';').filter_map(|entry| entry.trim().split_once('='))
}

fn read(file: &'static str) -> Vec<Noun> {
    let mut nouns = Vec::new();
    for (heading, line) in sections(file).filter(|(heading, _)| !heading.starts_with("here")) {
        let (class, kinds) = heading.split_once(':').expect("a heading is `class counter: kinds`");
        let (class, counter) = class.split_once(' ').unwrap_or((class, ""));
        let countable = match class {
            "each" => Countable::Each,
            "many" => Countable::Many,
            "mass" => Countable::Mass,
            "pair" => Countable::Pair,
            "bare" => Countable::Bare,
            "unique" => Countable::Unique,
            other => unreachable!("{other} is no class of nouns"),
        };
        nouns.extend(entries(line).map(|(english, korean)| entry(english, korean, countable, (counter, kinds))));
    }
    nouns
}

fn entry(
    english: &'static str,
    korean: &'static str,
    countable: Countable,
    (counter, kinds): (&'static str, &'static str),
) -> Noun {
    let mut kinds: Vec<&str> = kinds.split_whitespace().collect();
    let preposition = ["at ", "in ", "on "].into_iter().find(|at| english.starts_with(at)).unwrap_or("");
    let english = &english[preposition.len()..];
    let (english, plural) = match english.split_once('/') {
        Some((one, many)) => (one, many.to_owned()),
        None => (english, with_s(english)),
    };
    // Korean words, then changes of kind: each begins with + or -.
    let cut = korean.find(" +").into_iter().chain(korean.find(" -")).min().unwrap_or(korean.len());
    let (korean, changes) = korean.split_at(cut);
    for change in changes.split_whitespace() {
        match change.strip_prefix('+') {
            Some(more) => kinds.push(more),
            None => kinds.retain(|kind| *kind != &change[1..]),
        }
    }
    let (korean, counter) = korean.split_once(':').unwrap_or((korean, counter));
    let (korean, womans) = korean.split_once('|').map_or((korean, None), |(man, woman)| (man, Some(woman)));
    Noun {
        english,
        plural,
        korean,
        womans,
        countable,
        counter,
        preposition: preposition.trim_end(),
        kinds,
        common: is_common(english),
        number: 0,
    }
}

/// Which nouns go with a word: `person -child =cat -=dog`.
pub(crate) fn which(text: &str) -> Vec<&'static Noun> {
    let (mut kinds, mut named) = (Vec::new(), Vec::new());
    let (mut not_kinds, mut not_named) = (Vec::new(), Vec::new());
    for word in text.split_whitespace().filter(|word| *word != "-") {
        let (not, word) = word.strip_prefix('-').map_or((false, word), |word| (true, word));
        match (word.strip_prefix('='), not) {
            (Some(name), false) => named.push(name.replace('_', " ")),
            (Some(name), true) => not_named.push(name.replace('_', " ")),
            (None, false) => kinds.push(word),
            (None, true) => not_kinds.push(word),
        }
    }
    let is = |noun: &&Noun| {
        named.iter().any(|name| name == noun.english)
            || noun.any(&kinds) && !noun.any(&not_kinds) && !not_named.iter().any(|name| name == noun.english)
    };
    nouns().iter().filter(is).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_noun_is_there_twice() {
        let mut seen = std::collections::HashSet::new();
        for noun in nouns() {
            assert!(seen.insert(noun.english), "{}", noun.english);
            if matches!(noun.countable, Countable::Each | Countable::Many) && noun.plural != noun.english {
                assert!(seen.insert(&noun.plural), "{}", noun.plural);
            }
        }
    }

    #[test]
    fn every_counted_noun_has_a_counter_and_every_word_is_hangul() {
        for noun in nouns() {
            assert!(noun.countable != Countable::Each || !noun.counter.is_empty(), "{}", noun.english);
            let hangul = |c: char| ('가'..='힣').contains(&c) || c == ' ';
            for korean in [Some(noun.korean), noun.womans, Some(noun.counter)].into_iter().flatten() {
                assert!(korean.chars().all(hangul) && !korean.contains("  "), "{} {korean}", noun.english);
            }
            let latin = |c: char| c.is_ascii_alphabetic() || matches!(c, ' ' | '-');
            assert!(noun.english.chars().all(latin), "{}", noun.english);
        }
        let book = nouns().iter().find(|noun| noun.english == "book").unwrap();
        assert_eq!(
            (book.counter, book.plural.as_str(), book.is("reading"), book.is("food")),
            ("권", "books", true, false)
        );
        let novel = nouns().iter().find(|noun| noun.english == "novel").unwrap();
        assert_eq!((novel.counter, novel.is("goods"), novel.is("lent")), ("편", false, true));
        let station = nouns().iter().find(|noun| noun.english == "station").unwrap();
        assert_eq!((station.korean, station.preposition), ("역", "at"));
    }
}
