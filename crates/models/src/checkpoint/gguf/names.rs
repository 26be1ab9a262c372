//! GGUF's tensor names to Hugging Face's, and where llama.cpp's converter changed the order of the numbers, the order
//! they are to be brought back to.

use super::{Info, Metadata};
use crate::Result;
use crate::checkpoint::tensor::Order;
use crate::checkpoint::{Architecture, Config};

/// A tensor under Hugging Face's name, with Hugging Face's shape.
pub(in crate::checkpoint) struct Named {
    pub(in crate::checkpoint) info: Info,
    pub(in crate::checkpoint) order: Order,
}

/// GGUF's name and Hugging Face's, both without `.weight` or `.bias`.
type Names = &'static [(&'static str, &'static str)];

/// The names of an architecture: those outside the layers, what a layer's names begin with, and those within.
struct Table {
    whole: Names,
    layers: &'static str,
    layer: Names,
}

const GPT2: Table = Table {
    whole: &[
        ("token_embd", "transformer.wte"),
        ("position_embd", "transformer.wpe"),
        ("output_norm", "transformer.ln_f"),
        ("output", "lm_head"),
    ],
    layers: "transformer.h",
    layer: &[
        ("attn_norm", "ln_1"),
        ("attn_qkv", "attn.c_attn"),
        ("attn_output", "attn.c_proj"),
        ("ffn_norm", "ln_2"),
        ("ffn_up", "mlp.c_fc"),
        ("ffn_down", "mlp.c_proj"),
    ],
};

const BERT: Table = Table {
    whole: &[
        ("token_embd", "embeddings.word_embeddings"),
        ("position_embd", "embeddings.position_embeddings"),
        ("token_types", "embeddings.token_type_embeddings"),
        ("token_embd_norm", "embeddings.LayerNorm"),
    ],
    layers: "encoder.layer",
    layer: &[
        ("attn_q", "attention.self.query"),
        ("attn_k", "attention.self.key"),
        ("attn_v", "attention.self.value"),
        ("attn_output", "attention.output.dense"),
        ("attn_output_norm", "attention.output.LayerNorm"),
        ("ffn_up", "intermediate.dense"),
        ("ffn_down", "output.dense"),
        ("layer_output_norm", "output.LayerNorm"),
    ],
};

const LLAMA: Table = Table {
    whole: &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")],
    layers: "model.layers",
    layer: &[
        ("attn_norm", "input_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_norm", "post_attention_layernorm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ],
};

/// The tensors under their new names; what has none keeps its own.
pub(super) fn to_hugging_face(metadata: &Metadata, config: &Config, infos: Vec<Info>) -> Result<Vec<Named>> {
    let (architecture, table) = match Architecture::of(config) {
        Ok(architecture @ Architecture::Gpt2) => (architecture, GPT2),
        Ok(architecture @ Architecture::Bert) => (architecture, BERT),
        Ok(architecture @ Architecture::Llama) => (architecture, LLAMA),
        _ => return Ok(infos.into_iter().map(|info| Named { info, order: Order::Same }).collect()),
    };
    let rename = |mut info: Info| {
        info.name = table.rename(&info.name).unwrap_or(info.name);
        let order = match architecture {
            Architecture::Gpt2 if is_conv1d(&info.name) => {
                info.shape.reverse();
                Order::Transposed
            }
            Architecture::Llama => pairs(&info, config)
                .map_err(|problem| metadata.file().format_error(format!("tensor {}", info.name), problem))?,
            _ => Order::Same,
        };
        Ok(Named { info, order })
    };
    infos.into_iter().map(rename).collect()
}

impl Table {
    fn rename(&self, name: &str) -> Option<String> {
        let (stem, kind) = name.rsplit_once('.')?;
        if !matches!(kind, "weight" | "bias") {
            return None;
        }
        let find = |names: Names, stem: &str| names.iter().find(|(gguf, _)| *gguf == stem).map(|(_, name)| *name);
        match stem.strip_prefix("blk.") {
            None => find(self.whole, stem).map(|name| format!("{name}.{kind}")),
            Some(rest) => {
                let (layer, part) = rest.split_once('.')?;
                layer.parse::<u16>().ok()?;
                find(self.layer, part).map(|name| format!("{}.{layer}.{name}.{kind}", self.layers))
            }
        }
    }
}

/// GPT-2's matrices that Hugging Face keeps as [in, out], and llama.cpp as all others, [out, in].
fn is_conv1d(name: &str) -> bool {
    ["c_attn.weight", "c_proj.weight", "c_fc.weight"].iter().any(|end| name.ends_with(end))
}

/// The rows of Llama's queries and keys, and their biases, are in pairs; all else is as it was.
fn pairs(info: &Info, config: &Config) -> Result<Order, String> {
    let key = if info.name.contains(".q_proj.") {
        "num_attention_heads"
    } else if info.name.contains(".k_proj.") && config.get("num_key_value_heads").is_some() {
        "num_key_value_heads"
    } else if info.name.contains(".k_proj.") {
        "num_attention_heads"
    } else {
        return Ok(Order::Same);
    };
    let heads = config.size(key).map_err(|error| format!("the number of its heads is needed: {error}"))?;
    let rows = info.shape[0];
    if !rows.is_multiple_of(2 * heads) {
        return Err(format!("it has {rows} rows, expected an even number for each of {heads} heads"));
    }
    Ok(Order::Pairs { heads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_architecture() {
        let names = [
            (&LLAMA, "blk.29.attn_q.weight", Some("model.layers.29.self_attn.q_proj.weight")),
            (&LLAMA, "output.weight", Some("lm_head.weight")),
            (&GPT2, "blk.0.attn_qkv.bias", Some("transformer.h.0.attn.c_attn.bias")),
            (&BERT, "blk.3.layer_output_norm.weight", Some("encoder.layer.3.output.LayerNorm.weight")),
            (&BERT, "token_embd_norm.bias", Some("embeddings.LayerNorm.bias")),
            (&LLAMA, "rope_freqs.weight", None),
            (&LLAMA, "blk.x.attn_q.weight", None),
            (&LLAMA, "weight", None),
        ];
        for (table, gguf, expected) in names {
            assert_eq!(table.rename(gguf).as_deref(), expected, "{gguf}");
        }
    }
}
