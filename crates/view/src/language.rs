use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The table of messages that pictures, the page and its program share: words, and terms with the lessons that explain them.
pub(crate) const MESSAGES: &str = include_str!("../page/messages.json");

#[derive(Deserialize)]
struct Table {
    words: HashMap<String, [String; 2]>,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(MESSAGES).expect("the table of messages is JSON"));

/// The language of the words that a picture adds to the caller's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Korean.
    Korean,
}

impl Language {
    /// One of two texts.
    #[must_use]
    pub const fn choose<T: Copy>(self, english: T, korean: T) -> T {
        match self {
            Language::English => english,
            Language::Korean => korean,
        }
    }

    /// A message of the table in this language.
    fn word(self, name: &str) -> &'static str {
        &TABLE.words[name][self as usize]
    }

    pub(crate) fn code(self) -> &'static str {
        self.choose("en", "ko")
    }

    pub(crate) fn query(self) -> &'static str {
        self.word("query")
    }

    pub(crate) fn key(self) -> &'static str {
        self.word("key")
    }

    pub(crate) fn source(self) -> &'static str {
        self.word("source")
    }

    pub(crate) fn target(self) -> &'static str {
        self.word("target")
    }

    pub(crate) fn weight(self) -> &'static str {
        self.word("weight")
    }

    pub(crate) fn of_largest(self) -> &'static str {
        self.choose("Share of each map's largest", "각 지도의 최댓값 대비")
    }

    pub(crate) fn layer(self) -> &'static str {
        self.word("layer")
    }

    pub(crate) fn head(self) -> &'static str {
        self.word("head")
    }

    pub(crate) fn difference(self) -> &'static str {
        self.word("difference")
    }

    pub(crate) fn image(self) -> &'static str {
        self.word("image")
    }

    pub(crate) fn attention(self) -> &'static str {
        self.word("attention")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_there_in_both_languages() {
        #[derive(Deserialize)]
        struct All {
            words: HashMap<String, [String; 2]>,
            terms: HashMap<String, Term>,
        }
        #[derive(Deserialize)]
        struct Term {
            lesson: String,
            text: [String; 2],
        }
        let gaps = |text: &str| {
            let mut gaps: Vec<String> =
                text.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0.to_owned())).collect();
            gaps.sort();
            gaps.dedup();
            gaps
        };
        let all: All = serde_json::from_str(MESSAGES).unwrap();
        let hangul = |text: &str| text.chars().any(|c| ('가'..='힣').contains(&c));
        for (name, [english, korean]) in &all.words {
            assert_eq!(gaps(english), gaps(korean), "{name}");
            assert!(!hangul(english) || name == "other_language", "{name}");
        }
        for (name, term) in &all.terms {
            assert!(!hangul(&term.text[0]) && hangul(&term.text[1]), "{name}");
            let (number, slug) = term.lesson.split_once('-').unwrap();
            assert!(number.len() == 2 && number.parse::<u8>().is_ok() && !slug.is_empty(), "{name}: {}", term.lesson);
        }
        assert_eq!((Language::English.query(), Language::Korean.query()), ("Query", "쿼리"));
    }
}
