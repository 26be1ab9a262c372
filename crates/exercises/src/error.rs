//! What can go wrong.

use std::fmt;
use std::path::PathBuf;

use foveal_labs::Language;

/// The result of work on exercises.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no exercise of this name.
    NoExercise {
        /// The name.
        name: String,
        /// The most similar one.
        similar: &'static str,
    },
    /// A file or a program could not be used.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file of progress is not what this program writes.
    Progress {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A model, a picture or the engine.
    Lab(foveal_labs::Error),
}

impl Error {
    /// What to tell the user.
    pub fn message(&self, language: Language) -> String {
        let korean = language == Language::Korean;
        match self {
            Error::NoExercise { name, similar } if korean => {
                format!("{name} 문제는 없습니다. {similar} 문제를 찾으십니까? 전체 목록: foveal learn --list")
            }
            Error::NoExercise { name, similar } => {
                format!("there is no exercise {name}; did you mean {similar}? foveal learn --list lists them")
            }
            Error::Io { path, source } => format!("{}: {source}", path.display()),
            Error::Progress { path, message } if korean => {
                format!("{}: 진도 파일을 읽을 수 없습니다({message}). 파일을 지우거나 고쳐 주십시오", path.display())
            }
            Error::Progress { path, message } => {
                format!("{}: no file of progress ({message}); mend it, or remove it to begin anew", path.display())
            }
            Error::Lab(error) => error.message(language),
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Language::English))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Lab(error) => error.source(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($error:ty),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::Lab(error.into())
            }
        }
    )*};
}

from!(foveal_labs::Error, foveal_models::Error, foveal::Error, foveal_view::Error);
