//! Llama 3 from GGUF, made as llama.cpp's converter makes it: biases are said by nothing but their tensors, and the scaling of
//! the rotary positions by a tensor of factors.

use foveal::RopeScaling;
use foveal_models::model::{LanguageModel, Llama};
use foveal_models::trace::Probe;
use foveal_models::{Checkpoint, Error, Result};
use ndarray::{Array2, ArrayD, Axis, Ix3};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::expected::{Expected, folder, near};
use crate::gguf_file::Gguf;

/// The sizes of the fixture's attention.
const HEADS: usize = 4;
const KEY_HEADS: usize = 2;
const DIM: usize = 6;

/// What the converter makes of Llama 3's parameters, in its words and its f32.
fn factors(base: f32, factor: f32, trained: f32) -> Vec<f32> {
    let frequencies = (0..DIM / 2).map(|m| 1.0 / base.powf((2 * m) as f32 / DIM as f32));
    let factor = |frequency: f32| {
        let length = std::f32::consts::TAU / frequency;
        if length < trained / 4.0 {
            1.0
        } else if length > trained {
            factor
        } else {
            let smooth = (trained / length - 1.0) / 3.0;
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    };
    frequencies.map(factor).collect()
}

/// The model `llama3` as the converter would write it, but for its factors.
fn gguf(base: f32) -> Gguf {
    let sizes = [
        ("embedding_length", 20),
        ("block_count", 2),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KEY_HEADS),
        ("attention.key_length", DIM),
        ("context_length", 512),
    ];
    let checkpoint = Checkpoint::open(folder("llama3")).unwrap();
    let hidden = checkpoint.config().size("intermediate_size").unwrap();
    let start = Gguf::default()
        .text("general.architecture", "llama")
        .u32("llama.feed_forward_length", hidden as u32)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-6)
        .f32("llama.rope.freq_base", base);
    let start = sizes.iter().fold(start, |gguf, (key, size)| gguf.u32(&format!("llama.{key}"), *size as u32));
    let names = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.", "attn_"),
        ("mlp.", "ffn_"),
        ("_proj", ""),
    ];
    checkpoint.names().fold(start, |gguf, name| {
        let tensor = checkpoint.tensor(name).unwrap();
        let numbers = match name {
            _ if name.contains("q_proj") => paired(&tensor.to_f32().unwrap(), HEADS),
            _ if name.contains("k_proj") => paired(&tensor.to_f32().unwrap(), KEY_HEADS),
            _ => tensor.to_f32().unwrap().into_iter().collect(),
        };
        let name = names.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to));
        gguf.numbers(&name, tensor.shape(), numbers)
    })
}

/// Rows in the order that the converter gives to queries and keys: those that turn together side by side.
fn paired(rows: &ArrayD<f32>, heads: usize) -> Vec<f32> {
    let halves = rows.to_shape((heads * 2, DIM / 2, rows.len() / (heads * DIM))).unwrap();
    let halves = halves.into_dimensionality::<Ix3>().unwrap();
    let heads = halves.axis_chunks_iter(Axis(0), 2);
    heads.flat_map(|head| head.permuted_axes([1, 0, 2]).iter().copied().collect::<Vec<_>>()).collect()
}

fn load(gguf: &Gguf) -> Result<Llama> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, gguf.bytes()).unwrap();
    Llama::load(&Checkpoint::open(path).unwrap())
}

/// The model `llama3` in a folder, with other parameters of its rotary positions.
fn load_folder(rope: &Value) -> Llama {
    let copy: TempDir = tempfile::tempdir().unwrap();
    std::fs::copy(folder("llama3").join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(folder("llama3").join("config.json")).unwrap()).unwrap();
    config["rope_parameters"] = rope.clone();
    std::fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    Llama::load(&Checkpoint::open(copy.path()).unwrap()).unwrap()
}

fn llama3(base: f32, factor: f32) -> Value {
    json!({
        "rope_type": "llama3", "rope_theta": base, "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    })
}

fn logits(model: &Llama, tokens: &[u32], batch: usize) -> Array2<f32> {
    model.logits(model.infer(tokens, batch, None, &mut Probe::default()).unwrap().view()).unwrap()
}

/// A file that names the length its model was trained on gives what Hugging Face computes.
#[test]
fn the_trained_length_from_the_metadata() {
    let file = gguf(100.0).u32("llama.rope.scaling.original_context_length", 64);
    let model = load(&file.numbers("rope_freqs.weight", &[3], factors(100.0, 8.0, 64.0))).unwrap();
    let scaling = RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, trained: 64 };
    assert_eq!(model.config().rope_scaling, scaling);
    let expected = Expected::of("llama3");
    expected.check_rows("logits", &logits(&model, &expected.shifted("ids").0, 2));
}

/// Files of Llama 3.1 and 3.2 say nothing beside their factors.
#[test]
fn the_scaling_from_the_factors_alone() {
    let tokens: Vec<u32> = (0..500).map(|i| i * i % 19).collect();
    // The second base makes wavelengths of 6, 2,916 and 1,353,000 tokens: one stays, one is in between, one is stretched.
    // The third has 6, 160 and 4,097: none is stretched by the whole factor.
    for base in [500_000.0, 1e8, 16_650.0] {
        let plain = load(&gguf(base)).unwrap();
        assert_eq!(plain.config().rope_scaling, RopeScaling::None);
        for factor in [8.0, 32.0] {
            let file = gguf(base).numbers("rope_freqs.weight", &[3], factors(base, factor, 8192.0));
            let (got, expected) = (load(&file).unwrap(), load_folder(&llama3(base, factor)));
            assert_eq!(got.config().rope_scaling, expected.config().rope_scaling, "base {base}, factor {factor}");
            let [got, expected, plain] =
                [&got, &expected, &plain].map(|model| logits(model, &tokens, 1).mapv(f64::from));
            near(format_args!("base {base}, factor {factor}"), &expected, &got, 1e-4);
            let changed = (&plain - &expected).iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            assert!(changed > 1e-2, "base {base}: the scaling changes no more than {changed}");
        }
    }
}

#[test]
fn factors_of_one_change_nothing() {
    let plain = load_folder(&json!({"rope_type": "default", "rope_theta": 100.0}));
    assert!(plain.config().attention_bias);
    assert_eq!(load(&gguf(100.0)).unwrap(), plain);
    let ones = |gguf: Gguf| load(&gguf.numbers("rope_freqs.weight", &[3], [1.0; 3])).unwrap();
    assert_eq!(ones(gguf(100.0)), plain);
    let linear = gguf(100.0).text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 3.0);
    assert_eq!(ones(linear), load_folder(&json!({"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0})));
}

#[test]
fn factors_of_another_rule_are_refused() {
    let refused = |gguf: &Gguf, parts: &[&str]| {
        let error = load(gguf).unwrap_err();
        assert!(matches!(&error, Error::Config { key, .. } if key == "rope_freqs.weight"), "{error:?}");
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text:?} does not say {parts:?}");
    };
    let with = |factors: [f32; 3]| gguf(1e8).numbers("rope_freqs.weight", &[3], factors);
    for other in [[1.0, 2.5, 8.0], [1.0, 1.0, 8.0], [8.0, 8.0, 8.0], [1.0, 0.5, 0.125]] {
        refused(&with(other), &["model.gguf", "3 factors from", "the base 100000000 ", "Hugging Face folder"]);
    }
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -8.0] {
        refused(&with([1.0, broken, 8.0]), &[&format!("{broken} for pair 1"), "finite factors above 0"]);
    }
    // Stretched by both, which no rule describes.
    let linear = gguf(1e8).text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 3.0);
    refused(&linear.numbers("rope_freqs.weight", &[3], factors(1e8, 8.0, 8192.0)), &["another rule"]);
}

#[test]
fn factors_of_another_shape_are_refused() {
    for shape in [&[2][..], &[4], &[6], &[0], &[1, 3], &[3, 1]] {
        let count = shape.iter().product();
        let error = load(&gguf(1e8).numbers("rope_freqs.weight", shape, vec![1.0; count])).unwrap_err();
        let Error::Shape { name, expected, got } = &error else { panic!("{error:?}") };
        assert_eq!((name.as_str(), &expected[..], &got[..]), ("rope_freqs.weight", &[3][..], shape));
    }
}

#[test]
fn a_factor_without_a_kind_stretches_evenly() {
    let expected = load_folder(&json!({"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0}));
    for key in ["llama.rope.scaling.factor", "llama.rope.scale_linear"] {
        assert_eq!(load(&gguf(100.0).f32(key, 3.0)).unwrap(), expected, "{key}");
    }
    let none = gguf(100.0).text("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 3.0);
    assert_eq!(load(&none).unwrap(), load_folder(&json!({"rope_type": "default", "rope_theta": 100.0})));
}

#[test]
fn positions_on_a_part_of_a_head_are_refused() {
    assert!(load(&gguf(100.0).u32("llama.rope.dimension_count", 6)).is_ok());
    let error = load(&gguf(100.0).u32("llama.rope.dimension_count", 4)).unwrap_err();
    assert!(error.to_string().contains("rotary_dim") && error.to_string().contains("6, all of a head"), "{error}");
}

/// Biases of the MLP are said by nothing but their tensors, too.
#[test]
fn biases_of_the_mlp() {
    let hidden = Checkpoint::open(folder("llama3")).unwrap().config().size("intermediate_size").unwrap();
    let with_biases = (0..2).fold(gguf(100.0), |gguf, layer| {
        [("gate", hidden), ("up", hidden), ("down", 20)].into_iter().fold(gguf, |gguf, (part, size)| {
            gguf.numbers(&format!("blk.{layer}.ffn_{part}.bias"), &[size], (0..size).map(|i| i as f32 - 0.5))
        })
    });
    let model = load(&with_biases).unwrap();
    assert!(model.config().mlp_bias);
    for block in &model.layers {
        let mlp = &block.mlp.layer;
        for linear in [&mlp.gate, &mlp.up, &mlp.down] {
            assert!(linear.bias.as_ref().unwrap().iter().enumerate().all(|(i, x)| *x == i as f32 - 0.5));
        }
    }
}

/// YaRN in a file, whose own attention factor comes on top, is the folder's with the product of both.
#[test]
fn yarn() {
    let yarn = |gguf: Gguf| {
        gguf.text("llama.rope.scaling.type", "yarn")
            .f32("llama.rope.scaling.factor", 4.0)
            .u32("llama.rope.scaling.original_context_length", 64)
    };
    let said = |attention: Option<f64>| {
        json!({
            "rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 64,
            "attention_factor": attention,
        })
    };
    assert_eq!(load(&yarn(gguf(100.0))).unwrap(), load_folder(&said(None)));
    let longer = load(&yarn(gguf(100.0)).f32("llama.rope.scaling.attn_factor", 0.5)).unwrap();
    assert_eq!(longer, load_folder(&said(Some(0.5 * (0.1 * 4f64.ln() + 1.0)))));
    // Without YaRN the factor stands alone.
    let alone = load(&gguf(100.0).f32("llama.rope.scaling.attn_factor", 2.0)).unwrap();
    assert_eq!(alone.config().rope_attention_factor, 2.0);
    let plain = load(&gguf(100.0).f32("llama.rope.scaling.attn_factor", 1.0)).unwrap();
    assert_eq!(plain, load(&gguf(100.0)).unwrap());
    assert_ne!(logits(&alone, &[1, 2, 3], 1), logits(&plain, &[1, 2, 3], 1));
    let linear = gguf(100.0).text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 2.0);
    let error = load(&linear.f32("llama.rope.scaling.attn_factor", 2.0)).unwrap_err().to_string();
    assert!(error.contains("linear with attn_factor 2"), "{error}");
}
