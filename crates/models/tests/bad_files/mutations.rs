//! Good files with random damage: bytes overwritten, cut out, doubled, and numbers put to their extremes.

use proptest::prelude::*;

use super::files::{folder, open_gguf, open_safetensors, use_tokenizer};
use super::{gguf, safetensors, tokenizer};
use foveal_models::model::{Model, Preprocessor, Size};
use foveal_models::{Checkpoint, Config, Tokenizer};

#[derive(Clone, Debug)]
enum Damage {
    Byte(u8),
    Number(u64),
    Small(u32),
    Cut(usize),
    Double(usize),
    End,
}

fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, Damage)>> {
    let number = prop_oneof![
        Just(u64::MAX),
        Just(u64::MAX - 7),
        Just(1 << 63),
        Just(1 << 61),
        Just(1 << 40),
        Just(1 << 31),
        0..300u64
    ];
    let kind = prop_oneof![
        4 => any::<u8>().prop_map(Damage::Byte),
        4 => number.clone().prop_map(Damage::Number),
        4 => number.prop_map(|n| Damage::Small(n as u32)),
        1 => (1..40usize).prop_map(Damage::Cut),
        1 => (1..40usize).prop_map(Damage::Double),
        1 => Just(Damage::End),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), kind), 1..5)
}

fn apply(mut bytes: Vec<u8>, damages: &[(prop::sample::Index, Damage)]) -> Vec<u8> {
    for (at, damage) in damages {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        let to = |length: usize| (at + length).min(bytes.len());
        match damage {
            Damage::Byte(byte) => bytes[at] = *byte,
            Damage::Number(number) => {
                let end = to(8);
                bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
            }
            Damage::Small(number) => {
                let end = to(4);
                bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
            }
            Damage::Cut(length) => drop(bytes.drain(at..to(*length))),
            Damage::Double(length) => {
                let part = bytes[at..to(*length)].to_vec();
                bytes.splice(at..at, part);
            }
            Damage::End => bytes.truncate(at),
        }
    }
    bytes
}

/// Text takes other damage than numbers: characters, and values that are valid where they stand.
fn apply_to_text(text: &str, damages: &[(prop::sample::Index, Damage)]) -> String {
    const PARTS: [&str; 16] = [
        "null",
        "0",
        "-1",
        "1e99",
        "\"\"",
        "[]",
        "{}",
        "true",
        "4294967295",
        "\"a\"",
        ",",
        "}",
        "\\u0000",
        "한",
        "\"type\": \"BPE\",",
        "\"prefix\"",
    ];
    let mut text = text.to_owned();
    for (at, damage) in damages {
        if text.is_empty() {
            break;
        }
        let boundary = |at: usize| (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
        let at = boundary(at.index(text.len()));
        let end = |length: usize| boundary((at + length).min(text.len()));
        match damage {
            Damage::Byte(byte) => text.replace_range(at..end(1), &char::from(byte % 128).to_string()),
            Damage::Number(number) => {
                // The value after the next colon.
                let Some(colon) = text[at..].find(": ").map(|colon| at + colon + 2) else { continue };
                let end = text[colon..].find([',', '}', ']']).map_or(text.len(), |end| colon + end);
                text.replace_range(colon..end, PARTS[(number % 16) as usize]);
            }
            Damage::Small(number) => text.insert_str(at, PARTS[(number % 16) as usize]),
            Damage::Cut(length) => text.replace_range(at..end(*length), ""),
            Damage::Double(length) => {
                let part = text[at..end(*length)].to_owned();
                text.insert_str(at, &part);
            }
            Damage::End => text.truncate(at),
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_safetensors(damages in damage()) {
        let _ = open_safetensors(&apply(safetensors::good(), &damages));
        let header = apply_to_text(safetensors::HEADER, &damages);
        let _ = open_safetensors(&super::files::safetensors(header, &[0; 22]));
    }

    #[test]
    fn of_gguf(damages in damage()) {
        let _ = open_gguf(&apply(gguf::good().bytes(), &damages));
    }

    #[test]
    fn of_tokenizers(damages in damage()) {
        let _ = tokenizer::load(&apply_to_text(tokenizer::BPE, &damages));
        let _ = tokenizer::load(&apply_to_text(tokenizer::WORD_PIECE, &damages));
    }

    #[test]
    fn of_settings_of_tokenizers(damages in damage()) {
        let settings = apply_to_text(SETTINGS, &damages);
        let added = apply_to_text(r#"{"<|user|>": 4, "ab c": 5}"#, &damages);
        let vocabulary: [&[(&str, &[u8])]; 3] = [
            &[("vocab.json", br#"{"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}"#), ("merges.txt", b"a b\n")],
            &[("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\na\n")],
            &[("tokenizer.json", tokenizer::WORD_PIECE.as_bytes())],
        ];
        for vocabulary in vocabulary {
            let beside = [("tokenizer_config.json", settings.as_bytes()), ("added_tokens.json", added.as_bytes())];
            let folder = folder(&[vocabulary, &beside].concat());
            if let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) {
                use_tokenizer(&tokenizer);
            }
        }
    }

    #[test]
    fn of_preprocessors(damages in damage()) {
        let json = apply_to_text(STEPS, &damages);
        if let Ok(steps) = Config::from_json("p", json.as_bytes()).and_then(|config| Preprocessor::read(&config)) {
            let edge = match steps.resize {
                Some((Size::Exact([height, width]), _)) => height.max(width),
                Some((Size::ShortestEdge(edge), _)) => edge,
                _ => 0,
            };
            // Larger pictures take long, and show nothing more.
            if edge.max(steps.crop.map_or(0, |[height, width]| height.max(width))) <= 300 {
                let picture = ndarray::Array3::from_shape_fn((3, 5, 3), |(y, x, c)| (40 * y + 9 * x + c) as u8);
                prop_assert_eq!(steps.values(&steps.fit(&picture)).shape()[1], 3);
            }
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = open_safetensors(&bytes);
        let _ = open_gguf(&bytes);
        let _ = open_gguf(&[b"GGUF\x03\0\0\0", &bytes[..]].concat());
    }
}

const SETTINGS: &str = r#"{"tokenizer_class": "BertTokenizer", "do_lower_case": false, "strip_accents": true,
"tokenize_chinese_chars": false, "add_prefix_space": true, "add_bos_token": true, "add_eos_token": true, "bos_token": "a",
"added_tokens_decoder": {"4": {"content": "<x>", "lstrip": false, "rstrip": false, "normalized": false, "single_word": false,
"special": true}}}"#;

const STEPS: &str = r#"{"image_processor_type": "DeiTImageProcessor", "do_resize": true, "size": {"height": 9, "width": 7},
"resample": 3, "do_center_crop": true, "crop_size": {"height": 4, "width": 11}, "do_rescale": true, "rescale_factor": 0.01,
"do_normalize": true, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.6, 0.7]}"#;

/// The configuration of each kind of model, damaged, beside its weights.
#[test]
fn of_configurations() {
    let models = ["models/gpt2", "models/bert", "models/llama3", "models/vit", "models/norm_first", "variants/rope"];
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let read = |model: &str, name: &str| std::fs::read(fixtures.join(model).join(name)).unwrap();
    let files =
        models.map(|model| (String::from_utf8(read(model, "config.json")).unwrap(), read(model, "model.safetensors")));
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(damages in damage(), which in 0..models.len())| {
        let (config, weights) = &files[which];
        let damaged = apply_to_text(config, &damages);
        let folder = folder(&[("config.json", damaged.as_bytes()), ("model.safetensors", weights)]);
        let _ = Checkpoint::open(folder.path()).and_then(|checkpoint| Model::load(&checkpoint));
    });
}
