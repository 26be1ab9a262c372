//! Files that are sound but not read here: the error names what it is, and nothing calls them damaged.

use super::files::{folder, refused, safetensors};
use super::gguf_file::Gguf;
use foveal_models::model::Model;
use foveal_models::{Checkpoint, Error, Tokenizer};

const LLAMA: &str = r#""model_type": "llama", "vocab_size": 8, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
"intermediate_size": 8, "tie_word_embeddings": true"#;

/// A Llama of these keys and tensors, each of some bytes of a type.
fn load(keys: &str, tensors: &[(&str, &str, usize)]) -> Result<Model, Error> {
    let (mut header, mut end) = (Vec::new(), 0);
    for (name, dtype, bytes) in tensors {
        let size = match *dtype {
            "F64" | "I64" => 8,
            "F32" => 4,
            _ => 1,
        };
        let start = end;
        end += bytes;
        let shape = bytes / size;
        header
            .push(format!(r#""{name}": {{"dtype": "{dtype}", "shape": [{shape}], "data_offsets": [{start}, {end}]}}"#));
    }
    let weights = safetensors(format!("{{{}}}", header.join(", ")), &vec![0; end]);
    let config = format!("{{{LLAMA}{keys}}}");
    let folder = folder(&[("config.json", config.as_bytes()), ("model.safetensors", &weights)]);
    Model::load(&Checkpoint::open(folder.path()).unwrap())
}

#[test]
fn quantised_weights() {
    let some = [("model.embed_tokens.weight", "F32", 256)];
    refused(load(r#", "quantization_config": {"quant_method": "gptq", "bits": 4}"#, &some), &["quant_method is gptq"]);
    refused(load(r#", "quantization_config": {"quant_method": "awq"}"#, &some), &["quant_method is awq"]);
    refused(
        load(r#", "quantization_config": {"load_in_4bit": true}"#, &some),
        &["bitsandbytes", "before it was quantised"],
    );
    refused(load("", &[("model.layers.0.mlp.up_proj.qweight", "I64", 8)]), &["gptq", "up_proj.qweight"]);
    let four_bits =
        [("model.layers.0.mlp.up_proj.weight", "U8", 32), ("model.layers.0.mlp.up_proj.weight.absmax", "F32", 4)];
    refused(load("", &four_bits), &["bitsandbytes (4 bits)"]);
    refused(load("", &[("model.layers.0.mlp.up_proj.SCB", "F32", 32)]), &["bitsandbytes (8 bits)"]);
    refused(
        load("", &[("model.layers.0.mlp.up_proj.weight", "I8", 64)]),
        &["up_proj.weight has type I8", "F16 or BF16"],
    );
}

/// Numbers of 64 bits are read, and rounded.
#[test]
fn double_precision() {
    let bytes = [1.5f64, 1.0 / 3.0].map(f64::to_le_bytes).concat();
    let weights = safetensors(r#"{"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}"#, &bytes);
    let folder = folder(&[("config.json", br#"{"model_type": "llama"}"#), ("model.safetensors", &weights)]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let numbers: Vec<f32> = checkpoint.tensor("a").unwrap().to_f32().unwrap().into_iter().collect();
    assert_eq!(numbers, [1.5, 1.0 / 3.0]);
}

#[test]
fn types_of_gguf() {
    // 256 numbers of Q2_K, which take 84 bytes.
    let gguf =
        Gguf::default().text("general.architecture", "llama").tensor("output_norm.weight", &[256], 10, 0).data(84);
    let folder = folder(&[("m.gguf", &gguf.bytes())]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let error = refused(checkpoint.tensor("model.norm.weight").unwrap().to_f32(), &["has type Q2_K", "Q4_K"]);
    assert!(matches!(error, Error::Dtype { .. }) && !error.to_string().contains("damaged"));
}

#[test]
fn pickled_weights() {
    let open = |name: &str| Checkpoint::open(folder(&[("config.json", b"{}"), (name, b"{}")]).path());
    for name in ["pytorch_model.bin", "pytorch_model.bin.index.json"] {
        refused(open(name), &[name, "save them as safetensors"]);
    }
}

#[test]
fn several_models_in_a_folder() {
    let gguf = Gguf::default().text("general.architecture", "llama").bytes();
    let two = folder(&[("a.gguf", &gguf), ("b.gguf", &gguf)]);
    refused(Checkpoint::open(two.path()), &["2 .gguf files", "name one"]);
}

/// What a file says of its model and is not known here is named, and not passed over.
#[test]
fn keys_of_gguf_that_are_not_read() {
    let open = |gguf: Gguf| {
        let folder = folder(&[("m.gguf", &gguf.text("general.architecture", "llama").bytes())]);
        Checkpoint::open(folder.path()).map(drop)
    };
    let sized = || Gguf::default().u32("llama.embedding_length", 8).u32("llama.attention.head_count", 2);
    open(sized()).unwrap();
    open(sized().value("llama.attention.causal", 7, &[1])).unwrap();
    open(sized().u32("llama.expert_count", 0).u32("llama.attention.value_length", 4)).unwrap();
    refused(
        open(sized().value("llama.attention.causal", 7, &[0])),
        &["llama.attention.causal is false, expected true"],
    );
    refused(open(sized().u32("llama.expert_count", 8)), &["llama.expert_count is 8, expected 0"]);
    refused(open(sized().u32("llama.attention.value_length", 2)), &["llama.attention.value_length is 2, expected 4"]);
    refused(open(sized().f32("llama.attention.scale", 0.5)), &["llama.attention.scale is 0.5", "not computed here"]);
    refused(open(sized().f32("llama.logit_scale", 0.5)), &["llama.logit_scale"]);
}

/// Ids that are no token's mean that there is none.
#[test]
fn ids_beyond_the_vocabulary() {
    let open = |keys: &str| {
        let config = format!(r#"{{"model_type": "gpt2"{keys}}}"#);
        let vocabulary: &[u8] = br#"{"a": 0, "b": 1, "ab": 2}"#;
        let files: [(&str, &[u8]); 4] = [
            ("config.json", config.as_bytes()),
            ("model.safetensors", &safetensors("{}", &[])),
            ("vocab.json", vocabulary),
            ("merges.txt", b"a b\n"),
        ];
        let folder = folder(&files);
        Tokenizer::of(&Checkpoint::open(folder.path()).unwrap())
    };
    let special = *open(r#", "bos_token_id": 50256, "eos_token_id": 1, "pad_token_id": -1"#).unwrap().special();
    assert_eq!((special.bos, special.eos, special.pad), (None, Some(1), None));
    refused(open(r#", "eos_token_id": "x""#), &["eos_token_id"]);
    refused(open(r#", "eos_token_id": -2"#), &["eos_token_id"]);
}
