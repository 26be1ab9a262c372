//! Verbs: who does them, to what, where and how.

use std::sync::LazyLock;

use super::english::VerbForms;
use super::noun::{Noun, is_common, sections, which};
use crate::korean::{Particle, Stem};

/// A Korean verb or adjective, perhaps with words that belong to it: 담배를 피우다.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Words before the stem; empty for most.
    pub(crate) before: &'static str,
    pub(crate) stem: Stem,
}

impl Said {
    /// Reads `키가 크다` and `!돕다`, where ! stands before an irregular stem.
    pub(crate) fn read(text: &'static str) -> Self {
        let (before, stem) = text.rsplit_once(' ').unwrap_or(("", text));
        let stem = match stem.strip_prefix('!') {
            Some(stem) => Stem::irregular(stem),
            None => Stem::regular(stem),
        };
        Said { before, stem }
    }
}

/// Which sentences a verb stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Transitive,
    Intransitive,
    /// With a place: goes to the school.
    Motion,
    /// With someone who gets it: gives her a book.
    Give,
}

/// A verb.
#[derive(Clone, Debug)]
pub(crate) struct Verb {
    pub(crate) frame: Frame,
    pub(crate) english: VerbForms,
    /// Words after it that belong to it: wake *up*.
    pub(crate) tail: Vec<&'static str>,
    /// What stands before the object or the place in English: wait *for* the bus.
    pub(crate) preposition: Vec<&'static str>,
    pub(crate) korean: Said,
    pub(crate) who: Vec<&'static Noun>,
    /// Whether persons do it, so that pronouns and names may stand for them.
    pub(crate) persons: bool,
    pub(crate) what: Vec<&'static Noun>,
    /// Whether it is done to persons.
    pub(crate) to_persons: bool,
    pub(crate) place: Vec<&'static Noun>,
    /// Whether cities and countries are places for it.
    pub(crate) cities: bool,
    /// The particle of what it is done to, or of where it happens.
    pub(crate) particle: Particle,
    /// What it may be done with.
    pub(crate) tools: Vec<&'static Noun>,
    /// Whether it can be under way: "is reading", but not "is knowing".
    pub(crate) progressive: bool,
    flags: Vec<&'static str>,
    /// Whether everyday speech has it often.
    pub(crate) common: bool,
    /// Other verbs of the same English and other Korean: "What does she play?" would leave the Korean open.
    pub(crate) twins: bool,
}

impl Verb {
    /// Whether a word stands in the last column of its line.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether one can decide to do it, be told to, and want to.
    pub(crate) fn is_willed(&self) -> bool {
        self.persons && !self.has("nov")
    }

    /// Past like the present but for the third person: "they read" needs a time to be clear.
    pub(crate) fn past_is_base(&self) -> bool {
        self.english.base == self.english.past
    }

    /// As the English dictionary has it, with its tail.
    pub(crate) fn dictionary(&self) -> &str {
        &self.english.base
    }

    /// How it may be done: headings of the adverbs.
    pub(crate) fn manners(&self) -> impl Iterator<Item = &'static str> {
        const MANNERS: [&str; 11] =
            ["speed", "slow", "hard", "well", "quiet", "loud", "careful", "again", "early", "clean", "amount"];
        MANNERS.into_iter().filter(|manner| self.has(manner))
    }
}

static VERBS: LazyLock<Vec<Verb>> = LazyLock::new(|| {
    let mut verbs: Vec<Verb> = sections(include_str!("../../data/verbs.txt")).map(|(s, line)| read(s, line)).collect();
    let twins: Vec<bool> = verbs
        .iter()
        .map(|verb| {
            let same = |other: &&Verb| other.english.base == verb.english.base && other.frame == verb.frame;
            verbs.iter().filter(same).any(|other| other.korean != verb.korean || other.tail != verb.tail)
        })
        .collect();
    verbs.iter_mut().zip(twins).for_each(|(verb, twins)| verb.twins = twins);
    verbs
});

/// All verbs.
pub(crate) fn verbs() -> &'static [Verb] {
    &VERBS
}

static FRAMES: LazyLock<[Vec<&'static Verb>; 4]> = LazyLock::new(|| {
    [Frame::Transitive, Frame::Intransitive, Frame::Motion, Frame::Give]
        .map(|frame| verbs().iter().filter(|verb| verb.frame == frame).collect())
});

/// All verbs that stand in one kind of sentence.
pub(crate) fn of_frame(frame: Frame) -> &'static [&'static Verb] {
    &FRAMES[frame as usize]
}

fn read(section: &str, line: &'static str) -> Verb {
    let columns: Vec<&'static str> = line.split('|').map(str::trim).collect();
    let [english, korean, who, what, place, flags] = columns[..] else {
        unreachable!("a verb has six columns: {line}");
    };
    let frame = match section {
        "transitive" => Frame::Transitive,
        "intransitive" => Frame::Intransitive,
        "motion" => Frame::Motion,
        _ => Frame::Give,
    };
    let mut words = english.split(' ');
    let base = words.next().unwrap_or_default();
    let mut tail: Vec<&'static str> = words.collect();
    let split = tail.iter().position(|word| word.starts_with('~')).unwrap_or(tail.len());
    let preposition = tail.split_off(split).iter().map(|word| word.trim_start_matches('~')).collect();
    let flags: Vec<&'static str> = flags.split_whitespace().collect();
    let set = |key: &str| flags.iter().find_map(|flag| flag.strip_prefix(key));
    let particle = match set("obj=").or(flags.iter().copied().find(|flag| flag.starts_with(['에', '로']))) {
        Some("에게") => Particle::To,
        Some("에서") => Particle::In,
        Some("에") => Particle::At,
        Some("로") => Particle::By,
        Some("와") => Particle::And,
        _ => Particle::Object,
    };
    let has_kind = |text: &str, kind: &str| text.split_whitespace().any(|word| word == kind);
    Verb {
        frame,
        english: VerbForms::of(base, korean),
        tail,
        preposition,
        korean: Said::read(korean),
        who: which(who),
        persons: has_kind(who, "person"),
        what: which(what),
        to_persons: has_kind(what, "person"),
        // The last column of giving is "to" or "for" instead.
        place: if frame == Frame::Give { Vec::new() } else { which(place) },
        cities: has_kind(place, "city"),
        particle,
        tools: set("by=").map_or_else(Vec::new, which),
        progressive: !flags.contains(&"state"),
        flags: flags.into_iter().chain((frame == Frame::Give).then_some(place)).collect(),
        common: is_common(base),
        twins: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_complete() {
        for verb in verbs() {
            let name = format!("{} {}", verb.english.base, verb.korean.stem.dictionary());
            assert!(!verb.who.is_empty(), "{name}");
            assert!(verb.korean.stem.dictionary().ends_with('다'), "{name}");
            assert_eq!(!verb.what.is_empty(), matches!(verb.frame, Frame::Transitive | Frame::Give), "{name}");
            assert!(verb.frame != Frame::Motion || !verb.place.is_empty(), "{name}");
        }
    }

    #[test]
    fn one_english_verb_with_one_noun_has_one_korean_verb() {
        let mut known = std::collections::HashMap::new();
        for verb in verbs().iter().filter(|verb| verb.frame == Frame::Transitive) {
            for noun in &verb.what {
                let english = (&verb.english.base, &verb.tail, &verb.preposition, noun.english);
                let before = known.entry(english).or_insert((verb.korean, verb.particle));
                let animals = verb.who.iter().all(|who| who.is("animal"));
                assert!(animals || *before == (verb.korean, verb.particle), "{} {}", verb.english.base, noun.english);
            }
        }
    }
}
