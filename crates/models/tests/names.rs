//! The same model from a Hugging Face folder and from GGUF: the same names, shapes, numbers and configuration.

mod support;

use foveal_models::{Architecture, Checkpoint};

fn both(name: &str) -> (Checkpoint, Checkpoint) {
    let folder = Checkpoint::open(support::fixture(&format!("checkpoints/{name}"))).unwrap();
    let gguf = Checkpoint::open(support::fixture(&format!("checkpoints/{name}.gguf"))).unwrap();
    (folder, gguf)
}

fn same_tensors(folder: &Checkpoint, gguf: &Checkpoint, only_in_folder: &str) {
    for name in gguf.names() {
        let expected = folder.tensor(name).unwrap();
        assert_eq!(gguf.array(name, expected.shape()).unwrap(), expected.to_f32().unwrap(), "{name}");
    }
    for name in folder.names().filter(|name| !name.starts_with(only_in_folder)) {
        assert!(gguf.get(name).is_some(), "{name}");
    }
}

fn same_config(folder: &Checkpoint, gguf: &Checkpoint, sizes: &[&str], floats: &[&str], texts: &[&str]) {
    let (folder, gguf) = (folder.config(), gguf.config());
    for key in sizes {
        assert_eq!(gguf.size(key).unwrap(), folder.size(key).unwrap(), "{key}");
    }
    for key in floats {
        assert_eq!(gguf.float(key).unwrap(), folder.float(key).unwrap(), "{key}");
    }
    for key in texts {
        assert_eq!(gguf.text(key).unwrap(), folder.text(key).unwrap(), "{key}");
    }
    assert_eq!(
        gguf.flag_or("tie_word_embeddings", false).unwrap(),
        folder.flag_or("tie_word_embeddings", false).unwrap()
    );
}

#[test]
fn llama() {
    let (folder, gguf) = both("llama");
    assert_eq!(
        (folder.architecture().unwrap(), gguf.architecture().unwrap()),
        (Architecture::Llama, Architecture::Llama)
    );
    same_tensors(&folder, &gguf, "none");
    let sizes = [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
    ];
    same_config(&folder, &gguf, &sizes, &["rms_norm_eps"], &["model_type", "hidden_act"]);
    let rope = folder.config().section("rope_parameters").unwrap().unwrap();
    assert_eq!(gguf.config().float("rope_theta").unwrap(), rope.float("rope_theta").unwrap());
}

#[test]
fn gpt2() {
    let (folder, gguf) = both("gpt2");
    same_tensors(&folder, &gguf, "none");
    let sizes = ["vocab_size", "n_embd", "n_inner", "n_layer", "n_head", "n_positions"];
    same_config(&folder, &gguf, &sizes, &["layer_norm_epsilon"], &["model_type", "activation_function"]);
    assert_eq!(gguf.tensor("h.0.mlp.c_fc.weight").unwrap().shape(), [16, 24]);
    assert_eq!(gguf.tensor("transformer.h.0.mlp.c_fc.weight").unwrap().shape(), [16, 24]);
}

#[test]
fn bert() {
    let (folder, gguf) = both("bert");
    same_tensors(&folder, &gguf, "cls.");
    let sizes = [
        "vocab_size",
        "type_vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
    ];
    same_config(&folder, &gguf, &sizes, &["layer_norm_eps"], &["model_type", "hidden_act"]);
}

#[test]
fn a_missing_tensor_names_its_nearest() {
    let (folder, _) = both("llama");
    let error = folder.tensor("model.layers.7.self_attn.q_proj.weight").unwrap_err().to_string();
    assert!(
        error.contains("the nearest name it has is model.layers.0.self_attn.q_proj.weight")
            || error.contains("model.layers.1.self_attn.q_proj.weight"),
        "{error}"
    );
    let error = folder.array2("lm_head.weight", [25, 16]).unwrap_err().to_string();
    assert!(error.contains("has shape [24, 16], but the configuration calls for [25, 16]"), "{error}");
}
