//! Where, when, how, how often, with whom and to whom something is done.

use super::chain::Tense;
use super::clause::{Clause, Mood};
use super::determiner::Use;
use super::predicate::Shape;
use super::writer::{Korean, Phrase, Writer, mark};
use crate::korean::{Particle, Stem};
use crate::lexicon::{Names, Noun, Said, Verb, adverbs_of_place, of_kind};
use crate::pair::Part;

impl Writer<'_> {
    /// A question word and the Korean word that stands for it where the answer would stand.
    pub(crate) fn asked(
        &mut self,
        clause: &mut Clause,
        english: &str,
        korean: &str,
        particle: Option<Particle>,
    ) -> Phrase {
        let Phrase { english, mut korean } = self.simple(english, korean, Part::Question);
        clause.front = english;
        if let Some(particle) = particle {
            korean = mark(korean, particle, None);
        }
        Phrase { english: Vec::new(), korean }
    }

    /// When, how often or how it is done; one or two of them.
    pub(crate) fn circumstances(&mut self, clause: &mut Clause, verb: &Verb, shape: Shape, mood: Mood) -> Option<()> {
        let supported = shape.negative || shape.inverted || shape.modal.is_some();
        let past_as_base = verb.past_is_base() && shape.tense == Tense::Past && !shape.progressive && !shape.perfect;
        let unclear = past_as_base && !supported && shape.over.is_none();
        let timeless = verb.has("lasting");
        let habit =
            shape.tense == Tense::Present && !shape.progressive && shape.modal.is_none() && shape.over.is_none();
        match mood {
            Mood::When => clause.time = self.asked(clause, "when", "언제", None),
            Mood::WhatTime => clause.clock = self.asked_hour(clause),
            Mood::Why => clause.time = self.asked(clause, "why", "왜", None),
            Mood::How => clause.manner = self.asked(clause, "how", "어떻게", None),
            _ if unclear => clause.time = self.time(shape.tense, shape.progressive)?,
            _ if timeless || shape.perfect => {}
            _ if verb.has("event") && self.choices.percent(65) => clause.clock = self.hour()?,
            _ if self.choices.percent(30) => {
                let wished = shape.tense == Tense::Present && (shape.modal.is_some() || shape.over.is_some());
                clause.time = match wished {
                    true => {
                        let heading =
                            self.choices.weighted(&[(4, "now"), (3, "today"), (5, "future"), (2, "daytime")])?;
                        self.one_time(heading)?
                    }
                    false => self.time(shape.tense, shape.progressive)?,
                };
                clause.time_first = mood == Mood::Statement && self.choices.percent(12);
                let clocked = !shape.progressive && !clause.time_first && clause.time.english.len() <= 2;
                if clocked && verb.is_willed() && self.choices.percent(20) {
                    clause.clock = self.hour()?;
                }
            }
            _ if !shape.progressive && verb.is_willed() && self.choices.percent(7) => clause.clock = self.hour()?,
            _ if habit && mood == Mood::Statement && self.choices.percent(35) => {
                self.often(clause, shape)?;
                if self.choices.percent(25) {
                    clause.time = self.one_time("daytime")?;
                }
            }
            _ if verb.progressive && verb.frame != crate::lexicon::Frame::Give && self.choices.percent(4) => {
                clause.time = self.one_time("duration")?;
            }
            _ => {}
        }
        // "Together" and "well" go with a time, too.
        let manners: Vec<_> = verb.manners().collect();
        let free =
            clause.manner.is_empty() && clause.companion.is_empty() && mood != Mood::How && clause.frequency.is_empty();
        if free && shape.over.is_none() && self.choices.percent(if shape.modal.is_some() { 20 } else { 9 }) {
            clause.manner = match manners.is_empty() {
                false => {
                    let heading = self.choices.one_of(&manners)?;
                    self.one_time(heading)?
                }
                true => return Some(()),
            };
        }
        let several =
            clause.subject.as_ref().is_none_or(|subject| subject.agreement == crate::lexicon::Agreement::Plural);
        if free && clause.manner.is_empty() && several && verb.has("together") && self.choices.percent(12) {
            clause.companion = self.one_time("together")?;
        }
        Some(())
    }

    /// Where a verb happens: in the library, at home, outside.
    pub(crate) fn place_of(&mut self, verb: &'static Verb) -> Option<Phrase> {
        let particle = if verb.has("at") { Particle::At } else { Particle::In };
        if self.choices.percent(22) {
            return self.adverb_of_place(particle, false, false);
        }
        self.place(&verb.place, verb.cities, "", particle)
    }

    /// Where to: to the school, home, here.
    pub(crate) fn destination(&mut self, verb: &'static Verb) -> Option<Phrase> {
        let travels = verb.has("travels") || verb.has("here");
        let share = if verb.has("here") {
            60
        } else if travels || verb.has("lasting") || verb.has("on") {
            25
        } else {
            0
        };
        if self.choices.percent(share) {
            return self.adverb_of_place(verb.particle, verb.has("travels"), verb.has("lasting") || verb.has("on"));
        }
        let preposition = match () {
            () if verb.has("on") => "on",
            () => "",
        };
        if !verb.preposition.is_empty() {
            let before = self.words(&verb.preposition);
            let phrase = self.place_with(&verb.place, verb.cities, verb.particle, Some(before[0].id))?;
            return Some(Phrase { english: [before, phrase.english].concat(), korean: phrase.korean });
        }
        self.place(&verb.place, verb.cities, preposition, verb.particle)
    }

    /// Here, outside, at home.
    pub(crate) fn adverb_of_place(&mut self, particle: Particle, travels: bool, lives: bool) -> Option<Phrase> {
        // The first ones are the most common: here, there, home.
        let all: Vec<_> =
            adverbs_of_place().iter().enumerate().map(|(n, place)| (if n < 3 { 5 - n } else { 1 }, *place)).collect();
        let (english, korean) = self.choices.weighted(&all)?;
        // One lives next door, but goes home.
        let fits = match english {
            "next door" => !travels && particle == Particle::At,
            "inside" | "nearby" => !travels,
            // Everyone lives at home.
            "home" => !lives,
            _ => true,
        };
        if !fits {
            return None;
        }
        let particle = match (english, travels) {
            ("home", true) => Particle::At,
            (_, true) => Particle::By,
            _ => particle,
        };
        let at_home = english == "home" && particle == Particle::In;
        let at = at_home.then(|| self.word("at"));
        let Phrase { english, korean } = self.simple(english, korean, Part::Adverb);
        let korean = mark(korean, particle, at.as_ref().map(|at| at.id));
        Some(Phrase { english: at.into_iter().chain(english).collect(), korean })
    }

    /// A place of some kinds with its preposition, or with another one.
    pub(crate) fn place(
        &mut self,
        places: &[&'static Noun],
        cities: bool,
        preposition: &str,
        particle: Particle,
    ) -> Option<Phrase> {
        let before = self.word("in");
        let phrase = self.place_with(places, cities, particle, Some(before.id))?;
        let text = match (preposition, phrase.place) {
            ("", Some(noun)) => noun.preposition,
            ("", None) => "in",
            (other, _) => other,
        };
        let before =
            super::writer::English { pieces: vec![if text.is_empty() { "in" } else { text }.into()], ..before };
        Some(Phrase { english: [vec![before], phrase.english].concat(), korean: phrase.korean })
    }

    fn place_with(
        &mut self,
        places: &[&'static Noun],
        cities: bool,
        particle: Particle,
        perhaps: Option<usize>,
    ) -> Option<Located> {
        let city = if places.is_empty() { cities } else { cities && self.choices.percent(35) };
        if city {
            let which = self.choices.weighted(&[(3, Names::Cities), (2, Names::Countries)])?;
            let name = self.proper(which)?;
            let Phrase { english, korean } = self.simple(name.english, name.korean, Part::Name);
            let the = matches!(name.english, "Netherlands" | "Philippines").then(|| self.word("the"));
            let english = the.into_iter().chain(english).collect();
            return Some(Located { english, korean: mark(korean, particle, perhaps), place: None });
        }
        let place = self.noun(places)?;
        // One goes to school and to church, without an article.
        let bare =
            matches!(place.english, "school" | "church" | "college" | "kindergarten") && self.choices.percent(60);
        let phrase = if bare {
            let Phrase { english, korean } = self.simple(place.english, place.korean, Part::Noun);
            Phrase { english, korean: mark(korean, particle, perhaps) }
        } else {
            self.noun_phrase(place, Use::Place)?.with(particle, perhaps)
        };
        Some(Located { english: phrase.english, korean: phrase.korean, place: Some(place) })
    }

    /// By bus.
    pub(crate) fn by(&mut self) -> Option<Phrase> {
        let by = self.word("by");
        let rides =
            ["bus", "taxi", "train", "airplane", "ship", "bicycle", "subway", "car", "boat", "ferry", "motorcycle"];
        let rides: Vec<_> =
            of_kind("ride").iter().chain(of_kind("vehicle")).copied().filter(|n| rides.contains(&n.english)).collect();
        let noun = self.noun(&rides)?;
        let Phrase { english, korean } = self.simple(noun.english, noun.korean, Part::Noun);
        Some(Phrase { english: [vec![by.clone()], english].concat(), korean: mark(korean, Particle::By, Some(by.id)) })
    }

    /// With a pencil.
    pub(crate) fn tool(&mut self, tools: &[&'static Noun]) -> Option<Phrase> {
        let with = self.word("with");
        let noun = self.noun(tools)?;
        let mut phrase = self.noun_phrase(noun, Use::Second)?.with(Particle::By, Some(with.id));
        phrase.english.insert(0, with);
        Some(phrase)
    }

    /// With Minsu, with my friend, with me.
    pub(crate) fn companion(&mut self) -> Option<Phrase> {
        let with = self.word("with");
        let who = match self.choices.weighted(&[(4, 0), (4, 1), (3, 2)])? {
            0 => self.name()?,
            1 => {
                let friend = self.noun(of_kind("kin"))?;
                self.noun_phrase(friend, Use::Place)?
            }
            _ => self.other_pronoun()?,
        };
        let mut phrase = who.with(Particle::And, Some(with.id));
        phrase.english.insert(0, with);
        Some(phrase)
    }

    /// Gives *her* a book, a book *to her*. To elders in other words: 께 드려요.
    pub(crate) fn recipient(&mut self, clause: &mut Clause, verb: &Verb, (shape, to_you): (Shape, bool)) -> Option<()> {
        let who = match self.choices.weighted(&[(6, 0), (3, 1), (4, 2)])? {
            _ if to_you => self.pronoun(&crate::lexicon::PRONOUNS[1], true),
            0 => self.other_pronoun()?,
            1 => self.name()?,
            _ => {
                let noun = self.noun(of_kind("person"))?;
                self.noun_phrase(noun, Use::Known)?
            }
        };
        if who.elder {
            let said = elder(verb.korean);
            let head = clause.predicate.head;
            if shape.modal.is_some() || shape.over.is_some() || shape.negative || shape.progressive {
                return None;
            }
            let mut chain = super::chain::Chain::verb(said, &[head], shape.honoured);
            chain.tense = if shape.perfect { Tense::Past } else { shape.tense };
            chain.will.clone_from(&clause.predicate.chain.will);
            clause.predicate.chain = chain;
        }
        let asked_what = !clause.front.is_empty();
        let short = who.english.len() <= 2;
        clause.recipient_first = short && !asked_what && self.choices.percent(65);
        // "Gave her it" is not said.
        if clause.object.english.len() == 1 && clause.object.english[0].part == Part::Pronoun {
            clause.recipient_first = false;
        }
        let to = (!clause.recipient_first).then(|| self.word(if verb.has("for") { "for" } else { "to" }));
        let particle = if who.elder { Particle::ToElder } else { Particle::To };
        let mut phrase = who.with(particle, to.as_ref().map(|to| to.id));
        phrase.english.splice(..0, to);
        clause.recipient = phrase;
        Some(())
    }
}

struct Located {
    english: Vec<super::writer::English>,
    korean: Vec<Korean>,
    place: Option<&'static Noun>,
}

/// 주다 becomes 드리다.
fn elder(said: Said) -> Said {
    let stem = match said.stem.dictionary() {
        "주다" => "드리다",
        "빌려주다" => "빌려드리다",
        "가져다주다" => "가져다드리다",
        "건네주다" => "건네드리다",
        "보내다" => return Said { before: "보내", stem: Stem::regular("드리다") },
        "가르치다" => return Said { before: "가르쳐", stem: Stem::regular("드리다") },
        _ => return said,
    };
    Said { stem: Stem::regular(stem), ..said }
}
