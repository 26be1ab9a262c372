//! What models are fed, with settings that are easily passed over: the ids of small tokenizers against transformers and
//! llama.cpp's rules (`fixtures/make_inputs.py`).

mod support;

use std::collections::BTreeMap;

use foveal_models::{Checkpoint, Tokenizer};
use serde::Deserialize;

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(support::fixture("inputs").join(name)).unwrap()).unwrap()
}

fn gguf(name: &str) -> Tokenizer {
    let path = support::fixture("inputs").join(format!("{name}.gguf"));
    Tokenizer::of(&Checkpoint::open(path).unwrap()).unwrap()
}

#[test]
fn ids_of_gguf_files_are_those_of_llama_cpp() {
    #[derive(Deserialize)]
    struct Expected {
        texts: Vec<String>,
        ids: BTreeMap<String, Vec<Vec<u32>>>,
    }
    let Expected { texts, ids } = read("ggufs.json");
    assert_eq!(ids.len(), 4);
    for (name, ids) in ids {
        let tokenizer = gguf(&name);
        assert_eq!(ids.len(), texts.len());
        for (text, ids) in texts.iter().zip(ids) {
            assert_eq!(tokenizer.encode(text).unwrap().ids(), ids, "{name}: {text:?}");
        }
    }
}

/// A file that is to begin every text with a token, but does not say which.
#[test]
fn the_token_around_a_text_must_be_there() {
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("model.gguf");
    let bytes = std::fs::read(support::fixture("inputs").join("llama_bpe.gguf")).unwrap();
    let at = bytes.windows(12).position(|part| part == b"bos_token_id").unwrap();
    let bytes = [&bytes[..at], b"bos_token_ix", &bytes[at + 12..]].concat();
    std::fs::write(&path, bytes).unwrap();
    let error = Tokenizer::of(&Checkpoint::open(path).unwrap()).unwrap_err().to_string();
    assert!(error.contains("tokenizer.ggml.bos_token_id is absent"), "{error}");
}

/// What `tokenizers.json` holds.
#[derive(Deserialize)]
struct Folders {
    texts: Vec<String>,
    bases: BTreeMap<String, BTreeMap<String, String>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    base: String,
    files: BTreeMap<String, String>,
    ids: Vec<Vec<u32>>,
    /// Of some, what the first tokens of each text say, then the first two, and so on.
    #[serde(default)]
    said: Vec<Vec<String>>,
}

fn folder(base: &BTreeMap<String, String>, files: &BTreeMap<String, String>) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in base.iter().chain(files) {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    Tokenizer::from_folder(folder.path()).unwrap()
}

/// Settings beside a vocabulary, and settings that contradict a `tokenizer.json`.
#[test]
fn ids_of_folders_are_those_of_transformers() {
    let Folders { texts, bases, cases } = read("tokenizers.json");
    assert!(cases.len() > 20);
    for Case { base, files, ids, .. } in cases {
        let tokenizer = folder(&bases[&base], &files);
        assert_eq!(ids.len(), texts.len());
        for (text, ids) in texts.iter().zip(ids) {
            assert_eq!(tokenizer.encode(text).unwrap().ids(), ids, "{base} with {files:?}: {text:?}");
        }
    }
}

/// Text that goes on from any token of another says what the two say together: SentencePiece's spaces are not lost.
#[test]
fn text_goes_on_as_transformers_decodes_it() {
    let Folders { bases, cases, .. } = read("tokenizers.json");
    let mut parts = 0;
    for Case { base, files, ids, said } in cases {
        let tokenizer = folder(&bases[&base], &files);
        for (ids, said) in ids.iter().zip(&said) {
            let all = said.last().unwrap();
            for cut in (0..ids.len()).filter(|&cut| !said[cut].ends_with('\u{FFFD}')) {
                let mut stream = tokenizer.stream_after(&ids[..cut]).unwrap();
                let pushed: String = ids[cut..].iter().map(|&id| stream.push(id).unwrap()).collect();
                assert_eq!(said[cut].clone() + &pushed + &stream.finish(), *all, "after {cut} of {ids:?}");
                // A token by itself, as a table of the likeliest shows it.
                if !said[cut + 1].ends_with('\u{FFFD}') && !tokenizer.is_special(ids[cut]) {
                    let described = tokenizer.describe_after(&ids[..cut], &ids[cut..=cut]).unwrap();
                    assert_eq!(described.labels()[0], said[cut + 1][said[cut].len()..], "{ids:?} at {cut}");
                    parts += usize::from(described.labels()[0].starts_with(' '));
                }
            }
        }
    }
    assert!(parts > 20, "{parts} tokens begin with a space");
}

/// The same in a GGUF file, against the whole text.
#[test]
fn text_goes_on_in_gguf_files() {
    let path = support::fixture("checkpoints/sentencepiece.gguf");
    let tokenizer = Tokenizer::of(&Checkpoint::open(path).unwrap()).unwrap();
    let text = "This is the second of two words 나는 학교에";
    let ids = tokenizer.encode(text).unwrap().ids().to_vec();
    for cut in 1..ids.len() {
        let before = tokenizer.decode(&ids[..cut]).unwrap();
        if before.ends_with('\u{FFFD}') {
            continue;
        }
        let mut stream = tokenizer.stream_after(&ids[..cut]).unwrap();
        let pushed: String = ids[cut..].iter().map(|&id| stream.push(id).unwrap()).collect();
        assert_eq!(before + &pushed + &stream.finish(), text, "after {cut}");
    }
}
