//! When and how often: yesterday, in May, at nine o'clock, three days ago, always.

use super::chain::Tense;
use super::clause::Clause;
use super::count::english_number;
use super::predicate::Shape;
use super::writer::{Korean, Phrase, Writer, mark};
use crate::korean::{Particle, native_number};
use crate::lexicon::adverbs;
use crate::pair::Part;

impl Writer<'_> {
    /// One of the expressions under a heading.
    pub(crate) fn one_time(&mut self, heading: &str) -> Option<Phrase> {
        let all = adverbs(heading);
        let number = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
        Some(self.expression(&all[number], Part::Adverb))
    }

    /// A time that goes with a tense.
    pub(crate) fn time(&mut self, tense: Tense, progressive: bool) -> Option<Phrase> {
        if progressive {
            let heading = if tense == Tense::Past { "past" } else { "now" };
            return self.one_time(heading);
        }
        let heading = match tense {
            Tense::Past => self.choices.weighted(&[(8, "past"), (2, "month"), (2, "day"), (1, "today"), (1, "ago")]),
            Tense::Present => self.choices.weighted(&[(8, "habit"), (4, "daytime"), (1, "season"), (2, "day")]),
            Tense::Future => {
                self.choices.weighted(&[(8, "future"), (2, "day"), (2, "today"), (1, "month"), (1, "daytime")])
            }
        }?;
        match heading {
            "month" => self.dated("in", "month"),
            "day" => self.dated("on", "day"),
            "ago" => self.ago(),
            "today" if tense == Tense::Past => self.one_time("past"),
            _ => self.one_time(heading),
        }
    }

    /// In May, on Monday.
    pub(crate) fn dated(&mut self, preposition: &str, heading: &str) -> Option<Phrase> {
        let before = self.word(preposition);
        let Phrase { english, korean } = self.one_time(heading)?;
        let korean = mark(korean, Particle::At, Some(before.id));
        Some(Phrase { english: [vec![before], english].concat(), korean })
    }

    /// Three days ago: 삼 일 전에.
    fn ago(&mut self) -> Option<Phrase> {
        let n = self.choices.one_of(&[2, 3, 4, 5, 10])?;
        let units = [
            ("days", "일", true),
            ("weeks", "주", true),
            ("months", "달", false),
            ("hours", "시간", false),
            ("years", "년", true),
        ];
        let (unit, korean, sino) = self.choices.one_of(&units)?;
        let number = self.say(&english_number(n), Part::Number);
        let spelt = if sino { crate::korean::sino_number(n)? } else { native_number(n)? };
        let (unit, ago) = (self.say(unit, Part::Noun), self.say("ago", Part::Adverb));
        let korean = vec![
            Korean::new(&spelt, &[number.id]),
            Korean::new(korean, &[unit.id]),
            Korean::new("전", &[ago.id]).and("에"),
        ];
        Some(Phrase { english: vec![number, unit, ago], korean })
    }

    /// At nine, at nine o'clock: 아홉 시에.
    pub(crate) fn hour(&mut self) -> Option<Phrase> {
        let at = self.word("at");
        let time = self.clock_time()?;
        let korean = mark(time.korean, Particle::At, Some(at.id));
        Some(Phrase { english: [vec![at], time.english].concat(), korean })
    }

    /// Nine, nine o'clock, nine thirty: 아홉 시, 아홉 시 삼십 분.
    pub(crate) fn clock_time(&mut self) -> Option<Phrase> {
        let n = self.choices.one_of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])?;
        let hour = self.say(&english_number(n), Part::Number);
        let mut korean = vec![Korean::new(&native_number(n)?, &[hour.id])];
        let mut english = vec![hour.clone()];
        match self.choices.weighted(&[(5, 0), (4, 1), (3, 2)])? {
            0 => korean.push(Korean::new("시", &[hour.id])),
            1 => {
                let clock = self.say("o'clock", Part::Noun);
                korean.push(Korean::new("시", &[clock.id]));
                english.push(clock);
            }
            _ => {
                korean.push(Korean::new("시", &[hour.id]));
                let n = self.choices.one_of(&[5, 10, 15, 20, 25, 30, 40, 45, 50])?;
                let minute = self.say(&english_number(n), Part::Number);
                korean.push(Korean::new(&crate::korean::sino_number(n)?, &[minute.id]));
                korean.push(Korean::new("분", &[minute.id]));
                english.push(minute);
            }
        }
        Some(Phrase { english, korean })
    }

    /// What time: 몇 시에.
    pub(super) fn asked_hour(&mut self, clause: &mut Clause) -> Phrase {
        let (what, time) = (self.say("what", Part::Question), self.say("time", Part::Noun));
        let korean = vec![Korean::new("몇", &[what.id]), Korean::new("시", &[time.id]).and("에")];
        clause.front = vec![what, time];
        Phrase { english: Vec::new(), korean }
    }

    /// Always, never.
    pub(super) fn often(&mut self, clause: &mut Clause, shape: Shape) -> Option<()> {
        let all = adverbs("frequency");
        let number = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
        let negates = all[number].flags.contains(&"not");
        if shape.negative && negates {
            return Some(());
        }
        clause.frequency = self.expression(&all[number], Part::Adverb);
        if negates {
            let id = clause.frequency.english.first()?.id;
            clause.never = true;
            clause.predicate.chain = clause.predicate.chain.clone().not(id);
        }
        // "Does not always" means another thing; it is left to plain sentences.
        (!shape.negative || negates).then_some(())
    }
}
