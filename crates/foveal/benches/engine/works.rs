//! The works that are measured: what each computes, on what, and how much there is to do.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;

use foveal::{
    Attention, Bias, BigBird, Favor, FeatureMap, Forward, KvCache, LinearAttention, Mask, Pattern, Pool, Scratch,
};
use ndarray::{Array2, Array3, Array4, ArrayD};
use serde_json::Value;

use crate::limits::{FmaPeak, ReadBandwidth};

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
}

/// Edge of a map in pixels, and of a tile in weights.
const PIXELS: usize = 1024;
const TILE: usize = 512;

impl Spec {
    pub fn new(kind: Kind, shape: [usize; 4]) -> Self {
        Spec { kind, shape, kv_heads: shape[1], keys: shape[2], mask: Visible::All, bias: Added::Nothing }
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
            "dense" => Added::Dense,
            other => return Err(format!("unknown bias {other}").into()),
        };
        let shape = serde_json::from_value(request["shape"].clone())?;
        let (kv_heads, keys) = (number(request, "kv_heads")?, number(request, "keys")?);
        Ok(Spec { kind, shape, kv_heads, keys, mask, bias })
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
        2 * batch * self.kv_heads * self.keys * dim * size_of::<f32>()
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

/// Where the numbers come from.
pub enum Source {
    /// Files of raw little-endian f32, by name; `keep` is bytes.
    Files(Value),
    /// Normally distributed numbers, the same ones each time.
    Random,
}

impl Source {
    fn array(&self, name: &str, shape: [usize; 4]) -> Result<Array4<f32>> {
        let values = match self {
            Source::Files(paths) => {
                let bytes = std::fs::read(text(paths, name)?)?;
                bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
            }
            Source::Random => {
                let seed = name.bytes().fold(0, |seed, byte| 31 * seed + u64::from(byte));
                normal(seed).take(shape.iter().product()).collect()
            }
        };
        Ok(Array4::from_shape_vec(shape, values)?)
    }

    /// A list of blocks, as JSON: their size, and those that the queries of each see.
    fn blocks(&self, tokens: usize) -> Result<Pattern> {
        Ok(match self {
            Source::Files(paths) => {
                let list: Value = serde_json::from_slice(&std::fs::read(text(paths, "blocks")?)?)?;
                let rows: Vec<Vec<usize>> = serde_json::from_value(list["rows"].clone())?;
                Pattern::blocks(number(&list, "size")?, rows)?
            }
            Source::Random => Pattern::big_bird(tokens, BigBird::default())?,
        })
    }

    /// The lengths of sequences that lie end to end, as JSON.
    fn lengths(&self) -> Result<Vec<usize>> {
        match self {
            Source::Files(paths) => Ok(serde_json::from_slice(&std::fs::read(text(paths, "lengths")?)?)?),
            Source::Random => Err("packed sequences need a file with their lengths".into()),
        }
    }

    /// About four of five keys visible.
    fn keep(&self, shape: [usize; 4]) -> Result<Array4<bool>> {
        let values = match self {
            Source::Files(paths) => std::fs::read(text(paths, "keep")?)?.iter().map(|byte| *byte != 0).collect(),
            Source::Random => normal(7).map(|x| x < 0.84).take(shape.iter().product()).collect(),
        };
        Ok(Array4::from_shape_vec(shape, values)?)
    }
}

/// A work with its numbers, ready to be run.
pub enum Work {
    Forward { attention: Attention, qkv: Qkv, out: Array4<f32>, lse: Array3<f64>, scratch: Scratch },
    Call { attention: Attention, qkv: Qkv },
    Backward { attention: Attention, qkv: Qkv, fwd: Forward, dout: Array4<f32> },
    Decode { attention: Attention, q: Array4<f32>, cache: KvCache },
    Map { attention: Attention, qkv: Qkv, lse: Array3<f64> },
    Tile { attention: Attention, qkv: Qkv, lse: Array3<f64> },
    Linear { attention: LinearAttention, projection: Option<Array2<f32>>, qkv: Qkv },
    FmaPeak(FmaPeak),
    ReadBandwidth(ReadBandwidth),
}

/// The inputs of attention.
pub struct Qkv {
    q: Array4<f32>,
    k: Array4<f32>,
    v: Array4<f32>,
}

impl Work {
    pub fn load(spec: &Spec, source: &Source) -> Result<Self> {
        match spec.kind {
            Kind::FmaPeak => return Ok(Work::FmaPeak(FmaPeak::new())),
            Kind::ReadBandwidth => return Ok(Work::ReadBandwidth(ReadBandwidth::new(spec.bytes()))),
            _ => {}
        }
        let [batch, heads, queries, dim] = spec.shape;
        let mask = match spec.mask {
            Visible::All => Mask::none(),
            Visible::Causal => Mask::causal(),
            Visible::Keep => Mask::dense(source.keep([1, 1, queries, spec.keys])?),
            Visible::Window(left) => Mask::window(left, 0),
            Visible::Longformer(window) => Mask::pattern(Pattern::longformer(window, 1, &[])?),
            Visible::Blocks(_) => Mask::pattern(source.blocks(spec.keys)?),
            Visible::Packed(_) => Mask::pattern(Pattern::documents(&source.lengths()?)?),
        };
        let bias = match spec.bias {
            Added::Nothing => Bias::none(),
            Added::Alibi => Bias::alibi(heads)?,
            Added::Dense => Bias::dense(source.array("bias", [1, heads, queries, spec.keys])?),
        };
        let attention = Attention::new().mask(mask).bias(bias);
        let keys = [batch, spec.kv_heads, spec.keys, dim];
        let qkv = Qkv { q: source.array("q", spec.shape)?, k: source.array("k", keys)?, v: source.array("v", keys)? };
        Ok(match spec.kind {
            Kind::Forward => {
                let (out, lse) = (Array4::zeros(spec.shape), Array3::zeros([batch, heads, queries]));
                Work::Forward { attention, qkv, out, lse, scratch: Scratch::new() }
            }
            Kind::Call => Work::Call { attention, qkv },
            Kind::Backward => {
                let fwd = attention.forward(&qkv.q, &qkv.k, &qkv.v)?;
                Work::Backward { attention, qkv, fwd, dout: source.array("dout", spec.shape)? }
            }
            Kind::Decode => {
                let mut cache = KvCache::with_capacity(batch, spec.kv_heads, dim, dim, spec.keys);
                cache.append(&qkv.k, &qkv.v)?;
                Work::Decode { attention, q: qkv.q, cache }
            }
            Kind::Map | Kind::Tile => {
                let lse = attention.forward(&qkv.q, &qkv.k, &qkv.v)?.lse;
                if spec.kind == Kind::Map {
                    Work::Map { attention, qkv, lse }
                } else {
                    Work::Tile { attention, qkv, lse }
                }
            }
            Kind::Linear => Work::Linear { attention: LinearAttention::new(FeatureMap::Elu), projection: None, qkv },
            Kind::Favor(features) => {
                let favor = Favor::new(dim, features, 1)?;
                let projection = Some(favor.projection().to_owned());
                Work::Linear { attention: LinearAttention::new(FeatureMap::Favor(favor)), projection, qkv }
            }
            Kind::FmaPeak | Kind::ReadBandwidth => unreachable!("returned above"),
        })
    }

    /// What is timed.
    pub fn run(&mut self) -> Result<()> {
        match self {
            Work::Forward { attention, qkv, out, lse, scratch } => {
                attention.forward_into(&qkv.q, &qkv.k, &qkv.v, out.view_mut(), lse.view_mut(), scratch)?;
                black_box((out, lse));
            }
            Work::Call { attention, qkv } => {
                black_box(attention.forward(&qkv.q, &qkv.k, &qkv.v)?);
            }
            Work::Backward { attention, qkv, fwd, dout } => {
                black_box(attention.backward(&qkv.q, &qkv.k, &qkv.v, &*fwd, &*dout)?);
            }
            Work::Decode { attention, q, cache } => {
                black_box(attention.decode(&*q, cache)?);
            }
            Work::Map { attention, qkv, lse } => {
                black_box(map(attention, qkv, lse)?);
            }
            Work::Tile { attention, qkv, lse } => {
                black_box(tile(attention, qkv, lse)?);
            }
            Work::Linear { attention, qkv, .. } => {
                black_box(attention.forward(&qkv.q, &qkv.k, &qkv.v)?);
            }
            Work::FmaPeak(limit) => limit.run(),
            Work::ReadBandwidth(limit) => limit.run(),
        }
        Ok(())
    }

    /// What it computes, by name.
    pub fn answers(&mut self) -> Result<Vec<(&'static str, ArrayD<f32>)>> {
        self.run()?;
        Ok(match self {
            Work::Forward { out, lse, .. } => {
                vec![("out", out.clone().into_dyn()), ("lse", lse.mapv(|lse| lse as f32).into_dyn())]
            }
            Work::Call { attention, qkv } => forward_answers(attention.forward(&qkv.q, &qkv.k, &qkv.v)?),
            Work::Backward { attention, qkv, fwd, dout } => {
                let grads = attention.backward(&qkv.q, &qkv.k, &qkv.v, &*fwd, &*dout)?;
                vec![("dq", grads.dq.into_dyn()), ("dk", grads.dk.into_dyn()), ("dv", grads.dv.into_dyn())]
            }
            Work::Decode { attention, q, cache } => forward_answers(attention.decode(&*q, cache)?),
            Work::Map { attention, qkv, lse } => vec![("map", map(attention, qkv, lse)?.into_dyn())],
            Work::Tile { attention, qkv, lse } => vec![("tile", tile(attention, qkv, lse)?.into_dyn())],
            Work::Linear { attention, projection, qkv } => {
                let mut answers = forward_answers(attention.forward(&qkv.q, &qkv.k, &qkv.v)?);
                answers.extend(projection.iter().map(|projection| ("projection", projection.clone().into_dyn())));
                answers
            }
            Work::FmaPeak(_) | Work::ReadBandwidth(_) => vec![],
        })
    }
}

fn forward_answers(fwd: Forward) -> Vec<(&'static str, ArrayD<f32>)> {
    vec![("out", fwd.out.into_dyn()), ("lse", fwd.lse.mapv(|lse| lse as f32).into_dyn())]
}

fn map(attention: &Attention, qkv: &Qkv, lse: &Array3<f64>) -> Result<Array2<f32>> {
    let (rows, cols) = (qkv.q.dim().2, qkv.k.dim().2);
    Ok(attention.head(&qkv.q, &qkv.k, lse, (0, 0))?.map(0..rows, 0..cols, (PIXELS, PIXELS), Pool::Max)?)
}

fn tile(attention: &Attention, qkv: &Qkv, lse: &Array3<f64>) -> Result<Array2<f32>> {
    // Odd places: a rectangle that someone chose is not aligned to anything.
    let (row, col) = (qkv.q.dim().2 / 2 + 1, qkv.k.dim().2 / 4 + 3);
    Ok(attention.head(&qkv.q, &qkv.k, lse, (0, 0))?.tile(row..row + TILE, col..col + TILE)?)
}

/// Normally distributed numbers (Box and Muller's) from the splitmix64 generator.
fn normal(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut uniform = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 24) as f32
    };
    std::iter::repeat_with(move || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f32::consts::TAU * uniform()).cos())
}

pub fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str> {
    object[field].as_str().ok_or_else(|| format!("{field} is missing in {object}").into())
}

fn number(object: &Value, field: &str) -> Result<usize> {
    Ok(object[field].as_u64().ok_or_else(|| format!("{field} is missing in {object}"))? as usize)
}

/// Where an answer goes.
pub fn answer_path(request: &Value, name: &str) -> Result<PathBuf> {
    Ok(PathBuf::from(text(request, "answers")?).join(format!("{name}.f32")))
}
