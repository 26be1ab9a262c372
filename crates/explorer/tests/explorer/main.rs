//! The explorer: its answers, its numbers, and its server over real sockets.

mod answers;
mod numbers;
mod questions;
mod server;
mod support;
