//! What models are given to read, against transformers (`fixtures/make_reading.py`): conversations in a model's own template,
//! words to be guessed, texts that are cut.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use foveal_models::tokenizer::Message;
use foveal_models::{Checkpoint, Error, Observation, OpenModel, ReadOptions, Tokenizer};
use serde::Deserialize;

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(support::fixture("inputs").join(name)).unwrap()).unwrap()
}

#[derive(Deserialize)]
struct Chats {
    /// The files of the tokenizer.
    files: BTreeMap<String, String>,
    chats: Vec<Vec<Said>>,
    cases: BTreeMap<String, Case>,
    /// Of the template `chatml`.
    ids: Vec<Vec<u32>>,
}

#[derive(Deserialize)]
struct Said {
    role: String,
    content: String,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    texts: Vec<Option<String>>,
}

impl Chats {
    fn messages(&self) -> Vec<Vec<Message>> {
        let message = |said: &Said| Message { role: said.role.clone(), content: said.content.clone() };
        self.chats.iter().map(|chat| chat.iter().map(message).collect()).collect()
    }

    /// The tokenizer with this as `chat_template` in its settings.
    fn tokenizer(&self, folder: &Path, template: serde_json::Value) -> Tokenizer {
        for (name, text) in &self.files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut settings: serde_json::Value = serde_json::from_str(&self.files["tokenizer_config.json"]).unwrap();
        settings["chat_template"] = template;
        std::fs::write(folder.join("tokenizer_config.json"), settings.to_string()).unwrap();
        Tokenizer::from_folder(folder).unwrap()
    }
}

#[test]
fn conversations_are_written_as_transformers_writes_them() {
    let chats: Chats = read("chats.json");
    let mut refused = 0;
    for (name, case) in &chats.cases {
        let folder = tempfile::tempdir().unwrap();
        let tokenizer = chats.tokenizer(folder.path(), case.template.as_str().into());
        let template = tokenizer.chat_template().unwrap();
        for (messages, expected) in chats.messages().iter().zip(&case.texts) {
            match expected {
                Some(expected) => assert_eq!(&template.render(messages).unwrap(), expected, "{name}"),
                None => {
                    refused += 1;
                    let error = template.render(messages).unwrap_err().to_string();
                    assert!(error.contains("must alternate") || error.contains("not supported"), "{name}: {error}");
                }
            }
        }
    }
    assert_eq!((chats.cases.len(), refused), (7, 2));
}

#[test]
fn conversations_have_the_ids_of_transformers() {
    let chats: Chats = read("chats.json");
    let template = &chats.cases["chatml"].template;
    let folder = tempfile::tempdir().unwrap();
    // As a text, as one of several, and as a file of its own.
    let listed = serde_json::json!([{"name": "tool_use", "template": "x"}, {"name": "default", "template": template}]);
    for settings in [template.as_str().into(), listed, serde_json::Value::Null] {
        if settings.is_null() {
            std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
        }
        let tokenizer = chats.tokenizer(folder.path(), settings);
        for (messages, ids) in chats.messages().iter().zip(&chats.ids) {
            assert_eq!(tokenizer.encode_chat(messages).unwrap().ids(), ids);
        }
    }
}

#[test]
fn a_template_that_is_none_is_an_error() {
    let chats: Chats = read("chats.json");
    let folder = tempfile::tempdir().unwrap();
    let said = |template: &str| {
        let tokenizer = chats.tokenizer(folder.path(), template.into());
        tokenizer.encode_chat(&[Message::user("a")]).unwrap_err().to_string()
    };
    for bad in ["{% if %}", "{{ messages | nonsense }}", "{% generation %}x{% endgeneration %}", "{{ 1 / 0 }}"] {
        assert!(said(bad).contains("the chat template fails"), "{bad}: {}", said(bad));
    }
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}";
    assert!(said(endless).contains("the chat template fails"));
    let without = chats.tokenizer(folder.path(), serde_json::Value::Null);
    let error = without.encode_chat(&[Message::user("a")]).unwrap_err();
    assert!(matches!(error, Error::MissingPart { part: "a chat template", .. }), "{error}");
    std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"chat_template": 7}"#).unwrap();
    let error = Tokenizer::from_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("chat_template"), "{error}");
}

#[test]
fn a_gguf_file_brings_its_template() {
    let Some(path) = support::data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let tokenizer = Tokenizer::of(&Checkpoint::open(path).unwrap()).unwrap();
    let chats: Chats = read("chats.json");
    for (messages, expected) in chats.messages().iter().zip(&chats.cases["chatml"].texts) {
        let encoding = tokenizer.encode_chat(messages).unwrap();
        assert_eq!(Some(encoding.text()), expected.as_deref());
        assert_eq!(encoding.labels()[0], "<|im_start|>", "one token");
    }
}

#[derive(Deserialize)]
struct Read {
    text: String,
    masked: Vec<Guess>,
    cut: BTreeMap<usize, Vec<u32>>,
}

#[derive(Deserialize)]
struct Guess {
    at: usize,
    ids: Vec<u32>,
    p: Vec<f32>,
}

#[test]
fn masked_words_are_guessed_as_by_transformers() {
    let open = OpenModel::of(&Checkpoint::open(support::fixture("inputs/masked")).unwrap()).unwrap();
    let expected: Vec<Read> = read("masked/expected.json");
    for read in &expected {
        let seen = open.observe(&read.text).unwrap();
        assert_eq!(seen.masked.len(), read.masked.len(), "{}", read.text);
        for (got, expected) in seen.masked.iter().zip(&read.masked) {
            assert_eq!(got.at, expected.at);
            assert_eq!(got.predictions.iter().map(|one| one.token).collect::<Vec<_>>(), expected.ids);
            for (one, p) in got.predictions.iter().zip(&expected.p) {
                assert!((one.probability - p).abs() < 1e-5, "{}: {} instead of {p}", one.label, one.probability);
            }
        }
        assert!(seen.predictions.is_empty());
    }
    assert_eq!(expected.iter().map(|read| read.masked.len()).sum::<usize>(), 3);
}

#[test]
fn texts_are_cut_as_by_transformers() {
    let open = OpenModel::of(&Checkpoint::open(support::fixture("inputs/masked")).unwrap()).unwrap();
    for read in read::<Vec<Read>>("masked/expected.json") {
        for (most, ids) in &read.cut {
            let options = ReadOptions { most: Some(*most), ..ReadOptions::default() };
            let encoding = options.encode(&open, &read.text).unwrap();
            assert_eq!(encoding.ids(), ids, "{most} tokens of {:?}", read.text);
            assert_eq!((encoding.labels().len(), encoding.words().len()), (ids.len(), ids.len()));
            assert!(read.text.starts_with(encoding.text()));
            let seen = Observation::of(&open, &read.text, &options).unwrap();
            assert_eq!((seen.queries.len(), seen.layer(1).unwrap().keys()), (ids.len(), ids.len()));
        }
    }
}

/// As transformers does, the tokens that end a text are taken from `generation_config.json` first.
#[test]
fn the_settings_of_generation_name_the_tokens_that_end_a_text() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(support::fixture("inputs/writer").join(name), folder.path().join(name)).unwrap();
    }
    let stop = || OpenModel::open(folder.path().to_str().unwrap()).map(|open| open.stop);
    let before = stop().unwrap();
    std::fs::write(folder.path().join("generation_config.json"), r#"{"eos_token_id": [7, 9]}"#).unwrap();
    let after = stop().unwrap();
    assert!(!before.contains(&7) && after.contains(&7) && after.contains(&9), "{before:?}, {after:?}");
    std::fs::write(folder.path().join("generation_config.json"), "{").unwrap();
    assert!(stop().unwrap_err().to_string().contains("generation_config.json"));
}
