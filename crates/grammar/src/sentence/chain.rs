//! A Korean predicate that can still go on. Korean says tense, negation, ability, wish and duty by one stem after another,
//! and only the last one has the ending of the clause:
//!
//! | | |
//! |---|---|
//! | is reading | 읽고 있 + 어요 |
//! | does not want to go | 가고 싶어 하지 않 + 아요 |
//! | must not smoke | 피우면 안 되 + 어요 |
//! | …, but / because / if / when / who / that | 지만, 어서, 으면, 을 때, 는, 는다고 in place of 어요 |

use super::writer::{Id, Korean, mark};
use crate::korean::{Ending, Particle, Stem};
use crate::lexicon::Said;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    Past,
    Present,
    Future,
}

/// What a clause ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// 해요.
    Polite,
    /// 할게요.
    Promise,
    /// 하세요.
    Please,
    /// 하고, of the same subject.
    And,
    /// 했고, before another subject.
    AndThen,
    But,
    Because,
    If,
    /// 할 때, for the English "when".
    When(Id),
    /// 하기 전에.
    Before(Id),
    /// 한 후에.
    After(Id),
    /// Before a noun: who does.
    Who,
    /// That one does: 한다고.
    That,
    /// In order to do: 하러.
    Purpose,
    /// 하기를: that one may do.
    Hoped,
}

#[derive(Clone, Debug)]
enum Last {
    Stem(Stem),
    /// A noun before 이다.
    Is(Vec<Korean>),
    /// 아니다.
    IsNot,
}

/// A predicate without its ending.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    words: Vec<Korean>,
    /// How many of the words belong to the verb as its object or subject: 담배를 피우다.
    own: usize,
    last: Last,
    /// What the last stem stands for.
    stands_for: Vec<Id>,
    /// What its ending may stand for.
    perhaps: Vec<Id>,
    pub(crate) tense: Tense,
    /// The English "will", or "going".
    pub(crate) will: Vec<Id>,
    /// Whether it is how something is rather than what it does.
    state: bool,
    pub(crate) honoured: bool,
    /// Whether the honorific of 있다 is 계시다.
    stays: bool,
    /// 화가 났어요 is how one is now: present in English, past in Korean.
    pub(crate) by_past: bool,
}

const NOT: Stem = Stem::regular("않다");

impl Chain {
    fn new(last: Last, stands_for: &[Id], state: bool) -> Self {
        Chain {
            words: Vec::new(),
            own: 0,
            last,
            stands_for: stands_for.to_vec(),
            perhaps: Vec::new(),
            tense: Tense::Present,
            will: Vec::new(),
            state,
            honoured: false,
            stays: false,
            by_past: false,
        }
    }

    /// A verb.
    pub(crate) fn verb(said: Said, stands_for: &[Id], honoured: bool) -> Self {
        let stem = if honoured && said.stem.has_other_honorific() { said.stem.honorific() } else { said.stem };
        let mut chain = Chain::new(Last::Stem(stem), stands_for, false);
        if !said.before.is_empty() {
            chain.words = said.before.split(' ').map(|word| Korean::cut(word, stands_for)).collect();
            // 보여 주다 and 걸어 가다 are one verb.
            if said.before.ends_with(['을', '를', '이', '가', '에']) {
                chain.own = chain.words.len();
            }
        }
        chain.honoured = honoured;
        chain
    }

    /// An adjective.
    pub(crate) fn adjective(said: Said, stands_for: &[Id], honoured: bool) -> Self {
        Chain { state: true, ..Chain::verb(said, stands_for, honoured) }
    }

    /// A noun and 이다.
    pub(crate) fn is(noun: Vec<Korean>, be: Id) -> Self {
        Chain { perhaps: vec![be], ..Chain::new(Last::Is(noun), &[], true) }
    }

    /// A noun and 아니다, which stands for "not".
    pub(crate) fn is_not(noun: Vec<Korean>, be: Id, not: Id) -> Self {
        let words = mark(noun, Particle::Subject, None);
        Chain { words, perhaps: vec![be], ..Chain::new(Last::IsNot, &[not], true) }
    }

    /// As a verb, though English has an adjective: 바람이 분다고.
    pub(crate) fn into_verb(mut self) -> Self {
        self.state = false;
        self
    }

    /// As an adjective, though English has a verb: 머리가 아프다고.
    pub(crate) fn into_state(mut self) -> Self {
        self.state = true;
        self
    }

    /// 있다 of where someone is, whose honorific is 계시다.
    pub(crate) fn staying(mut self) -> Self {
        self.stays = true;
        self.state = true;
        self
    }

    /// Lets the last ending stand for one more English word.
    pub(crate) fn perhaps(mut self, ids: &[Id]) -> Self {
        self.perhaps.extend(ids);
        self
    }

    /// Goes on: this stem with an ending, then perhaps a word of its own, then the next stem.
    pub(crate) fn then(mut self, ending: Ending, extra: Option<(&str, &[Id])>, next: Stem, ids: &[Id]) -> Self {
        let Last::Stem(stem) = self.last else { return self };
        self.words.push(Korean::form(stem.with(ending), &self.stands_for));
        self.words.extend(extra.map(|(text, ids)| Korean::cut(text, ids)));
        let keeps_kind = next == NOT;
        Chain {
            last: Last::Stem(next),
            stands_for: ids.to_vec(),
            state: if keeps_kind { self.state } else { is_state(next) },
            stays: false,
            ..self
        }
    }

    /// As [`then`](Self::then), with a particle after the ending: 가기를.
    pub(crate) fn then_with(self, ending: Ending, particle: &str, next: Stem, ids: &[Id]) -> Self {
        let mut chain = self.then(ending, None, next, ids);
        if let Some(word) = chain.words.pop() {
            chain.words.push(word.and(particle));
        }
        chain
    }

    pub(crate) fn not(self, not: Id) -> Self {
        self.then(Ending::Negated, None, NOT, &[not])
    }

    /// 하고 있다.
    pub(crate) fn under_way(self, be: Id) -> Self {
        self.then(Ending::And, None, Stem::regular("있다"), &[be]).staying()
    }

    /// Puts words before the verb, after what belongs to it: 눈이 많이 오다, 키가 더 크다.
    pub(crate) fn before_verb(mut self, words: Vec<Korean>) -> Self {
        let at = self.own;
        self.words.splice(at..at, words);
        self
    }

    /// Puts words before all others.
    pub(crate) fn before_all(mut self, words: Vec<Korean>) -> Self {
        self.own += words.len();
        self.words.splice(..0, words);
        self
    }

    /// The finished words.
    pub(crate) fn end(mut self, close: Close) -> Vec<Korean> {
        let tense = match (self.by_past, self.tense) {
            (true, Tense::Present) => Tense::Past,
            (_, tense) => tense,
        };
        let (word, after) = match self.last.clone() {
            Last::Stem(stem) => self.stem_end(stem, close, tense),
            Last::Is(noun) => self.is_end(noun, close, tense),
            Last::IsNot => {
                let ending = if tense == Tense::Past { past_of_is_not(close) } else { present_of_is_not(close) };
                (Korean::new("아니", &self.stands_for).and(ending), after(close))
            }
        };
        let mut word = word;
        for id in std::mem::take(&mut self.perhaps) {
            word = word.perhaps(Some(id));
        }
        self.words.push(word);
        self.words.extend(after);
        self.words
    }

    fn stem_end(&mut self, stem: Stem, close: Close, tense: Tense) -> (Korean, Option<Korean>) {
        let stem = match (self.honoured, self.stays) {
            (true, true) if stem.dictionary() == "있다" => Stem::staying(),
            (true, _) if close != Close::Please && !stem.has_other_honorific() => stem.honorific(),
            // 드세요 is how one asks anyone to eat.
            _ if close == Close::Please => stem.honorific(),
            _ => stem,
        };
        let will = |text: &str| Some(Korean::new(text, &self.will));
        let (ending, after) = match (close, tense) {
            (Close::Polite, Tense::Present) => (Ending::Polite, None),
            (Close::Polite, Tense::Past) => (Ending::Past, None),
            (Close::Polite, Tense::Future) => (Ending::Future, will("거예요")),
            (Close::Promise, _) => (Ending::Promise, None),
            (Close::Please, _) => (Ending::Please, None),
            (Close::And, _) => (Ending::And, None),
            (Close::AndThen, Tense::Past) => (Ending::PastAnd, None),
            (Close::AndThen, Tense::Future) => (Ending::Future, will("거고")),
            (Close::AndThen, Tense::Present) => (Ending::And, None),
            (Close::But, Tense::Past) => (Ending::PastBut, None),
            (Close::But, Tense::Future) => (Ending::Future, will("거지만")),
            (Close::But, Tense::Present) => (Ending::But, None),
            (Close::Because, _) => (Ending::Because, None),
            (Close::If, _) => (Ending::If, None),
            (Close::When(_), Tense::Past) => (Ending::PastWhen, after(close)),
            (Close::When(_), _) => (Ending::Future, after(close)),
            (Close::Before(_), _) => (Ending::Noun, after(close)),
            (Close::After(_), _) => (Ending::Modifier, after(close)),
            (Close::Who, Tense::Future) => (Ending::Future, None),
            (Close::Who, Tense::Past) => (Ending::Modifier, None),
            (Close::Who, Tense::Present) if self.state && !self.stays => (Ending::Modifier, None),
            (Close::Who, Tense::Present) => (Ending::Relative, None),
            (Close::That, Tense::Past) => (Ending::PastQuote, None),
            (Close::That, Tense::Future) => (Ending::Future, will("거라고")),
            (Close::That, Tense::Present) if self.state => (Ending::QuoteState, None),
            (Close::That, Tense::Present) => (Ending::Quote, None),
            (Close::Purpose, _) => (Ending::Purpose, None),
            (Close::Hoped, _) => (Ending::Noun, None),
        };
        let mut word = Korean::form(stem.with(ending), &self.stands_for);
        if close == Close::Hoped {
            word = word.and("를");
        }
        (word, after)
    }

    fn is_end(&mut self, mut noun: Vec<Korean>, close: Close, tense: Tense) -> (Korean, Option<Korean>) {
        let past = tense == Tense::Past;
        let particle = match close {
            Close::Polite | Close::Promise | Close::Please => [Particle::Is, Particle::Was][usize::from(past)],
            Close::And | Close::AndThen | Close::Purpose | Close::Hoped => Particle::IsAnd,
            Close::But => [Particle::IsBut, Particle::WasBut][usize::from(past)],
            Close::Because => Particle::IsBecause,
            Close::If => Particle::IsIf,
            Close::When(_) | Close::Before(_) | Close::After(_) => {
                [Particle::IsWhen, Particle::WasWhen][usize::from(past)]
            }
            Close::Who => Particle::WhoIs,
            Close::That => [Particle::IsQuote, Particle::WasQuote][usize::from(past)],
        };
        let last = noun.pop().unwrap_or_default();
        self.words.extend(noun);
        (last.particle(particle), after(close))
    }
}

/// The word that follows some endings.
fn after(close: Close) -> Option<Korean> {
    match close {
        Close::When(when) => Some(Korean::new("때", &[when])),
        Close::Before(before) => Some(Korean::new("전", &[before]).and("에")),
        Close::After(after) => Some(Korean::new("후", &[after]).and("에")),
        _ => None,
    }
}

fn present_of_is_not(close: Close) -> &'static str {
    match close {
        Close::But => "지만",
        Close::Because => "라서",
        Close::If => "면",
        Close::That => "라고",
        Close::And | Close::AndThen => "고",
        _ => "에요",
    }
}

fn past_of_is_not(close: Close) -> &'static str {
    match close {
        Close::But => "었지만",
        Close::Because => "라서",
        Close::If => "면",
        Close::That => "었다고",
        Close::And | Close::AndThen => "고",
        _ => "었어요",
    }
}

fn is_state(stem: Stem) -> bool {
    matches!(stem.dictionary(), "있다" | "없다" | "싶다")
}
