//! Sinks, and losses that depend on the log-sum-exp, in every entry point.
#![allow(missing_docs)]

mod support;

use foveal::{Align, Attention, Bias, Isa, KvCache, Mask, Pattern, Pool, Upstream, reference};
use ndarray::{Array1, Array3, Array4, s};
use support::calls::{Size, assert_learned, biases, masks};
use support::{assert_close, dynamic, narrow, randn, randn4, widen};

const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;

/// Kernels for short sequences, for long ones, and for a few rows.
const SIZES: [Size; 4] = [
    Size { batch: 2, heads: 4, kv_heads: 2, queries: 20, keys: 31, dim: 8, value_dim: 12 },
    Size { batch: 1, heads: 4, kv_heads: 1, queries: 80, keys: 220, dim: 16, value_dim: 8 },
    Size { batch: 1, heads: 2, kv_heads: 2, queries: 3, keys: 280, dim: 16, value_dim: 16 },
    Size { batch: 1, heads: 12, kv_heads: 1, queries: 2, keys: 90, dim: 8, value_dim: 8 },
];

/// From one that takes nearly nothing to one that takes nearly all.
fn logits(heads: usize) -> Vec<f32> {
    (0..heads).map(|h| [-8.0, 0.3, 1.7, 12.0, -0.5][h % 5]).collect()
}

fn attentions(size: &Size) -> Vec<(&'static str, Attention)> {
    let mut attentions: Vec<_> =
        masks(size).into_iter().map(|(name, mask)| (name, Attention::new().mask(mask))).collect();
    attentions
        .extend(biases(size).into_iter().map(|(name, bias)| (name, Attention::new().mask(Mask::causal()).bias(bias))));
    attentions.extend([
        ("first", Attention::new().mask(Mask::window(2, 0)).align(Align::Offsets(vec![-5; size.batch].into()))),
        ("softcap, dropout", Attention::new().softcap(2.0).dropout(0.3, 4)),
        ("nothing visible", Attention::new().mask(Mask::padding(vec![0; size.batch]))),
    ]);
    attentions
}

#[test]
fn every_entry_point_has_sinks_and_dlse() {
    for size in SIZES {
        let [q, k, v, dout] = size.inputs(1);
        let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
        let dlse: Array3<f32> = narrow(&randn(5, (size.batch, size.heads, size.queries)));
        let dlse64 = widen(&dlse);
        for (name, attention) in attentions(&size) {
            let attention = attention.sinks(logits(size.heads));
            let want = reference::forward(&attention, &q64, &k64, &v64).unwrap();
            let views = (q64.view(), k64.view(), v64.view());
            let grads = reference::backward_with(&attention, views, dout64.view(), Some(dlse64.view())).unwrap();
            for isa in Isa::available() {
                let attention = attention.clone().isa(isa);
                let what = |what: &str| format!("{isa}, {name}, {size:?}: {what}");
                let fwd = attention.forward(&q, &k, &v).unwrap();
                assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), ABS, REL);
                assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), ABS, REL);
                let upstream = Upstream { dout: (&dout).into(), dlse: Some(dlse.view()) };
                let got = attention.backward(&q, &k, &v, &fwd, upstream).unwrap();
                let abs = size.gradient_tolerance();
                assert_close(&what("dq"), dynamic(&got.dq), dynamic(&grads.dq), abs, REL);
                assert_close(&what("dk"), dynamic(&got.dk), dynamic(&grads.dk), abs, REL);
                assert_close(&what("dv"), dynamic(&got.dv), dynamic(&grads.dv), abs, REL);
                let learned = size.learned_tolerance();
                assert_learned(&what("dbias"), got.dbias.as_ref(), grads.dbias.as_ref(), learned);
                let (dsinks, exact) = (got.dsinks.unwrap(), grads.dsinks.as_ref().unwrap());
                assert_close(&what("dsinks"), dynamic(&dsinks), dynamic(exact), 4.0 * abs, REL);

                let weights = attention.weights(&q, &k).unwrap();
                assert_close(&what("weights"), dynamic(&weights), dynamic(&want.weights), ABS, REL);
                let head = attention.head(&q, &k, &fwd.lse, (0, 1)).unwrap();
                let want = want.weights.slice(s![0, 1, .., 5..]);
                let tile = head.tile(0..size.queries, 5..size.keys).unwrap();
                assert_close(&what("tile"), dynamic(&tile), want.into_dyn(), ABS, REL);
                let map = head.map(0..size.queries, 5..size.keys, (1, 1), Pool::Sum).unwrap();
                assert!((f64::from(map[[0, 0]]) - want.sum()).abs() < 1e-5 * (1.0 + want.sum()), "{}", what("map"));
            }
        }
    }
}

/// The reference itself: the gradients of Σ out·dout + Σ lse·dlse, by differences of its forward pass.
#[test]
fn the_gradients_of_the_reference_are_differences() {
    let size = Size { batch: 1, heads: 2, kv_heads: 1, queries: 4, keys: 6, dim: 3, value_dim: 2 };
    let [q, k, v, dout] = size.inputs(2).map(|array| widen(&array));
    let dlse: Array3<f64> = randn(3, (1, 2, 4));
    // The first two queries see nothing but the sink.
    let attention = Attention::new().mask(Mask::causal()).align(Align::Offsets([-2].into()));
    let with = |sinks: [f32; 2]| attention.clone().sinks(sinks);
    let loss = |sinks: [f32; 2], q: &Array4<f64>, k: &Array4<f64>| {
        let fwd = reference::forward(&with(sinks), q, k, &v).unwrap();
        (&fwd.out * &dout).sum() + (&fwd.lse * &dlse).sum()
    };
    let sinks = [0.25, -0.5];
    let views = (q.view(), k.view(), v.view());
    let got = reference::backward_with(&with(sinks), views, dout.view(), Some(dlse.view())).unwrap();
    for h in 0..2 {
        // Sinks are f32: a step that they hold exactly.
        let step = 2f32.powi(-9);
        let (mut above, mut below) = (sinks, sinks);
        above[h] += step;
        below[h] -= step;
        let slope = (loss(above, &q, &k) - loss(below, &q, &k)) / f64::from(2.0 * step);
        assert!((got.dsinks.as_ref().unwrap()[h] - slope).abs() < 1e-5, "sink {h}: {slope}");
    }
    let differ = |x: &Array4<f64>, loss: &dyn Fn(&Array4<f64>) -> f64| {
        Array4::from_shape_fn(x.raw_dim(), |at| {
            let (mut above, mut below) = (x.clone(), x.clone());
            above[at] += 1e-5;
            below[at] -= 1e-5;
            (loss(&above) - loss(&below)) / 2e-5
        })
    };
    assert_close("dq", dynamic(&got.dq), dynamic(&differ(&q, &|q| loss(sinks, q, &k))), 1e-8, 1e-8);
    assert_close("dk", dynamic(&got.dk), dynamic(&differ(&k, &|k| loss(sinks, &q, k))), 1e-8, 1e-8);
}

#[test]
fn a_row_that_sees_nothing_has_its_sink() {
    for size in SIZES {
        let [q, k, v, dout] = size.inputs(3);
        let sinks = logits(size.heads);
        for isa in Isa::available() {
            let hidden = Attention::new().mask(Mask::padding(vec![0; size.batch])).isa(isa);
            for attention in [
                hidden.clone(),
                hidden.clone().bias(Bias::alibi_with(vec![0.1; size.heads])),
                hidden.and_mask(strided()),
            ] {
                let attention = attention.sinks(sinks.clone());
                let fwd = attention.forward(&q, &k, &v).unwrap();
                assert!(fwd.lse.indexed_iter().all(|((_, h, _), lse)| *lse == f64::from(sinks[h])), "{isa}, {size:?}");
                assert!(fwd.out.iter().all(|x| *x == 0.0));
                let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
                assert!(got.dq.iter().chain(&got.dk).chain(&got.dv).all(|x| *x == 0.0));
                assert!(got.dsinks.unwrap().iter().all(|x| *x == 0.0));
            }
        }
    }
}

fn strided() -> Mask {
    Mask::pattern(Pattern::strided(3).unwrap())
}

/// A sink of −∞ takes nothing: such a head is as without, also where a row sees nothing.
#[test]
fn a_sink_of_minus_infinity_is_none() {
    for size in SIZES {
        let [q, k, v, dout] = size.inputs(4);
        for isa in Isa::available() {
            let plain =
                Attention::new().mask(Mask::causal()).align(Align::Offsets(vec![-1; size.batch].into())).isa(isa);
            let with = plain.clone().sinks(vec![f32::NEG_INFINITY; size.heads]);
            let (fwd, want) = (with.forward(&q, &k, &v).unwrap(), plain.forward(&q, &k, &v).unwrap());
            assert_close("out", dynamic(&fwd.out), dynamic(&widen(&want.out)), 1e-6, 1e-6);
            assert_close("lse", dynamic(&fwd.lse), dynamic(&want.lse), 1e-6, 1e-6);
            let got = with.backward(&q, &k, &v, &fwd, &dout).unwrap();
            let want = plain.backward(&q, &k, &v, &want, &dout).unwrap();
            assert_close("dq", dynamic(&got.dq), dynamic(&widen(&want.dq)), ABS, REL);
            assert_close("dk", dynamic(&got.dk), dynamic(&widen(&want.dk)), ABS, REL);
            assert_eq!(got.dsinks, Some(Array1::zeros(size.heads)), "{isa}, {size:?}");
        }
    }
}

/// Keys in several parts, which are merged: the sink counts once. Also in a cache whose sequences have different lengths.
#[test]
fn decoding_adds_the_sink_once() {
    let (q, k, v) = (randn4(1, [2, 6, 1, 16]), randn4(2, [2, 2, 5000, 16]), randn4(3, [2, 2, 5000, 8]));
    let attention = Attention::new().mask(Mask::causal()).sinks(logits(6));
    let want = reference::forward(&attention, &widen(&q), &widen(&k), &widen(&v)).unwrap();
    let mut cache = KvCache::new(2, 2, 16, 8);
    cache.append(&k, &v).unwrap();
    let mut ragged = cache.clone();
    ragged.truncate_sequence(1, 0).unwrap();
    for isa in Isa::available() {
        let attention = attention.clone().isa(isa);
        let got = attention.decode(&q, &cache).unwrap();
        assert_close("out", dynamic(&got.out), dynamic(&want.out), ABS, REL);
        assert_close("lse", dynamic(&got.lse), dynamic(&want.lse), ABS, REL);
        let got = attention.decode(&q, &ragged).unwrap();
        let first = s![..1, .., .., ..];
        assert_close("out", got.out.slice(first).into_dyn(), want.out.slice(first).into_dyn(), ABS, REL);
        assert!(got.out.slice(s![1, .., .., ..]).iter().all(|x| *x == 0.0));
        assert!(got.lse.slice(s![1, .., 0]).iter().zip(logits(6)).all(|(lse, sink)| *lse == f64::from(sink)));
    }
}
