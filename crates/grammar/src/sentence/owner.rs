//! What says whose or which: the, this, my, the teacher's.

use super::determiner::Determiner;
use super::noun_phrase::a_or_an;
use super::writer::{English, Id, Korean, Phrase, Writer};
use crate::korean::Particle;
use crate::lexicon::{Countable, Noun, PRONOUNS, Pronoun, of_kind};
use crate::pair::Part;

/// A determiner in both languages.
#[derive(Default)]
pub(crate) struct Determined {
    pub(crate) english: Vec<English>,
    pub(crate) korean: Vec<Korean>,
    pub(crate) counted: Vec<Korean>,
    /// The owner, where Korean leaves it out.
    pub(crate) dropped: Option<Id>,
    /// Whether the owner is a woman: her sister is 언니.
    pub(crate) by_woman: bool,
}

impl Writer<'_> {
    /// What stands before a noun. `next` is the English word that follows, and the words of the noun.
    pub(crate) fn determined(
        &mut self,
        noun: &'static Noun,
        determiner: Determiner,
        plural: bool,
        (next, head): (&str, &[Id]),
    ) -> Option<Determined> {
        let mut said = Determined { by_woman: self.woman, ..Determined::default() };
        let many = plural || noun.countable == Countable::Pair;
        match determiner {
            Determiner::None | Determiner::Number | Determiner::Measure => {}
            Determiner::A => said.english.push(a_or_an(self, next)),
            Determiner::The => said.english.push(self.word("the")),
            Determiner::This | Determiner::That => {
                let (one, more, korean) =
                    if determiner == Determiner::This { ("this", "these", "이") } else { ("that", "those", "저") };
                let Phrase { english, korean } = self.simple(if many { more } else { one }, korean, Part::Pronoun);
                (said.english, said.korean) = (english, korean);
            }
            Determiner::Many => {
                let text = self.choices.weighted(&[(3, "many"), (1, "a lot of")])?;
                let english = self.say_all(text, Part::Number);
                said.korean.push(Korean::new("많", &super::writer::ids(&english)).and("은"));
                said.english = english;
            }
            Determiner::Some => {
                let some = self.say("some", Part::Number);
                if noun.countable == Countable::Mass {
                    said.counted.push(Korean::new("조금", &[some.id]));
                } else {
                    said.counted.push(Korean::new("몇", &[some.id]));
                    said.counted.push(Korean::new(noun.counter, head));
                }
                said.english.push(some);
            }
            Determiner::All | Determiner::Every => {
                let text = if determiner == Determiner::All { "all" } else { "every" };
                let Phrase { english, korean } = self.simple(text, "모든", Part::Number);
                (said.english, said.korean) = (english, korean);
                if determiner == Determiner::All {
                    said.english.push(self.word("the"));
                }
            }
            Determiner::Owner => self.owned(noun, &mut said)?,
            Determiner::OwnedBy => {
                let Phrase { english, korean } = self.owning_phrase(&mut said)?;
                (said.english, said.korean) = (english, korean);
            }
        }
        Some(said)
    }

    /// My, your, his. What is one's own is said without an owner: 저는 지갑을 잃어버렸어요.
    fn owned(&mut self, noun: &Noun, said: &mut Determined) -> Option<()> {
        let own = self.speaker.filter(|_| self.own || self.choices.percent(60));
        if self.own && own.is_none() {
            return None;
        }
        let pronoun = match own {
            Some(own) if own.subject != "it" => own,
            _ => {
                let number = self.choices.one_of(&[0, 0, 1, 2, 3, 4, 5])?;
                &PRONOUNS[number]
            }
        };
        let same = self.speaker.is_some_and(|speaker| speaker.subject == pronoun.subject);
        // Two different men would both be "his".
        if same && pronoun.is_third() && own.is_none() {
            return None;
        }
        said.by_woman = pronoun.subject == "she";
        let word = self.say(pronoun.owner, Part::Pronoun);
        if same {
            said.dropped = Some(word.id);
        } else {
            said.korean.push(owner(pronoun, noun, word.id));
        }
        said.english.push(word);
        Some(())
    }

    /// Minsu's, the teacher's, my friend's.
    fn owning_phrase(&mut self, said: &mut Determined) -> Option<Phrase> {
        let mut phrase = match self.choices.weighted(&[(4, 0), (3, 1), (2, 2)])? {
            0 => {
                let name = self.name()?;
                said.by_woman = name.female;
                name.bare()
            }
            of_whom => {
                let noun = self.noun(of_kind(if of_whom == 1 { "job" } else { "shared" }))?;
                if !noun.is("person") || noun.womans.is_some() || noun.countable == Countable::Pair {
                    return None;
                }
                said.by_woman = false;
                let mut before = if of_whom == 1 {
                    Phrase { english: vec![self.word("the")], korean: Vec::new() }
                } else {
                    let word = self.say("my", Part::Pronoun);
                    Phrase { korean: vec![owner(&PRONOUNS[0], noun, word.id)], english: vec![word] }
                };
                let Phrase { english, korean } = self.simple(noun.english, noun.korean, Part::Noun);
                before.english.extend(english);
                before.korean.extend(korean);
                before
            }
        };
        let (english, korean) = (phrase.english.pop()?.owning(), phrase.korean.pop()?);
        phrase.korean.push(korean.particle(Particle::Of).of(english.id));
        phrase.english.push(english);
        Some(phrase)
    }
}

/// 제, 우리, 그의. Families and homes are shared: "my mother" is 우리 어머니.
pub(crate) fn owner(pronoun: &Pronoun, noun: &Noun, id: Id) -> Korean {
    match pronoun.short {
        Some("제") if noun.is("shared") => Korean::new("우리", &[id]),
        Some(short) => Korean::new(short, &[id]),
        None => Korean::new(pronoun.korean, &[id]).particle(Particle::Of).perhaps(Some(id)),
    }
}
