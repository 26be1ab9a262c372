//! Pronouns, names, adverbs, times, and what people say to each other.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::noun::{entries, sections};

/// What a verb agrees with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// I.
    First,
    /// He, she, a student.
    Singular,
    /// You, we, they, students.
    Plural,
}

/// A pronoun: as a subject, as an object, as an owner; in English and in Korean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pronoun {
    pub(crate) subject: &'static str,
    pub(crate) object: &'static str,
    pub(crate) owner: &'static str,
    pub(crate) korean: &'static str,
    /// 제 책, 우리 책; the others take 의.
    pub(crate) short: Option<&'static str>,
    pub(crate) agreement: Agreement,
}

impl Pronoun {
    /// Whether it is someone who is spoken of, rather than who speaks or listens.
    pub(crate) fn is_third(&self) -> bool {
        matches!(self.subject, "he" | "she" | "they" | "it")
    }
}

const fn pronoun(
    english: [&'static str; 3],
    korean: &'static str,
    short: Option<&'static str>,
    agreement: Agreement,
) -> Pronoun {
    let [subject, object, owner] = english;
    Pronoun { subject, object, owner, korean, short, agreement }
}

/// Pronouns of people.
pub(crate) const PRONOUNS: [Pronoun; 6] = [
    pronoun(["I", "me", "my"], "저", Some("제"), Agreement::First),
    pronoun(["you", "you", "your"], "당신", None, Agreement::Plural),
    pronoun(["he", "him", "his"], "그", None, Agreement::Singular),
    pronoun(["she", "her", "her"], "그녀", None, Agreement::Singular),
    pronoun(["we", "us", "our"], "우리", Some("우리"), Agreement::Plural),
    pronoun(["they", "them", "their"], "그들", None, Agreement::Plural),
];

/// A thing that was spoken of.
pub(crate) const IT: Pronoun = pronoun(["it", "it", "its"], "그것", None, Agreement::Singular);

/// A name in both languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) english: &'static str,
    pub(crate) korean: &'static str,
    /// A woman's name.
    pub(crate) female: bool,
    /// The country of a city.
    pub(crate) country: &'static str,
}

/// Which names there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    People,
    Cities,
    Countries,
}

static NAMES: LazyLock<[Vec<Name>; 3]> = LazyLock::new(|| {
    let mut names = [const { Vec::new() }; 3];
    for (heading, line) in sections(include_str!("../../data/names.txt")) {
        let which = match heading {
            "male" | "female" => Names::People,
            "city" => Names::Cities,
            _ => Names::Countries,
        };
        let name = |(english, korean): (&'static str, &'static str)| {
            let (korean, country) = korean.split_once(' ').unwrap_or((korean, ""));
            Name { english, korean, female: heading == "female", country }
        };
        names[which as usize].extend(entries(line).map(name));
    }
    names
});

/// All names of a kind.
pub(crate) fn names(which: Names) -> &'static [Name] {
    &NAMES[which as usize]
}

static HERE: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let places = sections(include_str!("../../data/places.txt"));
    places.filter(|(heading, _)| heading.starts_with("here")).flat_map(|(_, line)| entries(line)).collect()
});

/// Here, home, next door: places without a preposition.
pub(crate) fn adverbs_of_place() -> &'static [(&'static str, &'static str)] {
    &HERE
}

/// An adverb, a time, or a whole expression: English words, and Korean words with the English ones they stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) english: Vec<&'static str>,
    pub(crate) korean: Vec<KoreanWord>,
    pub(crate) flags: Vec<&'static str>,
    /// Whether it is what people say to each other.
    pub(crate) spoken: bool,
}

/// A word of an expression: its text, a particle that may follow, which English words it stands for, and what ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KoreanWord {
    pub(crate) text: &'static str,
    pub(crate) particle: &'static str,
    pub(crate) stands_for: Vec<usize>,
    /// A comma or a question mark.
    pub(crate) mark: &'static str,
}

static ADVERBS: LazyLock<HashMap<&'static str, Vec<Expression>>> = LazyLock::new(|| {
    let mut adverbs = HashMap::<_, Vec<_>>::new();
    for (heading, line) in sections(include_str!("../../data/adverbs.txt")) {
        adverbs.entry(heading).or_default().push(expression(line));
    }
    adverbs
});

/// Adverbs and times under a heading of their file.
pub(crate) fn adverbs(heading: &str) -> &'static [Expression] {
    ADVERBS.get(heading).map_or(&[], Vec::as_slice)
}

/// All headings of adverbs and times.
pub(crate) fn headings() -> impl Iterator<Item = &'static str> {
    ADVERBS.keys().copied()
}

static PHRASES: LazyLock<Vec<Expression>> = LazyLock::new(|| {
    sections(include_str!("../../data/phrases.txt"))
        .map(|(_, line)| Expression { spoken: true, ..expression(line) })
        .collect()
});

/// What people say to each other.
pub(crate) fn phrases() -> &'static [Expression] {
    &PHRASES
}

/// Reads `last week | 지난주+에:0,1 | flags`. A Korean word without numbers stands for all English ones; words that belong
/// together are divided by a space, the last having the numbers.
fn expression(line: &'static str) -> Expression {
    let mut columns = line.split('|').map(str::trim);
    let english: Vec<&str> = columns.next().unwrap_or_default().split(' ').collect();
    let says = |n: &usize| !matches!(english[*n], "a" | "an" | "the" | "of");
    let all: Vec<usize> = (0..english.len()).filter(says).collect();
    let mut korean = Vec::new();
    for word in columns.next().unwrap_or_default().split(' ') {
        let mark = if word.ends_with(',') {
            ","
        } else if word.ends_with('?') {
            "?"
        } else {
            ""
        };
        let word = &word[..word.len() - mark.len()];
        let (text, numbers) = word.split_once(':').unwrap_or((word, ""));
        let (text, particle) = text.split_once('+').unwrap_or((text, ""));
        let stands_for = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
        korean.push(KoreanWord { text, particle, stands_for, mark });
    }
    // A word without numbers belongs to the next one that has them.
    let mut next = all;
    for word in korean.iter_mut().rev() {
        if word.stands_for.is_empty() {
            word.stands_for.clone_from(&next);
        }
        next.clone_from(&word.stands_for);
    }
    let flags = columns.next().unwrap_or("").split_whitespace().collect();
    Expression { english, korean, flags, spoken: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_stand_for_words_that_they_have() {
        for expression in headings().flat_map(adverbs).chain(phrases()) {
            for word in &expression.korean {
                assert!(!word.stands_for.is_empty(), "{expression:?}");
                for &n in &word.stands_for {
                    let english = expression.english.get(n).map(|word| word.to_lowercase());
                    let article = |word: String| ["a", "an", "the", "of"].contains(&word.as_str());
                    assert!(!english.is_none_or(article), "{expression:?}");
                }
                assert!(word.text.chars().all(|c| ('가'..='힣').contains(&c)), "{expression:?}");
            }
        }
        let last = &adverbs("past")[1];
        assert_eq!((last.korean[0].text, last.korean[0].particle), ("지난주", "에"));
        let night = adverbs("today").iter().find(|time| time.english == ["tonight"]).unwrap();
        assert_eq!(night.korean[0].stands_for, [0]);
    }

    #[test]
    fn cities_lie_in_countries_that_are_there() {
        let countries: Vec<&str> = names(Names::Countries).iter().map(|name| name.english).collect();
        for city in names(Names::Cities) {
            assert!(countries.contains(&city.country), "{}", city.english);
        }
        assert!(names(Names::People).iter().any(|name| name.female));
    }
}
