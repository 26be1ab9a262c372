//! Any bytes as a tokenizer.json.
//!
//!     cargo +nightly fuzz run tokenizer

#![no_main]

use foveal_fuzz::{folder, try_tokenizer};
use foveal_models::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder(&[("tokenizer.json", bytes)]);
    if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
        try_tokenizer(&tokenizer);
    }
});
