//! The works with their numbers, ready to be run.

use std::hint::black_box;
use std::sync::Arc;

use foveal::{
    Attention, Bias, BigBird, Favor, FeatureMap, Forward, KvCache, LinearAttention, Mask, Packed, Pattern, Pool,
    ScoreFunction, ScoreRow, Scratch, alibi_slopes,
};
use ndarray::{Array2, Array3, Array4, ArrayD};
use serde_json::Value;

use crate::limits::{FmaPeak, ReadBandwidth};
use crate::spec::{Added, Kind, PIXELS, Result, Spec, TILE, Visible, number, text};

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

/// ALiBi as a caller would write it.
#[derive(Debug)]
struct Alibi(Vec<f32>);

impl ScoreFunction for Alibi {
    fn apply(&self, row: ScoreRow, scores: &mut [f32]) {
        let (slope, start) = (self.0[row.head], (row.first_key - row.position) as f32);
        scores.iter_mut().enumerate().for_each(|(n, s)| *s -= slope * (start + n as f32).abs());
    }

    fn backward(&self, _: ScoreRow, _: &[f32], _: &mut [f32]) {}
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
            Visible::All | Visible::Packed(_) => Mask::none(),
            Visible::Causal => Mask::causal(),
            Visible::Keep => Mask::dense(source.keep([1, 1, queries, spec.keys])?),
            Visible::Window(left) => Mask::window(left, 0),
            Visible::Longformer(window) => Mask::pattern(Pattern::longformer(window, 1, &[])?),
            Visible::Blocks(_) => Mask::pattern(source.blocks(spec.keys)?),
        };
        let bias = match spec.bias {
            Added::Nothing | Added::AlibiFunction => Bias::none(),
            Added::Alibi => Bias::alibi(heads)?,
            Added::Dense => Bias::dense(source.array("bias", [1, heads, queries, spec.keys])?),
        };
        let mut attention = Attention::new().mask(mask).bias(bias);
        if let Visible::Packed(_) = spec.mask {
            attention = attention.packed(Packed::of_lengths(&source.lengths()?)?);
        }
        if spec.bias == Added::AlibiFunction {
            attention = attention.score(Arc::new(Alibi(alibi_slopes(heads)?)));
        }
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
                let mut cache = KvCache::with_capacity(batch, spec.kv_heads, dim, dim, spec.keys)?;
                cache = cache.precision(spec.cache)?;
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
