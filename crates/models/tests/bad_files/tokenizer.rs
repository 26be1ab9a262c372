use super::allocation::{allowed, peak};
use super::files::{folder, refused, use_tokenizer};
use foveal_models::{Result, Tokenizer};

/// A byte-level BPE of a few tokens, with a special one.
pub const BPE: &str = r#"{"version": "1.0", "truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
"padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
"added_tokens": [{"id": 6, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
"normalizer": {"type": "NFC"},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|\\w+| "}, "behavior": "Isolated", "invert": false},
{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
"post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
"decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
"model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false,
"byte_fallback": false, "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5}, "merges": ["a b", "ab c"]}}"#;

/// A WordPiece as BERT's.
pub const WORD_PIECE: &str = r###"{"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
"special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}},
"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
"vocab": {"[UNK]": 0, "[CLS]": 1, "a": 2, "##b": 3, "##c": 4, "ab": 5}}}"###;

pub fn load(json: &str) -> Result<Tokenizer> {
    let folder = folder(&[("tokenizer.json", json.as_bytes())]);
    let (tokenizer, bytes) = peak(|| Tokenizer::from_folder(folder.path()));
    // The rules that cut text into words are compiled to tables of some hundred kilobytes.
    assert!(bytes <= allowed(json.len()) + (1 << 20), "{} bytes took {bytes}", json.len());
    if let Ok(tokenizer) = &tokenizer {
        use_tokenizer(tokenizer);
    }
    tokenizer
}

#[test]
fn the_good_files_are_good_and_cut_no_text() {
    let tokenizer = load(BPE).unwrap();
    assert_eq!(tokenizer.encode("abc ab a<|endoftext|>").unwrap().ids(), [4, 5, 3, 5, 0, 6]);
    let tokenizer = load(WORD_PIECE).unwrap();
    assert_eq!(tokenizer.encode("abc ab x").unwrap().ids(), [1, 5, 4, 5, 0]);
    assert_eq!(tokenizer.special().cls, Some(1));
}

#[test]
fn vocabularies() {
    refused(load(&BPE.replace("\"ab c\"", "\"abc c\"")), &["\"abcc\", which is not in the vocabulary"]);
    refused(load(&BPE.replace("\"ab c\"", "\"ab z\"")), &["\"z\", which is not in the vocabulary"]);
    refused(load(&BPE.replace("\"ab c\"", "\"abc\"")), &["expected two tokens"]);
    refused(load(&BPE.replace("\"Ġ\": 5", "\"Ġ\": 2")), &["both have the id 2"]);
    refused(load(&BPE.replace("\"Ġ\": 5", "\"a\": 5")), &["\"a\" is there twice"]);
    refused(load(&BPE.replace("\"Ġ\": 5", "\"Ġ\": 4294967295")), &["has the id 4294967295, expected at most"]);
    refused(load(&BPE.replace("\"Ġ\": 5", "\"Ġ\": 4294967296")), &["tokenizer.json"]);
    refused(load(&BPE.replace("\"Ġ\": 5", "\"Ġ\": -5")), &["tokenizer.json"]);
    refused(load(&BPE.replace("\"id\": 6", "\"id\": 3")), &["<|endoftext|>", "cannot have the id 3"]);
    refused(load(&BPE.replace("\"id\": 6", "\"id\": 4000000000")), &["<|endoftext|>", "4000000000"]);
    refused(load(&BPE.replace("\"id\": 6", "\"id\": 9")), &["<|endoftext|>", "by its place"]);
    refused(
        load(&BPE.replace("\"continuing_subword_prefix\": \"\"", "\"continuing_subword_prefix\": \"한한\"")),
        &["merge 0"],
    );
    refused(load(&BPE.replace("\"BPE\"", "\"Unigram\"")), &["\"Unigram\", expected BPE"]);
    refused(load(&WORD_PIECE.replace("{\"[CLS]\": {", "{\"[CLR]\": {")), &["template has the token \"[CLS]\""]);
    refused(load(&BPE.replace("(?!", "(?<")), &["tokenizer.json"]);
    refused(load(""), &["tokenizer.json"]);
    refused(load("{}"), &["model"]);
    refused(load(&BPE[..BPE.len() / 2]), &["tokenizer.json"]);
}

#[test]
fn other_files() {
    let open = |files: &[(&str, &[u8])]| Tokenizer::from_folder(folder(files).path());
    refused(open(&[]), &["neither tokenizer.json, nor vocab.json and merges.txt, nor vocab.txt"]);
    let vocab: &[u8] = br#"{"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}"#;
    let good = open(&[("vocab.json", vocab), ("merges.txt", b"#version: 0.2\na b\n\n")]).unwrap();
    assert_eq!(good.encode("ab<|endoftext|>a").unwrap().ids(), [2, 3, 0]);
    assert_eq!(good.special().eos, Some(3));
    refused(open(&[("vocab.json", vocab), ("merges.txt", b"a c\n")]), &["merges.txt", "\"c\""]);
    refused(open(&[("vocab.json", vocab), ("merges.txt", b"a b c\n")]), &["merges.txt", "expected two tokens"]);
    refused(open(&[("vocab.json", vocab), ("merges.txt", b"\xff\n")]), &["merges.txt", "UTF-8"]);
    refused(open(&[("vocab.json", b"[]"), ("merges.txt", b"")]), &["vocab.json"]);
    refused(open(&[("vocab.txt", b"[UNK]\n[CLS]\n")]), &["vocab.txt", "[SEP]"]);
    refused(open(&[("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\na\na\n")]), &["\"a\" is there twice"]);
    let lower: &[u8] = br#"{"do_lower_case": "yes"}"#;
    refused(open(&[("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\n"), ("tokenizer_config.json", lower)]), &["do_lower_case"]);
}
