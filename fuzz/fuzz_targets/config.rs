//! Any bytes as the config.json beside the weights of each kind of model.
//!
//!     for model in gpt2 bert llama llama3 vit norm_first; do
//!         mkdir -p corpus/config && cp ../crates/models/tests/fixtures/models/$model/config.json corpus/config/$model
//!     done
//!     cargo +nightly fuzz run config

#![no_main]

use foveal_fuzz::{folder, try_checkpoint};
use foveal_models::Checkpoint;
use libfuzzer_sys::fuzz_target;

macro_rules! weights {
    ($($model:literal),+) => {
        [$(include_bytes!(concat!("../../crates/models/tests/fixtures/models/", $model, "/model.safetensors")).as_slice()),+]
    };
}

const WEIGHTS: [&[u8]; 5] = weights!["gpt2", "bert", "llama3", "vit", "norm_first"];

fuzz_target!(|bytes: &[u8]| {
    for weights in WEIGHTS {
        let folder = folder(&[("config.json", bytes), ("model.safetensors", weights)]);
        if let Ok(checkpoint) = Checkpoint::open(folder.path()) {
            try_checkpoint(&checkpoint);
        }
    }
});
