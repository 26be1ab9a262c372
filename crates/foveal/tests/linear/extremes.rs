//! Features that differ by hundreds of orders of magnitude: nothing overflows, and no query is lost.

use foveal::{Favor, FeatureMap, Forward, Isa, LinearAttention, Mask, Pool};
use ndarray::{Array2, Array4, array, s};

use crate::formula::{Formula, Phi};
use crate::support::{assert_close, dynamic, randn4, widen};

/// Everything that linear attention answers, against the formula.
fn check(name: &str, map: &FeatureMap, formula: &Formula, [q, k, v]: [&Array4<f32>; 3]) {
    let dout = randn4(9, [q.dim().0, q.dim().1, q.dim().2, v.dim().3]);
    for right in [None, Some(0)] {
        let formula = Formula { right, ..formula.clone() };
        let want = formula.forward(&widen(q), &widen(k), &widen(v));
        let grads = formula.backward(&widen(q), &widen(k), &widen(v), &widen(&dout));
        // The exponents themselves are only so exact in f32: their rounding is relative.
        let tolerance = 2e-4;
        for isa in Isa::available() {
            let linear = LinearAttention::new(map.clone()).mask(Mask::window(None, right)).isa(isa);
            let what = |part: &str| format!("{name}, right {right:?}, {isa}: {part}");
            let fwd = linear.forward(q, k, v).unwrap();
            assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), tolerance, tolerance);
            assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), tolerance, 1e-6);
            let weights = linear.weights(q, k).unwrap();
            assert_close(&what("weights"), dynamic(&weights), dynamic(&want.weights), tolerance, tolerance);
            let (rows, cols) = (q.dim().2 / 3..q.dim().2, 0..k.dim().2);
            let part = want.weights.slice(s![0, 0, rows.clone(), ..]);
            let tile = linear.head(q, k, &fwd.lse, (0, 0)).unwrap().tile(rows.clone(), cols.clone()).unwrap();
            assert_close(&what("tile"), dynamic(&tile), part.into_dyn(), tolerance, tolerance);
            let map = linear.head(q, k, &fwd.lse, (0, 0)).unwrap().map(rows, cols, (1, 1), Pool::Max).unwrap();
            let largest = Array2::from_elem((1, 1), part.iter().copied().fold(0.0, f64::max));
            assert_close(&what("map"), dynamic(&map), dynamic(&largest), tolerance, tolerance);
            let got = linear.backward(q, k, v, &fwd, &dout).unwrap();
            for (part, got, want) in
                [("dq", &got.dq, &grads[0]), ("dk", &got.dk, &grads[1]), ("dv", &got.dv, &grads[2])]
            {
                assert_close(&what(part), dynamic(got), dynamic(want), 10.0 * tolerance, tolerance);
            }
            if right.is_some() {
                for (what, step) in [("all at once", k.dim().2), ("one by one", 1)] {
                    let stepped = by_steps(&linear, [q, k, v], step);
                    assert_close(
                        &format!("{name}, {isa}: {what}"),
                        dynamic(&stepped.out),
                        dynamic(&want.out),
                        tolerance,
                        tolerance,
                    );
                    assert_close(
                        &format!("{name}, {isa}: {what}"),
                        dynamic(&stepped.lse),
                        dynamic(&want.lse),
                        tolerance,
                        1e-6,
                    );
                }
            }
        }
    }
}

fn by_steps(linear: &LinearAttention, [q, k, v]: [&Array4<f32>; 3], tokens: usize) -> Forward {
    let (batch, heads, queries, dim) = q.dim();
    let mut state = linear.state(batch, k.dim().1, dim, v.dim().3).unwrap();
    let out = Array4::zeros((batch, heads, queries, v.dim().3));
    let mut fwd = Forward { out, lse: ndarray::Array3::zeros((batch, heads, queries)) };
    for first in (0..queries).step_by(tokens) {
        let range = s![.., .., first..(first + tokens).min(queries), ..];
        let part = linear.step(q.slice(range), k.slice(range), v.slice(range), &mut state).unwrap();
        fwd.out.slice_mut(range).assign(&part.out);
        fwd.lse.slice_mut(s![.., .., first..(first + tokens).min(queries)]).assign(&part.lse);
    }
    fwd
}

fn favor(dim: usize, features: usize, seed: u64) -> (FeatureMap, Formula) {
    let favor = Favor::new(dim, features, seed).unwrap();
    let formula = Formula::new(Phi::Favor(favor.projection().mapv(f64::from)));
    (FeatureMap::Favor(favor), formula)
}

/// The first query sees a key that is e⁻¹¹² of the second one's.
#[test]
fn a_query_before_a_much_larger_key() {
    let (map, formula) = favor(1, 16, 0);
    let (q, k) = (array![[[[0f32], [0.]]]], array![[[[15f32], [0.]]]]);
    let v = array![[[[1f32], [2.]]]];
    check("k = 15, 0", &map, &formula, [&q, &k, &v]);
    let fwd = LinearAttention::new(map).mask(Mask::causal()).forward(&q, &k, &v).unwrap();
    assert_eq!(fwd.out[[0, 0, 0, 0]], 1.0);
    assert!((fwd.lse[[0, 0, 0]] + 79.8).abs() < 0.05, "{}", fwd.lse);
}

#[test]
fn favor_with_inputs_of_six() {
    for features in [16, 64, 256] {
        for seed in 0..12 {
            let (map, formula) = favor(64, features, seed);
            let q = randn4(seed, [1, 1, 16, 64]) * 6.0;
            let k = randn4(seed + 100, [1, 1, 16, 64]) * 6.0;
            let v = randn4(seed + 200, [1, 1, 16, 5]);
            check(&format!("{features} features, seed {seed}"), &map, &formula, [&q, &k, &v]);
        }
    }
}

/// Keys that grow, shrink or alternate by orders of magnitude, within a chunk, across chunks and across segments.
#[test]
fn favor_with_keys_of_all_sizes() {
    for (name, tokens) in [("one chunk", 40), ("three chunks", 300), ("segments", 2100)] {
        for (order, size) in [
            ("growing", (|t| t) as fn(f32) -> f32),
            ("shrinking", |t| 1.0 - t),
            ("alternating", |t| ((t * 37.0).sin() + 1.0) / 2.0),
            ("a few small ones first", |t| if t < 0.01 { 1.0 } else { 0.0 }),
            ("a small one last", |t| if t > 0.99 { 0.0 } else { 1.0 }),
        ] {
            let (map, formula) = favor(8, 24, 3);
            let formula = Formula { step: tokens / 60 + 1, ..formula };
            let q = randn4(1, [1, 1, tokens, 8]) * 2.0;
            let mut k = randn4(2, [1, 1, tokens, 8]);
            // |k|² from 0 to some 600: exponents down to −300·8^(−1/2).
            for ((_, _, t, _), x) in k.indexed_iter_mut() {
                *x *= 8.0 * size(t as f32 / tokens as f32);
            }
            let v = randn4(3, [1, 1, tokens, 4]);
            if tokens < 1000 {
                check(&format!("{name}, {order}"), &map, &Formula { step: 1, ..formula }, [&q, &k, &v]);
                continue;
            }
            let formula = Formula { right: Some(0), ..formula };
            let want = formula.forward(&widen(&q), &widen(&k), &widen(&v));
            let fwd = LinearAttention::new(map).mask(Mask::causal()).forward(&q, &k, &v).unwrap();
            for i in (0..tokens).step_by(formula.step) {
                let row = s![0, 0, i, ..];
                let (got, want) = (fwd.out.slice(row).to_owned(), want.out.slice(row).to_owned());
                assert_close(&format!("{name}, {order}, row {i}"), dynamic(&got), dynamic(&want), 2e-4, 2e-4);
            }
        }
    }
}

/// eˣ of ELU + 1 is far below what f32 can hold the square of.
#[test]
fn elu_with_very_negative_inputs() {
    let formula = Formula::new(Phi::Elu);
    for size in [-20.0, -60.0, -100.0, -200.0] {
        let at = |seed, tokens| randn4(seed, [1, 1, tokens, 6]) + size;
        let (q, k, v) = (at(1, 150), at(2, 150), randn4(3, [1, 1, 150, 4]));
        check(&format!("all about {size}"), &FeatureMap::Elu, &formula, [&q, &k, &v]);
        let same = Array4::from_elem((1, 1, 20, 3), size);
        check(&format!("all {size}"), &FeatureMap::Elu, &formula, [&same, &same, &randn4(4, [1, 1, 20, 2])]);
        // A query's features are not the key's.
        let apart = |shift: usize| {
            Array4::from_shape_fn(
                (1, 1, 140, 4),
                |(_, _, t, d)| if (t + d + shift).is_multiple_of(4) { 1.0 } else { size },
            )
        };
        check(
            &format!("apart by {size}"),
            &FeatureMap::Elu,
            &formula,
            [&apart(0), &apart(1), &randn4(5, [1, 1, 140, 3])],
        );
        // Very small ones first, and then larger ones; and the other way round.
        for after in [false, true] {
            let steps = Array4::from_shape_fn((1, 1, 200, 4), |(_, _, t, d)| {
                let x = ((7 * t + 3 * d) as f32).sin();
                if (t < 140) == after { x } else { x + size }
            });
            let v = randn4(6, [1, 1, 200, 3]);
            check(&format!("{size} after: {after}"), &FeatureMap::Elu, &formula, [&steps, &steps, &v]);
        }
    }
}

#[test]
fn elu_with_very_large_and_infinitely_negative_inputs() {
    let formula = Formula::new(Phi::Elu);
    let v = randn4(3, [1, 1, 20, 4]);
    for size in [1e6, 1e12, 1e18] {
        let x = randn4(1, [1, 1, 20, 6]) * size;
        // Gradients in inputs of this size are tiny, and so are their tolerances here.
        check(&format!("about ±{size:e}"), &FeatureMap::Elu, &formula, [&x.mapv(f32::abs), &x.mapv(f32::abs), &v]);
    }
    let linear = LinearAttention::new(FeatureMap::Elu).mask(Mask::causal());
    let mut x = randn4(1, [1, 1, 20, 6]);
    x.slice_mut(s![0, 0, ..3, ..]).fill(f32::NEG_INFINITY);
    let fwd = linear.forward(&x, &x, &v).unwrap();
    assert!(fwd.out.iter().all(|x| x.is_finite()));
    // The features of the first three are 0: they see nothing, and nobody sees them.
    assert!(fwd.lse.slice(s![0, 0, ..3]).iter().all(|lse| *lse == f64::NEG_INFINITY));
    let weights = linear.weights(&x, &x).unwrap();
    assert!(weights.slice(s![0, 0, .., ..3]).iter().all(|w| *w == 0.0));
}

/// An lse that is not of these inputs gives weights within 0 and 1 all the same.
#[test]
fn a_wrong_lse_makes_no_impossible_weights() {
    let x = randn4(1, [1, 1, 20, 6]);
    for map in [FeatureMap::Elu, FeatureMap::favor(6, 12, 1).unwrap()] {
        let linear = LinearAttention::new(map);
        for lse in [-1e30, -1e4, -100.0, -20.0, 0.0, 1e4, 1e30] {
            let lse = ndarray::Array3::from_elem((1, 1, 20), lse);
            let tile = linear.head(&x, &x, &lse, (0, 0)).unwrap().tile(0..20, 0..20).unwrap();
            assert!(tile.iter().all(|w| (0.0..=1.0).contains(w)), "{lse}");
        }
    }
}
