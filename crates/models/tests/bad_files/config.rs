use super::allocation::{allowed, peak};
use super::files::{folder, refused, safetensors};
use foveal_models::{Checkpoint, Config, Error};

fn config(json: &str) -> Config {
    Config::from_json("config.json", json.as_bytes()).unwrap()
}

#[test]
fn heads() {
    let heads = |json: &str| config(json).divisor("num_attention_heads", "hidden_size");
    assert_eq!(heads(r#"{"num_attention_heads": 4, "hidden_size": 16}"#).unwrap(), 4);
    refused(heads(r#"{"num_attention_heads": 0, "hidden_size": 16}"#), &["num_attention_heads is 0"]);
    refused(
        heads(r#"{"num_attention_heads": 5, "hidden_size": 16}"#),
        &["is 5, expected a divisor of hidden_size = 16"],
    );
    refused(heads(r#"{"num_attention_heads": 5}"#), &["hidden_size is absent"]);
    let shared = config(r#"{"num_attention_heads": 9, "num_key_value_heads": 2}"#);
    refused(shared.divisor("num_key_value_heads", "num_attention_heads"), &["is 2, expected a divisor"]);
}

#[test]
fn sizes() {
    for bad in ["-1", "0", "1.5", "16.0", "\"16\"", "1e18", "1000000000000000000", "[]", "true"] {
        let error =
            refused(config(&format!(r#"{{"n": {bad}}}"#)).size("n"), &["config.json: n is", "expected a whole number"]);
        assert!(matches!(error, Error::Config { .. }));
    }
}

#[test]
fn a_vocabulary_of_another_size() {
    let weights = safetensors(r#"{"wte.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}"#, &[0; 8]);
    let json = br#"{"model_type": "gpt2", "vocab_size": 3, "n_embd": 1}"#;
    let folder = folder(&[("config.json", json), ("model.safetensors", &weights)]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let shape = ["vocab_size", "n_embd"].map(|key| checkpoint.config().size(key).unwrap());
    refused(checkpoint.array2("transformer.wte.weight", shape), &["wte.weight has shape [2, 1]", "calls for [3, 1]"]);
    refused(checkpoint.array1("ln_f.weight", 1), &["no tensor ln_f.weight", "nearest", "wte.weight"]);
}

#[test]
fn a_byte_order_mark_does_no_harm() {
    let weights = safetensors("{}", &[]);
    let folder = folder(&[("config.json", b"\xef\xbb\xbf{\"model_type\": \"vit\"}"), ("model.safetensors", &weights)]);
    assert_eq!(Checkpoint::open(folder.path()).unwrap().architecture().unwrap().name(), "vit");
}

#[test]
fn unknown_architectures() {
    let unknown = |json: &str| {
        let folder = folder(&[("config.json", json.as_bytes()), ("model.safetensors", &safetensors("{}", &[]))]);
        Checkpoint::open(folder.path()).unwrap().architecture()
    };
    refused(unknown(r#"{"model_type": "mamba"}"#), &["mamba", "gpt2", "bert", "llama", "vit"]);
    refused(unknown("{}"), &["model_type is absent", "llama"]);
}

#[test]
fn what_is_no_config() {
    let deep = "[".repeat(100_000);
    let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(5 << 20));
    for bad in
        ["", "[]", "null", "{", "{\"a\": }", "{\"a\": 1, \"a\": 2}", "{\"a\": NaN}", "\u{feff}\u{feff}{}", &deep, &long]
    {
        let folder = folder(&[("config.json", bad.as_bytes()), ("model.safetensors", &safetensors("{}", &[]))]);
        let (opened, bytes) = peak(|| Checkpoint::open(folder.path()));
        refused(opened, &["config.json"]);
        assert!(bytes <= allowed(bad.len()), "{} bytes took {bytes}", bad.len());
    }
}
