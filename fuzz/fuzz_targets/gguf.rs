//! Any bytes as a GGUF file: tensors, configuration, model, tokenizer.
//!
//!     mkdir -p corpus/gguf && cp ../crates/models/tests/fixtures/checkpoints/*.gguf corpus/gguf
//!     cargo +nightly fuzz run gguf

#![no_main]

use foveal_models::model::Model;
use foveal_models::{Checkpoint, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).expect("a file in it");
    if let Ok(checkpoint) = Checkpoint::open(&path) {
        let _ = checkpoint.architecture();
        for name in checkpoint.names() {
            let _ = checkpoint.tensor(name).expect("a listed tensor").to_f32();
        }
        let _ = Model::load(&checkpoint);
        if let Ok(tokenizer) = Tokenizer::of(&checkpoint) {
            let _ =
                tokenizer.encode("The capital of France. 한국의 수도").map(|encoding| tokenizer.decode(encoding.ids()));
        }
    }
});
