//! What can go wrong in a lab.

use std::fmt;

use foveal_view::Language;

use crate::{Text, text};

/// The result of a lab's work.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong in a lab.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no lab of this name.
    NoLab {
        /// The name.
        name: String,
    },
    /// A knob is set to what the lab cannot do. The text says what it can.
    Knob(Text),
    /// What was asked for cannot be computed by the model that was given.
    Unsuitable(Text),
    /// Whoever watched the lab had it stopped.
    Stopped,
    /// A model, or the engine under it.
    Model(foveal_models::Error),
    /// A picture.
    View(foveal_view::Error),
}

impl Error {
    /// A knob that is set wrongly.
    pub(crate) fn knob(english: impl Into<String>, korean: impl Into<String>) -> Self {
        Error::Knob(text(english, korean))
    }

    /// What to tell the user.
    pub fn message(&self, language: Language) -> String {
        match self {
            Error::NoLab { name } => {
                let names = crate::LABS.iter().map(|lab| lab.name).collect::<Vec<_>>().join(", ");
                match language {
                    Language::English => format!("there is no experiment {name}; there are {names}"),
                    Language::Korean => format!("{name} 실험은 없습니다. 있는 실험: {names}"),
                }
            }
            Error::Knob(message) | Error::Unsuitable(message) => message.get(language).clone(),
            Error::Stopped => language.choose("the experiment was stopped", "실험을 멈추었습니다").to_owned(),
            Error::Model(error) => error.to_string(),
            Error::View(error) => error.to_string(),
        }
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
            Error::Model(error) => error.source(),
            Error::View(error) => error.source(),
            _ => None,
        }
    }
}

impl From<foveal_models::Error> for Error {
    fn from(error: foveal_models::Error) -> Self {
        Error::Model(error)
    }
}

impl From<foveal::Error> for Error {
    fn from(error: foveal::Error) -> Self {
        Error::Model(error.into())
    }
}

impl From<foveal_compute::Error> for Error {
    fn from(error: foveal_compute::Error) -> Self {
        Error::Model(error.into())
    }
}

impl From<foveal_view::Error> for Error {
    fn from(error: foveal_view::Error) -> Self {
        Error::View(error)
    }
}
