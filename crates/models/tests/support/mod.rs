//! Where the tests find their files.

use std::path::PathBuf;

/// A file or folder of `tests/fixtures`.
#[allow(dead_code)]
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A file or folder that `make data` has fetched.
///
/// # Panics
/// If it is not there.
#[allow(dead_code)]
pub fn data(name: &str) -> PathBuf {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || var("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let cache = var("FOVEAL_TEST_CACHE").or_else(|| Some(caches()?.join("foveal-test"))).expect("a cache directory");
    let path = cache.join(name);
    assert!(path.exists(), "{} is not there: run make data", path.display());
    path
}
