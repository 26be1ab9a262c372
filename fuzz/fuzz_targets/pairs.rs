//! Any bytes as a file of sentence pairs.
//!
//!     cargo +nightly fuzz run pairs

#![no_main]

use foveal_models::translation::PairFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A file without a pair is an error.
    if let Ok(found) = PairFile::from_reader("pairs.tsv".as_ref(), bytes) {
        assert!(!found.pairs.is_empty());
        assert!(found.pairs.iter().all(|pair| !pair.source.is_empty() && !pair.target.is_empty()));
    }
});
