//! Facts told in passages, and questions about them, in English and Korean.
//!
//! An [`Exercise`] is a question, some passages and the answer, which stands in one of them as it is asked for, or in none. The
//! facts are of some forty relations (`data/*-facts.txt`): where people live and work, what they own, buy, give and hide, their
//! kin and pets, when things happen and how much they are. What makes them hard:
//!
//! - half of all names are made of syllables at random, so that hardly any comes twice: they can be copied, not learned;
//! - passages tell the same of several people, or several things of one, with pronouns after the first sentence (or, in
//!   Korean, with nothing in the subject's place);
//! - sentences of ordinary prose stand between, now and then about the same people, and whole passages are made of them;
//! - two facts may share a sentence, and some questions are written in haste, without capitals;
//! - of some questions the answer was left out, while the rest of its passage stayed.
//!
//! Names are divided by a hash: an exercise that is held out has none that others have.
//!
//! ```
//! use foveal_facts::{Facts, Language, Settings};
//! use foveal_grammar::Random;
//!
//! let exercise = Facts::new().exercise(&Settings::held_out(Language::English, 10), &mut Random::new(1));
//! assert_eq!(exercise.passages.len(), 10);
//! if let Some(answer) = &exercise.answer {
//!     assert!(exercise.passages[answer.passage].contains(&answer.text));
//! }
//! ```

#![forbid(unsafe_code)]

mod exercise;
mod names;
mod passage;
mod relation;
mod template;
mod values;

pub use self::exercise::{Answer, Exercise, Settings};
pub use self::names::is_held_out;
use self::relation::Relation;
use self::template::Template;
use self::values::Words;

/// The language of an exercise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    English,
    /// Korean.
    Korean,
}

impl Language {
    /// Both.
    pub const ALL: [Language; 2] = [Language::English, Language::Korean];

    fn of<T>(self, english: T, korean: T) -> T {
        match self {
            Language::English => english,
            Language::Korean => korean,
        }
    }
}

/// All relations and words of one language.
struct Lexicon {
    relations: Vec<Relation>,
    words: Words,
    /// Sentences that have nothing to do with the facts.
    prose: Vec<Template>,
}

/// Writes exercises.
pub struct Facts {
    english: Lexicon,
    korean: Lexicon,
}

impl Default for Facts {
    fn default() -> Self {
        Facts::new()
    }
}

impl Facts {
    /// With the relations and words of `data/`.
    pub fn new() -> Self {
        let lexicon = |[facts, words, prose]: [&'static str; 3]| Lexicon {
            relations: relation::parse(facts),
            words: Words::parse(words),
            prose: prose.lines().filter(|line| !line.starts_with('#')).map(parse_prose).collect(),
        };
        Facts {
            english: lexicon([
                include_str!("../data/english-facts.txt"),
                include_str!("../data/english-words.txt"),
                include_str!("../data/english-prose.txt"),
            ]),
            korean: lexicon([
                include_str!("../data/korean-facts.txt"),
                include_str!("../data/korean-words.txt"),
                include_str!("../data/korean-prose.txt"),
            ]),
        }
    }

    fn lexicon(&self, language: Language) -> &Lexicon {
        language.of(&self.english, &self.korean)
    }

    /// The syllables that Korean names are made of now and then: those of the standard KS X 1001, nearly all there are.
    pub fn syllables() -> impl Iterator<Item = char> {
        names::SYLLABLES.chars().filter(|c| !c.is_whitespace())
    }
}

fn parse_prose(line: &'static str) -> Template {
    Template::parse(line, &passage::PROSE.map(|(letter, _)| letter))
}
