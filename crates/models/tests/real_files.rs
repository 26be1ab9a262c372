//! Real checkpoints: MiniLM in safetensors and SmolLM2 in GGUF, against what transformers reads from the same files.
//! The files are those that `make data` fetches.

mod support;

use foveal_models::{Architecture, Checkpoint, Dtype, Tokenizer};
use serde_json::Value;

fn compare(prefix: &str, checkpoint: &Checkpoint) -> usize {
    let real: Value = serde_json::from_slice(&std::fs::read(support::fixture("real.json")).unwrap()).unwrap();
    let mut count = 0;
    for (name, expected) in real.as_object().unwrap() {
        let Some(name) = name.strip_prefix(prefix) else { continue };
        let floats =
            |key: &str| -> Vec<f64> { expected[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
        let shape: Vec<usize> = floats("shape").into_iter().map(|x| x as usize).collect();
        let got = checkpoint.array(name, &shape).unwrap();
        let got: Vec<f64> = got.iter().map(|&x| f64::from(x)).collect();
        for (at, number) in floats("at").into_iter().zip(floats("numbers")) {
            let got = got[at as usize];
            assert!((got - number).abs() <= 1e-6 * number.abs().max(0.01), "{name} at {at}: {got} instead of {number}");
        }
        let size: f64 = got.iter().map(|x| x.abs()).sum();
        let sum: f64 = got.iter().enumerate().map(|(i, x)| x * (i % 1009) as f64).sum();
        let (expected_sum, expected_size) = (expected["sum"].as_f64().unwrap(), expected["size"].as_f64().unwrap());
        assert!((size - expected_size).abs() <= 1e-6 * expected_size, "{name}: {size} instead of {expected_size}");
        // Weighted by place: notices rows in the wrong order.
        assert!((sum - expected_sum).abs() <= 1e-4 * expected_size, "{name}: {sum} instead of {expected_sum}");
        count += 1;
    }
    count
}

#[test]
fn minilm() {
    let Some(path) = support::data("minilm") else { return };
    let checkpoint = Checkpoint::open(path).unwrap();
    assert_eq!(checkpoint.architecture().unwrap(), Architecture::Bert);
    assert_eq!(checkpoint.config().divisor("num_attention_heads", "hidden_size").unwrap(), 12);
    assert_eq!(checkpoint.config().float("layer_norm_eps").unwrap(), 1e-12);
    assert_eq!(compare("minilm/", &checkpoint), 3);
    let tokenizer = Tokenizer::of(&checkpoint).unwrap();
    let encoding = tokenizer.encode("The cat sat on the mat.").unwrap();
    assert_eq!(encoding.ids(), [101, 1996, 4937, 2938, 2006, 1996, 13523, 1012, 102]);
    assert_eq!(tokenizer.special().mask, Some(103));
}

#[test]
fn smollm2() {
    let Some(path) = support::data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let checkpoint = Checkpoint::open(path).unwrap();
    assert_eq!(checkpoint.architecture().unwrap(), Architecture::Llama);
    let config = checkpoint.config();
    let sizes = ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size"];
    assert_eq!(sizes.map(|key| config.size(key).unwrap()), [30, 576, 9, 3, 49152]);
    assert_eq!((config.float("rope_theta").unwrap(), config.float("rms_norm_eps").unwrap()), (100_000.0, 1e-5));
    assert!(config.flag_or("tie_word_embeddings", false).unwrap());
    assert_eq!(checkpoint.tensor("model.layers.3.mlp.up_proj.weight").unwrap().dtype(), Dtype::Q4_1);
    assert_eq!(compare("smollm2/", &checkpoint), 14);
    assert_eq!(checkpoint.names().len(), 272);
    assert!(checkpoint.names().all(|name| name.starts_with("model.")));
}
