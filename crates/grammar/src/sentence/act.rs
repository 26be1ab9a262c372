//! Clauses in which something is done: The student reads two books in the library.

use super::chain::{Close, Tense};
use super::clause::{Clause, Mood};
use super::determiner::Use;
use super::noun_phrase::NounPhrase;
use super::predicate::{Action, Modal, Shape};
use super::writer::{Korean, Phrase, Writer};
use crate::korean::Particle;
use crate::lexicon::{Agreement, Countable, Frame, IT, Noun, PRONOUNS, Verb, of_frame};
use crate::pair::{Combination, Part};

/// What a clause should be like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) mood: Option<Mood>,
    pub(crate) tense: Option<Tense>,
    pub(crate) subject: Option<NounPhrase>,
    pub(crate) frame: Option<Frame>,
    pub(crate) verb: Option<&'static Verb>,
    /// Without modals, negation, times and manners.
    pub(crate) simple: bool,
    /// Done at will.
    pub(crate) willed: bool,
    /// Done to you or for you.
    pub(crate) to_you: bool,
}

impl Wanted {
    /// A simple statement.
    pub(crate) fn simple(tense: Tense) -> Self {
        Wanted { mood: Some(Mood::Statement), tense: Some(tense), simple: true, ..Wanted::default() }
    }
}

impl Writer<'_> {
    /// Something is done.
    pub(crate) fn act(&mut self, wanted: Wanted) -> Option<(Clause, Mood)> {
        let frames = [(46, Frame::Transitive), (22, Frame::Intransitive), (14, Frame::Motion), (9, Frame::Give)];
        let frame = match wanted.frame {
            Some(frame) => frame,
            None => self.choices.weighted(&frames)?,
        };
        let verb = match wanted.verb {
            Some(verb) => verb,
            None => self.choices.favoured(of_frame(frame), |verb| verb.common)?,
        };
        if wanted.willed && !verb.is_willed() || wanted.subject.is_some() && !verb.persons {
            return None;
        }
        let mood = match wanted.mood {
            Some(mood) => mood,
            None => self.mood_of(verb)?,
        };
        let mut shape = self.shape(mood, verb, &wanted);
        let subject = self.doer(&mut shape, mood, verb, wanted.subject)?;
        self.modals(&mut shape, mood, verb, wanted.simple);
        let owner = self.speaker.map_or("", |pronoun| pronoun.owner);
        if verb.tail.contains(&"one's") && owner.is_empty() {
            return None;
        }
        let action = Action { english: &verb.english, tail: &verb.tail, korean: verb.korean, owner };
        let number = self.new_clause();
        let mut clause = Clause::new(self.verb(action, shape), number);
        clause.inverted = shape.inverted;
        match subject {
            Some(subject) => clause.subject = Some(subject),
            None => clause.asked = self.simple("who", "누가", Part::Question),
        }
        self.complements(&mut clause, verb, (shape, wanted.to_you), mood)?;
        if !wanted.simple || verb.past_is_base() {
            self.circumstances(&mut clause, verb, shape, mood)?;
        }
        self.unsaid(&mut clause, verb, shape, mood);
        self.note(&clause);
        Some((clause, mood))
    }

    /// I will call you later: 나중에 전화할게요.
    pub(crate) fn promise(&mut self) -> Option<(Clause, Mood)> {
        let me = self.pronoun(&PRONOUNS[0], false);
        self.speaker = me.pronoun;
        let frame = self.choices.weighted(&[(12, Frame::Transitive), (3, Frame::Give)])?;
        let (clause, mood) = self.act(Wanted {
            mood: Some(Mood::Statement),
            tense: Some(Tense::Future),
            subject: Some(me),
            frame: Some(frame),
            to_you: true,
            ..Wanted::default()
        })?;
        (clause.close == Close::Promise).then_some((clause, mood))
    }

    /// A statement, or a question that the verb can be asked with.
    fn mood_of(&mut self, verb: &Verb) -> Option<Mood> {
        let objects = !verb.what.is_empty();
        let things = objects && verb.what.len() > 2 && !verb.to_persons;
        let asks_what = things && !verb.twins && verb.frame != Frame::Give;
        let placed = verb.frame == Frame::Motion || !verb.place.is_empty();
        let on = |weight, is: bool| if is { weight } else { 0 };
        self.choices.weighted(&[
            (60, Mood::Statement),
            (10, Mood::Whether),
            (on(4, verb.persons), Mood::Who),
            (on(4, asks_what), Mood::What),
            (on(3, objects && !counted(verb).is_empty() && verb.frame == Frame::Transitive), Mood::Which),
            (on(2, things && !verb.has("single") && verb.frame == Frame::Transitive), Mood::HowMany),
            (on(5, placed && verb.frame != Frame::Give && !verb.has("own") && !verb.has("nowhere")), Mood::Where),
            (on(3, !verb.has("lasting")), Mood::When),
            (on(1, verb.is_willed() || verb.has("event")), Mood::WhatTime),
            (on(3, !verb.has("event")), Mood::Why),
            (on(2, verb.is_willed() && !verb.has("lasting") && verb.tail.is_empty()), Mood::How),
        ])
    }

    /// Tense, progress and negation; it agrees with a third person until the subject is known.
    fn shape(&mut self, mood: Mood, verb: &Verb, wanted: &Wanted) -> Shape {
        let tenses = [(4, Tense::Past), (5, Tense::Present), (3, Tense::Future)];
        let tense = wanted.tense.or_else(|| self.choices.weighted(&tenses)).unwrap_or(Tense::Present);
        // One does not marry every day.
        let tense = if verb.has("once") && tense == Tense::Present { Tense::Past } else { tense };
        let clocked = matches!(mood, Mood::When | Mood::WhatTime);
        let progressive =
            verb.progressive && tense != Tense::Future && !clocked && !wanted.simple && self.choices.percent(30);
        let plain = mood == Mood::Statement && !wanted.simple;
        let negative = plain && self.choices.percent(18);
        let perfect = plain && tense == Tense::Past && !progressive && !negative && self.choices.percent(5);
        let going = tense == Tense::Future && !wanted.simple && mood != Mood::Who && self.choices.percent(15);
        Shape { progressive, negative, perfect, going, inverted: mood.inverts(), ..Shape::plain(tense) }
    }

    /// The subject; none where "who" asks for it.
    fn doer(
        &mut self,
        shape: &mut Shape,
        mood: Mood,
        verb: &'static Verb,
        given: Option<NounPhrase>,
    ) -> Option<Option<NounPhrase>> {
        if mood == Mood::Who {
            self.speaker = None;
            return Some(None);
        }
        let subject = match given {
            Some(subject) => subject,
            None => self.subject(&verb.who, verb.persons, Use::Agent)?,
        };
        agree(shape, &subject);
        Some(Some(subject))
    }

    /// Can, must, want to: only of what is done at will.
    fn modals(&mut self, shape: &mut Shape, mood: Mood, verb: &Verb, simple: bool) {
        let fitting = matches!(mood, Mood::Statement | Mood::Whether | Mood::What | Mood::Where | Mood::When);
        let plain = !shape.progressive && !shape.perfect && !shape.going;
        if simple || !fitting || !plain || !verb.is_willed() || !self.choices.percent(38) {
            return;
        }
        if self.choices.percent(50) {
            let over: Vec<_> = super::over::Over::all().iter().map(|over| (over.weight, over)).collect();
            let over = self.choices.weighted(&over);
            let fits = |over: &super::over::Over| match shape.tense {
                Tense::Past => true,
                Tense::Present => over.is_lasting(),
                Tense::Future => !over.is_feeling(),
            };
            shape.over = over.filter(|over| fits(over));
            return;
        }
        let past = shape.tense == Tense::Past;
        let speaker = self.speaker.map_or("", |speaker| speaker.subject);
        let on = |weight, is: bool| if is { weight } else { 0 };
        let statement = mood == Mood::Statement;
        // "May she go?" is rare, and "may" is also "perhaps"; "could you …?" is a request.
        let may = matches!((mood, speaker), (Mood::Whether, "I" | "we") | (Mood::Statement, "you"));
        let modal = self.choices.weighted(&[
            (on(6, !past || statement), Modal::Can),
            (on(3, !past && statement), Modal::Must),
            (on(3, !past), Modal::Should),
            (on(6, !past && may), Modal::May),
        ]);
        let fits = modal.is_some();
        if statement && modal != Some(Modal::May) {
            shape.negative = self.choices.percent(35);
        }
        if fits {
            shape.modal = modal;
            if shape.tense == Tense::Future {
                shape.tense = Tense::Present;
            }
        }
    }

    /// What it is done to, where, to whom.
    fn complements(
        &mut self,
        clause: &mut Clause,
        verb: &'static Verb,
        (shape, to_you): (Shape, bool),
        mood: Mood,
    ) -> Option<()> {
        if !verb.what.is_empty() {
            self.objects(clause, verb, (mood, to_you))?;
        }
        match verb.frame {
            Frame::Motion => {
                clause.place = match mood {
                    Mood::Where => self.asked(clause, "where", "어디", Some(verb.particle)),
                    _ => self.destination(verb)?,
                };
            }
            Frame::Give => self.recipient(clause, verb, (shape, to_you))?,
            _ if mood == Mood::Where => {
                let particle = if verb.has("at") { Particle::At } else { Particle::In };
                clause.place = self.asked(clause, "where", "어디", Some(particle));
            }
            _ if !verb.place.is_empty() && self.choices.percent(28) => {
                clause.place = self.place_of(verb)?;
            }
            _ if !verb.tools.is_empty() && self.choices.percent(30) => clause.means = self.tool(&verb.tools)?,
            _ if verb.is_willed() && !verb.has("own") && mood != Mood::Who && self.choices.percent(6) => {
                clause.companion = self.companion()?;
            }
            _ => {}
        }
        // One goes to Busan by train, but not home or upstairs.
        let far = clause.place.english.first().is_some_and(|word| word.part == Part::Function);
        let travels = verb.has("travels") && verb.particle == Particle::At && far;
        if travels && mood != Mood::How && self.choices.percent(15) {
            clause.means = self.by()?;
        } else if verb.has("travels") && self.choices.percent(10) {
            clause.companion = self.companion()?;
        }
        Some(())
    }

    fn objects(&mut self, clause: &mut Clause, verb: &'static Verb, (mood, to_you): (Mood, bool)) -> Option<()> {
        let head = verb.dictionary();
        match mood {
            Mood::What => {
                clause.object = self.asked(clause, "what", "무엇", Some(verb.particle));
                clause.object_ids = vec![clause.front.first()?.id];
            }
            Mood::HowMany | Mood::Which => self.asked_object(clause, verb, mood)?,
            _ => {
                let role = match () {
                    () if verb.has("single") => Use::Single,
                    () if verb.has("lasting") && !verb.to_persons || verb.english.base == "like" => Use::Kind,
                    () => Use::Object,
                };
                let own = verb.has("own");
                let it = !own && !verb.to_persons && !verb.twins && self.choices.percent(5);
                self.own = own;
                let object = if to_you && verb.frame == Frame::Transitive {
                    self.pronoun(&PRONOUNS[1], true)
                } else if it {
                    self.pronoun(&IT, true)
                } else {
                    self.object(&verb.what, verb.to_persons, if own { Use::Single } else { role })?
                };
                self.own = false;
                let nouns = object.heads.clone();
                self.combinations.extend(nouns.into_iter().map(|noun| Combination { head, noun }));
                clause.object_ids.clone_from(&object.head_ids);
                clause.object = object.with(verb.particle, None);
            }
        }
        let preposition = self.words(&verb.preposition);
        // "What do you look at?" leaves it behind.
        if matches!(mood, Mood::What | Mood::HowMany | Mood::Which) {
            clause.predicate.verb.extend(preposition);
        } else {
            clause.object.english.splice(..0, preposition);
        }
        Some(())
    }

    /// How many books: 책을 몇 권. Which book: 어느 책을.
    fn asked_object(&mut self, clause: &mut Clause, verb: &'static Verb, mood: Mood) -> Option<()> {
        let noun = self.noun(&counted(verb))?;
        self.combinations.push(Combination { head: verb.dictionary(), noun: noun.english });
        if mood == Mood::HowMany {
            let words = self.say_all("how many", Part::Question);
            let head = self.say_all(&noun.plural, Part::Noun);
            let (asking, named) = (super::writer::ids(&words), super::writer::ids(&head));
            clause.object_ids.clone_from(&named);
            clause.object.korean =
                super::writer::mark(super::writer::korean_words(noun.korean, &named), verb.particle, None);
            clause.object.korean.push(Korean::new("몇", &asking));
            clause.object.korean.push(Korean::new(noun.counter, &named));
            clause.front = [words, head].concat();
        } else {
            let Phrase { english, mut korean } = self.simple("which", "어느", Part::Question);
            let head = self.say_all(noun.english, Part::Noun);
            let named = super::writer::ids(&head);
            korean.extend(super::writer::mark(super::writer::korean_words(noun.korean, &named), verb.particle, None));
            clause.object_ids = named;
            clause.object.korean = korean;
            clause.front = [english, head].concat();
        }
        Some(())
    }

    /// What goes without saying in Korean: 여기에 앉아도 돼요? 나중에 전화할게요.
    fn unsaid(&mut self, clause: &mut Clause, verb: &Verb, shape: Shape, mood: Mood) {
        let subject = clause.subject.as_ref().and_then(|subject| subject.pronoun).map_or("", |pronoun| pronoun.subject);
        let permitted = matches!(shape.modal, Some(Modal::May))
            || shape.negative && matches!(shape.modal, Some(Modal::Must | Modal::Should));
        clause.dropped = permitted && matches!(subject, "I" | "you");
        let to_you =
            |phrase: &Phrase| phrase.english.iter().any(|word| word.part == Part::Pronoun && word.pieces[0] == "you");
        let stem = verb.korean.stem.dictionary();
        let gives = verb.frame == Frame::Give && (stem.ends_with("주다") || stem == "보내다");
        let for_you = gives && to_you(&clause.recipient) || verb.has("promise") && to_you(&clause.object);
        let plain = shape.modal.is_none() && shape.over.is_none() && !shape.going && !shape.negative;
        if mood == Mood::Statement && subject == "I" && shape.tense == Tense::Future && plain && for_you {
            clause.close = Close::Promise;
            clause.dropped = true;
            let unsaid = if gives { &mut clause.recipient } else { &mut clause.object };
            unsaid.korean.clear();
        }
        let me = clause.recipient.english.iter().any(|word| word.pieces[0] == "me");
        clause.scene = shape.progressive || me;
    }
}

/// Lets a predicate agree with its subject.
pub(crate) fn agree(shape: &mut Shape, subject: &NounPhrase) {
    shape.agreement = subject.agreement;
    shape.honoured = subject.honoured;
    shape.third = subject.pronoun.is_none_or(|pronoun| pronoun.is_third());
    if subject.pronoun.is_none() && subject.agreement == Agreement::First {
        shape.third = false;
    }
}

/// What is counted of what a verb is done to.
fn counted(verb: &Verb) -> Vec<&'static Noun> {
    let counted = |noun: &&&'static Noun| noun.countable == Countable::Each && !noun.any(&["person", "body"]);
    verb.what.iter().filter(counted).copied().collect()
}
