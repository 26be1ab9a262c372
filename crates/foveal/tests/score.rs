//! Score functions of the caller's: value, derivative, and the gradient of what they have learned, against plain loops in f64.
#![allow(missing_docs)]

mod support;

use std::sync::{Arc, Mutex};

use foveal::{
    Align, Attention, Bias, Dropout, Isa, KvCache, Mask, Packed, Part, Pattern, Pool, ScoreFunction, ScoreRow,
    reference,
};
use ndarray::{Array2, Array4, s};
use support::calls::Size;
use support::{assert_close, chance, dynamic, narrow, randn, randn4, widen};

const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;

/// ALiBi.
#[derive(Debug)]
struct Distance(Vec<f32>);

impl ScoreFunction for Distance {
    fn apply(&self, row: ScoreRow, scores: &mut [f32]) {
        let (slope, start) = (self.0[row.head], row.first_key - row.position);
        scores.iter_mut().zip(start..).for_each(|(s, distance)| *s -= slope * distance.unsigned_abs() as f32);
    }

    fn backward(&self, _: ScoreRow, _: &[f32], _: &mut [f32]) {}
}

/// Few rows, short and long sequences.
const SIZES: [Size; 4] = [
    Size { batch: 2, heads: 4, kv_heads: 2, queries: 20, keys: 31, dim: 8, value_dim: 12 },
    Size { batch: 1, heads: 2, kv_heads: 1, queries: 70, keys: 300, dim: 16, value_dim: 8 },
    Size { batch: 1, heads: 2, kv_heads: 2, queries: 3, keys: 280, dim: 16, value_dim: 16 },
    Size { batch: 1, heads: 16, kv_heads: 1, queries: 2, keys: 90, dim: 8, value_dim: 8 },
];

#[test]
fn alibi_as_a_function_is_the_built_in() {
    for size in SIZES {
        let [q, k, v, dout] = size.inputs(1);
        let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
        let slopes: Vec<f32> = (0..size.heads).map(|h| 0.3 / (h + 1) as f32).collect();
        let offsets = vec![7isize; size.batch];
        for (mask, align) in [
            (Mask::none(), Align::First),
            (Mask::causal(), Align::Last),
            (Mask::window(20, 3), Align::Offsets(offsets.into())),
            (Mask::pattern(Pattern::strided(9).unwrap()), Align::Last),
        ] {
            let plain = Attention::new().mask(mask).align(align).softcap(3.0);
            let built_in = plain.clone().bias(Bias::alibi_with(slopes.clone()).constant());
            let own = plain.score(Arc::new(Distance(slopes.clone())));
            let want = reference::forward(&built_in, &q64, &k64, &v64).unwrap();
            let grads = reference::backward(&built_in, &q64, &k64, &v64, &dout64).unwrap();
            for isa in Isa::available() {
                let own = own.clone().isa(isa);
                let fwd = own.forward(&q, &k, &v).unwrap();
                assert_close("out", dynamic(&fwd.out), dynamic(&want.out), ABS, REL);
                assert_close("lse", dynamic(&fwd.lse), dynamic(&want.lse), ABS, REL);
                let got = own.backward(&q, &k, &v, &fwd, &dout).unwrap();
                let abs = size.gradient_tolerance();
                assert_close("dq", dynamic(&got.dq), dynamic(&grads.dq), abs, REL);
                assert_close("dk", dynamic(&got.dk), dynamic(&grads.dk), abs, REL);
                assert_close("dv", dynamic(&got.dv), dynamic(&grads.dv), abs, REL);
                assert!(got.dbias.is_none());
            }
        }
    }
}

/// f(s) = s + gain·tanh(2s) − slope·|distance|, with a gain and a slope for each head.
#[derive(Debug)]
struct Learned {
    gain: Vec<f32>,
    slope: Vec<f32>,
    /// Their gradients.
    sums: Mutex<[Vec<f64>; 2]>,
    /// How often each pair of query and key of head 0 came with a gradient.
    pairs: Mutex<Array2<u32>>,
}

impl Learned {
    fn new(size: &Size) -> Arc<Learned> {
        let gain = (0..size.heads).map(|h| 0.4 - 0.3 * h as f32).collect();
        let slope = (0..size.heads).map(|h| 0.02 + 0.01 * h as f32).collect();
        let zeros = vec![0.0; size.heads];
        let pairs = Mutex::new(Array2::zeros((size.queries, size.keys)));
        Arc::new(Learned { gain, slope, sums: Mutex::new([zeros.clone(), zeros]), pairs })
    }
}

impl ScoreFunction for Learned {
    fn apply(&self, row: ScoreRow, scores: &mut [f32]) {
        let (gain, slope) = (self.gain[row.head], self.slope[row.head]);
        for (s, distance) in scores.iter_mut().zip(row.first_key - row.position..) {
            *s += gain * (2.0 * *s).tanh() - slope * distance.unsigned_abs() as f32;
        }
    }

    fn backward(&self, row: ScoreRow, scores: &[f32], ds: &mut [f32]) {
        for (ds, s) in ds.iter_mut().zip(scores) {
            *ds *= 1.0 + 2.0 * self.gain[row.head] * (1.0 - (2.0 * s).tanh().powi(2));
        }
    }

    fn gradient(&self, row: ScoreRow, scores: &[f32], ds: &[f32]) {
        assert_eq!(scores.len(), ds.len());
        let of_gain: f64 = scores.iter().zip(ds).map(|(s, ds)| f64::from(*ds) * f64::from(2.0 * s).tanh()).sum();
        let distances = row.first_key - row.position..;
        let of_slope: f64 = ds.iter().zip(distances).map(|(ds, d)| -f64::from(*ds) * d.unsigned_abs() as f64).sum();
        let mut sums = self.sums.lock().unwrap();
        sums[0][row.head] += of_gain;
        sums[1][row.head] += of_slope;
        if (row.batch, row.head) == (0, 0) {
            let mut pairs = self.pairs.lock().unwrap();
            for (key, ds) in (row.first_key..).zip(ds) {
                pairs[[row.query as usize, key as usize]] += u32::from(*ds != 0.0);
            }
        }
    }
}

/// Everything of a call in f64, pair by pair, with a `Learned` whose numbers may be moved a little.
struct Exact<'a> {
    arrays: [Array4<f64>; 4],
    gain: Vec<f64>,
    slope: Vec<f64>,
    visible: &'a dyn Fn(usize, usize) -> bool,
    softcap: Option<f64>,
    bias: Option<Array2<f64>>,
    dropout: Option<Dropout>,
}

impl Exact<'_> {
    /// Weights [B, H, T, S], lse, and Σ out·dout.
    fn run(&self) -> (Array4<f64>, Array4<f64>, f64) {
        let [q, k, v, dout] = &self.arrays;
        let ((batch, heads, queries, dim), (_, kv_heads, keys, _)) = (q.dim(), k.dim());
        let mut weights = Array4::zeros((batch, heads, queries, keys));
        let mut out = Array4::<f64>::zeros(dout.raw_dim());
        for (b, h, i) in (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..queries).map(move |i| (b, h, i)))) {
            let kv = h * kv_heads / heads;
            let score = |j: usize| {
                let dot: f64 = (0..dim).map(|d| q[[b, h, i, d]] * k[[b, kv, j, d]]).sum();
                let mut s = dot / (dim as f64).sqrt();
                s = self.softcap.map_or(s, |cap| cap * (s / cap).tanh());
                let distance = (j as f64 - (i + keys - queries) as f64).abs();
                s += self.gain[h] * (2.0 * s).tanh() - self.slope[h] * distance;
                s + self.bias.as_ref().map_or(0.0, |bias| bias[[i, j]])
            };
            let seen: Vec<usize> = (0..keys).filter(|j| (self.visible)(i, *j)).collect();
            let exps: Vec<f64> = seen.iter().map(|j| score(*j).exp()).collect();
            let sum: f64 = exps.iter().sum();
            let mut factors = vec![1.0; keys];
            self.dropout.iter().for_each(|dropout| dropout.apply(0, i, &mut factors));
            for (&j, exp) in seen.iter().zip(&exps) {
                weights[[b, h, i, j]] = exp / sum;
                let value = v.slice(s![b, kv, j, ..]);
                out.slice_mut(s![b, h, i, ..]).scaled_add(f64::from(factors[j]) * exp / sum, &value);
            }
        }
        let loss = (&out * dout).sum();
        (weights, out, loss)
    }

    /// The derivative of the loss in one number.
    fn slope_of(&mut self, number: impl Fn(&mut Self) -> &mut f64) -> f64 {
        const STEP: f64 = 1e-5;
        *number(self) += STEP;
        let above = self.run().2;
        *number(self) -= 2.0 * STEP;
        let below = self.run().2;
        *number(self) += STEP;
        (above - below) / (2.0 * STEP)
    }
}

/// An attention, and what it is made of.
struct Case<'a> {
    name: &'static str,
    size: Size,
    attention: Attention,
    visible: &'a dyn Fn(usize, usize) -> bool,
    softcap: Option<f64>,
    biased: bool,
    drops: bool,
}

#[test]
fn a_learned_function_has_its_gradients() {
    let size = Size { batch: 1, heads: 2, kv_heads: 1, queries: 24, keys: 210, dim: 8, value_dim: 6 };
    let single = Size { heads: 1, ..size };
    let window = |i: usize, j: usize| j <= i + 186 + 4 && j + 60 >= i + 186;
    let keep = chance(4, 0.6, (size.queries, size.keys));
    let kept = |i: usize, j: usize| keep[[i, j]];
    let bias: Array2<f64> = randn(5, (size.queries, size.keys)).mapv(|x| f64::from(x as f32));
    let dense = Bias::dense(bias.mapv(|x| x as f32).into_shape_with_order((1, 1, 24, 210)).unwrap()).constant();
    let all = |_: usize, _: usize| true;
    let dropout = Dropout::new(0.3, 8);
    let keep_mask = Mask::dense(keep.clone().into_shape_with_order((1, 1, 24, 210)).unwrap());
    let (new, near) = (Attention::new, Attention::new().mask(Mask::window(60, 4)).softcap(2.0));
    let plain =
        || Case { name: "plain", size, attention: new(), visible: &all, softcap: None, biased: false, drops: false };
    let capped = || Case { visible: &window, softcap: Some(2.0), ..plain() };
    let cases = [
        plain(),
        Case { name: "window, softcap", attention: near.clone(), ..capped() },
        Case {
            name: "keep, bias",
            attention: new().mask(keep_mask).bias(dense.clone()),
            visible: &kept,
            biased: true,
            ..plain()
        },
        Case { name: "dropout", size: single, attention: new().dropout(0.3, 8), drops: true, ..plain() },
        Case {
            name: "all",
            size: single,
            attention: near.bias(dense).dropout(0.3, 8),
            biased: true,
            drops: true,
            ..capped()
        },
    ];
    for Case { name, size, attention, visible, softcap, biased, drops } in cases {
        let arrays = size.inputs(2);
        let [q, k, v, dout] = &arrays;
        let function = Learned::new(&size);
        let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect();
        let mut exact = Exact {
            arrays: arrays.each_ref().map(widen),
            gain: wide(&function.gain),
            slope: wide(&function.slope),
            visible,
            softcap,
            bias: biased.then(|| bias.clone()),
            dropout: drops.then_some(dropout),
        };
        let (weights, out, _) = exact.run();
        let slopes: Vec<[f64; 2]> = (0..size.heads)
            .map(|h| [exact.slope_of(|e| &mut e.gain[h]), exact.slope_of(|e| &mut e.slope[h])])
            .collect();
        let places: Vec<(usize, [usize; 4])> = (0..6).map(|n| (n % 3, [0, 0, [3, 190, 200][n % 3], n])).collect();
        let partial: Vec<f64> =
            places.iter().map(|(array, at)| exact.slope_of(|e| &mut e.arrays[*array][*at])).collect();
        for isa in Isa::available() {
            let function = Learned::new(&size);
            let attention = attention.clone().score(function.clone()).isa(isa);
            let what = |what: &str| format!("{isa}, {name}: {what}");
            let fwd = attention.forward(q, k, v).unwrap();
            assert_close(&what("out"), dynamic(&fwd.out), dynamic(&out), ABS, REL);
            let got = attention.backward(q, k, v, &fwd, dout).unwrap();
            let sums = function.sums.lock().unwrap();
            for (h, [of_gain, of_slope]) in slopes.iter().enumerate() {
                assert!(
                    (sums[0][h] - of_gain).abs() < 1e-4 + 1e-4 * of_gain.abs(),
                    "{}: {} {of_gain}",
                    what("gain"),
                    sums[0][h]
                );
                assert!(
                    (sums[1][h] - of_slope).abs() < 1e-2 + 1e-4 * of_slope.abs(),
                    "{}: {} {of_slope}",
                    what("slope"),
                    sums[1][h]
                );
            }
            for ((array, at), partial) in places.iter().zip(&partial) {
                let got = f64::from([&got.dq, &got.dk, &got.dv][*array][*at]);
                assert!((got - partial).abs() < 2e-5 + 1e-5 * partial.abs(), "{}: {got}, {partial}", what("gradient"));
            }
            // Every pair that is seen came once, and no other with anything.
            for ((i, j), count) in function.pairs.lock().unwrap().indexed_iter() {
                assert!(*count <= u32::from(visible(i, j)), "{}", what("a pair came twice, or is hidden"));
            }
            let seen = function.pairs.lock().unwrap().iter().filter(|count| **count == 1).count();
            let all = (0..24 * 210).filter(|n| visible(n / 210, n % 210)).count();
            assert!(seen * 100 > all * 95, "{}: {seen} of {all}", what("pairs"));

            let dense = attention.weights(q, k).unwrap();
            assert_close(&what("weights"), dynamic(&dense), dynamic(&weights), ABS, REL);
            let head = attention.head(q, k, &fwd.lse, (0, size.heads - 1)).unwrap();
            let want = weights.slice(s![0, size.heads - 1, 3..20, 50..207]);
            let tile = head.tile(3..20, 50..207).unwrap();
            assert_close(&what("tile"), dynamic(&tile), want.into_dyn(), ABS, REL);
            let map = head.map(3..20, 50..207, (1, 1), Pool::Mean).unwrap();
            assert!((f64::from(map[[0, 0]]) - want.mean().unwrap()).abs() < ABS, "{}", what("map"));
        }
    }
}

/// Adds a number of its own to every pair: [B, H, T, S].
#[derive(Debug)]
struct Table(Array4<f32>);

impl ScoreFunction for Table {
    fn apply(&self, row: ScoreRow, scores: &mut [f32]) {
        for (s, key) in scores.iter_mut().zip(row.first_key..) {
            *s += self.0[[row.batch, row.head, row.query as usize, key as usize]];
        }
    }

    fn backward(&self, _: ScoreRow, _: &[f32], _: &mut [f32]) {}
}

/// What a function is told of its rows, in whole calls, parts, packed sequences and caches: as a dense bias says.
#[test]
fn rows_are_named_as_they_are() {
    let size = Size { batch: 2, heads: 4, kv_heads: 2, queries: 30, keys: 220, dim: 8, value_dim: 8 };
    let [q, k, v, _] = size.inputs(6);
    let bias = randn4(7, [2, 4, 30, 220]);
    let (own, dense) =
        (Attention::new().score(Arc::new(Table(bias.clone()))), Attention::new().bias(Bias::dense(bias)));
    let want = reference::forward(&dense, &widen(&q), &widen(&k), &widen(&v)).unwrap();
    for isa in Isa::available() {
        let own = own.clone().isa(isa);
        assert_close("whole", dynamic(&own.forward(&q, &k, &v).unwrap().out), dynamic(&want.out), ABS, REL);
        // The second half of the heads of the second sequence, cut over queries and keys.
        let part = Part { batch: 1, head: 2, queries: 11, ..Part::of(30, 220) };
        let rows = s![1.., 2.., 11.., ..];
        let parts = [0..100, 100..220].map(|keys| {
            let part = Part { keys: keys.start as isize, ..part };
            let keys = s![1.., 1.., keys, ..];
            own.clone().part(part).forward(q.slice(rows), k.slice(keys), v.slice(keys)).unwrap()
        });
        let merged = own.merge(&parts).unwrap();
        assert_close("parts", dynamic(&merged.out), want.out.slice(rows).into_dyn(), ABS, REL);
        // Both sequences, one after the other.
        let join = |x: &Array4<f32>| {
            ndarray::concatenate![ndarray::Axis(2), x.slice(s![..1, .., .., ..]), x.slice(s![1.., .., .., ..])]
        };
        let packed = own.clone().packed(Packed::new([0, 30, 60], [0, 220, 440]).unwrap());
        let got = packed.forward(&join(&q), &join(&k), &join(&v)).unwrap();
        assert_close("packed", dynamic(&got.out), dynamic(&join(&narrow(&want.out)).mapv(f64::from)), ABS, REL);
        let mut cache = KvCache::paged(40, 16, 2, 2, 8, 8).unwrap();
        cache.append(&k, &v).unwrap();
        let few = s![.., .., ..2, ..];
        let got = own.clone().align(Align::First).decode(q.slice(few), &cache).unwrap();
        assert_close("decode", dynamic(&got.out), want.out.slice(few).into_dyn(), ABS, REL);
    }
}
