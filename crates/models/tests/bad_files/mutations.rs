//! Good files with random damage: bytes overwritten, cut out, doubled, and numbers put to their extremes.

use proptest::prelude::*;

use super::files::{open_gguf, open_safetensors};
use super::{gguf, safetensors, tokenizer};

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
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = open_safetensors(&bytes);
        let _ = open_gguf(&bytes);
        let _ = open_gguf(&[b"GGUF\x03\0\0\0", &bytes[..]].concat());
    }
}
