use serde::Serialize;

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

    pub(crate) fn code(self) -> &'static str {
        self.choose("en", "ko")
    }

    pub(crate) fn query(self) -> &'static str {
        self.choose("Query", "쿼리")
    }

    pub(crate) fn key(self) -> &'static str {
        self.choose("Key", "키")
    }

    pub(crate) fn source(self) -> &'static str {
        self.choose("Source", "원문")
    }

    pub(crate) fn target(self) -> &'static str {
        self.choose("Target", "번역문")
    }

    pub(crate) fn weight(self) -> &'static str {
        self.choose("Weight", "가중치")
    }

    pub(crate) fn of_largest(self) -> &'static str {
        self.choose("Share of each map's largest", "각 지도의 최댓값 대비")
    }

    pub(crate) fn layer(self) -> &'static str {
        self.choose("Layer", "층")
    }

    pub(crate) fn head(self) -> &'static str {
        self.choose("Head", "헤드")
    }

    pub(crate) fn difference(self) -> &'static str {
        self.choose("Difference", "차이")
    }

    pub(crate) fn image(self) -> &'static str {
        self.choose("Image", "원본")
    }

    pub(crate) fn attention(self) -> &'static str {
        self.choose("Attention", "어텐션")
    }
}
