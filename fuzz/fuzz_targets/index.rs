//! Any bytes as the index of weights in two files.
//!
//!     cargo +nightly fuzz run index

#![no_main]

use foveal_fuzz::{folder, try_checkpoint};
use foveal_models::Checkpoint;
use libfuzzer_sys::fuzz_target;

/// A file with one tensor of this name.
fn shard(name: &str) -> Vec<u8> {
    let header = format!(r#"{{"{name}": {{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}}}"#);
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let folder = folder(&[
        ("config.json", br#"{"model_type": "gpt2"}"#),
        ("model.safetensors.index.json", bytes),
        ("1.safetensors", &shard("a")),
        ("2.safetensors", &shard("b")),
    ]);
    if let Ok(checkpoint) = Checkpoint::open(folder.path()) {
        try_checkpoint(&checkpoint);
    }
});
