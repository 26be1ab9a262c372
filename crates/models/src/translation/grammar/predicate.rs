//! What is said of the subject: tense, progress, negation.
//!
//! | | present | past | future |
//! |---|---|---|---|
//! | | reads 읽어요 | read 읽었어요 | will read 읽을 거예요 |
//! | under way | is reading 읽고 있어요 | was reading 읽고 있었어요 | |
//! | not | does not read 읽지 않아요 | did not read 읽지 않았어요 | will not read 읽지 않을 거예요 |

use super::lexicon::Agreement;
use super::writer::{English, Korean, Name, Phrase, Writer};
use crate::translation::korean::{Particle, Stem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tense {
    Past,
    Present,
    Future,
}

/// How a predicate is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) tense: Tense,
    pub(super) progressive: bool,
    pub(super) negative: bool,
    /// Whether English puts the auxiliary before the subject.
    pub(super) inverted: bool,
    pub(super) agreement: Agreement,
}

/// A predicate; in English the auxiliary stands apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Predicate {
    pub(super) auxiliary: Vec<English>,
    pub(super) not: Vec<English>,
    pub(super) verb: Vec<English>,
    pub(super) korean: Vec<Korean>,
}

/// What is still to be said after a stem.
#[derive(Clone, Copy)]
struct Rest {
    tense: Tense,
    /// The "is" of "is reading".
    progressive: Option<Name>,
    not: Option<Name>,
    will: Option<Name>,
    /// "Does", "is": English words that only carry the tense.
    auxiliary: Option<Name>,
}

const EXIST: Stem = Stem::regular("있다");
const LACK: Stem = Stem::regular("없다");
const NOT: Stem = Stem::regular("않다");
const BECOME: Stem = Stem::regular("되다");

impl Writer<'_> {
    /// A verb: its English forms (read, reads, read, reading) and its stem.
    pub(super) fn verb(&mut self, english: [&str; 4], stem: Stem, shape: Shape) -> Predicate {
        let [base, third, past, ing] = english;
        let singular = shape.agreement == Agreement::Singular;
        let supported = shape.negative || shape.inverted;
        let (auxiliary, verb) = match (shape.tense, shape.progressive) {
            (Tense::Future, _) => (Some("will"), base),
            (tense, true) => (Some(be(tense, shape.agreement)), ing),
            (Tense::Past, _) if supported => (Some("did"), base),
            (Tense::Present, _) if supported => (Some(if singular { "does" } else { "do" }), base),
            (Tense::Past, _) => (None, past),
            (Tense::Present, _) => (None, if singular { third } else { base }),
        };
        let auxiliary = auxiliary.map(|auxiliary| self.word(auxiliary));
        let not = shape.negative.then(|| self.word("not"));
        let verb = self.word(verb);
        let of = |word: &Option<English>, is: bool| word.as_ref().filter(|_| is).map(|word| word.name);
        let future = shape.tense == Tense::Future;
        let rest = Rest {
            tense: shape.tense,
            progressive: of(&auxiliary, shape.progressive),
            not: of(&not, true),
            will: of(&auxiliary, future),
            auxiliary: of(&auxiliary, !future && !shape.progressive),
        };
        let korean = said(stem, &[verb.name], rest);
        Predicate {
            auxiliary: auxiliary.into_iter().collect(),
            not: not.into_iter().collect(),
            verb: vec![verb],
            korean,
        }
    }

    /// Is big.
    pub(super) fn adjective(&mut self, english: &str, very: bool, stem: Stem, shape: Shape) -> Predicate {
        let (mut predicate, be, rest) = self.be(shape);
        let Phrase { english: very, mut korean } = if very { self.simple("very", "아주") } else { Phrase::default() };
        let adjective = self.word(english);
        korean.extend(said(stem, &[adjective.name], Rest { auxiliary: Some(be), ..rest }));
        predicate.verb.extend(very);
        predicate.verb.push(adjective);
        Predicate { korean, ..predicate }
    }

    /// Is a doctor. `noun` has no particle yet.
    pub(super) fn copula(&mut self, noun: Phrase, shape: Shape) -> Predicate {
        let (mut predicate, be, rest) = self.be(shape);
        let Phrase { english, mut korean } = noun;
        predicate.verb.extend(english);
        let Some(last) = korean.pop() else { return predicate };
        if shape.tense == Tense::Future {
            korean.push(last.particle(Particle::Subject));
            korean.extend(said(BECOME, &[be], rest));
        } else if let Some(not) = rest.not {
            korean.push(last.particle(Particle::Subject));
            let ending = if shape.tense == Tense::Past { "었어요" } else { "에요" };
            korean.push(Korean::new("아니", &[not]).and(ending).perhaps(Some(be)));
        } else {
            let is = if shape.tense == Tense::Past { Particle::Was } else { Particle::Is };
            korean.push(last.particle(is).perhaps(Some(be)));
        }
        Predicate { korean, ..predicate }
    }

    /// Is there: 있어요; is not there: 없어요.
    pub(super) fn exists(&mut self, shape: Shape) -> Predicate {
        let (predicate, be, rest) = self.be(shape);
        Predicate { korean: exists(be, rest), ..predicate }
    }

    /// Has, which is "is there" too.
    pub(super) fn has(&mut self, shape: Shape) -> Predicate {
        let mut predicate = self.verb(["have", "has", "had", "having"], EXIST, shape);
        let name = |words: &[English]| words.first().map(|word| word.name);
        if let (Some(have), Some(not)) = (name(&predicate.verb), name(&predicate.not)) {
            let auxiliary = name(&predicate.auxiliary);
            let future = shape.tense == Tense::Future;
            let rest = Rest {
                tense: shape.tense,
                progressive: None,
                not: Some(not),
                will: auxiliary.filter(|_| future),
                auxiliary: auxiliary.filter(|_| !future),
            };
            predicate.korean = exists(have, rest);
        }
        predicate
    }

    /// The forms of "be", which needs no "do". In the future it stands after "will".
    fn be(&mut self, shape: Shape) -> (Predicate, Name, Rest) {
        let mut predicate = Predicate::default();
        let future = shape.tense == Tense::Future;
        let be = self.word(if future { "be" } else { be(shape.tense, shape.agreement) });
        let name = be.name;
        let mut will = None;
        if future {
            let word = self.word("will");
            will = Some(word.name);
            predicate.auxiliary.push(word);
            predicate.verb.push(be);
        } else {
            predicate.auxiliary.push(be);
        }
        let not = shape.negative.then(|| self.word("not"));
        let rest = Rest {
            tense: shape.tense,
            progressive: None,
            not: not.as_ref().map(|not| not.name),
            will,
            auxiliary: None,
        };
        predicate.not.extend(not);
        (predicate, name, rest)
    }
}

fn be(tense: Tense, agreement: Agreement) -> &'static str {
    match (tense, agreement) {
        (Tense::Past, Agreement::Plural) => "were",
        (Tense::Past, _) => "was",
        (_, Agreement::First) => "am",
        (_, Agreement::Singular) => "is",
        (_, Agreement::Plural) => "are",
    }
}

fn exists(be: Name, rest: Rest) -> Vec<Korean> {
    match rest.not {
        Some(not) => said(LACK, &[be, not], Rest { not: None, ..rest }),
        None => said(EXIST, &[be], rest),
    }
}

/// A stem with what follows it; each auxiliary is a stem that the rest follows in turn.
fn said(stem: Stem, stands_for: &[Name], rest: Rest) -> Vec<Korean> {
    if let Some(be) = rest.progressive {
        let mut words = vec![Korean::form(stem.progressive(), stands_for)];
        words.extend(said(EXIST, &[be], Rest { progressive: None, ..rest }));
        return words;
    }
    if let Some(not) = rest.not {
        let mut words = vec![Korean::form(stem.negated(), stands_for)];
        words.extend(said(NOT, &[not], Rest { not: None, ..rest }));
        return words;
    }
    let form = match rest.tense {
        Tense::Past => stem.past(),
        Tense::Present => stem.polite(),
        Tense::Future => stem.future(),
    };
    let mut words = vec![Korean::form(form, stands_for).perhaps(rest.auxiliary)];
    if let Some(will) = rest.will {
        words.push(Korean::new("거예요", &[will]));
    }
    words
}
