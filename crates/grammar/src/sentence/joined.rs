//! Two clauses in one sentence: and, but, because, so, if, when, before, after.

use super::act::Wanted;
use super::chain::{Close, Tense};
use super::clause::{Clause, Mood, Subject};
use super::noun_phrase::NounPhrase;
use super::predicate::{Action, Shape};
use super::writer::{Phrase, Writer, ids, with_comma};
use crate::Construction;
use crate::korean::Particle;
use crate::lexicon::{Frame, PRONOUNS, of_frame};
use crate::pair::{Combination, Part};

/// How two clauses are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// Someone does one thing and another.
    Verbs,
    /// One does this, and another that.
    And,
    But,
    /// Likes apples but does not like bananas.
    Contrast,
    Because,
    So,
    If,
    When,
    Before,
    After,
}

impl Writer<'_> {
    pub(crate) fn joined(&mut self) -> Option<(Phrase, Mood)> {
        let joins = [
            (4, Join::Verbs),
            (2, Join::And),
            (3, Join::But),
            (3, Join::Contrast),
            (6, Join::Because),
            (2, Join::So),
            (6, Join::If),
            (5, Join::When),
            (1, Join::Before),
            (1, Join::After),
        ];
        let join = self.choices.weighted(&joins)?;
        let phrase = match join {
            Join::Verbs => self.two_verbs(),
            Join::And => self.two_subjects("and", Close::AndThen),
            Join::But => self.but(),
            Join::Contrast => self.contrast(),
            Join::Because | Join::So => self.because(join == Join::So),
            Join::If => self.when_or_if("if"),
            Join::When => self.when_or_if("when"),
            Join::Before => self.before_or_after("before"),
            Join::After => self.before_or_after("after"),
        }?;
        self.construction = match join {
            Join::Because | Join::So => Construction::Because,
            Join::If => Construction::If,
            Join::When | Join::Before | Join::After => Construction::When,
            _ => Construction::Coordination,
        };
        Some((phrase, Mood::Statement))
    }

    /// A subject that can be spoken of again as a pronoun.
    pub(super) fn anyone(&mut self) -> Option<NounPhrase> {
        let subject = if self.choices.percent(75) {
            let n = self.choices.one_of(&[0, 0, 0, 1, 2, 2, 3, 3, 4, 5])?;
            self.pronoun(&PRONOUNS[n], false)
        } else {
            self.name()?
        };
        self.speaks_of(&subject);
        Some(subject)
    }

    /// The same one again, as a pronoun.
    pub(super) fn again(&mut self, subject: &NounPhrase) -> NounPhrase {
        let pronoun = subject.pronoun.unwrap_or(&PRONOUNS[if subject.female { 3 } else { 2 }]);
        self.pronoun(pronoun, false)
    }

    /// Someone else.
    pub(super) fn someone_else(&mut self, than: &NounPhrase) -> Option<NounPhrase> {
        self.speaker = than.pronoun;
        let other = if self.choices.percent(60) {
            let others: Vec<_> =
                PRONOUNS.iter().filter(|p| than.pronoun.is_none_or(|than| than.subject != p.subject)).collect();
            let pronoun = self.choices.one_of(&others)?;
            // After a name, "he" might be the same one.
            if than.pronoun.is_none() && pronoun.is_third() {
                return None;
            }
            self.pronoun(pronoun, false)
        } else {
            self.name()?
        };
        self.speaks_of(&other);
        Some(other)
    }

    /// How someone is or what someone does, in short.
    pub(super) fn condition(&mut self, subject: NounPhrase, tense: Tense) -> Option<Clause> {
        let clause = match self.choices.weighted(&[(7, 0), (3, 1)])? {
            0 => self.quality(Some((tense, Some(subject))))?.0,
            _ => self.act(Wanted { subject: Some(subject), ..Wanted::simple(tense) })?.0,
        };
        Some(clause)
    }

    /// Something that someone does, perhaps not.
    pub(super) fn deed(&mut self, subject: NounPhrase, tense: Tense) -> Option<Clause> {
        let wanted = Wanted { subject: Some(subject), willed: true, ..Wanted::simple(tense) };
        Some(self.act(wanted)?.0)
    }

    /// She reads a book and listens to music: 책을 읽고 음악을 들어요.
    fn two_verbs(&mut self) -> Option<Phrase> {
        let tense = self.choices.one_of(&[Tense::Past, Tense::Present, Tense::Future])?;
        let subject = self.anyone()?;
        let first = self.deed(subject.clone(), tense)?;
        let mut second = self.deed(subject, tense)?;
        let and = self.word("and");
        // The subject, and "will", are said once.
        second.subject = None;
        if tense == Tense::Future {
            let will = first.predicate.chain.will.clone();
            second.predicate.chain.will = will;
            second.predicate.auxiliary.clear();
        }
        if !first.time.is_empty() || first.dropped || second.dropped || !second.time.is_empty() {
            return None;
        }
        let mut first = first;
        first.predicate.chain = first.predicate.chain.clone().perhaps(&[and.id]);
        let english = [first.english(), vec![and], second.english()].concat();
        let korean = [first.korean(Subject::Auto, Close::And), second.korean(Subject::Dropped, Close::Polite)].concat();
        Some(Phrase { english, korean })
    }

    /// Tom sings and Mary dances.
    fn two_subjects(&mut self, word: &str, close: Close) -> Option<Phrase> {
        let tense = self.choices.one_of(&[Tense::Past, Tense::Present, Tense::Future])?;
        let one = self.anyone()?;
        let mut first = self.deed(one.clone(), tense)?;
        let other = self.someone_else(&one)?;
        let second = self.deed(other, tense)?;
        if first.dropped || second.dropped || !first.time.is_empty() || !second.time.is_empty() {
            return None;
        }
        let word = self.word(word);
        first.predicate.chain = first.predicate.chain.clone().perhaps(&[word.id]);
        let english = [first.english(), vec![word], second.english()].concat();
        let korean = [first.korean(Subject::Auto, close), second.korean(Subject::Auto, Close::Polite)].concat();
        Some(Phrase { english, korean })
    }

    /// I was tired but I went to school: 저는 피곤했지만 학교에 갔어요.
    fn but(&mut self) -> Option<Phrase> {
        if self.choices.percent(35) {
            return self.two_subjects("but", Close::But);
        }
        let tense = self.choices.one_of(&[Tense::Past, Tense::Present])?;
        let subject = self.anyone()?;
        let again = self.again(&subject);
        let mut first = self.condition(subject, tense)?;
        let mut second = self.deed(again, tense)?;
        let but = self.word("but");
        first.predicate.chain = first.predicate.chain.clone().perhaps(&[but.id]);
        let pronoun = ids(&second.subject.as_ref()?.english);
        second.predicate.chain = second.predicate.chain.clone().perhaps(&pronoun);
        let comma = self.choices.percent(30);
        let mut english = first.english();
        if comma && let Some(last) = english.pop() {
            english.push(last.comma());
        }
        english.push(but);
        english.extend(second.english());
        let mut korean = first.korean(Subject::Auto, Close::But);
        if comma {
            korean = with_comma(korean);
        }
        korean.extend(second.korean(Subject::Dropped, Close::Polite));
        Some(Phrase { english, korean })
    }

    /// I like apples but I do not like bananas: 저는 사과를 좋아하지만 바나나는 좋아하지 않아요.
    fn contrast(&mut self) -> Option<Phrase> {
        let verb = self.choices.favoured(of_frame(Frame::Transitive), |verb| verb.common)?;
        if !verb.persons
            || verb.to_persons && verb.english.base != "like"
            || verb.particle != Particle::Object
            || verb.past_is_base()
        {
            return None;
        }
        let tense = self.choices.weighted(&[(3, Tense::Present), (2, Tense::Past), (1, Tense::Future)])?;
        let subject = self.anyone()?;
        let again = self.again(&subject);
        let one = self.noun(&verb.what)?;
        if one.any(&["piano", "violin", "wind"]) {
            return None;
        }
        let group = [
            "fruit",
            "vegetable",
            "dish",
            "drink",
            "animal",
            "subject",
            "sport",
            "clothes",
            "food",
            "flower",
            "content",
            "goods",
        ];
        let group = group.into_iter().find(|kind| one.is(kind))?;
        let alike: Vec<_> = verb.what.iter().copied().filter(|noun| noun.is(group)).collect();
        let other = self.noun(&alike)?;
        let mut clauses = Vec::new();
        for (who, noun, negative) in [(subject, one, false), (again, other, true)] {
            let mut shape = Shape { negative, ..Shape::plain(tense) };
            super::act::agree(&mut shape, &who);
            let action = Action { english: &verb.english, tail: &verb.tail, korean: verb.korean, owner: "" };
            let predicate = self.verb(action, shape);
            let number = self.new_clause();
            let mut clause = Clause::new(predicate, number);
            self.combinations.push(Combination { head: verb.dictionary(), noun: noun.english });
            let bare = !matches!(noun.countable, crate::lexicon::Countable::Each | crate::lexicon::Countable::Many);
            let text = if bare { noun.english } else { noun.plural.as_str() };
            let Phrase { english, korean } = self.simple(text, noun.korean, Part::Noun);
            clause.object_ids = ids(&english);
            let particle = if negative { Particle::Topic } else { Particle::Object };
            let preposition = self.words(&verb.preposition);
            clause.object = Phrase {
                english: [preposition, english].concat(),
                korean: super::writer::mark(korean, particle, None),
            };
            clause.subject = Some(who);
            self.note(&clause);
            clauses.push(clause);
        }
        let but = self.word("but");
        let (mut second, mut first) = (clauses.pop()?, clauses.pop()?);
        first.predicate.chain = first.predicate.chain.clone().perhaps(&[but.id]);
        let pronoun = ids(&second.subject.as_ref()?.english);
        second.predicate.chain = second.predicate.chain.clone().perhaps(&pronoun);
        let english = [first.english(), vec![but], second.english()].concat();
        let korean = [first.korean(Subject::Auto, Close::But), second.korean(Subject::Dropped, Close::Polite)].concat();
        Some(Phrase { english, korean })
    }

    /// I bought bread because I was hungry: 저는 배가 고파서 빵을 샀어요. I was hungry, so I bought bread.
    fn because(&mut self, so: bool) -> Option<Phrase> {
        let tense = self.choices.weighted(&[(6, Tense::Past), (3, Tense::Present)])?;
        let subject = self.anyone()?;
        let weather = self.choices.percent(25);
        let same = !weather && self.choices.percent(75);
        // Who comes first is named, and then spoken of again.
        let (first, second) = if same {
            let again = self.again(&subject);
            (subject, again)
        } else {
            let other = if weather { subject.clone() } else { self.someone_else(&subject)? };
            (subject, other)
        };
        let (cause, doer) = if so { (first, second) } else { (second, first) };
        self.speaks_of(&cause);
        let mut reason = if weather { self.sky(tense)? } else { self.condition(cause, tense)? };
        self.speaks_of(&doer);
        let mut deed = self.deed(doer, tense)?;
        let word = self.word(if so { "so" } else { "because" });
        reason.predicate.chain = reason.predicate.chain.clone().perhaps(&[word.id]);
        let dropped = if so { &mut deed } else { &mut reason };
        if same {
            let pronoun = ids(&dropped.subject.as_ref()?.english);
            dropped.predicate.chain = dropped.predicate.chain.clone().perhaps(&pronoun);
        }
        let english = if so {
            let mut english = reason.english();
            let last = english.pop()?.comma();
            [english, vec![last, word], deed.english()].concat()
        } else {
            [deed.english(), vec![word], reason.english()].concat()
        };
        let korean = match (same, so) {
            (true, true) => {
                [reason.korean(Subject::Auto, Close::Because), deed.korean(Subject::Dropped, Close::Polite)].concat()
            }
            (true, false) => {
                let (subject, rest) = deed.split(Subject::Auto, Close::Polite);
                [subject, reason.korean(Subject::Dropped, Close::Because), rest].concat()
            }
            (false, _) => {
                [reason.korean(Subject::Within, Close::Because), deed.korean(Subject::Auto, Close::Polite)].concat()
            }
        };
        Some(Phrase { english, korean })
    }
}
