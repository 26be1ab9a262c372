//! Where the tests find their files, and what is in them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use ndarray::ArrayD;
use safetensors::{Dtype, SafeTensors};

/// A file or folder of `tests/fixtures`.
#[allow(dead_code, reason = "every test program takes what it needs")]
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A file or folder that `make data` has fetched. None if it is not there: the test is then skipped, which it says past the
/// harness, which keeps to itself what tests that pass print.
///
/// # Panics
/// If it is not there and `FOVEAL_TEST_DATA` is `required`, as it is for `make test`: there, nothing may be skipped.
#[allow(dead_code, reason = "every test program takes what it needs")]
pub fn data(name: &str) -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || var("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let cache = var("FOVEAL_TEST_CACHE").or_else(|| Some(caches()?.join("foveal-test"))).expect("a cache directory");
    let path = cache.join(name);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("FOVEAL_TEST_DATA").is_some_and(|value| value == "required");
    assert!(!required, "{} is not there: run make data", path.display());
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    let skipped = format!("skipped: {test} needs {}, which make data fetches\n", path.display());
    // Whether anyone reads it does not matter to the test.
    let _ = std::io::stderr().write_all(skipped.as_bytes());
    None
}

/// All tensors of a committed file, as f64.
#[allow(dead_code, reason = "every test program takes what it needs")]
pub fn tensors(path: &Path) -> BTreeMap<String, ArrayD<f64>> {
    let bytes = std::fs::read(path).expect("a committed file");
    let file = SafeTensors::deserialize(&bytes).expect("a sound file");
    let tensors = file.iter().map(|(key, tensor)| {
        let data = tensor.data();
        let values: Vec<f64> = match tensor.dtype() {
            Dtype::F32 => data.as_chunks().0.iter().map(|x| f64::from(f32::from_le_bytes(*x))).collect(),
            Dtype::F64 => data.as_chunks().0.iter().map(|x| f64::from_le_bytes(*x)).collect(),
            Dtype::I64 => data.as_chunks().0.iter().map(|x| i64::from_le_bytes(*x) as f64).collect(),
            other => panic!("{key} has type {other}"),
        };
        (key.to_owned(), ArrayD::from_shape_vec(tensor.shape(), values).expect("a sound shape"))
    });
    tensors.collect()
}
