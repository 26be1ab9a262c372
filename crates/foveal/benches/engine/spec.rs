//! What a work is: what it computes, on which shapes, and how much there is to do.

use std::error::Error;
use std::path::PathBuf;

use foveal::Precision;
use serde_json::Value;

use crate::limits::FmaPeak;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `forward_into` with everything allocated beforehand.
    Forward,
    /// `forward`, which allocates its output.
    Call,
    /// `backward`, after a forward pass that is not timed.
    Backward,
    /// `decode` of the queries against a filled cache.
    Decode,
    /// `map` of the whole matrix of one head.
    Map,
    /// `tile` of 512 × 512 from the middle of one head.
    Tile,
    /// Linear attention with features ELU + 1.
    Linear,
    /// The same with this many random features.
    Favor(usize),
    /// The machine's multiply-adds.
    FmaPeak,
    /// The machine's reading of as many bytes as the keys and values of this shape have.
    ReadBandwidth,
}

/// Which keys are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visible {
    All,
    Causal,
    /// A dense keep-array [1, 1, T, S].
    Keep,
    /// This many keys before the query's own, and none after.
    Window(usize),
    /// This many keys before the query's own and as many after, as a sparse pattern; as many queries as keys.
    Longformer(usize),
    /// A list of blocks, in which there are this many pairs.
    Blocks(usize),
    /// Sequences end to end, each of which sees itself alone; this many pairs.
    Packed(usize),
}

/// What is added to the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    Nothing,
    Alibi,
    /// ALiBi written as a score function of the caller's.
    AlibiFunction,
    /// A dense bias [1, H, T, S].
    Dense,
}

/// A work, without its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub kind: Kind,
    /// [B, H, T, D]
    pub shape: [usize; 4],
    /// Heads of the keys and values.
    pub kv_heads: usize,
    pub keys: usize,
    pub mask: Visible,
    pub bias: Added,
    /// Of the cache that is decoded from.
    pub cache: Precision,
}

/// Edge of a map in pixels, and of a tile in weights.
pub const PIXELS: usize = 1024;
pub const TILE: usize = 512;

impl Spec {
    pub fn new(kind: Kind, shape: [usize; 4]) -> Self {
        Spec {
            kind,
            shape,
            kv_heads: shape[1],
            keys: shape[2],
            mask: Visible::All,
            bias: Added::Nothing,
            cache: Precision::F32,
        }
    }

    /// From the `load` request of the line protocol.
    pub fn parse(request: &Value) -> Result<Self> {
        let kind = match text(request, "work")? {
            "forward" => Kind::Forward,
            "call" => Kind::Call,
            "backward" => Kind::Backward,
            "decode" => Kind::Decode,
            "map" => Kind::Map,
            "tile" => Kind::Tile,
            "linear" => Kind::Linear,
            "favor" => Kind::Favor(number(request, "features")?),
            "fma_peak" => Kind::FmaPeak,
            "read_bandwidth" => Kind::ReadBandwidth,
            other => return Err(format!("unknown work {other}").into()),
        };
        let mask = match text(request, "mask")? {
            "none" => Visible::All,
            "causal" => Visible::Causal,
            "keep" => Visible::Keep,
            "window" => Visible::Window(number(request, "left")?),
            "longformer" => Visible::Longformer(number(request, "window")?),
            "blocks" => Visible::Blocks(number(request, "pairs")?),
            "packed" => Visible::Packed(number(request, "pairs")?),
            other => return Err(format!("unknown mask {other}").into()),
        };
        let bias = match text(request, "bias")? {
            "none" => Added::Nothing,
            "alibi" => Added::Alibi,
            "alibi_function" => Added::AlibiFunction,
            "dense" => Added::Dense,
            other => return Err(format!("unknown bias {other}").into()),
        };
        let cache = match request["cache"].as_str().unwrap_or("f32") {
            "f32" => Precision::F32,
            "bf16" => Precision::Bf16,
            other => return Err(format!("unknown type of the cache {other}").into()),
        };
        let shape = serde_json::from_value(request["shape"].clone())?;
        let (kv_heads, keys) = (number(request, "kv_heads")?, number(request, "keys")?);
        Ok(Spec { kind, shape, kv_heads, keys, mask, bias, cache })
    }

    /// Pairs of a query and a key that it sees, over all sequences and heads. A keep-array hides no whole tiles here, so
    /// all its pairs count.
    pub fn pairs(&self) -> f64 {
        let [batch, heads, queries, _] = self.shape;
        let of_one_head: usize = match self.mask {
            Visible::All | Visible::Keep => queries * self.keys,
            Visible::Causal => (0..queries).map(|i| i + 1 + self.keys - queries).sum(),
            Visible::Window(left) => (0..queries).map(|i| (i + self.keys - queries).min(left) + 1).sum(),
            Visible::Longformer(window) => {
                (0..queries).map(|i| i.min(window) + 1 + (self.keys - 1 - i).min(window)).sum()
            }
            Visible::Blocks(pairs) | Visible::Packed(pairs) => pairs,
        };
        (batch * heads * of_one_head) as f64
    }

    /// Tiles of 64 queries and 64 keys in which anything is seen, over all sequences and heads.
    pub fn tiles(&self) -> f64 {
        const SIDE: usize = 64;
        let [batch, heads, queries, _] = self.shape;
        if let Visible::Blocks(pairs) | Visible::Packed(pairs) = self.mask {
            return (batch * heads * pairs) as f64 / (SIDE * SIDE) as f64;
        }
        let of_rows = |first: usize| {
            let last = (first + SIDE).min(queries) - 1;
            let (start, end) = match self.mask {
                Visible::All | Visible::Keep | Visible::Blocks(_) | Visible::Packed(_) => (0, self.keys),
                Visible::Causal => (0, last + 1 + self.keys - queries),
                Visible::Longformer(window) => (first.saturating_sub(window), (last + window + 1).min(self.keys)),
                Visible::Window(left) => {
                    ((first + self.keys - queries).saturating_sub(left), last + 1 + self.keys - queries)
                }
            };
            end.div_ceil(SIDE) - start / SIDE
        };
        (batch * heads * (0..queries).step_by(SIDE).map(of_rows).sum::<usize>()) as f64
    }

    /// Floating-point operations of the matrix products: two forward, five backward, one for weights alone.
    pub fn flops(&self) -> f64 {
        let one_product = 2.0 * self.pairs() * self.shape[3] as f64;
        match self.kind {
            Kind::Forward | Kind::Call | Kind::Decode => 2.0 * one_product,
            Kind::Backward => 5.0 * one_product,
            Kind::Map => one_product,
            Kind::Linear | Kind::Favor(_) => {
                let [batch, heads, queries, dim] = self.shape.map(|x| x as f64);
                let width = if let Kind::Favor(features) = self.kind { features as f64 } else { dim };
                2.0 * batch * heads * (queries + self.keys as f64) * width * (dim + 1.0)
            }
            Kind::Tile => (2 * TILE * TILE * self.shape[3]) as f64,
            Kind::FmaPeak => FmaPeak::new().flops(),
            Kind::ReadBandwidth => 0.0,
        }
    }

    /// Bytes of the keys and values: what a decoding step has to read.
    pub fn bytes(&self) -> usize {
        let [batch, _, _, dim] = self.shape;
        let number = if self.cache == Precision::F32 { size_of::<f32>() } else { size_of::<foveal::bf16>() };
        2 * batch * self.kv_heads * self.keys * dim * number
    }

    /// Bytes of what the call returns.
    pub fn output_bytes(&self) -> usize {
        let [batch, heads, queries, dim] = self.shape;
        let q = batch * heads * queries * dim;
        let values = match self.kind {
            Kind::Call | Kind::Decode | Kind::Linear | Kind::Favor(_) => q + batch * heads * queries,
            Kind::Backward => q + 2 * batch * self.kv_heads * self.keys * dim,
            Kind::Map => PIXELS * PIXELS,
            Kind::Tile => TILE * TILE,
            Kind::Forward | Kind::FmaPeak | Kind::ReadBandwidth => 0,
        };
        values * size_of::<f32>()
    }
}

pub fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str> {
    object[field].as_str().ok_or_else(|| format!("{field} is missing in {object}").into())
}

pub fn number(object: &Value, field: &str) -> Result<usize> {
    Ok(object[field].as_u64().ok_or_else(|| format!("{field} is missing in {object}"))? as usize)
}

/// Where an answer goes.
pub fn answer_path(request: &Value, name: &str) -> Result<PathBuf> {
    Ok(PathBuf::from(text(request, "answers")?).join(format!("{name}.f32")))
}
