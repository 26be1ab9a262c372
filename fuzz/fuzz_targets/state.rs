//! Any bytes as the state of a training run.
//!
//!     cargo +nightly fuzz run state

#![no_main]

use foveal_fuzz::folder;
use foveal_models::layer::Random;
use foveal_models::model::{Gpt2, Gpt2Config};
use foveal_models::train::{Plan, Text, Trainer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder(&[("state.safetensors", bytes)]);
    let task = Text::new(vec![1; 40], 2, 1).expect("a text of 40 tokens");
    let sizes =
        Gpt2Config { vocabulary: 3, context: 2, width: 2, heads: 1, layers: 1, hidden: 2, ..Gpt2Config::nano() };
    let model = Gpt2::new(&sizes, &mut Random::new(1)).expect("a small model");
    let _ = Trainer::resume(&task, model, Plan::default(), &folder.path().join("state.safetensors"));
});
