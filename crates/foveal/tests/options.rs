//! Random shapes under random combinations of all options: every entry point, on every instruction set, against the f64
//! reference.
#![allow(missing_docs)]

mod support;

use foveal::{
    Align, Attention, Bias, BigBird, Direction, GradientsMut, Isa, KvCache, Mask, Pattern, Pool, Scratch, Threads,
    alibi_slopes, reference,
};
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
    pattern: usize,
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
        (0usize..8, any::<u8>(), 0usize..14, 0usize..3, any::<bool>(), any::<bool>()),
        (prop_oneof![Just(None), Just(Some(0.3f32)), Just(Some(-0.2)), Just(Some(0.0))], any::<bool>()),
    )
        .prop_map(
            |(
                (seed, batch, kv_heads, group),
                (queries, keys, dim, value_dim),
                (bias, masks, pattern, align, softcap, dropout),
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
                pattern,
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
        let align = match self.align {
            0 => Align::Last,
            1 => Align::First,
            _ => Align::Offsets((0..self.batch).map(|_| random.below(keys + 3) as isize).collect()),
        };
        match self.pattern {
            1..=7 => mask = mask.and(Mask::pattern(self.pattern(&mut random, self.pattern, &align))),
            8 => {
                let patterns = (0..heads).map(|_| {
                    let kind = 1 + random.below(7);
                    self.pattern(&mut random, kind, &align)
                });
                mask = mask.and(Mask::patterns(patterns.collect::<Vec<_>>()));
            }
            9 => {
                mask = mask.and(Mask::pattern(self.pattern(&mut random, 1, &align)));
                mask = mask.and(Mask::pattern(self.pattern(&mut random, 5, &align)));
            }
            10 => {
                let either = self.pattern(&mut random, 1, &align).or(Pattern::fixed(9, 1).unwrap()).unwrap();
                mask = mask.and(Mask::pattern(either));
            }
            _ => {}
        }
        let bias = match self.bias {
            7 if self.on_an_image() => {
                let (window, grid) = ((1 + random.below(4), 1 + random.below(4)), self.grid(&mut random));
                let table = randn(self.seed + 6, ((2 * window.0 - 1) * (2 * window.1 - 1), heads));
                Bias::swin(narrow(&table), window, grid).unwrap()
            }
            1 => Bias::alibi_with(alibi_slopes(heads).unwrap()),
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

impl Case {
    /// Whether every query stands at a key.
    fn on_an_image(&self) -> bool {
        self.queries <= self.keys && self.align < 2
    }

    /// An image of as many tokens as there are keys.
    fn grid(&self, random: &mut Random) -> (usize, usize) {
        let sides: Vec<usize> = (1..=self.keys).filter(|side| self.keys.is_multiple_of(*side)).collect();
        let height = if sides.is_empty() { 0 } else { sides[random.below(sides.len())] };
        (height, self.keys.checked_div(height).unwrap_or(0))
    }

    /// A random pattern of this kind that fits, or if none of them can, a band.
    fn pattern(&self, random: &mut Random, kind: usize, align: &Align) -> Pattern {
        let furthest = match align {
            Align::First => self.queries,
            Align::Offsets(offsets) => *offsets.iter().max().unwrap_or(&0) as usize + self.queries,
            _ => self.keys,
        };
        let tokens = furthest.max(self.keys);
        let small = |random: &mut Random| {
            let most = 1 + random.below(40);
            1 + random.below(most)
        };
        let cannot = matches!(align, Align::Last) && self.queries > self.keys;
        match kind {
            2 => Pattern::longformer(random.below(20), 1 + random.below(30), &[random.below(tokens + 1)]).unwrap(),
            3 => Pattern::strided(small(random)).unwrap(),
            4 => {
                let stride = small(random);
                Pattern::fixed(stride, random.below(stride + 1)).unwrap()
            }
            5 if !cannot && random.below(2) == 0 => {
                let mut left = tokens;
                let lengths = std::iter::from_fn(|| {
                    let length = random.below(40).min(left);
                    left -= length;
                    (left > 0 || length > 0).then_some(length)
                });
                Pattern::documents(&lengths.collect::<Vec<_>>()).unwrap()
            }
            5 if !cannot => {
                let size = small(random);
                let blocks = tokens.div_ceil(size);
                let share = random.uniform();
                let mut row = || (0..blocks).filter(|_| random.uniform() < share).collect::<Vec<_>>();
                Pattern::blocks(size, (0..blocks).map(|_| row()).collect::<Vec<_>>()).unwrap()
            }
            6 if !cannot => {
                let blocks = 2 + random.below(12);
                let block = tokens.div_ceil(blocks).max(1);
                // Rounding may have made fewer blocks of them.
                let blocks = tokens.div_ceil(block);
                let mut left = blocks;
                let mut some = |random: &mut Random| {
                    let n = random.below(left / 2 + 1);
                    left -= n;
                    n
                };
                let window = (some(random).max(1) - 1) / 2 * 2 + 1;
                let (global_start, global_end) = (some(random), some(random));
                let random_blocks = blocks.saturating_sub(window + global_start + global_end).min(random.below(4));
                let sizes = BigBird { block, window, global_start, global_end, random: random_blocks, seed: self.seed };
                Pattern::big_bird(tokens, sizes).unwrap_or_else(|_| Pattern::strided(3).unwrap())
            }
            7 if self.on_an_image() => {
                let (height, width) = self.grid(random);
                let mut side = |side: usize| {
                    let windows: Vec<usize> = (1..=side).filter(|window| side.is_multiple_of(*window)).collect();
                    let window = if windows.is_empty() { 1 } else { windows[random.below(windows.len())] };
                    (window, random.below(window))
                };
                let (tall, wide) = (side(height), side(width));
                Pattern::swin((height, width), (tall.0, wide.0), (tall.1, wide.1)).unwrap()
            }
            _ => {
                let global: Vec<usize> = (0..random.below(4)).map(|_| random.below(tokens + 1)).collect();
                Pattern::longformer(random.below(40), 1, &global).unwrap()
            }
        }
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
            // Into arrays that lie otherwise, whatever they held.
            let [mut dq, mut dk, mut dv] = [&q, &k, &v].map(|x| {
                let (b, h, t, d) = x.dim();
                Array4::from_elem((b, t, h, d), f32::NAN).permuted_axes([0, 2, 1, 3])
            });
            let targets = GradientsMut::set(&mut dq, &mut dk, &mut dv);
            let learned = attention.backward_into(&q, &k, &v, &fwd, &dout, targets, &mut Scratch::new()).unwrap();
            prop_assert_eq!(&learned.dbias, &got.dbias);
            for (name, other, got) in [("dq", dq, &got.dq), ("dk", dk, &got.dk), ("dv", dv, &got.dv)] {
                prop_assert_eq!(&other, got, "{} {} in another layout", isa, name);
            }
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
    lse: &ndarray::Array3<f64>,
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
    let head = attention.head(q, k, lse, at).unwrap();
    let tile = head.tile(rows.clone(), cols.clone()).unwrap();
    assert_close("tile", dynamic(&tile), want.into_dyn(), ABS, REL);

    let (height, width) = (1 + random.below(rows.len()), 1 + random.below(cols.len()));
    for pool in [Pool::Max, Pool::Mean, Pool::Sum] {
        let map = head.map(rows.clone(), cols.clone(), (height, width), pool).unwrap();
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
    if !from_the_end || new == 0 || case.batch == 0 {
        return;
    }
    let mut cache = KvCache::new(case.batch, case.kv_heads, case.dim, case.value_dim);
    let half = case.keys / 2;
    cache.append(k.slice(s![.., .., ..half, ..]), v.slice(s![.., .., ..half, ..])).unwrap();
    cache.append(k, v).unwrap();
    cache.truncate(half);
    cache.append(k.slice(s![.., .., half.., ..]), v.slice(s![.., .., half.., ..])).unwrap();
    assert_eq!(cache.lengths(), vec![case.keys; case.batch]);
    let last = case.queries - new..case.queries;
    let out = attention.decode(q.slice(s![.., .., last.clone(), ..]), &cache).unwrap().out;
    let want = widen(&whole.slice(s![.., .., last, ..]).to_owned());
    assert_close("decode", dynamic(&out), dynamic(&want), 2.0 * ABS, 2.0 * REL);
}
