//! If it rains, I will stay home; when I was young, I lived in Busan; before, after, in order to.

use super::act::Wanted;
use super::chain::{Close, Tense};
use super::clause::{Clause, Mood, Subject};
use super::noun_phrase::NounPhrase;
use super::predicate::Shape;
use super::writer::{English, Phrase, Writer, ids};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Attribute, Frame, Said, Verb, adverbs, of_frame};
use crate::pair::{Combination, Part};

impl Writer<'_> {
    /// It rained, it was cold.
    pub(super) fn sky(&mut self, tense: Tense) -> Option<Clause> {
        match self.choices.percent(50) {
            true => Some(self.falling(Some(tense))?.0),
            false => Some(self.weather_is(Some(tense))?.0),
        }
    }

    /// If it rains, I will stay home; when I was young, I lived in Busan.
    pub(super) fn when_or_if(&mut self, text: &str) -> Option<Phrase> {
        let when = text == "when";
        let (condition_tense, tense) = if when {
            self.choices.weighted(&[(5, (Tense::Past, Tense::Past)), (3, (Tense::Present, Tense::Present))])?
        } else {
            self.choices.weighted(&[(5, (Tense::Present, Tense::Future)), (1, (Tense::Present, Tense::Present))])?
        };
        let word = self.word(text);
        let (close, perhaps) = if when { (Close::When(word.id), None) } else { (Close::If, Some(word.id)) };
        let subject = self.anyone()?;
        let which = self.choices.weighted(&[(4, 0), (3, 1), (if when { 3 } else { 0 }, 2), (4, 3)])?;
        let same = which != 0 && which != 3 || which == 3 && self.choices.percent(50);
        let mut condition = match which {
            0 => self.sky(condition_tense)?,
            2 => {
                let again = self.again(&subject);
                self.youth(again)?
            }
            _ if same => {
                let again = self.again(&subject);
                self.condition(again, condition_tense)?
            }
            _ => {
                let other = self.someone_else(&subject)?;
                self.condition(other, condition_tense)?
            }
        };
        condition.predicate.chain = condition.predicate.chain.clone().perhaps(perhaps.as_slice());
        if same {
            let pronoun = ids(&condition.subject.as_ref()?.english);
            condition.predicate.chain = condition.predicate.chain.clone().perhaps(&pronoun);
        }
        self.speaks_of(&subject);
        let tense = if which == 2 { Tense::Past } else { tense };
        let main = if which == 2 && self.choices.percent(40) {
            self.act(Wanted { subject: Some(subject), frame: Some(Frame::Motion), ..Wanted::simple(tense) })?.0
        } else {
            self.deed(subject, tense)?
        };
        // "When I was eating, I will …" cannot be: the condition has no time of its own.
        if main.dropped || !main.time.is_empty() || !condition.time.is_empty() {
            return None;
        }
        let first = self.choices.percent(70);
        let english = [vec![word], condition.english()].concat();
        let english = joined_english(english, main.english(), first)?;
        let mark = if same { Subject::Dropped } else { Subject::Within };
        let korean = [condition.korean(mark, close), main.korean(Subject::Auto, Close::Polite)].concat();
        Some(Phrase { english, korean })
    }

    /// When I was young, a child, a student.
    fn youth(&mut self, subject: NounPhrase) -> Option<Clause> {
        let mut shape = Shape::plain(Tense::Past);
        super::act::agree(&mut shape, &subject);
        let predicate = match self.choices.weighted(&[(4, 0), (2, 1)])? {
            0 => self.adjective("young", Phrase::default(), Attribute::Stem(Said::read("어리다")), shape),
            _ => {
                let plural = shape.agreement == crate::lexicon::Agreement::Plural;
                let kinds = [
                    ("child", "children", "아이"),
                    ("student", "students", "학생"),
                    ("college student", "college students", "대학생"),
                ];
                let (one, many, korean) = self.choices.one_of(&kinds)?;
                let mut phrase = self.simple(if plural { many } else { one }, korean, Part::Noun);
                if !plural {
                    phrase.english.insert(0, self.word("a"));
                }
                self.copula(phrase, shape)
            }
        };
        Some(self.about(subject, shape, predicate))
    }

    /// I wash my hands before I eat: 저는 먹기 전에 손을 씻어요.
    pub(super) fn before_or_after(&mut self, text: &str) -> Option<Phrase> {
        let tense = self.choices.one_of(&[Tense::Past, Tense::Present])?;
        let word = self.say(text, Part::Adverb);
        let subject = self.anyone()?;
        let again = self.again(&subject);
        let mut earlier = self.deed(again, tense)?;
        let pronoun = ids(&earlier.subject.as_ref()?.english);
        earlier.predicate.chain = earlier.predicate.chain.clone().perhaps(&pronoun);
        let main = self.deed(subject, tense)?;
        if main.dropped || !main.time.is_empty() || !earlier.time.is_empty() {
            return None;
        }
        let close = if text == "before" { Close::Before(word.id) } else { Close::After(word.id) };
        let first = self.choices.percent(35);
        let english = joined_english([vec![word], earlier.english()].concat(), main.english(), first)?;
        let (subject, rest) = main.split(Subject::Auto, Close::Polite);
        let korean = [subject, earlier.korean(Subject::Dropped, close), rest].concat();
        Some(Phrase { english, korean })
    }

    /// I went to the store to buy bread: 저는 빵을 사러 가게에 갔어요.
    pub(crate) fn purpose(&mut self) -> Option<(Clause, Mood)> {
        const AIMS: [&str; 12] =
            ["buy", "eat", "drink", "meet", "see", "borrow", "learn", "help", "study", "watch", "return", "visit"];
        let goes = |verb: &&&'static Verb| matches!(verb.english.base.as_str(), "go" | "come") && verb.has("travels");
        let going: Vec<_> = of_frame(Frame::Motion).iter().filter(goes).copied().collect();
        let verb = self.choices.one_of(&going)?;
        let wanted =
            Wanted { frame: Some(verb.frame), verb: Some(verb), mood: Some(Mood::Statement), ..Wanted::default() };
        let (mut clause, mood) = self.act(wanted)?;
        if !clause.companion.is_empty() || !clause.means.is_empty() || !clause.manner.is_empty() {
            return None;
        }
        let aims = |aim: &&&'static Verb| {
            aim.is_willed() && aim.particle == Particle::Object && AIMS.contains(&aim.english.base.as_str())
        };
        let aims: Vec<_> = of_frame(Frame::Transitive).iter().filter(aims).copied().collect();
        let aim = self.choices.one_of(&aims)?;
        let to = self.word("to");
        let word = self.say(&aim.english.base, Part::Verb);
        let object = self.object(&aim.what, aim.to_persons, super::determiner::Use::Object)?;
        let heads = object.heads.clone();
        self.combinations.extend(heads.into_iter().map(|noun| Combination { head: aim.dictionary(), noun }));
        let preposition = self.words(&aim.preposition);
        let object = object.with(Particle::Object, None);
        let chain = super::chain::Chain::verb(aim.korean, &[word.id], false);
        let korean = [object.korean, chain.end(Close::Purpose)].concat();
        let english = [vec![to, word], preposition, object.english].concat();
        clause.companion = Phrase { english, korean };
        self.construction = Construction::Purpose;
        Some((clause, mood))
    }

    /// Perhaps, suddenly: an adverb before the whole.
    pub(crate) fn sentence_adverb(&mut self, clause: &mut Clause) -> Option<()> {
        let all = adverbs("sentence");
        let number = self.choices.one_of(&(0..all.len()).collect::<Vec<_>>())?;
        let adverb = self.expression(&all[number], Part::Adverb);
        clause.time = adverb;
        clause.time_first = true;
        Some(())
    }
}

/// When it rains, I stay; I stay when it rains.
fn joined_english(condition: Vec<English>, main: Vec<English>, first: bool) -> Option<Vec<English>> {
    if !first {
        return Some([main, condition].concat());
    }
    let mut condition = condition;
    let last = condition.pop()?.comma();
    Some([condition, vec![last], main].concat())
}
