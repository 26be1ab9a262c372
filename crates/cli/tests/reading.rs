//! What is asked of a text beside a picture of it: the beginning alone, a conversation, words to be guessed, what the model is.
//! The models and what is expected of them are made by `crates/models/tests/fixtures/make_inputs.py` and `make_reading.py`.

mod support;

use std::path::{Path, PathBuf};

use foveal_models::OpenModel;
use foveal_models::tokenizer::Message;
use serde_json::{Value, json as value};
use support::{json, matrix, printed, refused, run};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../models/tests/fixtures").join(name)
}

#[test]
fn the_beginning_of_a_text_is_the_text_without_its_end() {
    let long = json(&["see", "to be or not to be", "--most", "4", "--layer", "1", "--head", "2"]);
    let short = json(&["see", "to be or not", "--layer", "1", "--head", "2"]);
    assert_eq!(long, short);
    assert_eq!(long["keys"], value!(["to", " be", " or", " not"]));
    assert_eq!(run(&["see", "a", "--most", "0"]).status.code(), Some(2));
    // A text past the context can be looked at as far as the model sees.
    assert_eq!(json(&["see", &"word ".repeat(2000), "--most", "50"])["keys"].as_array().unwrap().len(), 50);
}

#[test]
fn masked_words_are_listed() {
    let model = fixture("inputs/masked");
    let model = model.to_str().unwrap();
    let expected: Value =
        serde_json::from_slice(&std::fs::read(fixture("inputs/masked/expected.json")).unwrap()).unwrap();
    let open = OpenModel::open(model).unwrap();
    for read in expected.as_array().unwrap() {
        let text = read["text"].as_str().unwrap();
        let (figures, shown) = (json(&["see", text, "--model", model]), printed(&["see", text, "--model", model]));
        let (got, expected) = (figures["masked"].as_array().unwrap(), read["masked"].as_array().unwrap());
        assert_eq!(got.len(), expected.len(), "{text}");
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!(got["token"], expected["at"]);
            assert!(shown.contains(&format!("[MASK] (token {})", expected["at"])), "{shown}");
            for n in 0..5 {
                let (p, likely) = (expected["p"][n].as_f64().unwrap(), expected["ids"][n].as_u64().unwrap() as u32);
                let name = open.tokenizer().unwrap().token(likely).unwrap();
                let label = got["predictions"][n]["token"].as_str().unwrap();
                assert!(
                    name.trim_start_matches('#') == label.trim_start_matches([' ', '#']),
                    "{label} instead of {name}"
                );
                assert!((got["predictions"][n]["p"].as_f64().unwrap() - p).abs() < 1e-5);
                let row = |line: &str| line.starts_with(&format!("{label:?}")) && line.ends_with(&format!("{p:.3}"));
                assert!(shown.lines().any(row), "{label} {p:.3}: {shown}");
            }
        }
        assert_eq!(shown.contains("[MASK] (token"), !expected.is_empty());
    }
}

/// The small Llama with a template.
fn chatty(folder: &Path) -> String {
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(fixture("inputs/writer").join(name), folder.join(name)).unwrap();
    }
    let template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}answer:";
    std::fs::write(folder.join("chat_template.jinja"), template).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_conversation_is_put_into_the_models_template() {
    let folder = tempfile::tempdir().unwrap();
    let model = chatty(folder.path());
    let expected =
        OpenModel::open(&model).unwrap().tokenizer().unwrap().encode_chat(&[Message::user("hello")]).unwrap();
    assert_eq!(expected.text(), "user: hello\nanswer:");
    let figures = json(&["see", "hello", "--chat", "--model", &model]);
    assert_eq!(figures["keys"], value!(expected.labels()));
    let answer = printed(&["generate", "hello", "--chat", "-n", "8", "--model", &model]);
    let figures = json(&["generate", "hello", "--chat", "-n", "8", "--model", &model]);
    assert_eq!(answer.trim_end_matches('\n'), figures["written"].as_str().unwrap().trim_end_matches('\n'));
    assert!(!answer.contains("user:"), "the answer alone: {answer}");
    let without = fixture("inputs/writer");
    let said = refused(&["see", "hello", "--chat", "--model", without.to_str().unwrap()]);
    assert!(said.contains("lacks a chat template"), "{said}");
}

#[test]
fn a_model_is_described() {
    let figures = json(&["model", "shakespeare"]);
    let open = OpenModel::open("shakespeare").unwrap();
    assert_eq!(figures["parameters"].as_u64().unwrap() as u128, open.summary().parameters);
    assert_eq!((figures["architecture"].as_str(), figures["type"].as_str()), (Some("llama"), Some("F16")));
    let shown = printed(&["model"]);
    for word in ["architecture", "llama", "byte-level BPE", "vocabulary", "context", "inside"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let folder = tempfile::tempdir().unwrap();
    let model = chatty(folder.path());
    let (figures, korean) = (json(&["model", &model]), printed(&["model", &model, "--lang", "ko"]));
    assert_eq!((figures["architecture"].as_str(), figures["chat"].as_bool()), (Some("llama"), Some(true)));
    assert!(korean.contains("토크나이저") && korean.contains("있음"), "{korean}");
    let images = json(&["model", "digits"]);
    assert!(images["tokenizer"].is_null() && images["vocabulary"].is_null());
    assert!(refused(&["model", "/nowhere"]).contains("/nowhere"));
}

#[test]
fn rollout_has_a_picture_for_every_layer() {
    let figures = json(&["see", "to be or not to be", "--show", "rollout", "--head", "all"]);
    let layers = figures["heads"].as_array().unwrap();
    assert_eq!(layers.len(), 5);
    for (n, layer) in layers.iter().enumerate() {
        assert_eq!((layer["layer"].as_u64(), layer["head"].is_null()), (Some(n as u64), true));
        let alone = json(&["see", "to be or not to be", "--show", "rollout", "--layer", &n.to_string()]);
        assert_eq!(matrix(&alone["heads"][0]["values"]), matrix(&layer["values"]));
    }
    let shown = printed(&["see", "to be or not to be", "--show", "rollout", "--head", "all"]);
    assert!(shown.contains("Layer 4") && !shown.contains("Head"), "{shown}");
}

/// A picture of heads in a file is drawn from pixels, its numbers in CSV are all there are.
#[test]
fn numbers_of_heads_are_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heads.csv");
    let text = "What light through yonder window breaks? ".repeat(33);
    printed(&["see", &text, "--layer", "0", "--head", "all", "-o", path.to_str().unwrap()]);
    let tokens = json(&["see", &text, "--layer", "0", "--head", "0"])["keys"].as_array().unwrap().len();
    let lines = std::fs::read_to_string(&path).unwrap().lines().count();
    assert!(tokens > 216, "more than a panel has pixels: {tokens}");
    assert_eq!(lines, 1 + 10 * tokens * tokens);
}
