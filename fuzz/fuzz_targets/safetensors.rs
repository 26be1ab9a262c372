//! Any bytes as the weights of a folder.
//!
//!     cargo +nightly fuzz run safetensors

#![no_main]

use foveal_models::Checkpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("config.json"), r#"{"model_type": "gpt2"}"#).expect("a file in it");
    std::fs::write(folder.path().join("model.safetensors"), bytes).expect("a file in it");
    if let Ok(checkpoint) = Checkpoint::open(folder.path()) {
        for name in checkpoint.names() {
            let _ = checkpoint.tensor(name).expect("a listed tensor").to_f32();
        }
    }
});
