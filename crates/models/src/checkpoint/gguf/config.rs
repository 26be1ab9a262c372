//! GGUF's metadata under the key names of Hugging Face's `config.json`, so that a model reads one configuration.

use serde_json::{Map, Value as Json, json};

use super::{Info, Metadata, Value};
use crate::Result;
use crate::checkpoint::{Architecture, Config};

/// Hugging Face's key, and the metadata key after the architecture's name.
type Keys = &'static [(&'static str, &'static str)];

const GPT2: Keys = &[
    ("n_embd", "embedding_length"),
    ("n_inner", "feed_forward_length"),
    ("n_layer", "block_count"),
    ("n_head", "attention.head_count"),
    ("n_positions", "context_length"),
    ("layer_norm_epsilon", "attention.layer_norm_epsilon"),
];

const BERT: Keys = &[
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_hidden_layers", "block_count"),
    ("num_attention_heads", "attention.head_count"),
    ("max_position_embeddings", "context_length"),
    ("layer_norm_eps", "attention.layer_norm_epsilon"),
];

const LLAMA: Keys = &[
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_hidden_layers", "block_count"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
    ("head_dim", "attention.key_length"),
    ("max_position_embeddings", "context_length"),
    ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    ("rope_theta", "rope.freq_base"),
    ("rotary_dim", "rope.dimension_count"),
    ("original_max_position_embeddings", "rope.scaling.original_context_length"),
    ("vocab_size", "vocab_size"),
];

/// The same for every architecture, and named whole.
const TOKENS: Keys = &[
    ("bos_token_id", "tokenizer.ggml.bos_token_id"),
    ("eos_token_id", "tokenizer.ggml.eos_token_id"),
    ("pad_token_id", "tokenizer.ggml.padding_token_id"),
];

pub(super) fn from_metadata(metadata: &Metadata, tensors: &[Info]) -> Result<Config> {
    let path = metadata.file().path();
    let Some(name) = metadata.text("general.architecture") else {
        return Err(metadata.file().format_error("general.architecture", "absent or not a text"));
    };
    let mut values = Map::new();
    values.insert("model_type".into(), name.into());
    let keys = match Architecture::of(&Config::new(path, values.clone())) {
        Ok(Architecture::Gpt2) => GPT2,
        Ok(Architecture::Bert) => BERT,
        Ok(Architecture::Llama) => LLAMA,
        // A file of another kind can still be looked into; asking for its model names the kinds there are.
        _ => return Ok(Config::new(path, values)),
    };
    let rows = |tensor: &str| tensors.iter().find(|info| info.name == tensor).map(|info| info.shape[0]);
    values.extend(rows("token_embd.weight").map(|rows| ("vocab_size".into(), rows.into())));
    values.extend(rows("token_types.weight").map(|rows| ("type_vocab_size".into(), rows.into())));
    for (key, from) in keys.iter().map(|(key, from)| (key, format!("{name}.{from}"))) {
        values.extend(metadata.get(&from).map(|value| ((*key).into(), to_json(value, metadata))));
    }
    for (key, from) in TOKENS {
        values.extend(metadata.get(from).map(|value| ((*key).into(), to_json(value, metadata))));
    }
    // What GGUF takes for granted of an architecture and Hugging Face writes down.
    match name {
        "gpt2" => values.insert("activation_function".into(), "gelu_new".into()),
        "bert" => values.insert("hidden_act".into(), "gelu".into()),
        _ => values.insert("hidden_act".into(), "silu".into()),
    };
    values.insert("tie_word_embeddings".into(), rows("output.weight").is_none().into());
    if name == "llama" {
        values.insert("attention_bias".into(), rows("blk.0.attn_q.bias").is_some().into());
        values.insert("mlp_bias".into(), rows("blk.0.ffn_up.bias").is_some().into());
    }
    values.extend(rope_scaling(name, metadata).map(|scaling| ("rope_scaling".into(), scaling)));
    Ok(Config::new(path, values))
}

/// A factor without a kind stretches positions evenly; older files have a key of its own for that.
fn rope_scaling(name: &str, metadata: &Metadata) -> Option<Json> {
    let get = |key: &str| metadata.get(&format!("{name}.rope.{key}")).map(|value| to_json(value, metadata));
    let kind = metadata.text(&format!("{name}.rope.scaling.type"));
    let factor = get("scaling.factor").or_else(|| get("scale_linear"));
    let kind = kind.or_else(|| factor.is_some().then_some("linear")).filter(|&kind| kind != "none")?;
    Some(json!({ "rope_type": kind, "factor": factor }))
}

fn to_json(value: &Value, metadata: &Metadata) -> Json {
    match value {
        Value::Whole(n) => match (u64::try_from(*n), i64::try_from(*n)) {
            (Ok(n), _) => n.into(),
            (_, Ok(n)) => n.into(),
            _ => Json::Null,
        },
        Value::Float(x) => shortest(*x).into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Text(range) => String::from_utf8_lossy(&metadata.file().bytes()[range.clone()]).into(),
        // No key that is read holds a list; one that does gets an error which shows this.
        Value::Array(kind, count, _) => format!("a list of {count} {kind:?}").into(),
    }
}

/// GGUF keeps 1e-5 as f32, which is 9.99999974e-6 as f64. The shortest decimal that gives the same f32 is the number
/// that was meant.
fn shortest(x: f64) -> f64 {
    let single = x as f32;
    if f64::from(single) == x { single.to_string().parse().unwrap_or(x) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_that_was_meant() {
        assert_eq!(shortest(f64::from(1e-5_f32)), 1e-5);
        assert_eq!(shortest(1e-12), 1e-12);
        assert_eq!(shortest(f64::from(1e-12_f32)), 1e-12);
        assert!(shortest(f64::NAN).is_nan());
    }
}
