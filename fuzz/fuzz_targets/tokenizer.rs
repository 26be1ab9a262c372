//! Any bytes as a tokenizer.json.
//!
//!     cargo +nightly fuzz run tokenizer

#![no_main]

use foveal_models::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tokenizer.json"), bytes).expect("a file in it");
    if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
        let _ = tokenizer.encode("The capital of France. 한국의 수도").map(|encoding| tokenizer.decode(encoding.ids()));
    }
});
