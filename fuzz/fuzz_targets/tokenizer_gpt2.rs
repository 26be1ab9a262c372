//! Any bytes as GPT-2's vocab.json and, after a byte 0xFF, merges.txt.
//!
//!     cargo +nightly fuzz run tokenizer_gpt2

#![no_main]

use foveal_fuzz::{folder, parts, try_tokenizer};
use foveal_models::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [vocabulary, merges] = parts(bytes);
    let folder = folder(&[("vocab.json", vocabulary), ("merges.txt", merges)]);
    if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
        try_tokenizer(&tokenizer);
    }
});
