//! Verbs over verbs: wants to go, has to go, likes going.

use std::sync::LazyLock;

use super::chain::Chain;
use super::writer::Id;
use crate::korean::{Ending, Stem};
use crate::lexicon::VerbForms;

/// A verb that another one follows.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    forms: VerbForms,
    /// Followed by -ing rather than "to".
    pub(crate) ing: bool,
    how: How,
    /// How often it is chosen.
    pub(crate) weight: usize,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// 고 싶다, of others 고 싶어 하다.
    Wish,
    /// 어야 하다; not: 지 않아도 되다.
    Duty,
    /// 는 것을, and a verb.
    Thing(Stem),
    /// 기, perhaps a particle, and a verb.
    Noun(&'static str, Stem),
}

static OVER: LazyLock<Vec<Over>> = LazyLock::new(|| {
    let over = |english, ing, how, weight| Over { forms: VerbForms::of(english, ""), ing, how, weight };
    let like = How::Thing(Stem::regular("좋아하다"));
    let hate = How::Thing(Stem::regular("싫어하다"));
    let begin = How::Noun("", Stem::regular("시작하다"));
    vec![
        over("want", false, How::Wish, 12),
        over("have", false, How::Duty, 8),
        over("need", false, How::Duty, 3),
        over("like", false, like, 3),
        over("like", true, like, 3),
        over("enjoy", true, How::Thing(Stem::regular("즐기다")), 1),
        over("hate", false, hate, 1),
        over("hate", true, hate, 1),
        over("start", false, begin, 1),
        over("begin", false, begin, 1),
        over("start", true, begin, 1),
        over("decide", false, How::Noun("로", Stem::regular("결정하다")), 2),
        over("promise", false, How::Noun("로", Stem::regular("약속하다")), 1),
        over("hope", false, How::Noun("를", Stem::regular("바라다")), 1),
        over("forget", false, How::Thing(Stem::regular("잊어버리다")), 1),
        over("stop", true, How::Thing(Stem::regular("멈추다")), 1),
        over("learn", false, How::Thing(Stem::regular("배우다")), 1),
    ]
});

impl Over {
    /// All of them.
    pub(crate) fn all() -> &'static [Over] {
        &OVER
    }

    pub(crate) fn forms(&self) -> &VerbForms {
        &self.forms
    }

    /// Whether it is said in the present: one decided rather than decides.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.how, How::Wish | How::Duty)
            || matches!(self.forms.base.as_str(), "like" | "enjoy" | "hate" | "hope")
    }

    /// Whether it is how one feels, of which no future is told.
    pub(crate) fn is_feeling(&self) -> bool {
        matches!(self.forms.base.as_str(), "like" | "enjoy" | "hate" | "hope")
    }

    /// The Korean of it after that of the verb, and whether "not" is in it already.
    pub(crate) fn say(&self, chain: Chain, id: Id, not: Option<Id>, third: bool) -> (Chain, bool) {
        let said = match (self.how, not) {
            (How::Wish, _) => {
                let wish = chain.then(Ending::And, None, Stem::regular("싶다"), &[id]);
                if third { wish.then(Ending::Joined, None, Stem::regular("하다"), &[id]) } else { wish }
            }
            (How::Duty, None) => chain.then(Ending::Must, None, Stem::regular("하다"), &[id]),
            (How::Duty, Some(not)) => {
                let idle = chain.not(not).then(Ending::May, None, Stem::regular("되다"), &[id]);
                return (idle, true);
            }
            (How::Thing(stem), _) => chain.then(Ending::Relative, Some(("것을", &[id])), stem, &[id]),
            (How::Noun("", stem), _) => chain.then(Ending::Noun, None, stem, &[id]),
            (How::Noun(particle, stem), _) => chain.then_with(Ending::Noun, particle, stem, &[id]),
        };
        (said, false)
    }
}
