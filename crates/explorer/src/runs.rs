//! The runs that are kept: the last ones used, within a bound in bytes.

use std::sync::Arc;

use crate::fault::Fault;
use crate::run::Run;

/// Runs, the newest at the end.
#[derive(Default)]
pub struct Runs {
    kept: Vec<Arc<Run>>,
    limit: usize,
}

impl Runs {
    /// Keeps at most this many bytes, and always the newest run.
    pub fn new(limit: usize) -> Self {
        Runs { kept: Vec::new(), limit }
    }

    /// The run of this id, which becomes the newest.
    ///
    /// # Errors
    /// If it is not kept.
    pub fn get(&mut self, id: &str) -> Result<Arc<Run>, Fault> {
        let at = self.kept.iter().position(|run| run.id == id).ok_or_else(|| Fault::gone(id))?;
        let run = self.kept.remove(at);
        self.kept.push(run.clone());
        Ok(run)
    }

    /// Keeps one more, and forgets those that have not been used for longest if there is no room.
    pub fn insert(&mut self, run: Arc<Run>) {
        self.kept.retain(|other| other.id != run.id);
        self.kept.push(run);
        self.shrink();
    }

    /// Forgets what there is no room for. Runs grow: what was computed from them is kept with them.
    pub fn shrink(&mut self) {
        while self.kept.len() > 1 && self.bytes() > self.limit {
            self.kept.remove(0);
        }
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(|run| run.bytes()).sum()
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> &[Arc<Run>] {
        &self.kept
    }
}
