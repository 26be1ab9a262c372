//! Files that are damaged or made to do harm: each gives an error that says what is wrong, none a panic, and none an
//! allocation that the file does not account for.

mod allocation;
mod config;
mod files;
mod gguf;
#[path = "../support/gguf_file.rs"]
mod gguf_file;
mod mutations;
mod refusals;
mod safetensors;
mod tokenizer;
