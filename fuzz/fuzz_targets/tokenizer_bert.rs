//! Any bytes as BERT's vocab.txt.
//!
//!     cargo +nightly fuzz run tokenizer_bert

#![no_main]

use foveal_fuzz::{folder, try_tokenizer};
use foveal_models::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes, &[b"[UNK]\n[CLS]\n[SEP]\n", bytes].concat()] {
        let folder = folder(&[("vocab.txt", bytes)]);
        if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
            try_tokenizer(&tokenizer);
        }
    }
});
