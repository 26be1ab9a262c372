use super::files::{CONFIG, folder, open_safetensors, refused, safetensors};
use foveal_models::{Checkpoint, Error};

/// Two tensors, a [2, 2] of F32 and a [3] of BF16, and 22 bytes of data.
pub const HEADER: &str = concat!(
    r#"{"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "#,
    r#""b": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]}}"#
);

pub fn good() -> Vec<u8> {
    safetensors(HEADER, &[0; 22])
}

fn header(header: &str, parts: &[&str]) {
    refused(open_safetensors(&safetensors(header, &[0; 22])), parts);
}

#[test]
fn the_good_file_is_good() {
    open_safetensors(&good()).unwrap();
}

#[test]
fn lengths() {
    for length in 0..8 {
        refused(open_safetensors(&good()[..length]), &["model.safetensors", "expected at least 8"]);
    }
    refused(open_safetensors(&0u64.to_le_bytes()), &["header"]);
    refused(open_safetensors(&safetensors("", &[0; 22])), &["header"]);
    refused(open_safetensors(&u64::MAX.to_le_bytes()), &["its length is 18446744073709551615, but 0 bytes are left"]);
    let mut past = good();
    past[..8].copy_from_slice(&1_000_000u64.to_le_bytes());
    refused(open_safetensors(&past), &["its length is 1000000"]);
}

#[test]
fn truncated_at_every_byte() {
    let good = good();
    for length in 0..good.len() {
        assert!(matches!(open_safetensors(&good[..length]), Err(Error::Format { .. })), "{length} bytes");
    }
    refused(open_safetensors(&[&good[..], &[0]].concat()), &["file not fully covered"]);
}

#[test]
fn headers() {
    refused(open_safetensors(&safetensors(b"\xff\xfe{}", &[])), &["header", "JSON"]);
    refused(open_safetensors(&safetensors(b"{\"\xff\": 1}", &[])), &["header"]);
    header("not json", &["header", "JSON"]);
    header("[]", &["header", "an object"]);
    header("3", &["header"]);
    header(&HEADER.replace("\"b\"", "\"a\""), &["\"a\" is there twice"]);
    header(&HEADER.replace("\"b\"", "\"\\u0061\""), &["\"a\" is there twice"]);
    header(&HEADER.replace("BF16", "F17"), &["header", "F17"]);
    header(&HEADER.replace("[0, 16]", "[16, 0]"), &["offsets of tensor a"]);
    header(&HEADER.replace("[16, 22]", "[15, 21]"), &["offsets of tensor b"]);
    header(&HEADER.replace("[16, 22]", "[17, 23]"), &["offsets of tensor b"]);
    header(&HEADER.replace("[16, 22]", "[16, 1000]"), &["offsets of tensor b", "there are 22 bytes of data"]);
    header(&HEADER.replace("[16, 22]", "[-1, 22]"), &["header"]);
    header(&HEADER.replace("[2, 2]", "[2, 3]"), &["header"]);
    header(&HEADER.replace("[2, 2]", "[4294967296, 4294967296, 4294967296]"), &["overflow"]);
    header(&HEADER.replace("[2, 2]", "[2.0, 2]"), &["header"]);
    header(&HEADER.replace("[2, 2]", "[9999999999999999999999]"), &["header"]);
    let hole = safetensors(HEADER.replace("[16, 22]", "[18, 24]"), &[0; 24]);
    refused(open_safetensors(&hole), &["offsets of tensor b"]);
}

/// Sizes that add up to nearly 2⁶⁴, so that adding the header's length comes out at the file's.
#[test]
fn offsets_that_wrap_around() {
    let step = (1u64 << 61) - 1;
    let tensors: Vec<String> = (0..8u64)
        .map(|i| {
            format!(
                r#""t{i}": {{"dtype": "U8", "shape": [{step}], "data_offsets": [{}, {}]}}"#,
                i * step,
                (i + 1) * step
            )
        })
        .collect();
    refused(open_safetensors(&safetensors(format!("{{{}}}", tensors.join(", ")), &[0; 8])), &["offsets of tensor t0"]);
}

#[test]
fn absurd_shapes_of_nothing() {
    let bytes =
        safetensors(r#"{"a": {"dtype": "F32", "shape": [0, 4294967296, 4294967296], "data_offsets": [0, 0]}}"#, &[]);
    refused(open_safetensors(&bytes), &["tensor a: its shape is [0, 4294967296, 4294967296]"]);
    let bytes = safetensors(r#"{"a": {"dtype": "F32", "shape": [0, 3], "data_offsets": [0, 0]}}"#, &[]);
    open_safetensors(&bytes).unwrap();
}

#[test]
fn integers_are_no_weights() {
    let bytes = safetensors(r#"{"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}"#, &[0; 8]);
    let folder = folder(&[("config.json", CONFIG.as_bytes()), ("model.safetensors", &bytes)]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    refused(checkpoint.tensor("a").unwrap().to_f32(), &["tensor a has type I64", "convert it"]);
}

fn index(index: &str, shards: &[(&str, &[u8])], parts: &[&str]) {
    let mut files = vec![("config.json", CONFIG.as_bytes()), ("model.safetensors.index.json", index.as_bytes())];
    files.extend_from_slice(shards);
    refused(Checkpoint::open(folder(&files).path()), parts);
}

#[test]
fn indices() {
    let one = safetensors(r#"{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#, &[0; 4]);
    let two = safetensors(r#"{"b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#, &[0; 4]);
    let map = r#"{"metadata": {"total_size": 8}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#;
    let shards = [("1.safetensors", &one[..]), ("2.safetensors", &two[..])];
    let mut files = vec![("config.json", CONFIG.as_bytes()), ("model.safetensors.index.json", map.as_bytes())];
    files.extend_from_slice(&shards);
    let good = folder(&files);
    assert_eq!(Checkpoint::open(good.path()).unwrap().names().collect::<Vec<_>>(), ["a", "b"]);

    index(map, &shards[..1], &["2.safetensors"]);
    index(map, &[shards[0], ("2.safetensors", &one)], &["tensor a", "there twice"]);
    index(&map.replace("\"b\": \"2", "\"b\": \"1"), &shards, &["tensor b", "the index says it is here"]);
    index(&map.replace("2.safetensors", "../2.safetensors"), &shards, &["../2.safetensors", "in the same folder"]);
    index(&map.replace("2.safetensors", "/etc/passwd"), &shards, &["in the same folder"]);
    index(&map.replace("\"b\"", "\"a\""), &shards, &["\"a\" is there twice"]);
    index(&map.replace("\"2.safetensors\"", "7"), &shards, &["index.json", "JSON"]);
    index("{}", &shards, &["weight_map"]);
    index("", &shards, &["index.json"]);
}

#[test]
fn folders_without_weights() {
    refused(Checkpoint::open(folder(&[]).path()), &["no config.json"]);
    refused(Checkpoint::open(folder(&[("config.json", b"{}")]).path()), &["no model.safetensors"]);
    let torch = folder(&[("config.json", b"{}"), ("pytorch_model.bin", b"")]);
    refused(Checkpoint::open(torch.path()), &["pytorch_model.bin", "save them as safetensors"]);
    let text = folder(&[("model.txt", b"hello")]);
    refused(Checkpoint::open(text.path().join("model.txt")), &["neither in .gguf nor in .safetensors"]);
    refused(Checkpoint::open(text.path().join("absent")), &["absent"]);
    let alone = folder(&[("x.safetensors", &good())]);
    refused(Checkpoint::open(alone.path().join("x.safetensors")), &["config.json"]);
}
