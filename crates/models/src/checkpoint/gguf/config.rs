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

/// Keys of every architecture that change nothing here: what a model's parts after its body are like, where a file comes from.
const WITHOUT_EFFECT: [&str; 6] = [
    "tensor_data_layout",
    "rope.scaling.finetuned",
    "rope.dimension_count",
    "pooling_type",
    "classifier.output_labels",
    "embedding_length_out",
];

/// Keys of rotary positions that are read apart from the others.
const ROPE: [&str; 6] = [
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
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
    check_others(name, keys, metadata)?;
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

/// Refuses what the file says of its model beyond what is read. The keys under an architecture's name say how to compute, and
/// one that is not known here would change the numbers without a word.
fn check_others(name: &str, keys: Keys, metadata: &Metadata) -> Result<()> {
    let refuse = |key: &str, got: String, expected: &str| {
        let config = Config::new(metadata.file().path(), Map::new());
        Err(config.error(key, expected, got))
    };
    for (key, value) in metadata.under(name) {
        let own = &key[name.len() + 1..];
        let is_read = keys.iter().any(|(_, from)| *from == own) || (name == "llama" && ROPE.contains(&own));
        if is_read || WITHOUT_EFFECT.contains(&own) {
            continue;
        }
        let json = to_json(value, metadata);
        let neutral: Json = match own {
            // An encoder attends to both sides, the others to the past.
            "attention.causal" => (name != "bert").into(),
            "expert_count" | "expert_used_count" | "leading_dense_block_count" => 0.into(),
            "attention.head_count_kv" => metadata.whole(&format!("{name}.attention.head_count")).into(),
            // The values' heads are as large as the keys'.
            "attention.value_length" | "attention.key_length" => head_dim(name, metadata).into(),
            _ => return refuse(key, json.to_string(), "no such key: what it asks for is not computed here"),
        };
        if json != neutral {
            return refuse(key, json.to_string(), &neutral.to_string());
        }
    }
    Ok(())
}

/// The dimension of a head, as the file says or by the number of heads; 0 if it says neither.
fn head_dim(name: &str, metadata: &Metadata) -> u32 {
    let whole = |key: &str| metadata.whole(&format!("{name}.{key}"));
    let by_heads = || Some(whole("embedding_length")?.checked_div(whole("attention.head_count")?)).flatten();
    let said = if name == "llama" { whole("attention.key_length") } else { None };
    said.or_else(by_heads).unwrap_or(0)
}

/// A factor without a kind stretches positions evenly; older files have a key of its own for that. `attn_factor` makes queries
/// and keys longer, beside what YaRN does.
fn rope_scaling(name: &str, metadata: &Metadata) -> Option<Json> {
    let get = |key: &str| metadata.get(&format!("{name}.rope.{key}")).map(|value| to_json(value, metadata));
    let kind = metadata.text(&format!("{name}.rope.scaling.type"));
    let factor = get("scaling.factor").or_else(|| get("scale_linear"));
    let kind = kind.or_else(|| factor.is_some().then_some("linear")).filter(|&kind| kind != "none");
    let longer = get("scaling.attn_factor").filter(|longer| longer.as_f64() != Some(1.0));
    match (kind, longer) {
        (None, None) => None,
        (Some("yarn"), longer) => {
            let by = factor.as_ref().and_then(Json::as_f64).filter(|&by| by > 1.0).unwrap_or(1.0);
            let yarns = 0.1 * by.ln() + 1.0;
            let attention = longer.map(|longer| longer.as_f64().map_or(longer, |longer| (longer * yarns).into()));
            Some(json!({
                "rope_type": "yarn", "factor": factor, "attention_factor": attention,
                "beta_fast": get("scaling.yarn_beta_fast"), "beta_slow": get("scaling.yarn_beta_slow"),
            }))
        }
        // Without another scaling, as YaRN that changes no frequency.
        (None, Some(longer)) => Some(json!({ "rope_type": "yarn", "factor": 1.0, "attention_factor": longer })),
        (Some(kind), None) => Some(json!({ "rope_type": kind, "factor": factor })),
        (Some(kind), Some(longer)) => Some(json!({ "rope_type": format!("{kind} with attn_factor {longer}") })),
    }
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
