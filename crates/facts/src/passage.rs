//! Passages before they are written: which facts, in which order, with what between.

use std::collections::BTreeSet;

use foveal_grammar::Random;

use crate::relation::Relation;
use crate::template;
use crate::values::{Gender, UNIQUE, Value};
use crate::{Language, Lexicon};

/// The slots of sentences that say nothing of any fact.
pub(crate) const PROSE: [(char, &str); 4] = [('p', "person"), ('q', "person"), ('a', "city"), ('t', "thing")];

/// A fact: a relation with values, and how it is said.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub relation: usize,
    pub values: Vec<Value>,
    /// Which of the relation's statements.
    pub statement: usize,
}

/// One sentence.
#[derive(Clone, Debug)]
pub(crate) enum Sentence {
    Fact(Fact),
    /// One that says nothing of any fact.
    Other(String),
}

/// What passages of one exercise are made with.
pub(crate) struct Composer<'a> {
    pub language: Language,
    pub lexicon: &'a Lexicon,
    pub held_out: bool,
    /// Values that no second fact may have.
    pub used: BTreeSet<String>,
    /// The people of the passage before, who may come again.
    pub known: Vec<Value>,
    /// All people that facts are about.
    pub cast: Vec<Value>,
}

impl Composer<'_> {
    fn relation(&self, number: usize) -> &Relation {
        &self.lexicon.relations[number]
    }

    fn chance(random: &mut Random, percent: usize) -> bool {
        random.below(100) < percent
    }

    /// A value of a kind, another one each time where the kind says so.
    fn draw(&mut self, kind: &str, random: &mut Random) -> Value {
        // A list may be used up: after some tries a value comes twice, and no question will be asked about it.
        for _ in 0..20 {
            let mut value = self.lexicon.words.draw(self.language, kind, self.held_out, random);
            if kind == "thing" && !self.tells_apart(&mut value, random) {
                continue;
            }
            if !UNIQUE.contains(&kind) || self.used.insert(value.text.clone()) {
                return value;
            }
        }
        self.lexicon.words.draw(self.language, kind, self.held_out, random)
    }

    /// Whether a thing can be told from all others; now and then it is called by its noun alone.
    fn tells_apart(&self, thing: &mut Value, random: &mut Random) -> bool {
        let Some((_, noun)) = thing.text.rsplit_once(' ') else { return true };
        if self.used.contains(noun) {
            return false;
        }
        let alone = |used: &String| used.rsplit(' ').next() != Some(noun);
        if Self::chance(random, 25) && self.used.iter().all(alone) {
            thing.text = noun.to_owned();
        }
        true
    }

    /// A new fact of this relation, about this if it is given.
    pub fn fact(&mut self, relation: usize, subject: Option<Value>, random: &mut Random) -> Fact {
        let kinds = self.relation(relation).kinds.clone();
        let mut values = Vec::with_capacity(kinds.len());
        values.extend(subject);
        for kind in &kinds[values.len()..] {
            values.push(self.draw(kind, random));
        }
        self.cast
            .extend(kinds.iter().zip(&values).filter(|(kind, _)| **kind == "person").map(|(_, value)| value.clone()));
        Fact { relation, values, statement: random.below(self.relation(relation).statements.len()) }
    }

    /// A passage.
    pub fn passage(&mut self, random: &mut Random) -> Vec<Sentence> {
        let facts = match random.below(100) {
            0..45 => self.of_people(random),
            45..75 => self.of_the_same(random),
            75..90 => self.of_things(random),
            _ => return self.prose(random),
        };
        let mut sentences = Vec::new();
        for fact in facts {
            if Self::chance(random, 15) {
                sentences.push(self.other(random));
            }
            sentences.push(Sentence::Fact(fact));
        }
        sentences
    }

    /// Sentences that say nothing of any fact.
    pub fn prose(&mut self, random: &mut Random) -> Vec<Sentence> {
        (0..2 + random.below(4)).map(|_| self.other(random)).collect()
    }

    /// One of them; the people in it may be those whom facts are about.
    fn other(&mut self, random: &mut Random) -> Sentence {
        let sentence = &self.lexicon.prose[random.below(self.lexicon.prose.len())];
        let values: Vec<Value> = (PROSE.iter().enumerate())
            .map(|(slot, (_, kind))| match *kind {
                _ if !sentence.has(slot) => Value { text: String::new(), gender: Gender::It },
                "person" if slot == 0 && !self.cast.is_empty() && Self::chance(random, 40) => {
                    self.cast[random.below(self.cast.len())].clone()
                }
                kind => self.draw(kind, random),
            })
            .collect();
        Sentence::Other(sentence.fill(&values))
    }

    fn one_relation(&self, personal: bool, random: &mut Random) -> usize {
        loop {
            let number = random.below(self.lexicon.relations.len());
            if self.relation(number).is_personal() == personal {
                return number;
            }
        }
    }

    /// One or two people, and one to three facts of each.
    fn of_people(&mut self, random: &mut Random) -> Vec<Fact> {
        let mut facts = Vec::new();
        let before = std::mem::take(&mut self.known);
        for _ in 0..1 + random.below(2) {
            let again = Self::chance(random, 20).then(|| before.first().cloned()).flatten();
            let person = again.unwrap_or_else(|| self.draw("person", random));
            let mut told = BTreeSet::new();
            for _ in 0..1 + random.below(3) {
                let relation = self.one_relation(true, random);
                if told.insert(relation) {
                    let fact = self.fact(relation, Some(person.clone()), random);
                    self.tell(fact, &mut facts, random);
                }
            }
            self.known.push(person);
        }
        facts
    }

    /// The same of three or four: what tells them apart is who it is about.
    fn of_the_same(&mut self, random: &mut Random) -> Vec<Fact> {
        let personal = Self::chance(random, 80);
        let relation = self.one_relation(personal, random);
        let mut facts: Vec<Fact> = Vec::new();
        for _ in 0..3 + random.below(2) {
            let mut fact = self.fact(relation, None, random);
            let kinds = &self.lexicon.relations[relation].kinds;
            if let Some(last) = facts.last()
                && last.relation == relation
                && Self::chance(random, 30)
            {
                let slot = random.below(kinds.len());
                if !UNIQUE.contains(&kinds[slot]) {
                    fact.values[slot] = last.values[slot].clone();
                }
            }
            let subject = fact.values[0].clone();
            facts.push(fact);
            if personal && Self::chance(random, 25) {
                let other = self.one_relation(true, random);
                if other != relation {
                    facts.push(self.fact(other, Some(subject), random));
                }
            }
        }
        facts
    }

    /// Events, buildings, countries, shops and things, one after the other.
    fn of_things(&mut self, random: &mut Random) -> Vec<Fact> {
        let mut facts = Vec::new();
        for _ in 0..1 + random.below(3) {
            let relation = self.one_relation(false, random);
            let fact = self.fact(relation, None, random);
            self.tell(fact, &mut facts, random);
        }
        facts
    }

    /// Says a fact, perhaps in two sentences that say different parts of it.
    fn tell(&self, fact: Fact, facts: &mut Vec<Fact>, random: &mut Random) {
        let statements = self.relation(fact.relation).statements.len();
        let other = random.below(statements);
        let more = (other != fact.statement && fact.values.len() > 2 && Self::chance(random, 40))
            .then(|| Fact { statement: other, ..fact.clone() });
        facts.push(fact);
        facts.extend(more);
    }

    /// The text of a passage, with pronouns for what was just spoken of.
    pub fn write(&self, sentences: &[Sentence], random: &mut Random) -> String {
        let mut text = String::new();
        let mut topic: Option<&str> = None;
        let mut left = sentences;
        while let [sentence, rest @ ..] = left {
            left = rest;
            let mut written = match sentence {
                Sentence::Other(text) => {
                    topic = None;
                    text.clone()
                }
                Sentence::Fact(Fact { relation, values, statement }) => {
                    let template = &self.relation(*relation).statements[*statement];
                    let again = topic == Some(values[0].text.as_str()) && Self::chance(random, 65);
                    topic = Some(values[0].text.as_str());
                    if again { template.fill_again(values, Self::chance(random, 50)) } else { template.fill(values) }
                }
            };
            if let (Some(predicate), true) = (self.predicate(sentence, rest), Self::chance(random, 30))
                && let Some(open) = template::open(&written)
            {
                written = format!("{open} {predicate}");
                left = &rest[1..];
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&written);
        }
        text
    }

    /// What the next sentence says of the same subject, if both can be one sentence.
    fn predicate(&self, sentence: &Sentence, rest: &[Sentence]) -> Option<String> {
        let (Sentence::Fact(fact), [Sentence::Fact(next), ..]) = (sentence, rest) else { return None };
        let template = |fact: &Fact| &self.lexicon.relations[fact.relation].statements[fact.statement];
        let fits = fact.values[0] == next.values[0]
            && template(fact).begins_with_subject()
            && template(next).begins_with_subject();
        fits.then(|| template(next).fill_predicate(&next.values))
    }
}
