//! A clause from its parts. English and Korean have the same parts in another order:
//!
//! | | |
//! |---|---|
//! | English | question word, (auxiliary), subject, (auxiliary), not, often, verb, to whom, what, how, where, with whom, by what, how long, when |
//! | Korean | subject, when, how long, often, with whom, by what, where, to whom, what, how, verb |

use super::chain::Close;
use super::noun_phrase::NounPhrase;
use super::predicate::Predicate;
use super::writer::{English, Id, Korean, Phrase, Writer};
use crate::korean::Particle;
use crate::pair::Role;

/// How a sentence asks, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Statement,
    /// Does she?
    Whether,
    Who,
    What,
    Which,
    HowMany,
    Where,
    When,
    WhatTime,
    Why,
    How,
}

impl Mood {
    /// Whether English puts the auxiliary first.
    pub(crate) fn inverts(self) -> bool {
        !matches!(self, Mood::Statement | Mood::Who)
    }

    pub(crate) fn mark(self) -> &'static str {
        if self == Mood::Statement { "." } else { "?" }
    }
}

/// How the subject is marked in Korean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The topic if it is known, else the subject.
    Auto,
    /// 이/가, as within another clause.
    Within,
    /// Not said.
    Dropped,
}

/// The parts of a clause; those that it does not have are empty.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    /// The English question word.
    pub(crate) front: Vec<English>,
    pub(crate) subject: Option<NounPhrase>,
    /// "Who", or what stands for a subject: it, there.
    pub(crate) asked: Phrase,
    pub(crate) predicate: Predicate,
    pub(crate) inverted: bool,
    pub(crate) object: Phrase,
    /// The English words that are the object.
    pub(crate) object_ids: Vec<Id>,
    pub(crate) recipient: Phrase,
    /// Whether the recipient stands before the object in English.
    pub(crate) recipient_first: bool,
    pub(crate) companion: Phrase,
    pub(crate) place: Phrase,
    pub(crate) means: Phrase,
    pub(crate) manner: Phrase,
    pub(crate) frequency: Phrase,
    /// Right before the verb in both languages: never.
    pub(crate) never: bool,
    pub(crate) clock: Phrase,
    pub(crate) time: Phrase,
    /// Whether the time stands first in both languages.
    pub(crate) time_first: bool,
    /// Whether a known subject is new to the scene: 고양이가 자고 있어요.
    pub(crate) scene: bool,
    /// Whether the subject goes without saying.
    pub(crate) dropped: bool,
    pub(crate) close: Close,
    pub(crate) number: usize,
}

impl Clause {
    pub(crate) fn new(predicate: Predicate, number: usize) -> Self {
        Clause {
            front: Vec::new(),
            subject: None,
            asked: Phrase::default(),
            predicate,
            inverted: false,
            object: Phrase::default(),
            object_ids: Vec::new(),
            recipient: Phrase::default(),
            recipient_first: false,
            companion: Phrase::default(),
            place: Phrase::default(),
            means: Phrase::default(),
            manner: Phrase::default(),
            frequency: Phrase::default(),
            never: false,
            clock: Phrase::default(),
            time: Phrase::default(),
            time_first: false,
            scene: false,
            dropped: false,
            close: Close::Polite,
            number,
        }
    }

    /// The English words in order.
    pub(crate) fn english(&self) -> Vec<English> {
        let Predicate { auxiliary, not, verb, .. } = &self.predicate;
        let subject = self.subject.as_ref().map_or(&self.asked.english, |subject| &subject.english);
        let (first, second) = if self.inverted { (auxiliary, subject) } else { (subject, auxiliary) };
        let (early, late) =
            if self.recipient_first { (&self.recipient, &self.object) } else { (&self.object, &self.recipient) };
        let (time_first, time_last) = match self.time_first {
            true => (self.time.english.as_slice(), [].as_slice()),
            false => (&[][..], self.time.english.as_slice()),
        };
        let parts: [&[English]; 15] = [
            time_first,
            &self.front,
            first,
            second,
            not,
            &self.frequency.english,
            verb,
            &early.english,
            &late.english,
            &self.manner.english,
            &self.place.english,
            &self.companion.english,
            &self.means.english,
            &self.clock.english,
            time_last,
        ];
        parts.concat()
    }

    /// The Korean words in order.
    pub(crate) fn korean(self, mark: Subject, close: Close) -> Vec<Korean> {
        let (subject, rest) = self.split(mark, close);
        [subject, rest].concat()
    }

    /// The Korean words: the subject, with a time that stands before it, and all others.
    pub(crate) fn split(self, mark: Subject, close: Close) -> (Vec<Korean>, Vec<Korean>) {
        let scene = self.scene;
        let subject = match (self.subject, mark) {
            (Some(_), Subject::Dropped) => Vec::new(),
            (Some(_), Subject::Auto) if self.dropped => Vec::new(),
            (Some(subject), mark) => {
                let topic = mark == Subject::Auto && subject.known && !(scene && subject.the);
                subject.with(if topic { Particle::Topic } else { Particle::Subject }, None).korean
            }
            (None, _) => self.asked.korean,
        };
        let mut chain = self.predicate.chain;
        let mut frequency = self.frequency.korean;
        if self.never {
            chain = chain.before_verb(std::mem::take(&mut frequency));
        }
        chain = chain.before_verb(self.manner.korean);
        let (time_first, time) =
            if self.time_first { (self.time.korean, Vec::new()) } else { (Vec::new(), self.time.korean) };
        let parts = [
            time,
            self.clock.korean,
            frequency,
            self.companion.korean,
            self.means.korean,
            self.place.korean,
            self.recipient.korean,
            self.object.korean,
            chain.end(close),
        ];
        ([time_first, subject].concat(), parts.concat())
    }

    /// Both languages, as a sentence.
    pub(crate) fn phrase(self) -> Phrase {
        let close = self.close;
        Phrase { english: self.english(), korean: self.korean(Subject::Auto, close) }
    }
}

impl Writer<'_> {
    /// Remembers which words are the subject, the verb and the object of a clause.
    pub(crate) fn note(&mut self, clause: &Clause) {
        if let Some(subject) = &clause.subject {
            self.role(&subject.head_ids.clone(), Role::Subject, clause.number);
        } else if let Some(who) = clause.asked.english.first().filter(|who| who.pieces[0] == "who") {
            self.role(&[who.id], Role::Subject, clause.number);
        }
        self.role(&[clause.predicate.head], Role::Verb, clause.number);
        self.role(&clause.object_ids, Role::Object, clause.number);
    }
}
