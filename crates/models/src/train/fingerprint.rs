//! What a run learns from, in short: enough to tell one task from another, so that no run goes on with other data, another
//! batch or another vocabulary than it began with.
//!
//! Numbers are written out. Long data is counted and hashed,
//!
//! $$ h_0 = n, \qquad h_{i + 1} = \mathrm{mix}_{64}(h_i \oplus x_i), $$
//!
//! which tells any two apart but for a chance of 2⁻⁶⁴.

use serde::{Deserialize, Serialize};

use crate::layer::derive_seed;

/// Facts about a task, by name, in the order in which they were added.
///
/// ```
/// use foveal_models::train::Fingerprint;
///
/// let task = |text: &[u8], batch: usize| {
///     Fingerprint::default().data("text", text.iter().copied()).fact("batch", batch)
/// };
/// let (saved, now) = (task(b"to be", 8), task(b"to be", 16));
/// assert_eq!(saved.differences(&now), ["batch: 8, now 16"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint(Vec<(String, String)>);

impl Fingerprint {
    /// Adds a number, or anything short.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds the length and the hash of something long.
    #[must_use]
    pub fn data<T: Into<u64>>(self, name: &str, values: impl ExactSizeIterator<Item = T>) -> Self {
        let count = values.len();
        let hash = values.fold(count as u64, |hash, value| derive_seed(hash, &[value.into()]));
        self.fact(name, format!("{count} values with hash {hash:016x}"))
    }

    /// The facts of both.
    #[must_use]
    pub(crate) fn and(mut self, other: Fingerprint) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Where two differ, as "name: one, now other".
    pub fn differences(&self, now: &Fingerprint) -> Vec<String> {
        let find =
            |all: &Fingerprint, name: &str| all.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        let absent = |value: Option<String>| value.unwrap_or_else(|| "none".into());
        let added = now.0.iter().filter(|(name, _)| find(self, name).is_none());
        let names = self.0.iter().chain(added).map(|(name, _)| name);
        names
            .map(|name| (name, find(self, name), find(now, name)))
            .filter(|(_, saved, now)| saved != now)
            .map(|(name, saved, now)| format!("{name}: {}, now {}", absent(saved), absent(now)))
            .collect()
    }
}
