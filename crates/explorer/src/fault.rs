//! What is said when a question cannot be answered, in both languages.

use std::fmt;

use foveal_models::Error;
use foveal_view::Language;
use serde_json::json;

use crate::reply::Reply;

/// What kind of failure it is: what the page does about it depends on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// What was asked is wrong; asking again does not help.
    Request,
    /// The run is no longer kept; read the text again.
    Gone,
    /// Too much is being asked at once; ask again later.
    Busy,
    /// The question was right, and answering it failed.
    Failed,
    /// Nobody wants the answer any more.
    Stopped,
}

impl Code {
    /// As it stands in a reply.
    pub fn name(self) -> &'static str {
        match self {
            Code::Request => "request",
            Code::Gone => "gone",
            Code::Busy => "busy",
            Code::Failed | Code::Stopped => "failed",
        }
    }
}

/// A text in both languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    english: String,
    korean: String,
}

impl Text {
    /// A text in English and in Korean.
    pub fn new(english: impl Into<String>, korean: impl Into<String>) -> Self {
        Text { english: english.into(), korean: korean.into() }
    }

    /// In one of them.
    pub fn of(&self, language: Language) -> &str {
        match language {
            Language::English => &self.english,
            Language::Korean => &self.korean,
        }
    }
}

/// Why a question is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub code: Code,
    /// What is wrong and what to do.
    pub text: Text,
}

impl Fault {
    /// A wrong question.
    pub fn request(english: impl Into<String>, korean: impl Into<String>) -> Self {
        Fault { code: Code::Request, text: Text::new(english, korean) }
    }

    /// The run is not kept any more.
    pub fn gone(run: &str) -> Self {
        Fault {
            code: Code::Gone,
            text: Text::new(
                format!("the run {run:?} is no longer kept; read the text again"),
                format!("실행 {run:?}이(가) 더 이상 남아 있지 않습니다. 텍스트를 다시 읽히십시오"),
            ),
        }
    }

    /// Too much at once.
    pub fn busy() -> Self {
        Fault {
            code: Code::Busy,
            text: Text::new(
                "too many questions are waiting; ask again in a moment",
                "대기 중인 요청이 너무 많습니다. 잠시 후 다시 시도하십시오",
            ),
        }
    }

    /// Nobody waits for the answer.
    pub fn stopped() -> Self {
        Fault { code: Code::Stopped, text: Text::new("the work was stopped", "작업을 멈췄습니다") }
    }

    /// As a reply.
    pub fn reply(&self, language: Language) -> Reply {
        Reply::new(json!({ "error": { "code": self.code.name(), "message": self.text.of(language) } }))
    }
}

/// In English, for programs.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text.english)
    }
}

impl std::error::Error for Fault {}

impl From<foveal::Error> for Fault {
    fn from(error: foveal::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<foveal_view::Error> for Fault {
    fn from(error: foveal_view::Error) -> Self {
        Fault::request(error.to_string(), format!("그림을 만들 수 없습니다: {error}"))
    }
}

/// What a model refuses. Most come from what was asked; a file that cannot be read does not.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let english = error.to_string();
        let (code, korean) = match &error {
            Error::Stopped => return Fault::stopped(),
            Error::Context { tokens, limit } => (
                Code::Request,
                format!(
                    "토큰이 {tokens}개인데 모델의 위치는 {limit}개입니다. 텍스트를 줄이거나 --context로 늘려 다시 시작하십시오"
                ),
            ),
            Error::TooShort { tokens, least } => {
                (Code::Request, format!("토큰이 {tokens}개인데 {least}개 이상 필요합니다. 더 긴 텍스트를 입력하십시오"))
            }
            Error::NoText { name } => {
                (Code::Request, format!("{name}은(는) 텍스트를 읽지 않습니다. 이미지를 넣거나 다른 모델을 고르십시오"))
            }
            Error::Unfit { architecture, .. } => {
                (Code::Request, format!("{architecture} 구조의 모델은 이 일을 할 수 없습니다. 다른 모델을 고르십시오"))
            }
            Error::NoHead { layers, heads, .. } => (
                Code::Request,
                format!("그런 헤드가 없습니다. 층은 {layers}개, 층마다 헤드는 {heads}개이며 0부터 셉니다"),
            ),
            Error::NotCaptured { site, .. } => {
                (Code::Request, format!("층 {}의 어텐션은 기록되지 않았습니다. 기록된 층을 고르십시오", site.layer))
            }
            Error::NotTraced { .. } => {
                (Code::Request, "값 벡터나 W_o가 기록되지 않아 계산할 수 없습니다. 가중치를 보십시오".to_owned())
            }
            Error::CrossRollout => {
                (Code::Request, "롤아웃은 한 문장 안에서만 정의됩니다. 인코더나 디코더를 고르십시오".to_owned())
            }
            Error::Engine(_) => (Code::Request, format!("요청한 범위나 크기가 맞지 않습니다: {english}")),
            Error::Tokenizer { .. } | Error::TokenId { .. } => {
                (Code::Request, format!("토크나이저가 이 텍스트를 읽지 못합니다: {english}"))
            }
            _ => (Code::Failed, format!("모델을 실행하지 못했습니다: {english}")),
        };
        Fault { code, text: Text::new(english, korean) }
    }
}
