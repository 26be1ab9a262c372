//! Sentences in which something is done.

use super::clause::{Clause, Mood};
use super::determiner::Role;
use super::lexicon::{Countable, GIVE, INTRANSITIVE, MOTIONS, Noun, Pronoun, TRANSITIVE, Verb, Which, kind};
use super::noun_phrase::NounPhrase;
use super::pair::Combination;
use super::writer::{Korean, Phrase, Writer};
use crate::translation::korean::Particle;

impl Writer<'_> {
    /// The student reads two books in the library.
    pub(super) fn action(&mut self) -> Option<(Clause, Mood)> {
        let verb = self.choices.one_of(TRANSITIVE)?;
        let persons = verb.who.any & kind::PERSON != 0;
        let objects = verb.what.nouns();
        let things = objects.len() > 1 && !objects.iter().any(|noun| noun.is(kind::PERSON | kind::ANIMAL));
        let many = things && !verb.single && !counted(&verb).is_empty();
        // "What does she play?" would leave the Korean verb open.
        let one_verb = TRANSITIVE.iter().all(|other| other.english != verb.english || other.korean == verb.korean);
        let mood = self.mood(&[
            (1, Mood::When),
            (1, Mood::Why),
            (if persons { 2 } else { 0 }, Mood::Who),
            (if things && one_verb { 2 } else { 0 }, Mood::What),
            (if many { 1 } else { 0 }, Mood::HowMany),
            (if verb.place == 0 { 0 } else { 1 }, Mood::Where),
        ]);
        let mut shape = self.shape(mood, verb.progressive);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        let doer = self.doer(&mut clause, &mut shape, mood, verb.who)?;
        clause.object = match mood {
            Mood::What => self.asked(&mut clause, "what", "무엇", Some(Particle::Object)),
            Mood::HowMany => self.how_many(&mut clause, &verb)?,
            _ => self.object_of(&verb, doer)?,
        };
        if !verb.preposition.is_empty() {
            let preposition = self.word(verb.preposition);
            clause.object.english.insert(0, preposition);
        }
        if mood == Mood::Where {
            clause.place = self.asked(&mut clause, "where", "어디", Some(Particle::In));
        } else if verb.place != 0 && self.choices.percent(25) {
            clause.place = self.place(verb.place, None, Particle::In)?;
        } else if verb.tool != 0 && self.choices.percent(25) {
            clause.means = self.tool(verb.tool)?;
        }
        self.circumstances(&mut clause, &verb, shape, mood)?;
        clause.predicate = self.verb(verb.english, verb.korean, shape);
        Some((clause, mood))
    }

    fn object_of(&mut self, verb: &Verb, doer: Option<&Pronoun>) -> Option<Phrase> {
        let role = if verb.single { Role::Single } else { Role::Object };
        let object = self.object(verb.what, doer, role)?;
        self.combine(verb.english[0], &object);
        Some(object.with(Particle::Object, None))
    }

    /// How many books: 책을 몇 권.
    fn how_many(&mut self, clause: &mut Clause, verb: &Verb) -> Option<Phrase> {
        let noun = self.noun(&counted(verb))?;
        let Countable::Each { plural, counter } = noun.countable else { return None };
        self.combinations.push(Combination { head: verb.english[0], noun: noun.english });
        clause.front = self.words(&["how", "many", plural]);
        let names: Vec<_> = clause.front.iter().map(|word| word.name).collect();
        let (how_many, noun_name) = names.split_at(2);
        let korean = vec![
            Korean::new(noun.korean, noun_name).particle(Particle::Object),
            Korean::new("몇", how_many),
            Korean::new(counter, noun_name),
        ];
        Some(Phrase { english: Vec::new(), korean })
    }

    /// The child sleeps in the room.
    pub(super) fn deed(&mut self) -> Option<(Clause, Mood)> {
        let verb = self.choices.one_of(INTRANSITIVE)?;
        let persons = verb.who.any & kind::PERSON != 0;
        let mood = self.mood(&[
            (1, Mood::When),
            (1, Mood::Why),
            (if persons { 2 } else { 0 }, Mood::Who),
            (if verb.place == 0 { 0 } else { 2 }, Mood::Where),
        ]);
        let mut shape = self.shape(mood, verb.progressive);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        self.doer(&mut clause, &mut shape, mood, verb.who)?;
        if mood == Mood::Where {
            clause.place = self.asked(&mut clause, "where", "어디", Some(Particle::In));
        } else if verb.place != 0 && self.choices.percent(45) {
            clause.place = self.place(verb.place, None, Particle::In)?;
        } else if verb.who.any == kind::PERSON && self.choices.percent(15) {
            clause.companion = self.companion()?;
        }
        self.circumstances(&mut clause, &verb, shape, mood)?;
        clause.predicate = self.verb(verb.english, verb.korean, shape);
        Some((clause, mood))
    }

    /// Minsu goes to the school by bus.
    pub(super) fn motion(&mut self) -> Option<(Clause, Mood)> {
        let motion = self.choices.one_of(MOTIONS)?;
        let verb = motion.verb;
        let persons = verb.who.any & kind::PERSON != 0;
        let mood =
            self.mood(&[(2, Mood::Where), (2, Mood::When), (1, Mood::Why), (if persons { 2 } else { 0 }, Mood::Who)]);
        let mut shape = self.shape(mood, verb.progressive);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        self.doer(&mut clause, &mut shape, mood, verb.who)?;
        clause.place = match mood {
            Mood::Where => self.asked(&mut clause, "where", "어디", Some(motion.particle)),
            _ => self.place(verb.place, motion.preposition, motion.particle)?,
        };
        if motion.travels && motion.particle == Particle::At && self.choices.percent(20) {
            clause.means = self.by()?;
        } else if motion.travels && self.choices.percent(15) {
            clause.companion = self.companion()?;
        }
        self.circumstances(&mut clause, &verb, shape, mood)?;
        clause.predicate = self.verb(verb.english, verb.korean, shape);
        Some((clause, mood))
    }

    /// The teacher gives a book to Yuna.
    pub(super) fn giving(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[(1, Mood::When), (1, Mood::Why), (2, Mood::Who), (2, Mood::What)]);
        let mut shape = self.shape(mood, true);
        let mut clause = Clause { inverted: shape.inverted, ..Clause::default() };
        let doer = self.doer(&mut clause, &mut shape, mood, GIVE.who)?;
        clause.object = match mood {
            Mood::What => self.asked(&mut clause, "what", "무엇", Some(Particle::Object)),
            _ => self.object_of(&GIVE, doer)?,
        };
        let to = self.word("to");
        let given = self.recipient(doer)?;
        clause.recipient = given.with(Particle::To, Some(to.name));
        clause.recipient.english.insert(0, to);
        self.circumstances(&mut clause, &GIVE, shape, mood)?;
        clause.predicate = self.verb(GIVE.english, GIVE.korean, shape);
        Some((clause, mood))
    }

    /// To elders one would have to speak in other words (께 드려요).
    fn recipient(&mut self, doer: Option<&Pronoun>) -> Option<NounPhrase> {
        let someone = Which::any(kind::PERSON).but(kind::ELDER);
        match self.choices.weighted(&[(3, 0), (3, 1), (4, 2)])? {
            0 => self.other_pronoun(doer),
            1 => self.name(),
            _ => {
                let noun = self.noun(&someone.nouns())?;
                self.noun_phrase(noun, Role::Place)
            }
        }
    }
}

/// What is counted of what a verb is done to.
fn counted(verb: &Verb) -> Vec<&'static Noun> {
    verb.what.nouns().into_iter().filter(|noun| matches!(noun.countable, Countable::Each { .. })).collect()
}
