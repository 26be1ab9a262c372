//! A question, passages, and the answer.

use std::collections::BTreeSet;

use foveal_grammar::Random;

use crate::passage::{Composer, Fact, Sentence};
use crate::template::Template;
use crate::{Facts, Language, Lexicon};

/// What kind of exercise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The language.
    pub language: Language,
    /// How many passages.
    pub passages: usize,
    /// Of a hundred questions, how many no passage answers.
    pub unanswerable: usize,
    /// Whether its names are those that are held out.
    pub held_out: bool,
}

impl Settings {
    /// To learn from: one of six questions has no answer.
    pub fn learned(language: Language, passages: usize) -> Self {
        Settings { language, passages, unanswerable: 17, held_out: false }
    }

    /// To be tested on, with names that are never learned.
    pub fn held_out(language: Language, passages: usize) -> Self {
        Settings { held_out: true, ..Settings::learned(language, passages) }
    }

    /// The same, with so many of a hundred questions that no passage answers.
    #[must_use]
    pub fn unanswerable(self, percent: usize) -> Self {
        Settings { unanswerable: percent, ..self }
    }
}

/// The answer, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// As it stands in the passage.
    pub text: String,
    /// The number of the passage.
    pub passage: usize,
}

/// A question about some passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exercise {
    /// The question.
    pub question: String,
    /// The passages, of a few sentences each.
    pub passages: Vec<String>,
    /// The answer; none if no passage has it.
    pub answer: Option<Answer>,
}

/// A question that has been chosen: the fact it is about, and the slot it asks for.
struct Asked {
    question: String,
    fact: Fact,
    slot: usize,
    passage: usize,
}

impl Facts {
    /// An exercise.
    pub fn exercise(&self, settings: &Settings, random: &mut Random) -> Exercise {
        loop {
            if let Some(exercise) = self.attempt(settings, random) {
                return exercise;
            }
        }
    }

    /// An exercise, unless no question comes to mind that has one answer.
    fn attempt(&self, settings: &Settings, random: &mut Random) -> Option<Exercise> {
        let Settings { language, held_out, .. } = *settings;
        let lexicon = self.lexicon(language);
        let (used, known, cast) = (BTreeSet::new(), Vec::new(), Vec::new());
        let mut composer = Composer { language, lexicon, held_out, used, known, cast };
        let mut passages: Vec<_> = (0..settings.passages).map(|_| composer.passage(random)).collect();
        let unanswerable = random.below(100) < settings.unanswerable;
        let mut answer = None;
        let question = match random.below(10) {
            // Nothing but prose, which has nothing to do with the question.
            0..2 if unanswerable => {
                let question = unheard(&mut composer, random);
                passages = (0..settings.passages).map(|_| composer.prose(random)).collect();
                question
            }
            2..5 if unanswerable => unheard(&mut composer, random),
            _ => {
                let asked = ask(lexicon, &passages, random)?;
                if unanswerable {
                    forget(&mut passages[asked.passage], &asked.fact);
                    if passages[asked.passage].is_empty() {
                        passages[asked.passage] = composer.prose(random);
                    }
                } else {
                    let text = asked.fact.values[asked.slot].text.clone();
                    answer = Some(Answer { text, passage: asked.passage });
                }
                asked.question
            }
        };
        let question = if random.below(100) < CASUAL { casual(&question) } else { question };
        let passages = passages.iter().map(|sentences| composer.write(sentences, random)).collect();
        Some(Exercise { question, passages, answer })
    }
}

/// Of a hundred questions, how many are written in haste.
const CASUAL: usize = 8;

/// A question without capitals and without its mark.
fn casual(question: &str) -> String {
    question.trim_end_matches('?').to_lowercase()
}

fn facts(sentences: &[Sentence]) -> impl Iterator<Item = &Fact> {
    sentences.iter().filter_map(|sentence| match sentence {
        Sentence::Fact(fact) => Some(fact),
        Sentence::Other(_) => None,
    })
}

/// A question about something that no passage speaks of.
fn unheard(composer: &mut Composer, random: &mut Random) -> String {
    let lexicon = composer.lexicon;
    loop {
        let number = random.below(lexicon.relations.len());
        let fact = composer.fact(number, None, random);
        let (_, question) =
            &lexicon.relations[number].questions[random.below(lexicon.relations[number].questions.len())];
        if lexicon.relations[number].is_anchored(question) {
            return question.fill(&fact.values);
        }
    }
}

/// Takes all that is said of a fact out of a passage.
fn forget(sentences: &mut Vec<Sentence>, forgotten: &Fact) {
    sentences.retain(|sentence| match sentence {
        Sentence::Fact(fact) => fact.relation != forgotten.relation || fact.values != forgotten.values,
        Sentence::Other(_) => true,
    });
}

/// Tries until a question has one answer.
const TRIES: usize = 40;

/// A question that one fact answers, and no other.
fn ask(lexicon: &Lexicon, passages: &[Vec<Sentence>], random: &mut Random) -> Option<Asked> {
    for _ in 0..TRIES {
        let passage = random.below(passages.len());
        let here: Vec<&Fact> = facts(&passages[passage]).collect();
        if here.is_empty() {
            continue;
        }
        let fact = here[random.below(here.len())];
        let relation = &lexicon.relations[fact.relation];
        let (slot, question) = &relation.questions[random.below(relation.questions.len())];
        let same = |other: &Fact| other.relation == fact.relation && other.values == fact.values;
        let is_said = |slot: usize| {
            here.iter().filter(|other| same(other)).any(|fact| relation.statements[fact.statement].has(slot))
        };
        let said = (0..fact.values.len()).all(|slot| !question.has(slot) || is_said(slot)) && is_said(*slot);
        let mut others = passages.iter().flat_map(|sentences| facts(sentences)).filter(|other| !same(other));
        if said && !others.any(|other| answers(lexicon, other, fact, question)) {
            let (question, fact, slot) = (question.fill(&fact.values), fact.clone(), *slot);
            return Some(Asked { question, fact, slot, passage });
        }
    }
    None
}

/// Whether another fact might answer a question about `fact`, too.
fn answers(lexicon: &Lexicon, other: &Fact, fact: &Fact, question: &Template) -> bool {
    let relation = &lexicon.relations[fact.relation];
    let mut named = (0..fact.values.len()).filter(|slot| question.has(*slot));
    if other.relation == fact.relation {
        return named.all(|slot| other.values[slot].text == fact.values[slot].text);
    }
    // A question by a place or a time alone could be about any fact that has it.
    !relation.is_anchored(question)
        && named.any(|slot| other.values.iter().any(|value| value.text == fact.values[slot].text))
}
