//! What sentences have in common: how they ask, their tense, who does it, and when.

use super::clause::{Clause, Mood};
use super::determiner::Role;
use super::lexicon::{Agreement, Manner, Pronoun, Verb, Which};
use super::noun_phrase::NounPhrase;
use super::pair::{Combination, Pair};
use super::predicate::{Shape, Tense};
use super::writer::{Korean, Phrase, Writer};
use crate::translation::korean::Particle;

impl Writer<'_> {
    /// A sentence of any kind, and how likely it was. None if a choice led nowhere.
    pub(super) fn sentence(mut self) -> (Option<Pair>, f64) {
        const KINDS: [(usize, usize); 9] = [(40, 0), (11, 1), (12, 2), (5, 3), (12, 4), (7, 5), (6, 6), (5, 7), (4, 8)];
        let kind = self.choices.weighted(&KINDS).unwrap_or(0);
        let written = match kind {
            0 => self.action(),
            1 => self.deed(),
            2 => self.motion(),
            3 => self.giving(),
            4 => self.quality(),
            5 => self.identity(),
            6 => self.existence(),
            7 => self.location(),
            _ => self.possession(),
        };
        let probability = self.choices.probability;
        (written.map(|(clause, mood)| self.finish(clause.phrase(), mood.mark())), probability)
    }

    /// A statement, or one of some questions by their weights; "does she?" is always among them.
    pub(super) fn mood(&mut self, questions: &[(usize, Mood)]) -> Mood {
        let moods = [&[(28, Mood::Statement), (5, Mood::Whether)], questions].concat();
        self.choices.weighted(&moods).unwrap_or(Mood::Statement)
    }

    /// How the predicate is said; it agrees with a third person until the subject is known.
    pub(super) fn shape(&mut self, mood: Mood, progressive: bool) -> Shape {
        let tense = self.choices.weighted(&[(4, Tense::Past), (4, Tense::Present), (3, Tense::Future)]);
        let tense = tense.unwrap_or(Tense::Present);
        let progressive = progressive && tense != Tense::Future && mood != Mood::When && self.choices.percent(25);
        let negative = mood == Mood::Statement && self.choices.percent(20);
        Shape { tense, progressive, negative, inverted: mood.inverts(), agreement: Agreement::Singular }
    }

    /// The subject of a clause, or "who". Gives back the pronoun that it is.
    pub(super) fn doer(
        &mut self,
        clause: &mut Clause,
        shape: &mut Shape,
        mood: Mood,
        who: Which,
    ) -> Option<Option<&'static Pronoun>> {
        if mood == Mood::Who {
            clause.subject = self.simple("who", "누가");
            return Some(None);
        }
        let doer = self.subject(who, Role::Agent)?;
        let pronoun = doer.pronoun;
        shape.agreement = doer.agreement;
        clause.subject = doer.into_subject();
        Some(pronoun)
    }

    /// A question word and the Korean word that stands for it where the answer would stand.
    pub(super) fn asked(
        &mut self,
        clause: &mut Clause,
        english: &str,
        korean: &str,
        particle: Option<Particle>,
    ) -> Phrase {
        let Phrase { english, korean } = self.simple(english, korean);
        clause.front = english;
        let word = |word: Korean| particle.map_or(word.clone(), |particle| word.particle(particle));
        Phrase { english: Vec::new(), korean: korean.into_iter().map(word).collect() }
    }

    /// When, how often or how it is done; one of them at most.
    pub(super) fn circumstances(&mut self, clause: &mut Clause, verb: &Verb, shape: Shape, mood: Mood) -> Option<()> {
        let past_as_base = verb.past_is_base() && shape.tense == Tense::Past && !shape.progressive;
        let unclear = past_as_base && !shape.negative && !shape.inverted;
        let habit = shape.tense == Tense::Present && !shape.progressive && !shape.negative;
        if verb.lasting && !matches!(mood, Mood::When | Mood::Why) {
            if shape.tense != Tense::Present && self.choices.percent(20) {
                clause.time = self.year(shape.tense)?;
            }
            return Some(());
        }
        match mood {
            Mood::When => clause.time = self.asked(clause, "when", "언제", None),
            Mood::Why => clause.time = self.asked(clause, "why", "왜", None),
            _ if unclear => clause.time = self.time(shape.tense, shape.progressive, true)?,
            _ if self.choices.percent(30) => clause.time = self.time(shape.tense, shape.progressive, false)?,
            _ if habit && self.choices.percent(20) => clause.frequency = self.often()?,
            _ if verb.manner != Manner::Any && self.choices.percent(15) => clause.manner = self.how(verb.manner)?,
            _ => {}
        }
        Some(())
    }

    /// Remembers a verb or an adjective with its nouns.
    pub(super) fn combine(&mut self, head: &'static str, phrase: &NounPhrase) {
        self.combinations.extend(phrase.heads.iter().map(|noun| Combination { head, noun }));
    }
}
