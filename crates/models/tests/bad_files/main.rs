//! Files that are damaged or made to do harm: each gives an error that says what is wrong, none a panic, and none an
//! allocation that the file does not account for.

mod allocation;
mod config;
mod files;
mod gguf;
mod mutations;
mod safetensors;
mod tokenizer;
