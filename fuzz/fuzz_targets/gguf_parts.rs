//! Any bytes as the second of two GGUF files that are one model.
//!
//!     mkdir -p corpus/gguf_parts && cp ../crates/models/tests/fixtures/checkpoints/split/*.gguf corpus/gguf_parts
//!     cargo +nightly fuzz run gguf_parts

#![no_main]

use foveal_fuzz::{folder, try_checkpoint};
use foveal_models::Checkpoint;
use libfuzzer_sys::fuzz_target;

const FIRST: &[u8] = include_bytes!("../../crates/models/tests/fixtures/checkpoints/split/llama-00001-of-00003.gguf");
const LAST: &[u8] = include_bytes!("../../crates/models/tests/fixtures/checkpoints/split/llama-00003-of-00003.gguf");

fuzz_target!(|bytes: &[u8]| {
    let names = ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"];
    let folder = folder(&[(names[0], FIRST), (names[1], bytes), (names[2], LAST)]);
    for name in names {
        if let Ok(checkpoint) = Checkpoint::open(folder.path().join(name)) {
            try_checkpoint(&checkpoint);
        }
    }
});
