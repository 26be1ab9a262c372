//! What a model refuses: tokens it does not have, texts longer than its positions, and configurations larger than its files.

use foveal_models::model::language::rewind;
use foveal_models::model::transformer::Batch;
use foveal_models::model::{Bert, Gpt2, LanguageModel, Llama, Sentences, Transformer, Vit};
use foveal_models::trace::{Kind, Probe};
use foveal_models::{Architecture, Checkpoint, Error, Model};
use ndarray::Array4;
use serde_json::{Value, json};

use crate::allocation::{allowed, peak};
use crate::expected::{folder, load};
use crate::support;

/// The vocabulary and the positions of all models.
const VOCABULARY: u32 = 53;
const CONTEXT: usize = 16;

fn is_context<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Context { tokens: 17, limit: CONTEXT }))
}

fn is_token<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::TokenId { id: VOCABULARY, vocabulary: 53 }))
}

fn check_language_model(model: &impl LanguageModel) {
    let (probe, long) = (&mut Probe::default(), [1; CONTEXT + 1]);
    assert!(is_token(model.infer(&[1, VOCABULARY], 1, None, probe)));
    assert!(is_context(model.infer(&long, 1, None, probe)));
    assert!(model.infer(&long[..CONTEXT], 1, None, probe).is_ok());
    assert!(model.infer(&long[..3], 2, None, probe).is_err(), "three tokens are no two sequences");
    assert!(matches!(model.loss(&[1], probe), Err(Error::TooShort { tokens: 1, least: 2 })));
    assert!(matches!(model.loss(&[], probe), Err(Error::TooShort { tokens: 0, least: 2 })));

    // What is refused leaves the cache as it was.
    let mut cache = model.cache(1, 0);
    model.infer(&long[..10], 1, Some(&mut cache), probe).unwrap();
    assert!(is_context(model.infer(&long[..7], 1, Some(&mut cache), probe)));
    assert!(is_token(model.infer(&[VOCABULARY], 1, Some(&mut cache), probe)));
    rewind(&mut cache);
    assert!(cache.iter().all(|layer| layer.len() == 10));
    model.infer(&long[..6], 1, Some(&mut cache), probe).unwrap();
    assert!(is_context(model.infer(&[1], 1, Some(&mut cache), probe)));
}

#[test]
fn tokens_and_lengths() {
    check_language_model(&load::<Gpt2>("gpt2"));
    check_language_model(&load::<Llama>("llama"));

    let (model, probe, long): (Bert, _, _) = (load("bert"), &mut Probe::default(), [1; CONTEXT + 1]);
    assert!(is_token(model.infer(&Sentences::new(&[[1, VOCABULARY]]), probe)));
    assert!(is_context(model.infer(&Sentences::new(&[&long[..2], &long]), probe)));

    let model: Transformer = load("norm_last");
    let source = |tokens| Batch { tokens, lengths: &[2] };
    assert!(matches!(model.encode(source(&[1, 41]), probe), Err(Error::TokenId { id: 41, vocabulary: 41 })));
    assert!(is_context(model.encode(Batch { tokens: &long, lengths: &[17] }, probe)));
    let memory = model.encode(source(&[1, 40]), probe).unwrap();
    let mut state = model.start(source(&[1, 40]), memory.view()).unwrap();
    assert!(is_token(model.write(&[VOCABULARY], &mut state, probe)));
    model.write(&long[..10], &mut state, probe).unwrap();
    assert!(is_context(model.write(&long[..7], &mut state, probe)));
    model.write(&long[..6], &mut state, probe).unwrap();
    assert!(is_context(model.forward(source(&[1, 40]), &long, None)));
    assert!(is_token(model.forward(source(&[1, 40]), &[VOCABULARY], None)));

    let model: Vit = load("vit");
    assert!(model.infer(&Array4::zeros((1, 3, 12, 13)), probe).is_err());
    assert!(model.infer(&Array4::zeros((1, 1, 12, 12)), probe).is_err());
}

#[test]
fn parts_and_layers_that_are_not_there() {
    let probe = Probe::default();
    assert!(matches!(probe.into_trace().layer(Kind::Decoder, 0), Err(Error::NotCaptured { .. })));
    let bert = Model::load(&Checkpoint::open(folder("bert")).unwrap()).unwrap();
    assert!(matches!(bert.as_language_model(), Err(Error::Unfit { architecture: Architecture::Bert, .. })));
    let gpt2 = Model::load(&Checkpoint::open(folder("gpt2")).unwrap()).unwrap();
    assert_eq!(gpt2.as_language_model().unwrap().shape().context, CONTEXT);
    let mut bert: Bert = load("bert");
    bert.head = None;
    let hidden = bert.infer(&Sentences::new(&[[1, 2]]), &mut Probe::default()).unwrap();
    assert!(matches!(bert.guess(hidden.view()), Err(Error::MissingPart { .. })));
}

/// The checkpoint of a model with one thing changed in its configuration.
fn changed(model: &str, key: &str, value: &Value) -> (tempfile::TempDir, Checkpoint) {
    let copy = tempfile::tempdir().unwrap();
    let read = |name| std::fs::read(folder(model).join(name)).unwrap();
    let mut config: Value = serde_json::from_slice(&read("config.json")).unwrap();
    config[key] = value.clone();
    std::fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    std::fs::write(copy.path().join("model.safetensors"), read("model.safetensors")).unwrap();
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    (copy, checkpoint)
}

/// Sizes beyond the file are refused before the model is made.
#[test]
fn sizes_beyond_the_file() {
    let sizes = [
        ("gpt2", vec!["vocab_size", "n_positions", "n_layer", "n_inner"]),
        (
            "bert",
            vec!["vocab_size", "max_position_embeddings", "type_vocab_size", "num_hidden_layers", "intermediate_size"],
        ),
        ("llama", vec!["vocab_size", "num_hidden_layers", "intermediate_size", "head_dim"]),
        ("vit", vec!["image_size", "num_channels", "num_hidden_layers", "intermediate_size"]),
        ("norm_last", vec!["source_vocab_size", "target_vocab_size", "ffn_dim", "encoder_layers", "decoder_layers"]),
    ];
    for (model, keys) in sizes {
        let file = std::fs::metadata(folder(model).join("model.safetensors")).unwrap().len() as usize;
        for key in keys {
            let (_folder, checkpoint) = changed(model, key, &json!(1 << 28));
            let (result, bytes) = peak(|| Model::load(&checkpoint));
            assert!(matches!(result, Err(Error::Config { .. })), "{model}, {key}: {:?}", result.err());
            assert!(bytes < allowed(0), "{model}, {key}: {bytes} bytes for a file of {file}");
        }
    }
}

/// Some positions are computed, not stored: as many as one likes cost nothing.
#[test]
fn positions_that_are_computed() {
    for model in ["llama", "norm_first"] {
        let (_folder, checkpoint) = changed(model, "max_position_embeddings", &json!(1 << 28));
        let (result, bytes) = peak(|| Model::load(&checkpoint));
        assert!(result.is_ok() && bytes < 1 << 20, "{model}: {bytes} bytes");
    }
}

/// What would change the results and is not computed here is refused, not passed over.
#[test]
fn options_that_are_not_there() {
    let options = [
        ("gpt2", "activation_function", json!("mish")),
        ("gpt2", "scale_attn_weights", json!(false)),
        ("gpt2", "scale_attn_by_inverse_layer_idx", json!(true)),
        ("bert", "position_embedding_type", json!("relative_key")),
        ("bert", "is_decoder", json!(true)),
        ("bert", "add_cross_attention", json!(true)),
        ("gpt2", "is_causal", json!(false)),
        ("gpt2", "add_cross_attention", json!(true)),
        ("llama", "is_causal", json!(false)),
        ("llama", "rope_parameters", json!({"rope_type": "longrope", "factor": 4.0})),
        ("llama", "rope_scaling", json!({"rope_type": "longrope", "factor": 4.0})),
        ("llama", "quantization_config", json!({"quant_method": "gptq", "bits": 4})),
        ("vit", "qkv_bias", json!(false)),
        ("norm_last", "norm_order", json!("middle")),
    ];
    for (model, key, value) in options {
        let (_folder, checkpoint) = changed(model, key, &value);
        let error = Model::load(&checkpoint).unwrap_err().to_string();
        assert!(error.contains(key) || error.contains("rope_type"), "{model}: {error}");
    }
    assert!(Bert::load(&Checkpoint::open(support::fixture("checkpoints/bert")).unwrap()).is_ok());
}
