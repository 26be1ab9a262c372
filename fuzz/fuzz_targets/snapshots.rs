//! Any bytes as the snapshots of attention during training.
//!
//!     cargo +nightly fuzz run snapshots

#![no_main]

use foveal_fuzz::folder;
use foveal_models::train::Snapshots;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder(&[("snapshots.safetensors", bytes)]);
    let _ = Snapshots::load(&folder.path().join("snapshots.safetensors"));
});
