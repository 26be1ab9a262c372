//! What time it is, which day, how old, how much.

use super::act::agree;
use super::chain::{Chain, Tense};
use super::clause::{Clause, Mood};
use super::count::{english_number, ordinal};
use super::determiner::Use;
use super::noun_phrase::NounPhrase;
use super::predicate::Shape;
use super::writer::{Korean, Phrase, Writer, ids, korean_words};
use crate::Construction;
use crate::korean::{native_number, sino_number};
use crate::lexicon::{Agreement, adverbs, nouns, of_kind};
use crate::pair::Part;

impl Writer<'_> {
    /// A sentence about time, age or money.
    pub(crate) fn measured(&mut self) -> Option<(Clause, Mood)> {
        self.construction = Construction::Clock;
        match self.choices.weighted(&[(5, 0), (4, 1), (4, 2), (4, 3), (3, 4), (1, 5)])? {
            0 => self.time_is(),
            1 => self.day_is(),
            2 => self.date_of(),
            3 => self.age(),
            4 => self.price(),
            _ => self.what_time(),
        }
    }

    /// It is three o'clock: 세 시예요.
    fn time_is(&mut self) -> Option<(Clause, Mood)> {
        let mood = self.mood(&[]);
        let mut shape = Shape { inverted: mood.inverts(), ..Shape::plain(Tense::Present) };
        shape.tense = self.choices.weighted(&[(6, Tense::Present), (1, Tense::Past)])?;
        let time = match self.choices.percent(25) {
            true => self.half_past()?,
            false => self.clock_time()?,
        };
        // "It is three" might be anything.
        if time.english.len() < 2 {
            return None;
        }
        let now = shape.tense == Tense::Present && self.choices.percent(25);
        let predicate = self.copula(time, shape);
        let mut clause = self.it(predicate, shape);
        if now {
            clause.time = self.simple("now", "지금", Part::Adverb);
        }
        Some((clause, mood))
    }

    /// Half past two: 두 시 반. Ten past three: 세 시 십 분. Ten to three: 세 시 십 분 전.
    fn half_past(&mut self) -> Option<Phrase> {
        let hour = self.choices.one_of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])?;
        let minute = self.choices.one_of(&[30, 5, 10, 20, 15])?;
        let before = minute != 30 && self.choices.percent(40);
        let text = match minute {
            30 => "half".to_owned(),
            _ => english_number(minute),
        };
        let first = self.say(&text, Part::Number);
        let past = self.say(if before { "to" } else { "past" }, if before { Part::Adverb } else { Part::Function });
        let last = self.say(&english_number(hour), Part::Number);
        let mut korean = vec![Korean::new(&native_number(hour)?, &[last.id]), Korean::new("시", &[last.id])];
        if minute == 30 {
            korean.push(Korean::new("반", &[first.id]));
        } else {
            korean.push(Korean::new(&sino_number(minute)?, &[first.id]));
            korean.push(Korean::new("분", &[first.id]));
        }
        if before {
            korean.push(Korean::new("전", &[past.id]));
        }
        Some(Phrase { english: vec![first, past, last], korean })
    }

    /// What time is it? 몇 시예요?
    fn what_time(&mut self) -> Option<(Clause, Mood)> {
        let shape = Shape { inverted: true, ..Shape::plain(Tense::Present) };
        let (mut predicate, be) = self.be(shape);
        let (what, time) = (self.say("what", Part::Question), self.say("time", Part::Noun));
        predicate.chain = Chain::is(vec![Korean::new("몇", &[what.id]), Korean::new("시", &[time.id])], be);
        let mut clause = self.it(predicate, shape);
        clause.front = vec![what, time];
        if self.choices.percent(50) {
            clause.time = self.simple("now", "지금", Part::Adverb);
        }
        Some((clause, Mood::WhatTime))
    }

    /// Today is Monday; tomorrow is my birthday.
    fn day_is(&mut self) -> Option<(Clause, Mood)> {
        let (english, korean, tense) = self.choices.one_of(&[
            ("today", "오늘", Tense::Present),
            ("tomorrow", "내일", Tense::Present),
            ("yesterday", "어제", Tense::Past),
        ])?;
        let mood = self.mood(&[]);
        let negative = mood == Mood::Statement && self.choices.percent(12);
        let shape = Shape { inverted: mood.inverts(), negative, ..Shape::plain(tense) };
        let Phrase { english, korean } = self.simple(english, korean, Part::Adverb);
        let subject = NounPhrase::new(english, korean, Agreement::Singular);
        let what = match self.choices.weighted(&[(6, 0), (2, 1), (2, 2)])? {
            0 => self.one_time("day")?,
            1 => {
                let day = nouns().iter().find(|noun| noun.english == "birthday")?;
                self.speaker = None;
                self.noun_phrase(day, Use::Single)?.bare()
            }
            _ => self.date()?,
        };
        let predicate = self.copula(what, shape);
        Some((self.about(subject, shape, predicate), mood))
    }

    /// May fifth: 오월 오일.
    fn date(&mut self) -> Option<Phrase> {
        let all = adverbs("month");
        let month = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
        let day = 1 + self.choices.one_of(&(0..28).collect::<Vec<u32>>())?;
        let mut phrase = self.expression(&all[month], Part::Noun);
        let word = self.say(&ordinal(day), Part::Number);
        phrase.korean.push(Korean::new(&sino_number(day)?, &[word.id]).and("일"));
        phrase.english.push(word);
        Some(phrase)
    }

    /// My birthday is in May; the meeting is on Monday, at nine.
    fn date_of(&mut self) -> Option<(Clause, Mood)> {
        self.speaker = None;
        let birthday = self.choices.percent(50);
        let subject = if birthday {
            let day = nouns().iter().find(|noun| noun.english == "birthday")?;
            self.noun_phrase(day, Use::Single)?
        } else {
            let event = self.noun(of_kind("event"))?;
            self.the(event)
        };
        let mood = self.mood(&[(4, Mood::When)]);
        let negative = mood == Mood::Statement && self.choices.percent(10);
        let tense = self.choices.weighted(&[(4, Tense::Present), (1, Tense::Past)])?;
        let mut shape = Shape { inverted: mood.inverts(), negative, ..Shape::plain(tense) };
        agree(&mut shape, &subject);
        if mood == Mood::When {
            let (mut predicate, be) = self.be(shape);
            let when = self.say("when", Part::Question);
            predicate.chain = Chain::is(vec![Korean::new("언제", &[when.id])], be);
            predicate.chain.tense = shape.tense;
            let mut clause = self.about(subject, shape, predicate);
            clause.front = vec![when];
            return Some((clause, mood));
        }
        let (preposition, when) =
            match self.choices.weighted(&[(4, 0), (3, 1), (3, 2), (if birthday { 0 } else { 2 }, 3)])? {
                0 => ("in", self.one_time("month")?),
                1 => ("on", self.date()?),
                2 => ("on", self.one_time("day")?),
                _ => ("at", self.clock_time()?),
            };
        let before = self.word(preposition);
        let what = Phrase { english: [vec![before], when.english].concat(), korean: when.korean };
        let predicate = self.copula(what, shape);
        Some((self.about(subject, shape, predicate), mood))
    }

    /// He is twenty years old: 그는 스무 살이에요. How old are you? 당신은 몇 살이에요?
    fn age(&mut self) -> Option<(Clause, Mood)> {
        let people: Vec<_> =
            of_kind("person").iter().copied().filter(|noun| !noun.any(&["honoured", "infant"])).collect();
        let subject = self.subject(&people, true, Use::Theme)?;
        let mood = self.mood(&[(8, Mood::How)]);
        let tense = self.choices.weighted(&[(6, Tense::Present), (1, Tense::Past)])?;
        let mut shape = Shape { inverted: mood.inverts(), ..Shape::plain(tense) };
        agree(&mut shape, &subject);
        if mood == Mood::How {
            let (mut predicate, be) = self.be(shape);
            let (how, old) = (self.say("how", Part::Question), self.say("old", Part::Adjective));
            predicate.chain = Chain::is(vec![Korean::new("몇", &[how.id]), Korean::new("살", &[old.id])], be);
            predicate.chain.tense = tense;
            let mut clause = self.about(subject, shape, predicate);
            clause.front = vec![how, old];
            return Some((clause, mood));
        }
        let n = 1 + self.choices.one_of(&(0..79).collect::<Vec<u32>>())?;
        let number = self.say(&english_number(n), Part::Number);
        let (years, old) =
            (self.say(if n == 1 { "year" } else { "years" }, Part::Noun), self.say("old", Part::Adjective));
        let korean = vec![Korean::new(&native_number(n)?, &[number.id]), Korean::new("살", &[years.id, old.id])];
        let predicate = self.copula(Phrase { english: vec![number, years, old], korean }, shape);
        Some((self.about(subject, shape, predicate), mood))
    }

    /// How much is this bag? 이 가방은 얼마예요? It is five thousand won.
    fn price(&mut self) -> Option<(Clause, Mood)> {
        self.speaker = None;
        let subject = if self.choices.percent(30) {
            let (english, korean, many) = self.choices.one_of(&[
                ("this", "이것", false),
                ("that", "저것", false),
                ("it", "그것", false),
                ("these", "이것들", true),
            ])?;
            let Phrase { english, korean } = self.simple(english, korean, Part::Pronoun);
            NounPhrase::new(english, korean, if many { Agreement::Plural } else { Agreement::Singular })
        } else {
            let goods: Vec<_> = of_kind("goods").iter().copied().filter(|noun| !noun.is("owned")).collect();
            let noun = self.noun(&goods)?;
            self.noun_phrase(noun, Use::Known)?
        };
        let asks = self.choices.percent(60);
        let mut shape = Shape { inverted: asks, ..Shape::plain(Tense::Present) };
        if self.choices.percent(15) {
            shape.tense = Tense::Past;
        }
        agree(&mut shape, &subject);
        if asks {
            let (mut predicate, be) = self.be(shape);
            let (how, much) = (self.say("how", Part::Question), self.say("much", Part::Question));
            predicate.chain = Chain::is(vec![Korean::new("얼마", &[how.id, much.id])], be);
            predicate.chain.tense = shape.tense;
            let mut clause = self.about(subject, shape, predicate);
            clause.front = vec![how, much];
            return Some((clause, Mood::How));
        }
        let (unit, korean) = self.choices.one_of(&[("won", "원"), ("won", "원"), ("dollars", "달러")])?;
        let n = match unit {
            "won" => 1000 * self.choices.one_of(&[1, 2, 3, 5, 7, 8, 10, 12, 15, 20, 30, 50, 100])?,
            _ => self.choices.one_of(&[2, 3, 5, 10, 12, 15, 20, 30, 50, 100])?,
        };
        let number = self.say_all(&english_number(n), Part::Number);
        let unit = self.say(unit, Part::Noun);
        let mut words = korean_words(&sino_number(n)?, &ids(&number));
        words.push(Korean::new(korean, &[unit.id]));
        let predicate = self.copula(Phrase { english: [number, vec![unit]].concat(), korean: words }, shape);
        Some((self.about(subject, shape, predicate), Mood::Statement))
    }
}
