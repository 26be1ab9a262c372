//! Who is that man? This is my book; I am from Korea; my name is Mina; she has a headache.

use super::act::agree;
use super::chain::{Chain, Tense};
use super::clause::{Clause, Mood};
use super::determiner::Use;
use super::noun_phrase::NounPhrase;
use super::predicate::{Predicate, Shape};
use super::writer::{Korean, Phrase, Writer, ids, mark};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Agreement, nouns, of_kind};
use crate::pair::Part;

impl Writer<'_> {
    /// Who is that man? What is this? Whose bag is this? What is your name? Which is …
    pub(crate) fn question(&mut self) -> Option<(Clause, Mood)> {
        self.construction = Construction::Question;
        self.speaker = None;
        let tense = self.choices.weighted(&[(6, Tense::Present), (1, Tense::Past)])?;
        let mut shape = Shape { inverted: true, ..Shape::plain(tense) };
        let (subject, front, noun) = match self.choices.weighted(&[(5, 0), (4, 1), (4, 2), (2, 3)])? {
            0 => {
                let people: Vec<_> = of_kind("person").iter().copied().filter(|noun| !noun.is("kin")).collect();
                let noun = self.noun(&people)?;
                let subject = match self.choices.percent(70) {
                    true => self.noun_phrase(noun, Use::Known)?,
                    false => {
                        let n = self.choices.one_of(&[1, 2, 3, 5])?;
                        self.pronoun(&crate::lexicon::PRONOUNS[n], false)
                    }
                };
                let who = self.say("who", Part::Question);
                (subject, vec![who.clone()], vec![Korean::new("누구", &[who.id])])
            }
            1 => {
                let (english, korean, many) = self.this_or_that()?;
                let Phrase { english, korean } = self.simple(english, korean, Part::Pronoun);
                let what = self.say("what", Part::Question);
                let agreement = if many { Agreement::Plural } else { Agreement::Singular };
                (NounPhrase::new(english, korean, agreement), vec![what.clone()], vec![Korean::new("무엇", &[what.id])])
            }
            2 => {
                let goods = self.noun(of_kind("goods"))?;
                let many = goods.countable == crate::lexicon::Countable::Pair;
                let (english, korean) = if many {
                    ("these", "이것들")
                } else {
                    self.choices.one_of(&[("this", "이것"), ("that", "저것")])?
                };
                let Phrase { english, korean } = self.simple(english, korean, Part::Pronoun);
                let whose = self.say("whose", Part::Question);
                let named = self.simple(goods.english, goods.korean, Part::Noun);
                let owner = Korean::new("누구", &[whose.id]).particle(Particle::Of);
                let agreement = if many { Agreement::Plural } else { Agreement::Singular };
                let front = [vec![whose], named.english].concat();
                (NounPhrase::new(english, korean, agreement), front, [vec![owner], named.korean].concat())
            }
            _ => {
                let owned: Vec<_> = of_kind("owned").iter().copied().filter(|noun| noun.any(&["idea"])).collect();
                let noun = self.noun(&owned)?;
                let subject = self.noun_phrase(noun, Use::Single)?;
                let what = self.say("what", Part::Question);
                (subject, vec![what.clone()], vec![Korean::new("무엇", &[what.id])])
            }
        };
        agree(&mut shape, &subject);
        shape.honoured = false;
        let (mut predicate, be): (Predicate, _) = self.be(shape);
        predicate.chain = Chain::is(noun, be);
        predicate.chain.tense = tense;
        let mut clause = self.about(subject, shape, predicate);
        clause.front = front;
        Some((clause, Mood::Who))
    }

    fn this_or_that(&mut self) -> Option<(&'static str, &'static str, bool)> {
        self.choices.one_of(&[
            ("this", "이것", false),
            ("that", "저것", false),
            ("it", "그것", false),
            ("these", "이것들", true),
            ("those", "저것들", true),
        ])
    }

    /// This is my book; I am from Korea; my name is Mina.
    pub(crate) fn introduction(&mut self) -> Option<(Clause, Mood)> {
        self.construction = Construction::Identity;
        let mood = self.mood(&[]);
        let negative = mood == Mood::Statement && self.choices.percent(15);
        let mut shape = Shape { inverted: mood.inverts(), negative, ..Shape::plain(Tense::Present) };
        self.speaker = None;
        match self.choices.weighted(&[(5, 0), (3, 1), (3, 2), (3, 3)])? {
            0 => {
                let (english, korean) = self.choices.one_of(&[("this", "이것"), ("that", "저것"), ("it", "그것")])?;
                let noun = self.noun(of_kind("goods"))?;
                if !matches!(noun.countable, crate::lexicon::Countable::Each) {
                    return None;
                }
                let Phrase { english, korean } = self.simple(english, korean, Part::Pronoun);
                let role = if self.choices.percent(50) { Use::Single } else { Use::Second };
                let what = self.noun_phrase(noun, role)?;
                let subject = NounPhrase::new(english, korean, Agreement::Singular);
                let predicate = self.copula(what.bare(), shape);
                Some((self.about(subject, shape, predicate), mood))
            }
            1 => {
                let name = self.name()?;
                let owner = if self.choices.percent(40) { 0 } else { 2 + usize::from(name.female) };
                let pronoun = &crate::lexicon::PRONOUNS[owner];
                let noun = nouns().iter().find(|noun| noun.english == "name")?;
                let my = self.say(pronoun.owner, Part::Pronoun);
                let named = self.simple(noun.english, noun.korean, Part::Noun);
                let korean = [vec![super::owner::owner(pronoun, noun, my.id)], named.korean].concat();
                let subject = NounPhrase::new([vec![my], named.english].concat(), korean, Agreement::Singular);
                let predicate = self.copula(name.bare(), shape);
                Some((self.about(subject, shape, predicate), mood))
            }
            2 => {
                let subject = self.subject(of_kind("kin"), true, Use::Theme)?;
                agree(&mut shape, &subject);
                let country = self.place(&[], true, "from", Particle::In)?;
                let (mut predicate, be) = self.be(shape);
                let said = crate::lexicon::Said::read("오다");
                let mut chain = Chain::verb(said, &[country.english[0].id], shape.honoured).perhaps(&[be]);
                if let Some(not) = predicate.not.first() {
                    chain = chain.not(not.id);
                }
                chain.tense = Tense::Past;
                predicate.chain = chain;
                let mut clause = self.about(subject, shape, predicate);
                clause.place = country;
                Some((clause, mood))
            }
            _ => {
                let name = self.name()?;
                let person = if self.choices.percent(40) { 0 } else { 2 + usize::from(name.female) };
                let subject = self.pronoun(&crate::lexicon::PRONOUNS[person], false);
                agree(&mut shape, &subject);
                let predicate = self.copula(name.bare(), shape);
                Some((self.about(subject, shape, predicate), mood))
            }
        }
    }

    /// I have a cold, she has a headache: 저는 감기에 걸렸어요, 그녀는 두통이 있어요.
    pub(crate) fn illness(&mut self) -> Option<(Clause, Mood)> {
        let subject = self.subject(of_kind("person"), true, Use::Theme)?;
        let mood = self.mood(&[]);
        let mut shape = self.being(mood);
        agree(&mut shape, &subject);
        let noun = self.noun(of_kind("illness"))?;
        let a = super::noun_phrase::a_or_an(self, noun.english);
        let Phrase { english, mut korean } = self.simple(noun.english, noun.korean, Part::Noun);
        let number = self.new_clause();
        let mut clause = Clause::new(self.has(shape), number);
        clause.object_ids = ids(&english);
        if noun.english == "cold" {
            // One has caught it: 감기에 걸렸어요.
            let mut chain = Chain::verb(crate::lexicon::Said::read("걸리다"), &[clause.predicate.head], shape.honoured);
            if let Some(not) = clause.predicate.not.first() {
                chain = chain.not(not.id);
            }
            chain.tense = shape.tense;
            chain.will.clone_from(&clause.predicate.chain.will);
            chain.by_past = true;
            clause.predicate.chain = chain;
            korean = mark(korean, Particle::At, None);
        } else {
            korean = mark(korean, Particle::Subject, None);
        }
        clause.object = Phrase { english: [vec![a], english].concat(), korean };
        clause.subject = Some(subject);
        clause.inverted = shape.inverted;
        self.note(&clause);
        self.construction = Construction::Possession;
        Some((clause, mood))
    }

    /// My head hurts: 저는 머리가 아파요. Whose it is, is the topic.
    pub(crate) fn ache(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[(2, Mood::Why)]);
        let mut shape = self.being(mood);
        let noun = self.noun(of_kind("ache"))?;
        let pair = ["eye", "ear", "arm", "leg", "foot", "shoulder", "knee", "tooth"].contains(&noun.english);
        let plural = pair && self.choices.percent(40);
        let (owner, korean) = match self.choices.percent(75) {
            true => {
                let n = self.choices.one_of(&[0, 0, 0, 1, 2, 3])?;
                let pronoun = &crate::lexicon::PRONOUNS[n];
                let word = self.say(pronoun.owner, Part::Pronoun);
                let korean = vec![Korean::new(pronoun.korean, &[word.id])];
                (word, korean)
            }
            false => {
                let name = self.proper(crate::lexicon::Names::People)?;
                let word = self.say(name.english, Part::Name).owning();
                let korean = vec![Korean::new(name.korean, &[word.id])];
                (word, korean)
            }
        };
        let Phrase { english, korean: part } =
            self.simple(if plural { &noun.plural } else { noun.english }, noun.korean, Part::Noun);
        shape.agreement = if plural { Agreement::Plural } else { Agreement::Singular };
        let forms = crate::lexicon::VerbForms::of("hurt", "");
        let said = crate::lexicon::Said::read("아프다");
        let action = super::predicate::Action { english: &forms, tail: &[], korean: said, owner: "" };
        let mut predicate = self.verb(action, shape);
        predicate.chain = predicate.chain.into_state().before_all(mark(part, Particle::Subject, None));
        let mut subject = NounPhrase::new([vec![owner], english].concat(), korean, shape.agreement);
        subject.head_ids.truncate(1);
        let mut clause = self.about(subject, shape, predicate);
        let unclear = shape.tense == Tense::Past && !shape.negative && !shape.inverted;
        if mood == Mood::Why {
            clause.time = self.asked(&mut clause, "why", "왜", None);
        } else if unclear || shape.tense == Tense::Past && self.choices.percent(30) {
            clause.time = self.one_time("past")?;
        }
        self.construction = Construction::Possession;
        Some((clause, mood))
    }
}
