//! Any bytes as a GGUF file: tensors, configuration, model, tokenizer.
//!
//!     mkdir -p corpus/gguf && cp ../crates/models/tests/fixtures/{checkpoints,inputs}/*.gguf corpus/gguf
//!     cargo +nightly fuzz run gguf

#![no_main]

use foveal_fuzz::{folder, try_checkpoint, try_tokenizer};
use foveal_models::{Checkpoint, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder(&[("model.gguf", bytes)]);
    if let Ok(checkpoint) = Checkpoint::open(folder.path().join("model.gguf")) {
        try_checkpoint(&checkpoint);
        if let Ok(tokenizer) = Tokenizer::of(&checkpoint) {
            try_tokenizer(&tokenizer);
        }
    }
});
