//! Folders and files with given bytes.

use std::path::PathBuf;

use foveal_models::{Checkpoint, Error, Result, Tokenizer};
use tempfile::TempDir;

use super::allocation::{allowed, peak};

pub const CONFIG: &str = r#"{"model_type": "llama"}"#;

/// A folder with these files.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// A safetensors file with this header and data.
pub fn safetensors(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    [&(header.len() as u64).to_le_bytes()[..], header, data].concat()
}

/// Opens a folder with these weights, reads all of them, and checks what that took.
pub fn open_safetensors(bytes: &[u8]) -> Result<()> {
    let folder = folder(&[("config.json", CONFIG.as_bytes()), ("model.safetensors", bytes)]);
    open_and_read(folder.path().to_path_buf(), bytes.len())
}

/// The same for a GGUF file, and its tokenizer if it has one.
pub fn open_gguf(bytes: &[u8]) -> Result<()> {
    let folder = folder(&[("model.gguf", bytes)]);
    open_and_read(folder.path().join("model.gguf"), bytes.len())
}

fn open_and_read(path: PathBuf, length: usize) -> Result<()> {
    let (opened, bytes) = peak(|| Checkpoint::open(path));
    assert!(bytes <= allowed(length), "opening {length} bytes took {bytes}");
    let checkpoint = opened?;
    let _ = checkpoint.architecture();
    let names: Vec<String> = checkpoint.names().map(str::to_owned).collect();
    for name in names {
        let tensor = checkpoint.tensor(&name).unwrap();
        let (read, bytes) = peak(|| tensor.to_f32());
        // The smallest type has 4.5 bits a number, and f32 has 32; reordering holds two copies. The first call starts
        // the threads.
        assert!(bytes <= 16 * tensor.bytes().len() + 64 * 1024, "{name}: {} bytes took {bytes}", tensor.bytes().len());
        if let Ok(array) = read {
            assert_eq!(array.shape(), tensor.shape());
        }
    }
    let (tokenizer, bytes) = peak(|| Tokenizer::of(&checkpoint));
    assert!(bytes <= allowed(length) + (1 << 20), "the tokenizer of {length} bytes took {bytes}");
    if let Ok(tokenizer) = tokenizer {
        use_tokenizer(&tokenizer);
    }
    Ok(())
}

/// Encodes, decodes and labels; errors are allowed, panics are not.
pub fn use_tokenizer(tokenizer: &Tokenizer) {
    for text in ["", "abc ab a", "한국 😀", "a\u{0}b  c\n", "[MASK]<|endoftext|>"] {
        if let Ok(encoding) = tokenizer.encode(text) {
            assert_eq!(encoding.labels().len(), encoding.len());
            let _ = tokenizer.decode(encoding.ids());
            let _ = tokenizer.describe(encoding.ids());
        }
    }
    for id in [0, 1, 7, 1 << 20, u32::MAX] {
        let _ = tokenizer.decode(&[id, id]);
    }
}

/// Asserts that a result is an error whose text has every one of `parts`.
#[track_caller]
pub fn refused<T>(result: Result<T>, parts: &[&str]) -> Error {
    let Err(error) = result else { panic!("accepted, expected an error with {parts:?}") };
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text:?} does not say {parts:?}");
    error
}
