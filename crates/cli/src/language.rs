//! English or Korean.

use clap::ValueEnum;

/// The language that a user reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// English
    En,
    /// 한국어
    Ko,
}

impl Language {
    /// The one asked for, else that of the locale.
    pub fn choose(asked: Option<Language>) -> Self {
        let locale = || {
            ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
        };
        asked.unwrap_or_else(|| match locale() {
            Some(locale) if locale.starts_with("ko") => Language::Ko,
            _ => Language::En,
        })
    }

    /// One of two texts.
    pub fn of<'a>(self, english: &'a str, korean: &'a str) -> &'a str {
        match self {
            Language::En => english,
            Language::Ko => korean,
        }
    }
}

impl From<Language> for foveal_view::Language {
    fn from(language: Language) -> Self {
        match language {
            Language::En => foveal_view::Language::English,
            Language::Ko => foveal_view::Language::Korean,
        }
    }
}
