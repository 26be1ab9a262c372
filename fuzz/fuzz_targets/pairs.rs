//! Any bytes as a file of sentence pairs.
//!
//!     cargo +nightly fuzz run pairs

#![no_main]

use foveal_models::translation::PairFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let pairs = PairFile::from_reader("pairs.tsv".as_ref(), bytes).expect("bytes in memory can be read");
    assert!(pairs.pairs.iter().all(|pair| !pair.source.is_empty() && !pair.target.is_empty()));
});
