//! Any bytes as tokenizer_config.json and, each after a byte 0xFF, special_tokens_map.json, added_tokens.json and config.json,
//! beside each kind of vocabulary.
//!
//!     cargo +nightly fuzz run tokenizer_settings

#![no_main]

use foveal_fuzz::{folder, parts, try_tokenizer};
use foveal_models::Tokenizer;
use libfuzzer_sys::fuzz_target;

const GPT2: [(&str, &[u8]); 2] =
    [("vocab.json", br#"{"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}"#), ("merges.txt", b"a b\n")];
const BERT: [(&str, &[u8]); 1] = [("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nab\n##c\n")];
const JSON: [(&str, &[u8]); 1] = [(
    "tokenizer.json",
    br###"{"version": "1.0", "added_tokens": [], "normalizer": {"type": "BertNormalizer", "clean_text": true,
    "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "ByteLevel",
    "add_prefix_space": false, "trim_offsets": true, "use_regex": true}, "decoder": null, "post_processor": null,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}}"###,
)];

fuzz_target!(|bytes: &[u8]| {
    let [config, map, added, model] = parts(bytes);
    let settings = [
        ("tokenizer_config.json", config),
        ("special_tokens_map.json", map),
        ("added_tokens.json", added),
        ("config.json", model),
    ];
    for vocabulary in [&GPT2[..], &BERT, &JSON] {
        let given = settings.iter().filter(|(_, bytes)| !bytes.is_empty());
        let files: Vec<(&str, &[u8])> = vocabulary.iter().chain(given).copied().collect();
        let folder = folder(&files);
        if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
            try_tokenizer(&tokenizer);
        }
    }
});
