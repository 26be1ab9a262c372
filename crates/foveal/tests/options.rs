//! Random shapes under random combinations of all options: every entry point, on every instruction set, against the f64
//! reference.
#![allow(missing_docs)]

mod support;

use foveal::{Align, Attention, Bias, Direction, Isa, KvCache, Mask, Pool, Threads, reference};
use ndarray::{Array2, Array4, s};
use proptest::prelude::*;
use support::{Random, assert_close, chance, dynamic, narrow, randn, randn4, widen};

/// PyTorch's own bar for f32.
const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    batch: usize,
    kv_heads: usize,
    group: usize,
    queries: usize,
    keys: usize,
    dim: usize,
    value_dim: usize,
    bias: usize,
    masks: u8,
    align: usize,
    softcap: bool,
    dropout: bool,
    scale: Option<f32>,
    threads: Threads,
}

fn case() -> impl Strategy<Value = Case> {
    let tokens = || prop_oneof![3 => 0usize..20, 4 => 1usize..70, 1 => Just(193), 1 => 250usize..300];
    let dim = || prop_oneof![Just(1usize), Just(8), 1usize..40, Just(64), Just(65)];
    (
        (any::<u64>(), 0usize..3, 1usize..3, 1usize..4),
        (tokens(), tokens(), dim(), prop_oneof![3 => dim(), 1 => Just(0usize)]),
        (0usize..7, any::<u8>(), 0usize..3, any::<bool>(), any::<bool>()),
        (prop_oneof![Just(None), Just(Some(0.3f32)), Just(Some(-0.2)), Just(Some(0.0))], any::<bool>()),
    )
        .prop_map(
            |(
                (seed, batch, kv_heads, group),
                (queries, keys, dim, value_dim),
                (bias, masks, align, softcap, dropout),
                (scale, one),
            )| Case {
                seed,
                batch,
                kv_heads,
                group,
                queries,
                keys,
                dim,
                value_dim,
                bias,
                masks,
                align,
                softcap,
                dropout,
                scale,
                threads: if one { Threads::Sequential } else { Threads::Rayon },
            },
        )
}

impl Case {
    fn heads(&self) -> usize {
        self.kv_heads * self.group
    }

    fn attention(&self) -> Attention {
        let mut random = Random::new(self.seed);
        let (heads, keys) = (self.heads(), self.keys);
        let pick = |random: &mut Random, n: usize| if random.below(2) == 0 { 1 } else { n };
        let mut mask = Mask::none();
        if self.masks & 1 != 0 {
            mask = mask.and(Mask::causal());
        }
        if self.masks & 2 != 0 {
            mask = mask.and(Mask::window(random.below(keys + 2), random.below(keys + 2)));
        }
        if self.masks & 4 != 0 {
            mask = mask.and(Mask::padding((0..self.batch).map(|_| random.below(keys + 1)).collect::<Vec<_>>()));
        }
        if self.masks & 8 != 0 {
            mask = mask.and(Mask::keys(chance(self.seed + 1, 0.7, (self.batch, keys))));
        }
        if self.masks & 48 == 48 {
            let dim = (pick(&mut random, self.batch), pick(&mut random, heads), pick(&mut random, self.queries), keys);
            mask = mask.and(Mask::dense(chance(self.seed + 2, 0.6, dim)));
        }
        let bias = match self.bias {
            1 => Bias::alibi(heads),
            2 => Bias::t5(narrow(&randn(self.seed + 3, (8, heads))), Direction::Both, 20).unwrap(),
            3 => Bias::t5(narrow(&randn(self.seed + 3, (6, heads))), Direction::Backward, 40).unwrap(),
            4 => {
                let shared = pick(&mut random, heads);
                Bias::shaw(narrow(&randn(self.seed + 4, (shared, 2 * random.below(20) + 1, self.dim)))).unwrap()
            }
            5 | 6 => {
                let dim =
                    (pick(&mut random, self.batch), pick(&mut random, heads), pick(&mut random, self.queries), keys);
                let mut bias = narrow(&randn(self.seed + 5, dim));
                if self.bias == 6 {
                    bias.mapv_inplace(|x| if x < -1.0 { f32::NEG_INFINITY } else { x });
                }
                Bias::dense(bias)
            }
            _ => Bias::none(),
        };
        let align = match self.align {
            0 => Align::Last,
            1 => Align::First,
            _ => Align::Offsets((0..self.batch).map(|_| random.below(keys + 3)).collect()),
        };
        let mut attention = Attention::new().mask(mask).bias(bias).align(align).threads(self.threads);
        if let Some(scale) = self.scale {
            attention = attention.scale(scale);
        }
        if self.softcap {
            attention = attention.softcap(1.5);
        }
        if self.dropout {
            attention = attention.dropout(0.3, self.seed);
        }
        attention
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_entry_point_equals_the_reference(case in case()) {
        let (b, h, kv) = (case.batch, case.heads(), case.kv_heads);
        let q = randn4(case.seed + 10, [b, h, case.queries, case.dim]);
        let k = randn4(case.seed + 11, [b, kv, case.keys, case.dim]);
        let v = randn4(case.seed + 12, [b, kv, case.keys, case.value_dim]);
        let dout = randn4(case.seed + 13, [b, h, case.queries, case.value_dim]);
        let attention = case.attention();
        let (q64, k64, v64, dout64) = (widen(&q), widen(&k), widen(&v), widen(&dout));
        let want = reference::forward(&attention, &q64, &k64, &v64).unwrap();
        let grads = reference::backward(&attention, &q64, &k64, &v64, &dout64).unwrap();

        for isa in Isa::available() {
            let attention = attention.clone().isa(isa);
            let fwd = attention.forward(&q, &k, &v).unwrap();
            assert_close(&format!("{isa} out"), dynamic(&fwd.out), dynamic(&want.out), ABS, REL);
            assert_close(&format!("{isa} lse"), dynamic(&fwd.lse), dynamic(&want.lse), ABS, REL);

            let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
            // Gradients are sums over all queries or keys of terms of size √Dv, most of which cancel.
            let abs = ABS * (1.0 + ((case.queries.max(case.keys) * case.value_dim) as f64).sqrt() / 16.0);
            assert_close(&format!("{isa} dq"), dynamic(&got.dq), dynamic(&grads.dq), abs, REL);
            assert_close(&format!("{isa} dk"), dynamic(&got.dk), dynamic(&grads.dk), abs, REL);
            assert_close(&format!("{isa} dv"), dynamic(&got.dv), dynamic(&grads.dv), abs, REL);
            prop_assert_eq!(got.dbias.is_some(), grads.dbias.is_some());
            if let (Some(got), Some(want)) = (&got.dbias, &grads.dbias) {
                // Slopes and shared tables collect from all rows; slopes multiply by the distance what cancels along a row.
                let terms = ((b * h * case.queries) as f64).sqrt() * if case.bias == 1 { case.keys as f64 } else { 1.0 };
                assert_close(&format!("{isa} dbias"), dynamic(got), dynamic(want), ABS * (1.0 + terms), REL * 10.0);
            }

            let weights = attention.weights(&q, &k).unwrap();
            assert_close(&format!("{isa} weights"), dynamic(&weights), dynamic(&want.weights), ABS, REL);
            if b > 0 && case.queries > 0 && case.keys > 0 {
                tile_and_map(&attention, &case, &q, &k, &fwd.lse, &want.weights);
            }
            decode(&attention, &case, &q, &k, &v, &fwd.out);
        }
    }
}

/// A random rectangle, as it is and pooled in every way.
fn tile_and_map(
    attention: &Attention,
    case: &Case,
    q: &Array4<f32>,
    k: &Array4<f32>,
    lse: &ndarray::Array3<f32>,
    want: &Array4<f64>,
) {
    let mut random = Random::new(case.seed + 20);
    let range = |random: &mut Random, n: usize| {
        let start = random.below(n);
        start..start + 1 + random.below(n - start)
    };
    let at = (random.below(case.batch), random.below(case.heads()));
    let (rows, cols) = (range(&mut random, case.queries), range(&mut random, case.keys));
    let want = want.slice(s![at.0, at.1, rows.clone(), cols.clone()]);
    let tile = attention.tile(q, k, lse, at, rows.clone(), cols.clone()).unwrap();
    assert_close("tile", dynamic(&tile), want.into_dyn(), ABS, REL);

    let (height, width) = (1 + random.below(rows.len()), 1 + random.below(cols.len()));
    for pool in [Pool::Max, Pool::Mean, Pool::Sum] {
        let map = attention.map(q, k, lse, at, rows.clone(), cols.clone(), (height, width), pool).unwrap();
        let pooled = Array2::from_shape_fn((height, width), |(y, x)| {
            let cells = want.slice(s![
                y * rows.len() / height..(y + 1) * rows.len() / height,
                x * cols.len() / width..(x + 1) * cols.len() / width
            ]);
            match pool {
                Pool::Max => cells.iter().copied().fold(0.0, f64::max),
                Pool::Mean => cells.mean().unwrap(),
                Pool::Sum => cells.sum(),
            }
        });
        assert_close(&format!("map {pool:?}"), dynamic(&map), dynamic(&pooled), ABS, REL);
    }
}

/// The last few queries against a cache are the last rows of the whole.
fn decode(attention: &Attention, case: &Case, q: &Array4<f32>, k: &Array4<f32>, v: &Array4<f32>, whole: &Array4<f32>) {
    // Rows keep their numbers only if positions are counted from the end, and nothing else is counted from the start.
    let from_the_end = case.align == 0 && !case.dropout && case.masks & 48 != 48 && !matches!(case.bias, 5 | 6);
    let new = case.queries.min(3);
    if !from_the_end || new == 0 {
        return;
    }
    let mut cache = KvCache::new(case.batch, case.kv_heads, case.dim, case.value_dim);
    let half = case.keys / 2;
    cache.append(k.slice(s![.., .., ..half, ..]), v.slice(s![.., .., ..half, ..])).unwrap();
    cache.append(k, v).unwrap();
    cache.truncate(half);
    cache.append(k.slice(s![.., .., half.., ..]), v.slice(s![.., .., half.., ..])).unwrap();
    assert_eq!(cache.len(), case.keys);
    let last = case.queries - new..case.queries;
    let out = attention.decode(q.slice(s![.., .., last.clone(), ..]), &cache).unwrap().out;
    let want = widen(&whole.slice(s![.., .., last, ..]).to_owned());
    assert_close("decode", dynamic(&out), dynamic(&want), 2.0 * ABS, 2.0 * REL);
}
