//! The labs, in the order of a course.

mod by_hand;
mod causal;
mod complexity;
mod configurations;
mod family;
mod heads;
mod memory;
mod passages;
mod patterns;
mod positions;
mod scale;
mod self_cross;
mod train_heads;
mod train_unmasked;

use serde::Serialize;

use crate::{Bilingual, Error, Knob, Knobs, Report, Result, Watch};

/// An experiment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lab {
    /// By which it is asked for.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub title: Bilingual<&'static str>,
    /// What there is to learn, in two or three sentences.
    pub summary: Bilingual<&'static str>,
    /// What can be turned.
    pub knobs: &'static [Knob],
    #[serde(skip)]
    work: fn(&Knobs, Watch) -> Result<Report>,
}

impl Lab {
    /// Runs it.
    ///
    /// # Errors
    /// If a knob is turned to what the lab cannot do, if a model cannot be opened, or if it was stopped.
    pub fn run(&self, knobs: &Knobs, watch: Watch) -> Result<Report> {
        knobs.check(self)?;
        (self.work)(knobs, watch)
    }
}

/// In the order of a course.
pub const LABS: [Lab; 14] = [
    by_hand::LAB,
    scale::LAB,
    causal::LAB,
    train_unmasked::LAB,
    heads::LAB,
    train_heads::LAB,
    self_cross::LAB,
    memory::LAB,
    complexity::LAB,
    family::LAB,
    positions::LAB,
    patterns::LAB,
    passages::LAB,
    configurations::LAB,
];

/// The lab of this name.
///
/// # Errors
/// If there is none; the message lists those that there are.
pub fn find(name: &str) -> Result<&'static Lab> {
    LABS.iter().find(|lab| lab.name == name).ok_or_else(|| Error::NoLab { name: name.to_owned() })
}
