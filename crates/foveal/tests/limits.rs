//! Numbers at the ends of what f32 and the machine can hold: large scores, a log-sum-exp that is none, origins far away.
#![allow(missing_docs)]

mod support;

use foveal::{Align, Attention, Bias, Error, Forward, Isa, Mask, Part, Pattern, Pool, reference};
use ndarray::{Array3, Array4, s};
use support::{Random, assert_close, dynamic, randn4, widen};

/// Whole numbers from −size to size: their products and sums are exact in f32.
fn whole_numbers(seed: u64, shape: [usize; 4], size: usize) -> Array4<f32> {
    let mut random = Random::new(seed);
    Array4::from_shape_simple_fn(shape, || random.below(2 * size + 1) as f32 - size as f32)
}

/// Kernels for short sequences, for long ones, and for a few rows.
const SHAPES: [(usize, usize); 3] = [(20, 30), (70, 300), (2, 280)];

/// Scores of some thousands, as exact as small ones: nothing is lost to the rounding of lse.
#[test]
fn large_scores_keep_their_digits() {
    for (queries, keys) in SHAPES {
        let (q, k) = (whole_numbers(1, [1, 2, queries, 16], 40), whole_numbers(2, [1, 2, keys, 16], 40));
        let (v, dout) = (randn4(3, [1, 2, keys, 8]), randn4(4, [1, 2, queries, 8]));
        let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
        let close = Array4::from_shape_fn((1, 2, queries, keys), |(_, h, i, j)| ((h + i + 3 * j) % 4) as f32 * 0.5);
        for (name, attention) in [
            ("plain", Attention::new().scale(1.0)),
            // A scale that is no power of two is taken apart; keys of equal scores stay equal.
            ("scaled", Attention::new().scale(0.75).mask(Mask::causal())),
            ("biased", Attention::new().scale(0.5).bias(Bias::dense(close))),
            ("ALiBi", Attention::new().scale(0.5).bias(Bias::alibi_with([2.0, 1.0]))),
            ("sinks", Attention::new().scale(1.0).sinks([2000.0, -5.0])),
        ] {
            let want = reference::forward(&attention, &q64, &k64, &v64).unwrap();
            assert!(want.lse.iter().any(|lse| *lse > 1000.0), "{name}: scores are large");
            let grads = reference::backward(&attention, &q64, &k64, &v64, &dout64).unwrap();
            for isa in Isa::available() {
                let attention = attention.clone().isa(isa);
                let what = |what: &str| format!("{isa}, {name}, {queries} queries: {what}");
                let fwd = attention.forward(&q, &k, &v).unwrap();
                assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), 1e-5, 5e-6);
                assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), 1e-5, 1e-7);
                let weights = attention.weights(&q, &k).unwrap();
                assert_close(&what("weights"), dynamic(&weights), dynamic(&want.weights), 1e-5, 5e-6);
                let tile = attention.head(&q, &k, &fwd.lse, (0, 1)).unwrap().tile(0..queries, 3..keys).unwrap();
                let exact = want.weights.slice(s![0, 1, .., 3..]);
                assert_close(&what("tile"), dynamic(&tile), exact.into_dyn(), 1e-5, 5e-6);
                let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
                // ds is as exact as ever; dq and dk are sums of it times numbers up to 40.
                assert_close(&what("dq"), dynamic(&got.dq), dynamic(&grads.dq), 2e-4, 5e-6);
                assert_close(&what("dk"), dynamic(&got.dk), dynamic(&grads.dk), 2e-4, 5e-6);
                assert_close(&what("dv"), dynamic(&got.dv), dynamic(&grads.dv), 2e-5, 5e-6);
            }
        }
    }
}

fn within_bounds(weights: impl IntoIterator<Item = f32>) -> bool {
    weights.into_iter().all(|weight| (0.0..=1.0).contains(&weight))
}

/// Scores that no lse can hold beside the logarithm of its sum: weights stay within 0 and 1, and the largest has what it should.
#[test]
fn scores_beyond_measure() {
    for (queries, keys) in SHAPES {
        for size in [1e10f32, 1e17, 1e34, 3e38] {
            for scale in [1.0, 0.7] {
                // Key j has the score ±size·j/keys: the last is the largest by far.
                let q = Array4::from_shape_fn((1, 2, queries, 1), |(_, _, i, _)| if i % 2 == 1 { 1.0 } else { -1.0 });
                let k = Array4::from_shape_fn((1, 2, keys, 1), |(_, _, j, _)| size * ((j + 1) as f32 / keys as f32));
                let (v, dout) = (randn4(3, [1, 2, keys, 8]), randn4(4, [1, 2, queries, 8]));
                for isa in Isa::available() {
                    for attention in [Attention::new(), Attention::new().mask(Mask::causal()).sinks([0.0, 1.0])] {
                        let attention = attention.scale(scale).isa(isa);
                        let what = format!("{isa}, {queries} queries, {size}·{scale}");
                        let fwd = attention.forward(&q, &k, &v).unwrap();
                        assert!(fwd.out.iter().all(|x| x.is_finite()), "{what}");
                        let weights = attention.weights(&q, &k).unwrap();
                        assert!(within_bounds(weights.iter().copied()), "{what}: weights");
                        let head = attention.head(&q, &k, &fwd.lse, (0, 1)).unwrap();
                        assert!(within_bounds(head.tile(0..queries, 0..keys).unwrap()), "{what}: tile");
                        // The last query sees all keys.
                        assert_eq!(weights[[0, 1, queries - 1, keys - 1]], 1.0, "{what}: the largest");
                        let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
                        assert!(got.dv.iter().all(|x| x.is_finite()), "{what}: dv");
                        // It has the weight that forward gave it: all rows that choose the last key give it their dout.
                        let chosen = (0..queries).filter(|i| weights[[0, 1, *i, keys - 1]] == 1.0);
                        let want: f64 = chosen.map(|i| f64::from(dout[[0, 1, i, 0]])).sum();
                        let dv = f64::from(got.dv[[0, 1, keys - 1, 0]]);
                        assert!((dv - want).abs() < 1e-5, "{what}: dv {dv}, {want}");
                    }
                }
            }
        }
    }
}

/// A log-sum-exp that is not the rows' own: weights from 0 to 1, or NaN, and no panic. What is hidden is 0 all the same.
#[test]
fn an_lse_that_is_none() {
    let garbage = [-100.0, -1e30, -1e300, 1e30, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, f64::MAX];
    for (queries, keys) in SHAPES {
        let (q, k) = (randn4(1, [1, 2, queries, 16]), randn4(2, [1, 2, keys, 16]));
        let (v, dout) = (randn4(3, [1, 2, keys, 8]), randn4(4, [1, 2, queries, 8]));
        for isa in Isa::available() {
            for attention in [
                Attention::new(),
                Attention::new().mask(Mask::causal()),
                Attention::new().mask(Mask::window(9, 0)).bias(Bias::alibi_with([0.5, 0.1])).softcap(2.0),
                Attention::new().mask(Mask::pattern(Pattern::strided(7).unwrap())).sinks([0.0, 1.0]),
            ] {
                let visible = attention.weights(&q, &k).unwrap().mapv(|weight| weight > 0.0);
                let attention = attention.isa(isa);
                let fwd = attention.forward(&q, &k, &v).unwrap();
                for lse in garbage {
                    let what = format!("{isa}, {queries} queries, lse {lse}");
                    let fwd = Forward { lse: Array3::from_elem((1, 2, queries), lse), ..fwd.clone() };
                    let head = attention.head(&q, &k, &fwd.lse, (0, 1)).unwrap();
                    let tile = head.tile(0..queries, 0..keys).unwrap();
                    for ((i, j), weight) in tile.indexed_iter() {
                        let sound = if !visible[[0, 1, i, j]] {
                            *weight == 0.0
                        } else {
                            (0.0..=1.0).contains(weight) || lse.is_nan() && weight.is_nan()
                        };
                        assert!(sound, "{what}: weight {weight} of ({i}, {j})");
                    }
                    let map = head.map(0..queries, 0..keys, (1, 2), Pool::Max).unwrap();
                    assert!(within_bounds(map.iter().copied()) || lse.is_nan(), "{what}: map");
                    let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
                    assert_eq!(got.dq.dim(), q.dim(), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_cap_that_cannot_be_inverted_is_an_error() {
    let x = randn4(1, [1, 1, 5, 4]);
    for cap in [1e-39, f32::MIN_POSITIVE / 2.0, f32::INFINITY, -1.0, 0.0] {
        let error = Attention::new().softcap(cap).forward(&x, &x, &x).unwrap_err();
        assert!(matches!(error, Error::Value { what: "softcap", .. }), "{cap}: {error}");
    }
    for cap in [f32::MIN_POSITIVE, 1e-30, 1e30, f32::MAX] {
        let attention = Attention::new().softcap(cap);
        let want = reference::forward(&attention, &widen(&x), &widen(&x), &widen(&x)).unwrap();
        for isa in Isa::available() {
            let got = attention.clone().isa(isa).forward(&x, &x, &x).unwrap();
            assert_close(&format!("{isa}, {cap}"), dynamic(&got.out), dynamic(&want.out), 1e-5, 5e-6);
        }
    }
}

/// Origins and offsets at the ends of what a number can be: an error, or a result, and never a panic.
#[test]
fn far_origins_are_errors() {
    let x = randn4(1, [1, 2, 20, 4]);
    let patterns = || {
        [
            Pattern::strided(3).unwrap(),
            Pattern::longformer(usize::MAX, 2, &[5, usize::MAX]).unwrap(),
            Pattern::fixed(usize::MAX, 1).unwrap(),
            Pattern::fixed(7, 1).unwrap(),
        ]
    };
    let mut attentions = vec![
        Attention::new().mask(Mask::causal()),
        Attention::new().mask(Mask::window(usize::MAX - 1, usize::MAX - 1)),
        Attention::new().bias(Bias::alibi_with([0.5, 0.1])),
        Attention::new().bias(Bias::shaw(Array3::zeros((1, 9, 4))).unwrap()),
        Attention::new().dropout(0.5, 1),
    ];
    attentions.extend(patterns().map(|pattern| Attention::new().mask(Mask::pattern(pattern))));
    for attention in attentions {
        for far in [isize::MAX, isize::MIN, isize::MAX - 30, isize::MAX / 2, isize::MIN / 3] {
            for part in [Part { queries: far, ..Part::of(20, 20) }, Part { keys: far, ..Part::of(20, 20) }] {
                let part = attention.clone().part(part);
                assert!(matches!(part.forward(&x, &x, &x), Err(Error::Value { .. })), "{part:?}");
                assert!(
                    part.weights(&x, &x).is_err()
                        && reference::forward(&part, &widen(&x), &widen(&x), &widen(&x)).is_err()
                );
            }
        }
        for of in [(usize::MAX, 20), (20, usize::MAX), (usize::MAX, usize::MAX)] {
            let part = attention.clone().part(Part { of, ..Part::of(0, 0) });
            assert!(part.forward(&x, &x, &x).is_err(), "{part:?}");
        }
        for part in [Part { batch: usize::MAX, ..Part::of(20, 20) }, Part { head: usize::MAX, ..Part::of(20, 20) }] {
            let part = attention.clone().part(part);
            if let Ok(fwd) = part.forward(&x, &x, &x) {
                part.backward(&x, &x, &x, &fwd, &x).unwrap();
            }
        }
        // As far as a part may stand, and alignments anywhere.
        let far = isize::MAX / 16;
        for (queries, keys) in [(far, far), (-far, far), (far, -far), (-far, -far)] {
            let part = attention.clone().part(Part { queries, keys, ..Part::of(20, 20) });
            let fwd = part.forward(&x, &x, &x).unwrap();
            part.backward(&x, &x, &x, &fwd, &x).unwrap();
            part.head(&x, &x, &fwd.lse, (0, 1)).unwrap().map(0..20, 0..20, (3, 3), Pool::Mean).unwrap();
        }
        for offset in [isize::MAX, isize::MIN] {
            let aligned = attention.clone().align(Align::Offsets([offset].into()));
            let fwd = aligned.forward(&x, &x, &x).unwrap();
            aligned.backward(&x, &x, &x, &fwd, &x).unwrap();
        }
    }
}
