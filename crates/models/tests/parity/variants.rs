//! Checkpoints that say things in unusual ways (`fixtures/make_variants.py`): heads of their own that the configuration denies,
//! no heads, biases, and rotary positions in all the ways that a `config.json` can describe them.

use foveal_models::model::{Bert, Gpt2, LanguageModel, Llama, Model, Sentences};
use foveal_models::trace::{Capture, Probe};
use foveal_models::{Checkpoint, Dtype, Error};
use ndarray::{Array2, ArrayD, s};
use serde_json::{Map, Value};

use crate::expected::near;
use crate::stored::Stored;
use crate::support;

const NEAR: f64 = 1e-4;

struct Variant {
    name: &'static str,
    expected: std::collections::BTreeMap<String, ArrayD<f64>>,
}

impl Variant {
    fn of(name: &'static str) -> Self {
        let path = support::fixture("variants").join(name).join("expected.safetensors");
        Variant { name, expected: support::tensors(&path) }
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint::open(support::fixture("variants").join(self.name)).unwrap()
    }

    fn tokens(&self, key: &str) -> Vec<u32> {
        self.expected[key].iter().map(|x| *x as u32).collect()
    }

    fn check(&self, key: &str, got: &Array2<f32>) {
        let expected = &self.expected[key];
        let got = got.to_shape(expected.shape()).unwrap().mapv(f64::from);
        near(format_args!("{}: {key}", self.name), expected, &got, NEAR);
    }

    /// Runs a language model and compares all that is expected; then once more after it was saved.
    fn check_language<M: Stored + LanguageModel>(&self) -> M {
        let model = M::load(&self.checkpoint()).unwrap();
        let saved = tempfile::tempdir().unwrap();
        model.save_as(saved.path(), Dtype::F32).unwrap();
        let again = M::load(&Checkpoint::open(saved.path()).unwrap()).unwrap();
        for model in [&model, &again] {
            let mut probe = Probe::new(Capture::All);
            let hidden = model.infer(&self.tokens("ids"), 2, None, &mut probe).unwrap();
            self.check("hidden", &hidden);
            if self.expected.contains_key("logits") {
                self.check("logits", &model.logits(hidden.view()).unwrap());
            }
            let trace = probe.into_trace();
            for (site, layer) in trace.layers() {
                let expected = &self.expected[&format!("weights.{}.{}", site.kind, site.layer)];
                for (b, of_sequence) in expected.outer_iter().enumerate() {
                    for (head, weights) in of_sequence.outer_iter().enumerate() {
                        let got = layer.weights(b, head).unwrap().mapv(f64::from);
                        near(format_args!("{}: layer {}, head {head}", self.name, site.layer), weights, &got, NEAR);
                    }
                }
            }
        }
        model
    }

    fn check_bert(&self) -> Bert {
        let model = Bert::load(&self.checkpoint()).unwrap();
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), Dtype::F32).unwrap();
        let again = Bert::load(&Checkpoint::open(saved.path()).unwrap()).unwrap();
        let tokens = self.tokens("ids");
        let sentences = Sentences::new(&tokens.chunks(11).collect::<Vec<_>>());
        for model in [&model, &again] {
            let hidden = model.infer(&sentences, &mut Probe::default()).unwrap();
            self.check("hidden", &hidden);
            if self.expected.contains_key("logits") {
                self.check("logits", &model.guess(hidden.view()).unwrap());
            }
        }
        model
    }
}

/// A head that is in the file is used, whatever `tie_word_embeddings` says.
#[test]
fn heads_of_their_own() {
    assert!(Variant::of("gpt2_own_head").check_language::<Gpt2>().head.is_some());
    assert!(Variant::of("llama_own_head").check_language::<Llama>().head.is_some());
    assert!(Variant::of("bert_own_decoder").check_bert().head.unwrap().decoder.is_some());
    assert!(Variant::of("bert_untied").check_bert().head.unwrap().decoder.is_some());
}

/// The embedding once more in the place of a head is no head of its own: it is kept and trained once.
#[test]
fn a_copy_of_the_embedding_is_the_embedding() {
    let folder = tempfile::tempdir().unwrap();
    let source = support::fixture("variants/llama_own_head");
    std::fs::copy(source.join("config.json"), folder.path().join("config.json")).unwrap();
    let bytes = std::fs::read(source.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let embedding = file.tensor("model.embed_tokens.weight").unwrap();
    let tensors = file.iter().map(|(name, tensor)| {
        let tensor = if name == "lm_head.weight" { embedding.clone() } else { tensor };
        (name.to_owned(), tensor)
    });
    safetensors::serialize_to_file(tensors, None, &folder.path().join("model.safetensors")).unwrap();
    let model = Llama::load(&Checkpoint::open(folder.path()).unwrap()).unwrap();
    assert!(model.head.is_none() && model.config().tied && model.config().predicts);
}

#[test]
fn without_a_head() {
    assert!(Variant::of("bert_headless").check_bert().head.is_none());
    let model = Variant::of("llama_headless").check_language::<Llama>();
    let hidden = model.infer(&[1, 2], 1, None, &mut Probe::default()).unwrap();
    assert!(matches!(model.logits(hidden.view()), Err(Error::MissingPart { .. })));
    assert!(!model.config().predicts);
}

#[test]
fn biases_of_the_mlp() {
    let model = Variant::of("llama_mlp_bias").check_language::<Llama>();
    assert!(model.config().mlp_bias);
    assert_eq!(model.config().parameters(), foveal_models::layer::Parameters::parameter_count(&model) as u128);
}

/// The model of variants/rope with other keys in its configuration.
fn with_keys(keys: &Map<String, Value>) -> Llama {
    let folder = tempfile::tempdir().unwrap();
    let source = support::fixture("variants/rope");
    std::fs::copy(source.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let mut config: Map<String, Value> =
        serde_json::from_slice(&std::fs::read(source.join("config.json")).unwrap()).unwrap();
    config.extend(keys.clone());
    std::fs::write(folder.path().join("config.json"), Value::Object(config).to_string()).unwrap();
    Llama::load(&Checkpoint::open(folder.path()).unwrap()).unwrap()
}

#[test]
fn rotary_positions() {
    let variant = Variant::of("rope");
    let path = support::fixture("variants/rope/rope.json");
    let cases: Vec<Map<String, Value>> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(cases.len() > 20);
    for (number, keys) in cases.iter().enumerate() {
        println!("{number}: {keys:?}");
        let model = with_keys(keys);
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), Dtype::F32).unwrap();
        let again = Llama::load(&Checkpoint::open(saved.path()).unwrap()).unwrap();
        let tokens = variant.tokens(&format!("{number}.ids"));
        for model in [&model, &again] {
            let hidden = model.infer(&tokens, 1, None, &mut Probe::default()).unwrap();
            variant.check(&format!("{number}.logits"), &model.logits(hidden.view()).unwrap());
        }
        let stepwise = format!("{number}.stepwise");
        if variant.expected.contains_key(&stepwise) {
            let mut cache = model.cache(1, 0);
            let mut logits = Array2::zeros((0, variant.expected[&stepwise].shape()[2]));
            for part in [&tokens[..10]].into_iter().chain(tokens[10..].chunks(1)) {
                let hidden = model.infer(part, 1, Some(&mut cache), &mut Probe::default()).unwrap();
                logits.append(ndarray::Axis(0), model.logits(hidden.view()).unwrap().view()).unwrap();
            }
            variant.check(&stepwise, &logits);
        }
    }
}

/// A text longer than the trained length changes angles as a whole; the way back turns by the same angles.
#[test]
fn gradients_of_stretched_positions() {
    use foveal_models::layer::{CrossEntropy, Parameters};
    use foveal_models::model::Trained;
    let keys = |json: Value| json.as_object().unwrap().clone();
    let dynamic = serde_json::json!({"rope_theta": 500.0, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}});
    let yarn = serde_json::json!({"max_position_embeddings": 64, "rope_theta": 100.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}});
    for scaling in [dynamic, yarn] {
        let model = with_keys(&keys(scaling));
        let tokens: Vec<u32> = (0..24).map(|i| 1 + i * 7 % 30).collect();
        let (inputs, targets) = (&tokens[..23], &tokens[1..]);
        let loss = |model: &Llama| {
            let (logits, _) = model.forward(inputs, 1, None).unwrap();
            f64::from(CrossEntropy::new().forward(&logits, targets).unwrap().mean)
        };
        let (mut logits, saved) = model.forward(inputs, 1, None).unwrap();
        CrossEntropy::new().forward_backward(&mut logits, targets).unwrap();
        let mut grad = model.zeros_like();
        model.backward(&saved, &logits, &mut grad).unwrap();
        let attention = |model: &Llama| model.layers[0].attention.layer.attention().unwrap().clone();
        let gradient = |model: &Llama| {
            let mut all = Vec::new();
            attention(model).visit("", &mut |name, values| {
                if name.starts_with("q_proj") || name.starts_with("k_proj") {
                    all.extend(values.iter().copied());
                }
            });
            all
        };
        let gradient = gradient(&grad);
        // Along the gradient itself, where the loss changes most, by central differences.
        let step = 1e-2 / gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let moved = |by: f64| {
            let mut model = model.clone();
            let mut at = 0;
            model.layers[0].attention.layer.attention_mut().unwrap().visit_mut("", &mut |name, mut values| {
                if name.starts_with("q_proj") || name.starts_with("k_proj") {
                    for value in values.iter_mut() {
                        *value += (by * f64::from(gradient[at])) as f32;
                        at += 1;
                    }
                }
            });
            loss(&model)
        };
        let slope = (moved(step) - moved(-step)) / (2.0 * step);
        let expected = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>();
        assert!((slope / expected - 1.0).abs() < 0.02, "{slope} instead of {expected}");
    }
}

/// GPT-2's four sizes under the names that other models have, which count more than its own.
#[test]
fn sizes_under_other_names() {
    let source = support::fixture("models/gpt2");
    let original = Gpt2::load(&Checkpoint::open(&source).unwrap()).unwrap();
    let names = [
        ("n_embd", "hidden_size"),
        ("n_positions", "max_position_embeddings"),
        ("n_layer", "num_hidden_layers"),
        ("n_head", "num_attention_heads"),
    ];
    for both in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(source.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
        let mut config: Map<String, Value> =
            serde_json::from_slice(&std::fs::read(source.join("config.json")).unwrap()).unwrap();
        for (own, other) in names {
            let value = config.remove(own).unwrap();
            config.insert(other.into(), value);
            if both {
                config.insert(own.into(), 7.into());
            }
        }
        std::fs::write(folder.path().join("config.json"), Value::Object(config).to_string()).unwrap();
        assert_eq!(Gpt2::load(&Checkpoint::open(folder.path()).unwrap()).unwrap(), original);
    }
}

/// A model in several files, whichever of them is named, and by its folder.
#[test]
fn gguf_in_parts() {
    let whole = Model::load(&Checkpoint::open(support::fixture("checkpoints/llama.gguf")).unwrap()).unwrap();
    let Model::Llama(whole) = whole else { panic!("it is a Llama") };
    let folder = support::fixture("checkpoints/split");
    let paths = [folder.clone(), folder.join("llama-00001-of-00003.gguf"), folder.join("llama-00003-of-00003.gguf")];
    for path in paths {
        assert_eq!(Llama::load(&Checkpoint::open(path).unwrap()).unwrap(), whole);
    }
    // One is absent, or another's.
    let copy = tempfile::tempdir().unwrap();
    let copied = |from: usize, to: usize| {
        let name = |number| format!("llama-0000{number}-of-00003.gguf");
        std::fs::copy(folder.join(name(from)), copy.path().join(name(to))).unwrap();
        copy.path().join(name(to))
    };
    let first = copied(1, 1);
    copied(2, 2);
    assert!(Checkpoint::open(&first).unwrap_err().to_string().contains("llama-00003-of-00003.gguf"));
    copied(2, 3);
    let error = Checkpoint::open(&first).unwrap_err().to_string();
    assert!(error.contains("split.no") && error.contains("expected part 2 of 3"), "{error}");
    std::fs::copy(&first, copy.path().join("alone.gguf")).unwrap();
    let error = Checkpoint::open(copy.path().join("alone.gguf")).unwrap_err().to_string();
    assert!(error.contains("split.count") && error.contains("name-00001-of-00003.gguf"), "{error}");
}

/// What a run with a cache and a run without see of a Llama with YaRN is the same.
#[test]
fn yarn_with_a_cache() {
    let keys = serde_json::json!({"max_position_embeddings": 256, "rope_theta": 1000.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}});
    let model = with_keys(keys.as_object().unwrap());
    let tokens: Vec<u32> = (0..20).map(|i| 1 + i * 11 % 30).collect();
    let all = model.infer(&tokens, 1, None, &mut Probe::default()).unwrap();
    let mut cache = model.cache(1, 0);
    model.infer(&tokens[..13], 1, Some(&mut cache), &mut Probe::default()).unwrap();
    let rest = model.infer(&tokens[13..], 1, Some(&mut cache), &mut Probe::default()).unwrap();
    near("with a cache", &all.slice(s![13.., ..]).mapv(f64::from), &rest.mapv(f64::from), NEAR);
}
