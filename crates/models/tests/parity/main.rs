//! The models against Hugging Face transformers and PyTorch (`fixtures/make_models.py`), and against their own rules.

#[path = "../bad_files/allocation.rs"]
mod allocation;
mod bert;
mod expected;
#[path = "../support/gguf_file.rs"]
mod gguf_file;
mod gpt2;
mod heads;
mod language;
mod limits;
mod llama;
mod llama_gguf;
mod precision;
mod stored;
#[path = "../support/mod.rs"]
mod support;
mod transformer;
mod variants;
mod vit;
