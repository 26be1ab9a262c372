//! Open the door, please; do not run; let's eat together; could you help me?

use super::chain::{Chain, Close};
use super::clause::Clause;
use super::determiner::Use;
use super::noun_phrase::NounPhrase;
use super::predicate::Predicate;
use super::writer::{Korean, Phrase, Writer, ids};
use crate::Construction;
use crate::korean::{Ending, Particle, Stem};
use crate::lexicon::{Frame, PRONOUNS, Verb, of_frame};
use crate::pair::{Combination, Part, Role};

/// What kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Close the window: 창문을 닫으세요.
    Plain,
    /// Please open the door: 문을 열어 주세요.
    Please,
    /// Do not run: 뛰지 마세요.
    Not,
    /// Let's eat: 먹어요.
    Lets,
    /// Let's not go: 가지 말아요.
    LetsNot,
    /// Could you open the door? 문을 열어 주시겠어요?
    Could,
}

impl Writer<'_> {
    pub(crate) fn command(&mut self) -> Option<(Phrase, &'static str)> {
        self.construction = Construction::Command;
        let kinds = [
            (6, Kind::Plain),
            (5, Kind::Please),
            (5, Kind::Not),
            (4, Kind::Lets),
            (1, Kind::LetsNot),
            (3, Kind::Could),
        ];
        let kind = self.choices.weighted(&kinds)?;
        let lets = matches!(kind, Kind::Lets | Kind::LetsNot);
        let frames = [
            (50, Frame::Transitive),
            (22, Frame::Intransitive),
            (15, Frame::Motion),
            (if lets { 0 } else { 15 }, Frame::Give),
        ];
        let verb = {
            let frame = self.choices.weighted(&frames)?;
            self.choices.favoured(of_frame(frame), |verb| verb.common)?
        };
        if !verb.is_willed() || lets && verb.has("nolets") || verb.has("own") && lets {
            return None;
        }
        self.speaker = Some(&PRONOUNS[if lets { 4 } else { 1 }]);
        self.woman = false;
        let mut clause = self.bare_clause(verb)?;
        let not = matches!(kind, Kind::Not | Kind::LetsNot);
        self.wishes(&mut clause, verb, lets, not)?;
        // What is forbidden is a certain thing, not one of many.
        if not
            && clause.object.english.first().is_some_and(|word| matches!(word.pieces[0].as_str(), "a" | "an" | "some"))
        {
            return None;
        }
        let please = matches!(kind, Kind::Please);
        let late_please = please && self.choices.percent(35);
        let mut front = Vec::new();
        let mut before = Vec::new();
        match kind {
            Kind::Plain => {}
            Kind::Please => before.push(self.word("please")),
            Kind::Not => {
                before.extend(self.words(&["do", "not"]));
            }
            Kind::Lets => before.push(self.word("let's")),
            Kind::LetsNot => before.extend(self.words(&["let's", "not"])),
            Kind::Could => before.extend(self.words(&["could", "you"])),
        }
        let chain = clause.predicate.chain.clone();
        let first = before.first().map(|word| word.id);
        clause.predicate.chain = match kind {
            Kind::Plain | Kind::Lets => chain,
            Kind::Please | Kind::Could if ends_in_give(verb) => chain,
            Kind::Please => chain.then(Ending::Joined, None, Stem::regular("주다"), &[first?]),
            Kind::Could => chain.then(Ending::Joined, None, Stem::regular("주다"), &[first?]),
            Kind::Not | Kind::LetsNot => {
                let not = before.last()?.id;
                chain.then(Ending::Negated, None, Stem::regular("말다"), &[not])
            }
        };
        let close = if lets { Close::Polite } else { Close::Please };
        let english_late = if late_please { std::mem::take(&mut before) } else { Vec::new() };
        front.extend(before);
        let mut english = [front, clause.english()].concat();
        if late_please {
            if let Some(last) = english.pop() {
                english.push(last.comma());
            }
            english.extend(english_late);
        }
        let mut korean = clause.korean(super::clause::Subject::Dropped, close);
        if kind == Kind::Could {
            // 주세요 as a question: 주시겠어요?
            korean.pop();
            let named = if ends_in_give(verb) { given(verb, &english)? } else { Korean::new("주", &[first?]) };
            korean.push(named.and("시겠어요"));
        }
        let phrase = Phrase { english, korean };
        let phrase = match self.choices.weighted(&[(14, 0), (1, 1)])? {
            1 if kind != Kind::Could => {
                let name = self.name()?.bare().comma();
                name.and(phrase)
            }
            _ => phrase,
        };
        Some((phrase, if kind == Kind::Could { "?" } else { "." }))
    }

    /// The verb in its base form, without a subject.
    fn bare_clause(&mut self, verb: &'static Verb) -> Option<Clause> {
        let word = self.say(&verb.english.base, Part::Verb);
        let head = word.id;
        let mut stands_for = vec![head];
        let mut words = vec![word];
        for text in &verb.tail {
            let own = *text == "one's";
            let part = if own || matches!(*text, "a" | "to" | "for") { Part::Function } else { Part::Noun };
            let text = if own { self.speaker.map_or("your", |speaker| speaker.owner) } else { text };
            let word = self.say(text, part);
            if part != Part::Function {
                stands_for.push(word.id);
            }
            words.push(word);
        }
        let chain = Chain::verb(verb.korean, &stands_for, false);
        let predicate = Predicate { auxiliary: Vec::new(), not: Vec::new(), verb: words, head, chain };
        let number = self.new_clause();
        self.role(&[head], Role::Verb, number);
        Some(Clause::new(predicate, number))
    }

    /// What a command is about: the object, the place, the time.
    fn wishes(&mut self, clause: &mut Clause, verb: &'static Verb, lets: bool, not: bool) -> Option<()> {
        if !verb.what.is_empty() {
            let object = if verb.to_persons && !lets && self.choices.percent(35) {
                self.pronoun(&PRONOUNS[0], true)
            } else if verb.has("own") {
                self.object(&verb.what, false, Use::Single)?
            } else {
                let role = self.choices.weighted(&[(6, Use::Known), (3, Use::Object)])?;
                let role = if verb.has("single") { Use::Single } else { role };
                self.object(&verb.what, verb.to_persons, role)?
            };
            let heads = object.heads.clone();
            self.combinations.extend(heads.into_iter().map(|noun| Combination { head: verb.dictionary(), noun }));
            self.role(&object.head_ids.clone(), Role::Object, clause.number);
            let preposition = self.words(&verb.preposition);
            clause.object = object.with(verb.particle, None);
            clause.object.english.splice(..0, preposition);
        }
        match verb.frame {
            Frame::Motion => clause.place = self.destination(verb)?,
            Frame::Give => self.given_to_me(clause, verb)?,
            _ if !verb.place.is_empty() && self.choices.percent(30) => clause.place = self.place_of(verb)?,
            _ if !verb.tools.is_empty() && self.choices.percent(20) => clause.means = self.tool(&verb.tools)?,
            _ => {}
        }
        // Nobody is told not to do something well.
        let bad = ["loud", "speed", "amount"];
        let manners: Vec<_> = verb
            .manners()
            .filter(|manner| if not { bad.contains(manner) } else { *manner != "amount" || !verb.has("nolets") })
            .collect();
        if lets && self.choices.percent(30) {
            clause.companion = self.simple("together", "같이", Part::Adverb);
        } else if !manners.is_empty() && self.choices.percent(25) {
            let heading = self.choices.one_of(&manners)?;
            clause.manner = self.one_time(heading)?;
        } else if self.choices.percent(15) {
            let heading = self.choices.weighted(&[(4, "future"), (2, "today"), (2, "now"), (2, "daytime")])?;
            clause.time = self.one_time(heading)?;
        } else if self.choices.percent(8) {
            clause.clock = self.hour()?;
        }
        Some(())
    }

    /// Show me the picture: 그림을 보여 주세요. "Me" goes without saying.
    fn given_to_me(&mut self, clause: &mut Clause, verb: &Verb) -> Option<()> {
        if self.choices.percent(65) {
            let me = self.pronoun(&PRONOUNS[0], true);
            clause.recipient_first = self.choices.percent(80) && clause.object.english[0].part != Part::Pronoun;
            let to = (!clause.recipient_first).then(|| self.word(if verb.has("for") { "for" } else { "to" }));
            clause.predicate.chain = clause.predicate.chain.clone().perhaps(&me.head_ids);
            clause.recipient.english = to.into_iter().chain(me.english).collect();
            return Some(());
        }
        let who: NounPhrase = match self.choices.percent(50) {
            true => self.name()?,
            false => {
                let n = self.choices.one_of(&[2, 3, 5])?;
                self.pronoun(&PRONOUNS[n], true)
            }
        };
        clause.recipient_first = self.choices.percent(70) && clause.object.english[0].part != Part::Pronoun;
        let to = (!clause.recipient_first).then(|| self.word(if verb.has("for") { "for" } else { "to" }));
        let mut phrase = who.with(Particle::To, to.as_ref().map(|to| to.id));
        phrase.english.splice(..0, to);
        clause.recipient = phrase;
        Some(())
    }
}

/// 보여 주다 needs no second 주다.
fn ends_in_give(verb: &Verb) -> bool {
    verb.korean.stem.dictionary().ends_with("주다")
}

/// The stem of a verb that ends in 주다, for its English word.
fn given(verb: &Verb, english: &[super::writer::English]) -> Option<Korean> {
    let word = english.iter().find(|word| word.pieces[0] == verb.english.base)?;
    let stem = verb.korean.stem.dictionary().strip_suffix('다')?;
    Some(Korean::new(stem, &ids(std::slice::from_ref(word))))
}
