//! Models from outside, fed as transformers feeds them: the spaces of what is written, pictures, and the names of classes.
//! The models and what is expected of them are made by `crates/models/tests/fixtures/make_inputs.py` and `make_pictures.py`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../models/tests/fixtures").join(name)
}

fn read(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_foveal")).args(arguments).env("LANG", "C").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn text_is_written_on_with_its_spaces() {
    let model = fixture("inputs/writer");
    let model = model.to_str().unwrap();
    for (prompt, expected) in read("inputs/writer/written.json").as_object().unwrap() {
        let arguments = ["generate", prompt, "--model", model, "--most", "10"];
        let written = expected["written"].as_str().unwrap();
        assert_eq!(printed(&arguments).trim_end_matches('\n'), format!("{prompt}{written}"));
        let figures: Value = serde_json::from_str(&printed(&[&arguments[..], &["--json"]].concat())).unwrap();
        assert_eq!(figures["written"], expected["written"]);
        // The table of the likeliest tokens has the spaces, too.
        let seen = printed(&["see", prompt, "--model", model]);
        for token in expected["next"].as_array().unwrap() {
            assert!(seen.contains(&format!("{token}")), "{token}: {seen}");
        }
    }
}

/// A body without a head attends as any other; it predicts nothing.
#[test]
fn a_model_without_a_head_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let source = fixture("inputs/writer");
    for name in ["model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    let mut config = read("inputs/writer/config.json");
    config["tie_word_embeddings"] = false.into();
    config["architectures"] = vec!["LlamaModel"].into();
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let model = folder.path().to_str().unwrap();
    let seen = printed(&["see", "hello world", "--model", model]);
    assert!(seen.contains("world") && !seen.contains("next"), "{seen}");
    let refused =
        Command::new(env!("CARGO_BIN_EXE_foveal")).args(["generate", "hello", "--model", model]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("the head that predicts tokens"), "{said}");
}

#[test]
fn a_picture_is_prepared_and_its_classes_have_names() {
    let (model, picture) = (fixture("pictures/vit"), fixture("pictures/wide.png"));
    let arguments = ["see", "--image", picture.to_str().unwrap(), "--model", model.to_str().unwrap()];
    let figures: Value = serde_json::from_str(&printed(&[&arguments[..], &["--json"]].concat())).unwrap();
    let numbers = |value: &Value| value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
    let (got, expected) = (numbers(&figures["classes"]), numbers(&read("pictures/vit/scores.json")));
    assert_eq!(got.len(), expected.len());
    assert!(got.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-4), "{got:?} instead of {expected:?}");
    assert_eq!(figures["labels"][3], "새");
    let shown = printed(&arguments);
    assert!(shown.contains("dog, p = 0.431") || shown.contains("class dog"), "{shown}");
}
