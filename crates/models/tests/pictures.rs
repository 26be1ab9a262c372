//! Pictures before a vision model reads them, and the names of its classes, against transformers
//! (`fixtures/make_pictures.py`).

mod support;

use foveal_models::model::{Preprocessor, Vit};
use foveal_models::trace::Probe;
use foveal_models::{Checkpoint, Config, Dtype};
use ndarray::{Array3, ArrayD};
use serde_json::{Value, json};

fn picture(values: &ArrayD<f64>) -> Array3<u8> {
    values.mapv(|x| x as u8).into_dimensionality().unwrap()
}

fn read(config: &Value) -> foveal_models::Result<Preprocessor> {
    Preprocessor::read(&Config::from_json("preprocessor_config.json", config.to_string().as_bytes()).unwrap())
}

#[test]
fn steps_are_those_of_transformers() {
    let folder = support::fixture("pictures");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.join("steps.json")).unwrap()).unwrap();
    let expected = support::tensors(&folder.join("steps.safetensors"));
    assert!(cases.len() > 15);
    for (number, case) in cases.iter().enumerate() {
        let steps = read(case).unwrap();
        assert_eq!(read(&steps.write()).unwrap(), steps, "{case}");
        for name in ["wide", "high"] {
            let expected = &expected[&format!("{number}.{name}")];
            let got = steps.values(&steps.fit(&picture(&support::tensors(&folder.join("steps.safetensors"))[name])));
            assert_eq!(got.shape(), expected.shape(), "{name}, {case}");
            let worst = got.iter().zip(expected).map(|(x, y)| (f64::from(*x) - y).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-6, "{name}, {case}: differs by {worst}");
        }
    }
}

#[test]
fn a_model_brings_its_steps_and_the_names_of_its_classes() {
    let folder = support::fixture("pictures");
    let model = Vit::load(&Checkpoint::open(folder.join("vit")).unwrap()).unwrap();
    assert_eq!(model.labels(), ["cat", "dog", "a bird, any", "새"]);
    let pictures = support::tensors(&folder.join("steps.safetensors"));
    let expected = support::tensors(&folder.join("vit/expected.safetensors"));
    let pixels = model.preprocessor().values(&model.preprocessor().fit(&picture(&pictures["wide"])));
    let near = |got: &[f32], expected: &ArrayD<f64>, limit: f64| {
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(expected).all(|(x, y)| (f64::from(*x) - y).abs() < limit), "{got:?} {expected}");
    };
    near(pixels.as_slice().unwrap(), &expected["pixels"], 1e-6);
    let logits = model.classify(&model.infer(&pixels, &mut Probe::default()).unwrap()).unwrap();
    near(logits.as_slice().unwrap(), &expected["logits"], 1e-4);
    // And keeps both when it is saved.
    let saved = tempfile::tempdir().unwrap();
    model.save(saved.path(), Dtype::F32).unwrap();
    assert_eq!(Vit::load(&Checkpoint::open(saved.path()).unwrap()).unwrap(), model);
}

#[test]
fn steps_that_are_not_done_here_are_named() {
    let cases = [
        (json!({"image_processor_type": "ConvNextImageProcessor"}), "image_processor_type"),
        (json!({"do_pad": true}), "do_pad"),
        (json!({"resample": 6}), "resample"),
        (json!({"size": {"longest_edge": 5}}), "size"),
        (json!({"size": {"height": 5}}), "size.width"),
        (json!({"size": 100_000}), "size"),
        (json!({"image_std": [0.5, 0.0, 0.5]}), "image_std"),
        (json!({"image_mean": "grey"}), "image_mean"),
        (json!({"do_resize": 1}), "do_resize"),
    ];
    for (config, key) in cases {
        let error = read(&config).unwrap_err().to_string();
        assert!(error.contains(key), "{config}: {error}");
    }
}
