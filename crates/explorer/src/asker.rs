//! Whoever asks: in which language, whether still waiting, and where parts of the answer go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foveal_models::trace::Probe;
use foveal_view::Language;
use serde_json::json;
use std::ops::ControlFlow;

use crate::fault::{Fault, Text};
use crate::reply::Reply;

/// Says that an answer is no longer wanted. Clones say it for each other.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// The answer is no longer wanted.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is not.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends work that nobody waits for.
    ///
    /// # Errors
    /// [`Fault::stopped`] if it is not wanted.
    pub fn check(&self) -> Result<(), Fault> {
        if self.is_cancelled() { Err(Fault::stopped()) } else { Ok(()) }
    }
}

/// Progress is shown no more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// Whoever asks.
#[derive(Clone)]
pub struct Asker {
    /// The language to answer in.
    pub language: Language,
    /// Whether the answer is still wanted.
    pub cancel: Cancel,
    part: Arc<dyn Fn(Reply) + Send + Sync>,
    shown: Arc<Mutex<Option<Instant>>>,
}

impl Asker {
    /// Someone who reads this language and takes parts of an answer as they come.
    pub fn new(language: Language, part: impl Fn(Reply) + Send + Sync + 'static) -> Self {
        Asker { language, cancel: Cancel::default(), part: Arc::new(part), shown: Arc::default() }
    }

    /// Someone who waits for the answer alone.
    pub fn patient(language: Language) -> Self {
        Asker::new(language, |_| ())
    }

    /// The same, who is no longer waiting when `cancel` says so.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Self {
        Asker { cancel: cancel.clone(), ..self }
    }

    /// Hands out a part of the answer.
    pub fn part(&self, part: Reply) {
        (self.part)(part);
    }

    /// Shows how far the work is, from 0 to 1, if that was not shown a moment ago.
    pub fn progress(&self, share: f64, what: &Text) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_none_or(|at| at.elapsed() >= PAUSE) {
            *shown = Some(Instant::now());
            self.part(Reply::new(json!({ "progress": share.clamp(0.0, 1.0), "what": what.of(self.language) })));
        }
    }

    /// A probe that stops a run as soon as nobody waits for it.
    pub fn stopping(&self, probe: Probe) -> Probe {
        let cancel = self.cancel.clone();
        probe.on_layer(move |_| if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The same, showing how many of `layers` layers have run.
    pub fn counting(&self, probe: Probe, layers: usize) -> Probe {
        let (asker, done) = (self.clone(), Mutex::new(0));
        probe.on_layer(move |_| {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            let n = *done;
            asker.progress(
                n as f64 / layers.max(1) as f64,
                &Text::new(format!("layer {n} of {layers}"), format!("{layers}개 층 중 {n}번째")),
            );
            if asker.cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }
}
