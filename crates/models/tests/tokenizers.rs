//! Tokenizers of real models. The files are those that `make data` fetches.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use foveal_models::{Checkpoint, Tokenizer};

fn gpt2() -> Option<Tokenizer> {
    Some(Tokenizer::from_folder(&support::data("gpt2")?).unwrap())
}

fn minilm() -> Option<Tokenizer> {
    Some(Tokenizer::from_folder(&support::data("minilm")?).unwrap())
}

fn smollm2() -> Option<Tokenizer> {
    let path = support::data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?;
    Some(Tokenizer::of(&Checkpoint::open(path).unwrap()).unwrap())
}

/// A small one of the kind of Llama 1 and 2.
fn sentence_piece() -> Tokenizer {
    Tokenizer::of(&Checkpoint::open(support::fixture("checkpoints/sentencepiece.gguf")).unwrap()).unwrap()
}

/// MiniLM's without its tokenizer.json.
fn minilm_from_vocabulary(folder: &Path) -> Option<Tokenizer> {
    for file in ["vocab.txt", "tokenizer_config.json"] {
        std::fs::copy(support::data("minilm")?.join(file), folder.join(file)).unwrap();
    }
    Some(Tokenizer::from_folder(folder).unwrap())
}

fn lines() -> Vec<String> {
    let lines = std::fs::read_to_string(support::fixture("lines.txt")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn fnv(ids: &[u32]) -> u64 {
    let bytes = ids.iter().flat_map(|id| id.to_le_bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

fn agree(name: &str, tokenizer: &Tokenizer) {
    let file = std::fs::read(support::fixture("lines.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&file).unwrap();
    let expected = file.tensor(name).unwrap().data().as_chunks::<8>().0;
    let lines = lines();
    assert_eq!((lines.len(), expected.len()), (1000, 1000));
    for (i, (line, expected)) in lines.iter().zip(expected).enumerate() {
        let ids = tokenizer.encode(line).unwrap().ids().to_vec();
        assert_eq!(fnv(&ids), u64::from_le_bytes(*expected), "{name}, line {i}, {line:?}: {ids:?}");
    }
}

#[test]
fn ids_are_those_of_hugging_face() {
    let (Some(gpt2), Some(minilm), Some(smollm2)) = (gpt2(), minilm(), smollm2()) else { return };
    let Some(bpe) = support::data("gpt2-bpe") else { return };
    agree("gpt2", &gpt2);
    agree("gpt2", &Tokenizer::from_folder(&bpe).unwrap());
    agree("minilm", &minilm);
    let folder = tempfile::tempdir().unwrap();
    agree("minilm", &minilm_from_vocabulary(folder.path()).unwrap());
    agree("smollm2", &smollm2);
}

#[test]
fn ids_of_sentence_piece_are_those_of_hugging_face() {
    agree("sentencepiece", &sentence_piece());
}

#[test]
fn sentence_piece_goes_round() {
    let tokenizer = sentence_piece();
    for line in lines() {
        let encoding = tokenizer.encode(&line).unwrap();
        let mut stream = tokenizer.stream();
        let streamed: String = encoding.ids().iter().map(|&id| stream.push(id).unwrap()).collect();
        assert_eq!(streamed + &stream.finish(), line);
        assert_eq!(tokenizer.decode(encoding.ids()).unwrap(), line);
        assert_eq!(encoding.labels().first().map(String::as_str), Some("<s>"));
        assert!(encoding.labels().iter().all(|label| !label.contains('\u{FFFD}')));
    }
}

#[test]
fn byte_level_tokens_spell_the_text() {
    let (Some(gpt2), Some(smollm2)) = (gpt2(), smollm2()) else { return };
    for tokenizer in [gpt2, smollm2] {
        for line in lines() {
            let encoding = tokenizer.encode(&line).unwrap();
            let mut end = 0;
            for span in encoding.spans() {
                let span = span.clone().unwrap();
                assert_eq!(span.start, end, "{line:?}");
                end = span.end;
            }
            assert_eq!(end, line.len());
            let mut stream = tokenizer.stream();
            let streamed: String = encoding.ids().iter().map(|&id| stream.push(id).unwrap()).collect();
            let streamed = streamed + &stream.finish();
            assert_eq!(streamed, tokenizer.decode(encoding.ids()).unwrap());
            if !["<|", "|>"].iter().any(|mark| line.contains(mark)) {
                assert_eq!(streamed, line);
                // From the ids alone comes the same as from the text.
                assert_eq!(tokenizer.describe(encoding.ids()).unwrap(), encoding);
            }
        }
    }
}

#[test]
fn hangul_can_be_read() {
    let text = "나는 학교에 갑니다.";
    let (Some(gpt2), Some(minilm)) = (gpt2(), minilm()) else { return };
    let encoding = gpt2.encode(text).unwrap();
    assert!(encoding.len() > text.chars().count(), "GPT-2 cuts syllables");
    assert!(encoding.labels().iter().all(|label| !label.contains('\u{FFFD}')));
    assert_eq!(encoding.labels()[..3], ["나₁", "나₂", "나₃"]);
    let words: Vec<usize> = encoding.words().iter().map(|word| word.unwrap()).collect();
    assert!(words.is_sorted() && words.last() == Some(&2) && words.first() == Some(&0));
    // BERT takes syllables apart into letters that the text does not have.
    let encoding = minilm.encode("한국 사람").unwrap();
    assert_eq!(encoding.labels()[..4], ["[CLS]", "한₁", "한₂", "한₃"]);
    assert_eq!(encoding.words().first(), Some(&None));
    assert_eq!(encoding.words().iter().flatten().max(), Some(&1));
}

#[test]
fn words_of_english() {
    let (Some(gpt2), Some(minilm)) = (gpt2(), minilm()) else { return };
    let encoding = minilm.encode("The  embeddings, unbelievable!").unwrap();
    assert_eq!(encoding.labels(), ["[CLS]", "The", "em", "bed", "ding", "s", ",", "unbelievable", "!", "[SEP]"]);
    let words = [None, Some(0), Some(1), Some(1), Some(1), Some(1), Some(1), Some(2), Some(2), None];
    assert_eq!(encoding.words(), words);
    let encoding = gpt2.encode("Hello world\n\n again").unwrap();
    assert_eq!(encoding.labels(), ["Hello", " world", "\n\n", " again"]);
    assert_eq!(encoding.words(), [Some(0), Some(1), None, Some(2)]);
}

#[test]
fn special_tokens_and_sizes() {
    let (Some(gpt2), Some(minilm), Some(smollm2)) = (gpt2(), minilm(), smollm2()) else { return };
    assert_eq!([gpt2.vocabulary(), minilm.vocabulary(), smollm2.vocabulary()], [50257, 30522, 49152]);
    assert_eq!((gpt2.special().eos, gpt2.special().bos), (Some(50256), Some(50256)));
    let special = minilm.special();
    assert_eq!([special.pad, special.unk, special.cls, special.sep, special.mask], [0, 100, 101, 102, 103].map(Some));
    assert_eq!((smollm2.special().bos, smollm2.special().eos, smollm2.special().pad), (Some(1), Some(2), Some(2)));
    assert!(smollm2.is_special(2) && !smollm2.is_special(504));
    assert_eq!(smollm2.decode(&[504, 2, 3575]).unwrap(), "The capital");
    assert!(gpt2.decode(&[50257]).unwrap_err().to_string().contains("there is no token 50257"));
    assert!(gpt2.stream().push(u32::MAX).is_err());
}

#[test]
fn a_model_stops_within_a_character() {
    let (Some(gpt2), Some(minilm)) = (gpt2(), minilm()) else { return };
    let ids = gpt2.encode("a뷁").unwrap().ids().to_vec();
    let cut = &ids[..ids.len() - 1];
    let mut stream = gpt2.stream();
    let pushed: Vec<String> = cut.iter().map(|&id| stream.push(id).unwrap()).collect();
    assert_eq!(pushed.concat(), "a");
    assert_eq!(stream.finish(), "\u{FFFD}");
    assert_eq!(gpt2.describe(cut).unwrap().text(), "a\u{FFFD}");
    let text = minilm.describe(minilm.encode("the embeddings").unwrap().ids()).unwrap();
    assert_eq!(text.text(), "the embeddings");
}

#[test]
fn long_and_empty_texts() {
    let file = std::fs::read(support::fixture("lines.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&file).unwrap();
    let (Some(gpt2), Some(minilm), Some(smollm2)) = (gpt2(), minilm(), smollm2()) else { return };
    for (name, tokenizer) in [("gpt2", gpt2), ("minilm", minilm), ("smollm2", smollm2)] {
        let empty = tokenizer.encode_bare("").unwrap();
        assert!(empty.is_empty() && empty.labels().is_empty());
        assert_eq!(tokenizer.decode(&[]).unwrap(), "");
        let expected = file.tensor(&format!("{name}.long")).unwrap().data().as_chunks::<8>().0;
        let units = ["a", " ", "가", "😀", "1", "ab ", "\n", ".", " a", "'", "  \n", "\t "];
        assert_eq!(expected.len(), units.len());
        for (unit, expected) in units.into_iter().zip(expected) {
            let time = |count: usize| {
                let start = Instant::now();
                let encoding = tokenizer.encode(&unit.repeat(count)).unwrap();
                (encoding, start.elapsed())
            };
            let ((_, short), (encoding, long)) = (time(12_500), time(100_000));
            assert_eq!(fnv(encoding.ids()), u64::from_le_bytes(*expected), "{name}, {unit:?}");
            // Eight times the text in eight times the time, and then some for the noise; quadratic would be 64.
            let limit = 30 * short + Duration::from_millis(300);
            assert!(long < limit, "{name}, {unit:?}: {short:?} for 12,500 and {long:?} for 100,000");
        }
    }
}
