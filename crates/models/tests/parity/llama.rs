//! Llama, plain, with rotary positions that are stretched evenly, and with those of Llama 3, biases, and its embedding for its predictions. Four heads share two
//! heads of keys, of a dimension that does not follow from the width.

use foveal::RopeScaling;
use foveal_models::layer::Random;
use foveal_models::model::{LanguageModel, Llama, LlamaConfig};
use foveal_models::trace::Probe;
use foveal_models::{Checkpoint, Dtype};
use serde_json::{Map, Value};

use crate::expected::{folder, load};
use crate::language;

#[test]
fn configuration() {
    let (plain, scaled): (Llama, Llama) = (load("llama"), load("llama3"));
    assert_eq!((plain.config().rope_base, plain.config().rope_scaling), (10_000.0, RopeScaling::None));
    let scaling = RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, trained: 64 };
    assert_eq!((scaled.config().rope_base, scaled.config().rope_scaling), (100.0, scaling));
    assert!(plain.head.is_some() && scaled.head.is_none());
    let stretched: Llama = load("llama_linear");
    assert_eq!((stretched.config().rope_base, stretched.config().rope_scaling), (500.0, RopeScaling::Linear(3.0)));
}

/// What transformers 5 keeps in `rope_parameters` was spread over two keys before, and its kind had another name.
#[test]
fn older_configurations() {
    for name in ["llama", "llama_linear", "llama3"] {
        for kind in ["rope_type", "type"] {
            let copy = tempfile::tempdir().unwrap();
            std::fs::copy(folder(name).join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
            let mut config: Map<String, Value> =
                serde_json::from_slice(&std::fs::read(folder(name).join("config.json")).unwrap()).unwrap();
            let mut rope = config.remove("rope_parameters").unwrap();
            let rope = rope.as_object_mut().unwrap();
            config.insert("rope_theta".into(), rope.remove("rope_theta").unwrap());
            let named = rope.remove("rope_type").unwrap();
            rope.insert(kind.into(), named);
            let scaling = if rope[kind] == "default" { Value::Null } else { rope.clone().into() };
            config.insert("rope_scaling".into(), scaling);
            std::fs::write(copy.path().join("config.json"), Value::Object(config).to_string()).unwrap();
            let old = Llama::load(&Checkpoint::open(copy.path()).unwrap()).unwrap();
            assert_eq!(old, load(name), "{name} with {kind}");
        }
    }
}

/// Hugging Face has no name for this scaling, but it is nothing but another base.
#[test]
fn a_scaling_without_a_name_is_saved_as_its_base() {
    let plain: Llama = load("llama");
    let config = LlamaConfig { rope_scaling: RopeScaling::Ntk(4.0), ..*plain.config() };
    let model = Llama::new(&config, &mut Random::new(1)).unwrap();
    let saved = tempfile::tempdir().unwrap();
    model.save(saved.path(), Dtype::F32).unwrap();
    let again = Llama::load(&Checkpoint::open(saved.path()).unwrap()).unwrap();
    let base = 10_000.0 * 4f64.powf(6.0 / 4.0);
    assert!((again.config().rope_base / base - 1.0).abs() < 1e-12 && again.config().rope_scaling == RopeScaling::None);
    let run = |model: &Llama| model.infer(&[3, 1, 4, 1, 5, 9, 2, 6], 1, None, &mut Probe::default()).unwrap();
    assert_eq!(run(&again), run(&model));
    let unscaled = Llama::new(plain.config(), &mut Random::new(1)).unwrap();
    assert_ne!(run(&unscaled), run(&model));
}

#[test]
fn run() {
    language::check_run::<Llama>("llama");
    language::check_run::<Llama>("llama_linear");
    language::check_run::<Llama>("llama3");
}

#[test]
fn gradients() {
    language::check_gradients::<Llama>("llama");
    language::check_gradients::<Llama>("llama_linear");
    language::check_gradients::<Llama>("llama3");
}

#[test]
fn cache() {
    language::check_cache::<Llama>("llama");
    language::check_cache::<Llama>("llama_linear");
    language::check_cache::<Llama>("llama3");
}
