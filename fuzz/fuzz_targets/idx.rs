//! Any bytes as an IDX file.
//!
//!     cargo +nightly fuzz run idx

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((sizes, values)) = foveal_models::train::idx("images.idx".as_ref(), bytes) {
        assert_eq!(sizes.iter().product::<usize>(), values.len());
    }
});
