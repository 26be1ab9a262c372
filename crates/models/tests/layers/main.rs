//! The layers against PyTorch, against finite differences, and against their own rules.

mod fixture;
mod gradients;
mod likeliest;
mod pytorch;
mod rules;
#[path = "../support/mod.rs"]
mod support;
mod weights;
