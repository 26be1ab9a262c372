//! Long work tells how far it is, and can be stopped.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::{Error, Result, Text};

/// How far a lab is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Steps done.
    pub done: usize,
    /// Steps in all.
    pub of: usize,
    /// What is being done.
    pub doing: Text,
}

/// Whoever watches a lab: told after each step, and able to stop it.
///
/// ```
/// use std::ops::ControlFlow;
/// use foveal_labs::Watch;
///
/// let mut steps = 0;
/// let mut count = |_: &foveal_labs::Progress| {
///     steps += 1;
///     if steps < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
/// };
/// let _watch = Watch::new(&mut count);
/// ```
pub struct Watch<'a>(Option<Told<'a>>);

/// What is called after a step.
type Told<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

impl<'a> Watch<'a> {
    /// Calls this after every step of long work; `Break` stops the lab with [`Error::Stopped`].
    pub fn new(told: Told<'a>) -> Self {
        Watch(Some(told))
    }

    /// Nobody watches.
    pub fn silent() -> Self {
        Watch(None)
    }

    /// Tells of one step.
    ///
    /// # Errors
    /// [`Error::Stopped`] if that was enough.
    pub fn tell(&mut self, progress: &Progress) -> Result<()> {
        match self.0.as_mut().map_or(ControlFlow::Continue(()), |told| told(progress)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }
}
