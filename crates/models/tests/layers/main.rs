//! The layers against PyTorch, against finite differences, and against their own rules.

mod copy;
mod fixture;
mod gradients;
mod pytorch;
mod rules;
#[path = "../support/mod.rs"]
mod support;
mod top_k_candidates;
mod weights;
