//! It is raining; it was cold yesterday; the weather is nice today.

use super::chain::{Chain, Tense};
use super::clause::{Clause, Mood};
use super::predicate::{Action, Shape};
use super::writer::{Korean, Phrase, Writer, korean_words, mark};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Attribute, Names, Said, VerbForms, adverbs};
use crate::pair::Part;

/// It rains: 비가 와요.
const FALLING: [(&str, &str); 2] = [("rain", "비가 오다"), ("snow", "눈이 오다")];

/// It is cold: 추워요.
const WEATHER: [(&str, &str); 13] = [
    ("cold", "!춥다"),
    ("hot", "!덥다"),
    ("warm", "따뜻하다"),
    ("cool", "시원하다"),
    ("cloudy", "흐리다"),
    ("sunny", "화창하다"),
    ("clear", "맑다"),
    ("windy", "바람이 불다"),
    ("foggy", "안개가 끼다"),
    ("humid", "습하다"),
    ("chilly", "쌀쌀하다"),
    ("dark", "!어둡다"),
    ("freezing", "매우 !춥다"),
];

impl Writer<'_> {
    pub(crate) fn weather(&mut self) -> Option<(Clause, Mood)> {
        self.construction = Construction::Weather;
        match self.choices.weighted(&[(5, 0), (5, 1), (3, 2)])? {
            0 => self.falling(None),
            1 => self.weather_is(None),
            _ => self.the_weather(),
        }
    }

    /// It is raining: 비가 와요. Korean does not tell it from "it rains".
    pub(crate) fn falling(&mut self, tense: Option<Tense>) -> Option<(Clause, Mood)> {
        let (english, korean) = self.choices.one_of(&FALLING)?;
        let mood = if tense.is_some() { Mood::Statement } else { self.mood(&[(1, Mood::When)]) };
        let mut shape = self.being(mood);
        if let Some(tense) = tense {
            shape = Shape::plain(tense);
        }
        shape.progressive =
            tense.is_none() && mood != Mood::When && shape.tense != Tense::Future && self.choices.percent(60);
        shape.going = shape.tense == Tense::Future && tense.is_none() && self.choices.percent(20);
        let forms = VerbForms::of(english, "");
        let action = Action { english: &forms, tail: &[], korean: Said::read(korean), owner: "" };
        let mut predicate = self.verb(action, shape);
        // 비가 오고 있어요 is rarely said.
        let mut chain = Chain::verb(Said::read(korean), &[predicate.head], false);
        if let Some(not) = predicate.not.first() {
            chain = chain.not(not.id);
        }
        chain.tense = shape.tense;
        chain.will.clone_from(&predicate.chain.will);
        predicate.chain = chain.perhaps(&super::writer::ids(&predicate.auxiliary));
        let mut clause = self.it(predicate, shape);
        if mood == Mood::When {
            clause.time = self.asked(&mut clause, "when", "언제", None);
        } else if tense.is_none() && self.choices.percent(55) {
            let habit = shape.tense == Tense::Present && !shape.progressive;
            clause.time = if habit { self.one_time("season")? } else { self.time_of_weather(shape, false)? };
        }
        if tense.is_none() && mood == Mood::Statement && !shape.negative && self.choices.percent(25) {
            clause.manner = match self.choices.percent(60) {
                true => self.simple("a lot", "많이", Part::Adverb),
                false => self.simple("hard", "많이", Part::Adverb),
            };
        } else if self.choices.percent(15) {
            clause.place = self.place(&[], true, "", Particle::At)?;
        }
        Some((clause, mood))
    }

    /// It is cold.
    pub(crate) fn weather_is(&mut self, tense: Option<Tense>) -> Option<(Clause, Mood)> {
        let (english, korean) = self.choices.one_of(&WEATHER)?;
        let mood = if tense.is_some() { Mood::Statement } else { self.mood(&[]) };
        let mut shape = self.being(mood);
        if let Some(tense) = tense {
            shape = Shape::plain(tense);
        }
        let said = Said::read(korean);
        let graded = tense.is_none() && !shape.negative && mood == Mood::Statement && said.before.is_empty();
        let degree = if graded && self.choices.percent(40) {
            let all = adverbs("degree");
            let number = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
            self.expression(&all[number], Part::Adverb)
        } else {
            Phrase::default()
        };
        let mut predicate = self.adjective(english, degree, Attribute::Stem(said), shape);
        if said.before.ends_with(['이', '가']) {
            predicate.chain = predicate.chain.into_verb();
            // 안개가 꼈어요: it has come and is there.
            predicate.chain.by_past = english == "foggy";
        }
        let mut clause = self.it(predicate, shape);
        if tense.is_none() && self.choices.percent(60) {
            clause.time = self.time_of_weather(shape, true)?;
            clause.time_first = mood == Mood::Statement && self.choices.percent(15);
        }
        if tense.is_none() && self.choices.percent(15) {
            let outside = self.simple("outside", "밖", Part::Adverb);
            clause.place = Phrase { korean: mark(outside.korean, Particle::Subject, None), ..outside };
        }
        Some((clause, mood))
    }

    /// The weather is nice today: 오늘은 날씨가 좋아요.
    fn the_weather(&mut self) -> Option<(Clause, Mood)> {
        let kinds = [
            ("nice", "좋다"),
            ("good", "좋다"),
            ("bad", "나쁘다"),
            ("beautiful", "!아름답다"),
            ("terrible", "끔찍하다"),
            ("warm", "따뜻하다"),
            ("cold", "!춥다"),
            ("hot", "!덥다"),
            ("cool", "시원하다"),
            ("cloudy", "흐리다"),
            ("clear", "맑다"),
            ("wonderful", "아주 좋다"),
            ("strange", "이상하다"),
        ];
        let (english, korean) = self.choices.one_of(&kinds)?;
        let asks = self.choices.percent(15);
        let mood = if asks { Mood::How } else { self.mood(&[]) };
        let mut shape = self.being(mood);
        let the = self.word("the");
        let weather = self.say("weather", Part::Noun);
        let korean_subject = mark(korean_words("날씨", &[weather.id]), Particle::Subject, None);
        let subject_id = weather.id;
        if asks {
            shape.negative = false;
            if shape.tense == Tense::Future {
                return None;
            }
        }
        let (mut predicate, front) = if asks {
            let how = self.say("how", Part::Question);
            let said = Said { before: "", stem: crate::korean::Stem::irregular("어떻다") };
            let (mut predicate, be) = self.be(shape);
            predicate.chain = Chain::adjective(said, &[how.id], false).perhaps(&[be]);
            predicate.chain.tense = shape.tense;
            (predicate, vec![how])
        } else {
            (self.adjective(english, Phrase::default(), Attribute::Stem(Said::read(korean)), shape), Vec::new())
        };
        predicate.chain = predicate.chain.before_all(korean_subject);
        let number = self.new_clause();
        let mut clause = Clause::new(predicate, number);
        clause.asked.english = vec![the, weather];
        clause.front = front;
        clause.inverted = shape.inverted;
        self.role(&[subject_id], crate::pair::Role::Subject, number);
        self.note(&clause);
        match self.choices.percent(75) {
            true => clause.time = self.time_of_weather(shape, true)?,
            false => {
                let city = self.proper(Names::Cities)?;
                let before = self.word("in");
                let Phrase { english, korean } = self.simple(city.english, city.korean, Part::Name);
                let korean = mark(korean, Particle::Topic, Some(before.id));
                clause.place = Phrase { english: [vec![before], english].concat(), korean };
            }
        }
        Some((clause, mood))
    }

    /// A clause of "it".
    pub(crate) fn it(&mut self, predicate: super::predicate::Predicate, shape: Shape) -> Clause {
        let number = self.new_clause();
        let mut clause = Clause::new(predicate, number);
        clause.asked.english = self.words(&["it"]);
        clause.inverted = shape.inverted;
        self.note(&clause);
        clause
    }

    /// When; of how the weather is, it is the topic: 어제는 추웠어요.
    fn time_of_weather(&mut self, shape: Shape, topic: bool) -> Option<Phrase> {
        let short = |time: &crate::lexicon::Expression| time.english.len() <= 2 && time.english[0] != "recently";
        let heading = match (shape.tense, shape.progressive) {
            (Tense::Past, _) => "past",
            (Tense::Future, _) => "future",
            (Tense::Present, true) => "now",
            (Tense::Present, false) => "today",
        };
        let all: Vec<_> = adverbs(heading).iter().filter(|time| short(time)).collect();
        let time = self.choices.one_of(&all)?;
        if matches!(time.english[0], "soon" | "later" | "someday" | "after" | "earlier") && topic {
            return None;
        }
        let mut phrase = self.expression(time, Part::Adverb);
        if topic {
            let last = phrase.korean.pop()?;
            let plain = time.korean.last()?;
            let ids: Vec<_> = plain.stands_for.iter().map(|&n| phrase.english[n].id).collect();
            drop(last);
            phrase.korean.push(Korean::new(plain.text, &ids).particle(Particle::Topic));
        }
        Some(phrase)
    }
}

/// English words for the weather that no other table has.
pub(crate) fn weather_words() -> impl Iterator<Item = &'static str> {
    FALLING.iter().chain(&WEATHER).map(|(english, _)| *english)
}
