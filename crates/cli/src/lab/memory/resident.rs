//! What the system says about memory: of this process, and of the machine. Linux does; elsewhere nothing is known.

use std::fs;

/// Bytes of this process in memory now.
pub fn now() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// The most there have been.
pub fn peak() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
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
