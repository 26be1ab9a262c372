//! Training against PyTorch, and its own promises: the same run on any number of threads, and after an interruption.

mod drops;
mod pytorch;
mod resuming;
mod runs;
mod snapshots;
#[path = "../support/mod.rs"]
mod support;
