//! Any bytes as chat_template.jinja and, after a byte 0xFF, as tokenizer_config.json, which may bring one, too.
//!
//!     cargo +nightly fuzz run chat_template

#![no_main]

use foveal_fuzz::{folder, parts};
use foveal_models::Tokenizer;
use foveal_models::tokenizer::Message;
use libfuzzer_sys::fuzz_target;

const VOCABULARY: (&str, &[u8]) = ("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nab\n##c\n");

fuzz_target!(|bytes: &[u8]| {
    let [template, config] = parts(bytes);
    let given = [("chat_template.jinja", template), ("tokenizer_config.json", config)];
    let files: Vec<(&str, &[u8])> = given.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let folder = folder(&[&[VOCABULARY], &files[..]].concat());
    if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
        let _ = tokenizer.encode_chat(&[Message::user("ab?"), Message::user("<s>한")]);
    }
});
