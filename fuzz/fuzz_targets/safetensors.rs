//! Any bytes as the weights of a folder.
//!
//!     cargo +nightly fuzz run safetensors

#![no_main]

use foveal_fuzz::{folder, try_checkpoint};
use foveal_models::Checkpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder(&[("config.json", br#"{"model_type": "gpt2"}"#), ("model.safetensors", bytes)]);
    if let Ok(checkpoint) = Checkpoint::open(folder.path()) {
        try_checkpoint(&checkpoint);
    }
});
