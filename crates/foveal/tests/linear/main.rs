//! Linear attention against its formula in f64, pair by pair: forward, backward, recurrent, weights; and FAVOR+ against softmax.
#![allow(missing_docs)]

mod extremes;
mod formula;
mod masks;
#[path = "../support/mod.rs"]
mod support;

use formula::{Formula, Phi};
use foveal::{
    Align, Attention, Error, Favor, FeatureMap, Isa, LinearAttention, Mask, Pattern, Pool, Threads, reference,
};
use ndarray::{Array2, Array4, s};
use support::{assert_close, dynamic, randn, randn4, widen};

/// The same in both worlds, for heads of this dimension.
fn pairs(dim: usize) -> Vec<(&'static str, LinearAttention, Formula)> {
    let favor = Favor::new(dim, 2 * dim + 3, 5).unwrap();
    let w = favor.projection().mapv(f64::from);
    let maps = [("ELU + 1", FeatureMap::Elu, Phi::Elu), ("FAVOR+", FeatureMap::Favor(favor), Phi::Favor(w))];
    let mut pairs = Vec::new();
    for (name, map, phi) in maps {
        let linear = LinearAttention::new(map);
        let formula = Formula::new(phi);
        pairs.push((name, linear.clone(), formula.clone()));
        pairs.push((name, linear.mask(Mask::causal()), Formula { right: Some(0), ..formula }));
    }
    pairs
}

#[test]
fn the_formulas_gradients_by_finite_differences() {
    let shapes = [(1, 2, 6, 3), (1, 1, 6, 3), (1, 1, 6, 2), (1, 2, 6, 2)];
    let [q, k, v, dout] = [0, 1, 2, 3].map(|n| randn(n as u64 + 1, shapes[n]));
    for (name, _, formula) in pairs(3) {
        let grads = formula.backward(&q, &k, &v, &dout);
        for which in 0..3 {
            for (at, exact) in grads[which].indexed_iter() {
                let moved = |by: f64| {
                    let mut inputs = [q.clone(), k.clone(), v.clone()];
                    inputs[which][at] += by;
                    (formula.forward(&inputs[0], &inputs[1], &inputs[2]).out * &dout).sum()
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - exact).abs() < 1e-7, "{name}, input {which}, {at:?}: {slope} and {exact}");
            }
        }
    }
}

#[test]
fn everything_equals_the_formula() {
    // One chunk and less, chunk ± 1, several; more keys than queries and fewer; grouped heads; the last is several segments.
    for (queries, keys, heads, kv) in [
        (1, 1, 1, 1),
        (5, 9, 2, 1),
        (9, 5, 2, 2),
        (127, 127, 1, 1),
        (128, 129, 4, 2),
        (130, 128, 1, 1),
        (300, 300, 2, 1),
        (0, 4, 1, 1),
        (4, 0, 1, 1),
    ] {
        for dim in [1, 17] {
            let q = randn4(1, [2, heads, queries, dim]);
            let (k, v) = (randn4(2, [2, kv, keys, dim]), randn4(3, [2, kv, keys, dim + 2]));
            let dout = randn4(4, [2, heads, queries, dim + 2]);
            for (name, linear, formula) in pairs(dim) {
                for lengths in [None, Some(vec![keys, keys / 3])] {
                    let formula = Formula { lengths: lengths.clone(), ..formula.clone() };
                    let padding = lengths.map_or(Mask::none(), Mask::padding);
                    let linear = linear.clone().and_mask(padding);
                    let want = formula.forward(&widen(&q), &widen(&k), &widen(&v));
                    let grads = formula.backward(&widen(&q), &widen(&k), &widen(&v), &widen(&dout));
                    for isa in Isa::available() {
                        let what = |part: &str| format!("{name}, {queries} on {keys}, D = {dim}, {isa}: {part}");
                        let linear = linear.clone().isa(isa);
                        let fwd = linear.forward(&q, &k, &v).unwrap();
                        assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), 2e-5, 1e-5);
                        assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), 2e-5, 1e-5);
                        let got = linear.backward(&q, &k, &v, &fwd, &dout).unwrap();
                        for (part, got, want) in
                            [("dq", &got.dq, &grads[0]), ("dk", &got.dk, &grads[1]), ("dv", &got.dv, &grads[2])]
                        {
                            assert_close(&what(part), dynamic(got), dynamic(want), 1e-4, 5e-5);
                        }
                        let weights = linear.weights(&q, &k).unwrap();
                        assert_close(&what("weights"), dynamic(&weights), dynamic(&want.weights), 1e-5, 1e-5);
                        if queries > 1 && keys > 1 {
                            let (rows, cols) = (queries / 2..queries, keys / 3..keys);
                            let at = (1, heads - 1);
                            let part = want.weights.slice(s![at.0, at.1, rows.clone(), cols.clone()]);
                            let tile =
                                linear.head(&q, &k, &fwd.lse, at).unwrap().tile(rows.clone(), cols.clone()).unwrap();
                            assert_close(&what("tile"), dynamic(&tile), part.into_dyn(), 1e-5, 1e-5);
                            for pool in [Pool::Max, Pool::Mean, Pool::Sum] {
                                let head = linear.head(&q, &k, &fwd.lse, at).unwrap();
                                let size = (2.min(rows.len()), 1);
                                let map = head.map(rows.clone(), cols.clone(), size, pool).unwrap();
                                let height = map.dim().0;
                                let pooled = Array2::from_shape_fn((height, 1), |(y, _)| {
                                    let cells =
                                        part.slice(s![y * rows.len() / height..(y + 1) * rows.len() / height, ..]);
                                    match pool {
                                        Pool::Max => cells.iter().copied().fold(0.0, f64::max),
                                        Pool::Mean => cells.mean().unwrap(),
                                        Pool::Sum => cells.sum(),
                                    }
                                });
                                assert_close(&what("map"), dynamic(&map), dynamic(&pooled), 2e-5, 2e-5);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Several segments, which run at the same time: they join without a seam, and to the bit for any number of threads.
#[test]
fn segments_and_threads() {
    let (q, k, v) = (randn4(1, [1, 2, 3100, 3]), randn4(2, [1, 1, 3100, 3]), randn4(3, [1, 1, 3100, 3]));
    // Checked by a sample of the rows, the only ones that have a gradient.
    let sampled = |i: usize| i.is_multiple_of(61);
    let dout = Array4::from_shape_fn(q.dim(), |(b, h, i, d)| if sampled(i) { q[[b, h, i, d]] } else { 0.0 });
    for (name, linear, formula) in pairs(3) {
        let formula = Formula { step: 61, ..formula };
        let want = formula.forward(&widen(&q), &widen(&k), &widen(&v));
        let grads = formula.backward(&widen(&q), &widen(&k), &widen(&v), &widen(&dout));
        let run = |linear: &LinearAttention| {
            let fwd = linear.forward(&q, &k, &v).unwrap();
            let grads = linear.backward(&q, &k, &v, &fwd, &dout).unwrap();
            (fwd, grads)
        };
        let once = run(&linear.clone().threads(Threads::Sequential));
        let out = once.0.out.slice(s![.., .., ..;61, ..]).to_owned();
        assert_close(name, dynamic(&out), want.out.slice(s![.., .., ..;61, ..]).into_dyn(), 2e-5, 1e-5);
        for (got, want) in [&once.1.dq, &once.1.dk, &once.1.dv].into_iter().zip(&grads) {
            assert_close(name, dynamic(got), dynamic(want), 1e-4, 1e-4);
        }
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| run(&linear)) == once, "{name}, {threads} threads");
        }
    }
}

#[test]
fn steps_equal_the_parallel_form() {
    let (q, k, v) = (randn4(1, [2, 4, 200, 12]), randn4(2, [2, 2, 200, 12]), randn4(3, [2, 2, 200, 6]));
    for (name, linear, _) in pairs(12) {
        let want = linear.clone().mask(Mask::causal()).forward(&q, &k, &v).unwrap();
        let mut state = linear.state(2, 2, 12, 6).unwrap();
        assert!(state.is_empty());
        // A prompt, and then token by token.
        for tokens in std::iter::once(0..150).chain((150..200).map(|t| t..t + 1)) {
            let part = |x: &Array4<f32>| x.slice(s![.., .., tokens.clone(), ..]).to_owned();
            let fwd = linear.step(&part(&q), &part(&k), &part(&v), &mut state).unwrap();
            assert_close(name, dynamic(&fwd.out), dynamic(&widen(&part(&want.out))), 2e-5, 1e-5);
            let lse = widen(&want.lse.slice(s![.., .., tokens.clone()]).to_owned());
            assert_close(name, dynamic(&fwd.lse), dynamic(&lse), 2e-5, 1e-5);
        }
        assert_eq!(state.len(), 200);
    }
}

/// FAVOR+ is an estimate of softmax attention, without bias, whose error falls as 1/√m.
#[test]
fn favor_estimates_softmax() {
    // Inputs of a third of the usual size: the estimate's variance grows with exp |q + k|², and where it is large no sum of a few
    // thousand terms is near its limit.
    let (q, k) = (randn4(1, [1, 1, 64, 16]) / 3.0, randn4(2, [1, 1, 64, 16]) / 3.0);
    let v = randn4(3, [1, 1, 64, 16]);
    let exact = reference::forward(&Attention::new(), &widen(&q), &widen(&k), &widen(&v)).unwrap();
    let mut favor = Favor::new(16, 1, 0).unwrap();
    let (mut logs, mut last) = (Vec::new(), 0.0);
    for m in [64usize, 128, 256, 512, 1024, 2048, 4096] {
        let draws = 24;
        let mut square = 0.0;
        for seed in 0..draws {
            favor = Favor::new(16, m, 100 + seed).unwrap();
            let out = LinearAttention::new(FeatureMap::Favor(favor.clone())).forward(&q, &k, &v).unwrap().out;
            square += (widen(&out) - &exact.out).mapv(|x| x * x).mean().unwrap() / draws as f64;
        }
        last = square.sqrt();
        logs.push(((m as f64).ln(), last.ln()));
    }
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| logs.iter().map(f).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let slope = mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x).powi(2));
    assert!((slope + 0.5).abs() < 0.08, "error ~ m^{slope:.3}: {logs:?}");
    assert!(last < 0.01, "error {last} with 4096 features");
    let redrawn = LinearAttention::new(FeatureMap::Favor(favor.redraw(7))).forward(&q, &k, &v).unwrap().out;
    let first = LinearAttention::new(FeatureMap::Favor(favor)).forward(&q, &k, &v).unwrap().out;
    assert_ne!(redrawn, first);
}

/// NaN or ∞ at a key, value or query: exactly what sees it is NaN.
#[test]
fn nan_spreads_to_what_sees_it_and_no_further() {
    for bad in [f32::NAN, f32::INFINITY] {
        for place in 0..3 {
            let mut arrays = [1, 2, 3].map(|seed| randn4(seed, [1, 1, 200, 8]));
            arrays[place][[0, 0, 150, 3]] = bad;
            let [q, k, v] = &arrays;
            for map in [FeatureMap::Elu, FeatureMap::favor(8, 16, 1).unwrap()] {
                let fwd = LinearAttention::new(map.clone()).mask(Mask::causal()).forward(q, k, v).unwrap();
                for (i, row) in fwd.out.rows().into_iter().enumerate() {
                    let spoilt = if place == 0 { i == 150 } else { i >= 150 };
                    // ELU of an infinite query or key is infinite, and ∞/∞ is NaN.
                    assert_eq!(row.iter().any(|x| !x.is_finite()), spoilt, "{bad} in array {place}, row {i}, {map:?}");
                }
                let padded = LinearAttention::new(map).mask(Mask::padding([140])).forward(q, k, v).unwrap();
                assert_eq!(padded.out.iter().all(|x| x.is_finite()), place > 0);
            }
        }
    }
}

#[test]
fn bad_input_is_an_error() {
    let expect = |result: Result<(), Error>, part: &str| {
        let message = result.expect_err(part).to_string();
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    };
    let x = randn4(1, [2, 4, 6, 8]);
    let linear = LinearAttention::new(FeatureMap::Elu);
    let fwd = linear.forward(&x, &x, &x).unwrap();
    expect(Favor::new(8, 0, 1).map(|_| ()), "FAVOR+ features is 0; what fits: 1 or more; D·ln D = 17");
    expect(Favor::new(0, 8, 1).map(|_| ()), "head dimension 0");
    let other = LinearAttention::new(FeatureMap::favor(16, 32, 1).unwrap());
    expect(other.forward(&x, &x, &x).map(|_| ()), "projection has shape [32, 16], expected [32, 8]");
    expect(other.state(1, 1, 8, 8).map(|_| ()), "projection has shape");
    let short = x.slice(s![.., .., ..5, ..]);
    expect(linear.forward(&x, &x, short).map(|_| ()), "v has shape");
    expect(linear.backward(&x, &x, &x, &fwd, short).map(|_| ()), "dout has shape");
    let masked = |mask: Mask| linear.clone().mask(mask).forward(&x, &x, &x).map(|_| ());
    expect(masked(Mask::padding([7, 1])), "sequence 0 has length 7");
    expect(masked(Mask::padding([1])), "lengths has shape [1]");
    expect(masked(Mask::keys(Array2::default((2, 5)))), "keep-array has shape [2, 1, 1, 5], expected [2, 4, 6, 6]");
    expect(masked(Mask::window(3, 0)), "linear attention has no window with an end to the left");
    expect(masked(Mask::pattern(Pattern::strided(2).unwrap())), "linear attention has no sparse pattern");
    expect(masked(Mask::dense(Array4::default((1, 1, 6, 6)))), "has no keep-array with an axis for heads or queries");
    expect(linear.clone().align(Align::Offsets([1].into())).forward(&x, &x, &x).map(|_| ()), "offsets has shape [1]");
    let biased = Attention::new().softcap(3.0);
    expect(LinearAttention::with_options(FeatureMap::Elu, &biased).map(|_| ()), "linear attention has no softcap");
    expect(linear.head(&x, &x, &fwd.lse, (2, 0)).and_then(|head| head.tile(0..1, 0..1)).map(|_| ()), "sequence 2..3");
    expect(
        linear.head(&x, &x, &fwd.lse, (0, 0)).and_then(|head| head.map(0..6, 0..6, (7, 1), Pool::Max)).map(|_| ()),
        "7 pixels for 6 rows",
    );
    let mut state = linear.state(2, 4, 8, 8).unwrap();
    expect(linear.step(short, &x, &x, &mut state).map(|_| ()), "q of new tokens has shape");
    let mut narrow = linear.state(2, 4, 8, 7).unwrap();
    expect(linear.step(&x, &x, &x, &mut narrow).map(|_| ()), "the state has shape");
    assert!(state.is_empty() && narrow.is_empty());
}
