//! The same in English and in Korean.

use foveal_view::Language;
use serde::Serialize;

/// The same thing in both languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bilingual<T> {
    /// English.
    pub en: T,
    /// Korean.
    pub ko: T,
}

/// A text in both languages.
pub type Text = Bilingual<String>;

/// A text in both languages.
pub fn text(english: impl Into<String>, korean: impl Into<String>) -> Text {
    Text { en: english.into(), ko: korean.into() }
}

impl<T> Bilingual<T> {
    /// Made once for each language.
    ///
    /// # Errors
    /// If making it fails.
    pub fn build<E>(mut make: impl FnMut(Language) -> Result<T, E>) -> Result<Self, E> {
        Ok(Bilingual { en: make(Language::English)?, ko: make(Language::Korean)? })
    }

    /// In one of them.
    pub fn get(&self, language: Language) -> &T {
        language.choose(&self.en, &self.ko)
    }

    /// Both, changed alike.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> Bilingual<U> {
        Bilingual { en: change(self.en), ko: change(self.ko) }
    }
}

impl Text {
    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.ko.is_empty()
    }
}

/// What reads the same in both: numbers, names, formulas.
impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// What reads the same in both: numbers, names, formulas.
impl From<String> for Text {
    fn from(text: String) -> Self {
        Text { en: text.clone(), ko: text }
    }
}

impl From<Bilingual<&str>> for Text {
    fn from(text: Bilingual<&str>) -> Self {
        text.map(str::to_owned)
    }
}
