//! Programs with a hole.

use foveal_labs::{Bilingual, Text};
use serde::Serialize;

/// A program to finish, and what it is judged by. It is built and run by a [`Workshop`](crate::Workshop).
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Code {
    /// The file to begin with.
    pub start: Bilingual<&'static str>,
    /// A file that passes.
    #[serde(skip)]
    pub solution: &'static str,
    /// What calls the learner's function: `run(case) -> numbers`.
    #[serde(skip)]
    pub(crate) run: &'static str,
    /// Whether it uses the library, and so needs a clone of the project.
    pub engine: bool,
    /// What it is run on; not shown before it fails.
    #[serde(skip)]
    pub cases: Vec<Case>,
    /// Common mistakes.
    #[serde(skip)]
    pub mistakes: Vec<Mistaken>,
}

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// As the program reads it.
    pub input: Vec<f64>,
    /// What it should answer, by the engine.
    pub expected: Vec<f64>,
    /// The call, for people.
    pub shown: Text,
}

/// A program with a common mistake.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Mistaken {
    /// A short name.
    pub name: &'static str,
    /// The program.
    pub program: &'static str,
    /// What it answers to each case.
    pub(crate) answers: Vec<Vec<f64>>,
    /// Why that is wrong.
    pub why: Text,
}
