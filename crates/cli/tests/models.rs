//! The command on models of other kinds than those inside, BERT and Llama, and with heads switched off.

mod support;

use std::path::Path;

use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Bert, BertConfig, LanguageModel, Llama};
use foveal_models::trace::Probe;
use foveal_models::{Dtype, Model, OpenModel};
use support::{json, matrix, printed, refused};

/// A small BERT with large random weights and a vocabulary of its own.
fn bert(folder: &Path) {
    let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "##s"];
    let sizes = BertConfig { context: 32, width: 16, layers: 2, heads: 4, hidden: 32, ..BertConfig::minilm() };
    let mut model = Bert::new(&BertConfig { vocabulary: words.len(), ..sizes }, &mut Random::new(3)).unwrap();
    model.visit_mut("", &mut |name, mut parameter| {
        if name.ends_with("weight") && parameter.ndim() == 2 {
            parameter.mapv_inplace(|x| x * 3.0);
        }
    });
    model.save(folder, Dtype::F32).unwrap();
    std::fs::write(folder.join("vocab.txt"), words.join("\n")).unwrap();
}

#[test]
fn an_encoder_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    bert(folder.path());
    let model = folder.path().to_str().unwrap();
    let figures = json(&["see", "The cats sat on the mat", "--model", model, "--layer", "1", "--head", "2"]);
    assert_eq!(figures["kind"], "encoder");
    let labels = serde_json::json!(["[CLS]", "The", "cat", "s", "sat", "on", "the", "mat", "[SEP]"]);
    assert_eq!((&figures["queries"], &figures["keys"]), (&labels, &labels));
    assert_eq!(figures["next"], serde_json::json!([]), "an encoder predicts no next token");
    let values = matrix(&figures["heads"][0]["values"]);
    assert!(values.iter().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-4), "{values:?}");
    assert!(values[0][8] > 0.0 && values[2][5] > 0.0, "an encoder sees what comes later: {values:?}");
    // The same numbers from the model itself.
    let open = OpenModel::open(model).unwrap();
    let seen = open.observe("The cats sat on the mat").unwrap();
    let weights = seen.layer(1).unwrap().weights(0, 2).unwrap();
    for ((i, j), w) in weights.indexed_iter() {
        assert!((f64::from(*w) - values[i][j]).abs() < 1e-6, "at {i}, {j}");
    }
    let words = json(&["see", "The cats sat", "--model", model, "--tokens", "words"]);
    assert_eq!(words["keys"], serde_json::json!(["[CLS]", "The", "cats", "sat", "[SEP]"]));
    let all = json(&["see", "The cats sat", "--model", model, "--head", "all"]);
    assert_eq!(all["heads"].as_array().unwrap().len(), 2 * 4);
    let shown = printed(&["see", "The cats sat", "--model", model]);
    assert!(shown.contains("encoder · layer ") && !shown.contains("next"), "{shown}");
    assert!(refused(&["see", "the", "--model", model, "--kind", "decoder"]).contains("no decoder attention"));
    assert!(refused(&["see", &"cat ".repeat(40), "--model", model]).contains("32 positions"));
    assert!(refused(&["generate", "the cat", "--model", model]).contains("cannot predict the next token"));
    let heads = json(&["heads", "the cat", "--model", model]);
    assert_eq!(heads["heads"].as_array().unwrap().len(), 2 * 4);
}

#[test]
fn a_llama_is_trained_seen_and_written_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("text.txt"), folder.path().join("llama"));
    std::fs::write(&source, "the cat sat on the mat and the dog sat on the log. ".repeat(40)).unwrap();
    let (source, model) = (source.to_str().unwrap(), target.to_str().unwrap());
    let sizes = ["--dims", "32", "--heads", "4", "--layers", "2", "--context", "32", "--batch", "4", "--steps", "40"];
    printed(&[&["train", "text", source, "-d", model, "--shape", "llama"][..], &sizes].concat());
    assert!(matches!(OpenModel::open(model).unwrap().model, Model::Llama(_)));

    let figures = json(&["see", "the cat sat", "--model", model, "--head", "all"]);
    let heads = figures["heads"].as_array().unwrap();
    assert_eq!((figures["kind"].as_str(), heads.len()), (Some("decoder"), 2 * 4));
    for head in heads {
        for (i, row) in matrix(&head["values"]).iter().enumerate() {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-4 && row[i + 1..].iter().all(|w| *w == 0.0), "{head}");
        }
    }
    let next = figures["next"].as_array().unwrap();
    assert_eq!(next.len(), 5);
    let ps: Vec<f64> = next.iter().map(|next| next["p"].as_f64().unwrap()).collect();
    assert!(ps.is_sorted_by(|a, b| a >= b) && ps.iter().sum::<f64>() <= 1.0 + 1e-5 && ps[0] > 1.0 / 16.0, "{ps:?}");

    let listed = json(&["heads", "the cat sat on the mat", "--model", model, "--period", "8"]);
    assert_eq!(listed["heads"].as_array().unwrap().len(), 8);
    let map = json(&["map", source, "--model", model, "--pixels", "8"]);
    assert_eq!((map["tokens"].as_u64(), map["pixels"].as_array().unwrap().len()), (Some(32), 8));
    let written = json(&["generate", "the cat", "-n", "6", "--model", model]);
    assert_eq!(written["tokens"].as_array().unwrap().len(), 6);
    let long = json(&["generate", "the cat", "-n", "60", "--slide", "--model", model]);
    assert_eq!(long["tokens"].as_array().unwrap().len(), 60);
}

/// The model inside without one head: the columns of W_o that its output goes through are 0.
fn without(model: &Llama, layer: usize, head: usize) -> Llama {
    let mut model = model.clone();
    let dim = model.config().width / model.config().heads;
    let mut found = 0;
    model.visit_mut("", &mut |name, mut parameter| {
        let place = format!("layers.{layer}.");
        if name.contains(&place) && name.ends_with("o_proj.weight") {
            let columns = ndarray::Slice::from(head * dim..(head + 1) * dim);
            parameter.slice_axis_mut(ndarray::Axis(1), columns).fill(0.0);
            found += 1;
        }
    });
    assert_eq!(found, 1, "one W_o in layer {layer}");
    model
}

#[test]
fn ablation_tells_what_is_lost_without_each_head() {
    let text = "ROMEO: But soft, what light through yonder window breaks?";
    let figures = json(&["heads", text, "--ablate", "--period", "16"]);
    let open = OpenModel::open("shakespeare").unwrap();
    let Model::Llama(model) = &open.model else { panic!("the model inside is a Llama") };
    let tokens = open.tokenizer().unwrap().encode(text).unwrap().ids().to_vec();
    let loss = |model: &Llama| model.loss(&tokens, &mut Probe::default()).unwrap().mean;
    let heads = figures["heads"].as_array().unwrap();
    assert_eq!(heads.len(), model.config().layers * model.config().heads);
    let mut largest: f64 = 0.0;
    for head in heads {
        let (layer, number) = (head["layer"].as_u64().unwrap() as usize, head["head"].as_u64().unwrap() as usize);
        let got = head["loss_without"].as_f64().unwrap();
        let expected = f64::from(loss(&without(model, layer, number)) - loss(model));
        assert!((got - expected).abs() < 1e-4, "layer {layer}, head {number}: {got}, expected {expected}");
        largest = largest.max(got.abs());
    }
    assert!(largest > 0.01, "some head matters: {largest}");
    let shown = printed(&["heads", text, "--ablate", "--period", "16", "--top", "3"]);
    assert!(shown.contains("Δ loss"), "{shown}");
    assert!(!printed(&["heads", text, "--period", "16", "--top", "3"]).contains("Δ loss"));
    assert!(json(&["heads", text, "--period", "16"])["heads"][0]["loss_without"].is_null());
}
