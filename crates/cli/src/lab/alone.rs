//! What one way of doing something takes in memory, measured in a process of its own: nothing that was freed before can be
//! used again and go uncounted. Linux says how much that is; elsewhere nothing is known.

use std::fs;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use crate::report::Report;

/// The bytes that `way` of an experiment takes beyond its input. The process runs the experiment with `--alone`, where it
/// answers by [`count`].
pub fn measured(experiment: &str, way: &str, tokens: usize, dim: usize, seed: u64) -> Option<u64> {
    let [tokens, dim, seed] = [tokens.to_string(), dim.to_string(), seed.to_string()];
    let arguments = ["lab", experiment, "--json", "--alone", way, "--tokens", &tokens, "--dims", &dim, "--seed", &seed];
    let done = Command::new(std::env::current_exe().ok()?).args(arguments).output().ok()?;
    serde_json::from_slice::<Value>(&done.stdout).ok()?.get("bytes")?.as_u64()
}

/// What that process does: `work` with small inputs first, so that threads are started and code is loaded before the count
/// begins, and then with those that count. What it gives back is kept until the end.
pub fn count<I, O>(inputs: impl Fn(bool) -> Result<I>, work: impl Fn(&I) -> Result<O>) -> Result<Report> {
    rayon::broadcast(|_| ());
    work(&inputs(false)?)?;
    let inputs = inputs(true)?;
    let before = field("/proc/self/status", "VmRSS:");
    let out = work(&inputs)?;
    let peak = field("/proc/self/status", "VmHWM:");
    drop(out);
    let bytes = peak.zip(before).map(|(peak, before)| peak.saturating_sub(before));
    Ok(Report { figures: json!({ "bytes": bytes }), ..Report::default() })
}

/// Bytes that can be had without pushing others out.
pub fn available() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// A line such as `VmHWM:   12345 kB`, in bytes.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}
