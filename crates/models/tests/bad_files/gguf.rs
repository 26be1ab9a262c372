use super::files::{folder, open_gguf, refused};
use super::gguf_file::{Gguf, array, text};
use foveal_models::{Checkpoint, Error, Tokenizer};

/// A Llama with a matrix of queries in two heads, a quantised one, and a tokenizer of its own.
pub fn good() -> Gguf {
    Gguf::default()
        .text("general.architecture", "llama")
        .u32("llama.attention.head_count", 2)
        .texts("tokenizer.ggml.tokens", &["a", "b", "ab", "Ġ", "<|end|>"])
        .texts("tokenizer.ggml.merges", &["a b"])
        .value("tokenizer.ggml.token_type", 9, &array(5, 5, &[1, 1, 1, 1, 3].map(i32::to_le_bytes).concat()))
        .text("tokenizer.ggml.model", "gpt2")
        .u32("tokenizer.ggml.eos_token_id", 4)
        .tensor("blk.0.attn_q.weight", &[2, 8], 0, 0)
        .tensor("blk.0.ffn_up.weight", &[32, 1], 3, 64)
        .data(64 + 20)
}

fn bad(gguf: &Gguf, parts: &[&str]) {
    refused(open_gguf(&gguf.bytes()), parts);
}

fn replaced(at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = good().bytes();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

#[test]
fn the_good_file_is_good() {
    open_gguf(&good().bytes()).unwrap();
    let folder = folder(&[("m.gguf", &good().bytes())]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.tensor("model.layers.0.self_attn.q_proj.weight").unwrap().shape(), [8, 2]);
    let tokenizer = Tokenizer::of(&checkpoint).unwrap();
    assert_eq!(tokenizer.encode("ab a<|end|>").unwrap().ids(), [2, 3, 0, 4]);
    assert_eq!(tokenizer.special().eos, Some(4));
}

#[test]
fn truncated_at_every_byte() {
    let good = good().bytes();
    for length in 0..good.len() {
        assert!(matches!(open_gguf(&good[..length]), Err(Error::Format { .. })), "{length} bytes");
    }
}

#[test]
fn headers() {
    refused(open_gguf(&replaced(0, b"GGML")), &["begins with \"GGML\", expected \"GGUF\""]);
    refused(open_gguf(&replaced(4, &1u32.to_le_bytes())), &["version 1"]);
    refused(open_gguf(&replaced(4, &3u32.to_be_bytes())), &["big-endian"]);
    refused(open_gguf(&replaced(4, &0u32.to_le_bytes())), &["version 0, expected 2 or 3"]);
    for count in [u64::MAX, 1 << 40, 1 << 20] {
        refused(open_gguf(&replaced(8, &count.to_le_bytes())), &["header", &format!("a count of {count}")]);
        refused(open_gguf(&replaced(16, &count.to_le_bytes())), &["header", &format!("a count of {count}")]);
    }
    refused(open_gguf(&replaced(24, &u64::MAX.to_le_bytes())), &["key of metadata value 0"]);
}

#[test]
fn values() {
    bad(&good().u32("x", 1).u32("x", 2), &["x: the key is there twice"]);
    bad(&good().value("x", 13, &[0; 8]), &["x: there is no value type 13"]);
    bad(&good().value("x", 7, &[2]), &["x: a truth value is 2"]);
    bad(&good().value("x", 8, &text(b"\xff")), &["x: the text at byte", "is not UTF-8"]);
    bad(&good().value("x", 8, &u64::MAX.to_le_bytes()), &["x: a count of 18446744073709551615"]);
    for kind in 0..13 {
        bad(&good().value("x", 9, &array(kind, u64::MAX / 2, &[])), &["x: a count of"]);
    }
    bad(&good().value("x", 9, &array(8, 1, &text(b"\xff"))), &["x: ", "is not UTF-8"]);
    bad(&good().value("x", 9, &array(13, 0, &[])), &["x: there is no value type 13"]);
    let nested = array(9, 1, &array(9, 1, &array(9, 1, &array(0, 0, &[]))));
    bad(&good().value("x", 9, &nested), &["x: arrays are nested"]);
    bad(&good().value("general.alignment", 4, &33u32.to_le_bytes()), &["general.alignment", "a power of two"]);
    bad(&good().value("general.alignment", 4, &0u32.to_le_bytes()), &["general.alignment"]);
    bad(&good().text("general.alignment", "32"), &["general.alignment"]);
    bad(&Gguf::default(), &["general.architecture"]);
}

#[test]
fn tensors() {
    let new = |dims: &[u64], kind, offset| good().tensor("x", dims, kind, offset).data(256);
    open_gguf(&new(&[8], 0, 96).bytes()).unwrap();
    bad(&new(&[], 0, 96), &["tensor x: 0 dimensions"]);
    bad(&new(&[1; 5], 0, 96), &["tensor x: 5 dimensions"]);
    bad(&new(&[8], 10, 96), &["tensor x: rows of 8 numbers, expected a multiple of 256 for Q2_K"]);
    bad(&new(&[8], 4, 96), &["tensor x", "type number 4"]);
    bad(&new(&[33], 8, 96), &["tensor x: rows of 33 numbers, expected a multiple of 32 for Q8_0"]);
    bad(&new(&[1 << 32, 1 << 32], 0, 96), &["tensor x: shape", "more numbers than can be counted"]);
    bad(&new(&[u64::MAX], 0, 96), &["tensor x", "counted"]);
    bad(&new(&[1 << 62], 0, 96), &["tensor x", "counted"]);
    bad(&new(&[1 << 61], 0, 96), &["tensor x: it ends at byte"]);
    bad(&new(&[1 << 40], 0, 96), &["tensor x: it ends at byte"]);
    bad(&new(&[1 << 40, 1 << 40, 0], 0, 96), &["tensor x: its shape is [0, 1099511627776, 1099511627776]"]);
    bad(&new(&[8], 0, 97), &["tensor x: its offset is 97, expected a multiple of 32"]);
    bad(&new(&[8], 0, u64::MAX - 31), &["tensor x"]);
    bad(&new(&[8], 0, 64), &["overlaps"]);
    bad(&new(&[8], 0, 0), &["overlaps"]);
    bad(&new(&[8], 0, 128), &["tensor x: its offset is 128: a hole"]);
    bad(&good().tensor("blk.0.ffn_up.weight", &[8], 0, 96).data(256), &["ffn_up.weight: it is there twice"]);
    let renamed = good().tensor("model.layers.0.mlp.up_proj.weight", &[8], 0, 96).data(256);
    bad(&renamed, &["up_proj.weight: it is there twice"]);
}

#[test]
fn heads_that_do_not_fit() {
    let heads = |n| {
        let gguf = Gguf::default().text("general.architecture", "llama").u32("llama.attention.head_count", n);
        gguf.tensor("blk.0.attn_q.weight", &[2, 8], 0, 0).data(64)
    };
    open_gguf(&heads(4).bytes()).unwrap();
    bad(&heads(3), &["q_proj.weight", "8 rows, expected an even number for each of 3 heads"]);
    bad(&heads(0), &["q_proj.weight", "num_attention_heads is 0"]);
    bad(&heads(u32::MAX), &["num_attention_heads"]);
}

#[test]
fn unknown_architectures_can_be_looked_into() {
    let gguf = Gguf::default().text("general.architecture", "mamba").tensor("x", &[8], 0, 0).data(32);
    let folder = folder(&[("m.gguf", &gguf.bytes())]);
    let checkpoint = Checkpoint::open(folder.path().join("m.gguf")).unwrap();
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["x"]);
    refused(checkpoint.architecture(), &["mamba", "gpt2, bert, llama"]);
}

#[test]
fn tokenizers() {
    let build = |gguf: Gguf| {
        let folder = folder(&[("m.gguf", &gguf.text("general.architecture", "llama").bytes())]);
        Tokenizer::of(&Checkpoint::open(folder.path().join("m.gguf")).unwrap())
    };
    let tokens =
        |tokens: &[&str]| Gguf::default().text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", tokens);
    let merges = "tokenizer.ggml.merges";
    assert!(build(tokens(&["a", "b", "ab"]).texts(merges, &["a b"])).is_ok());
    refused(build(Gguf::default()), &["no tokenizer.ggml.tokens"]);
    refused(build(Gguf::default().u32("tokenizer.ggml.tokens", 1)), &["no tokenizer.ggml.tokens"]);
    refused(build(tokens(&["a"])), &["no tokenizer.ggml.merges"]);
    refused(build(tokens(&["a", "a"]).texts(merges, &[])), &["tokens 0 and 1 are both \"a\""]);
    refused(build(tokens(&["a", "b"]).texts(merges, &["a b"])), &["\"ab\", which is not in the vocabulary"]);
    refused(build(tokens(&["a"]).texts(merges, &["a"])), &["expected two tokens"]);
    refused(build(tokens(&["a"]).texts(merges, &[]).u32("tokenizer.ggml.eos_token_id", 9)), &["eos_token", "id 9"]);
    refused(build(tokens(&["a"]).texts(merges, &[]).text("tokenizer.ggml.pre", "odd")), &["\"odd\"", "smollm"]);
    let types = array(5, 2, &[1, 1].map(i32::to_le_bytes).concat());
    refused(
        build(tokens(&["a"]).texts(merges, &[]).value("tokenizer.ggml.token_type", 9, &types)),
        &["2 entries for 1"],
    );
    let other = Gguf::default().text("tokenizer.ggml.model", "rwkv").texts("tokenizer.ggml.tokens", &["a"]);
    refused(build(other), &["rwkv", "expected gpt2, llama or bert"]);
    let bert = Gguf::default().text("tokenizer.ggml.model", "bert").texts("tokenizer.ggml.tokens", &["▁a"]);
    refused(build(bert), &["no token [SEP]"]);
    let llama = Gguf::default().text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", &["a"]);
    refused(build(llama), &["0 entries for 1 tokens"]);
}
