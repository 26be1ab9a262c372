//! FNet's mixing against the sum that defines it; additive and multiplicative attention against their formulas in f64.
#![allow(missing_docs)]

mod support;

use foveal::{
    AdditiveAttention, Align, Attention, Error, Isa, LuongAttention, Mask, Pool, Threads, fourier_mix,
    fourier_mix_backward, reference,
};
use ndarray::{Array2, Array3, Array4, ArrayD, Axis, s};
use support::{assert_close, dynamic, narrow, randn, randn4, widen};

/// The definition, in O((T·D)²).
fn transform(x: &Array3<f64>) -> Array3<f64> {
    let (_, tokens, dim) = x.dim();
    Array3::from_shape_fn(x.dim(), |(b, t, f)| {
        let mut sum = 0.0;
        for ((n, d), x) in x.index_axis(Axis(0), b).indexed_iter() {
            let turns = (t * n % tokens) as f64 / tokens as f64 + (f * d % dim) as f64 / dim as f64;
            sum += x * (std::f64::consts::TAU * turns).cos();
        }
        sum
    })
}

#[test]
fn fourier_mixing_equals_the_sum() {
    for (tokens, dim) in [(1, 1), (1, 8), (7, 1), (2, 2), (8, 6), (17, 13), (64, 16), (30, 31)] {
        let x = narrow(&randn(1, (2, tokens, dim)));
        let want = transform(&widen(&x));
        let size = ((tokens * dim) as f64).sqrt();
        let y = fourier_mix(&x, Threads::Rayon);
        assert_close("y", dynamic(&y), dynamic(&want), 1e-5 * size, 1e-6);
        // Another layout.
        let swapped = x.view().permuted_axes([0, 2, 1]);
        let want = transform(&widen(&swapped.to_owned()));
        assert_close("swapped", dynamic(&fourier_mix(swapped, Threads::Rayon)), dynamic(&want), 1e-5 * size, 1e-6);
        if tokens * dim > 60 {
            continue;
        }
        // Linear, so the slope of ⟨dy, mix(x)⟩ along a unit vector is that of the sums themselves.
        let dy = narrow(&randn(2, (2, tokens, dim)));
        let dx = fourier_mix_backward(&dy, Threads::Rayon);
        for (at, dx) in dx.indexed_iter() {
            let mut unit = Array3::zeros(x.dim());
            unit[at] = 1.0;
            let slope = (transform(&unit) * widen(&dy)).sum();
            assert!((slope - f64::from(*dx)).abs() <= 1e-5 * size, "{at:?}: {slope} and {dx}");
        }
    }
    assert_eq!(fourier_mix(&Array3::zeros((0, 3, 4)), Threads::Rayon).dim(), (0, 3, 4));
    assert_eq!(fourier_mix(&Array3::zeros((2, 0, 4)), Threads::Rayon).dim(), (2, 0, 4));
    assert_eq!(fourier_mix(&Array3::zeros((2, 3, 0)), Threads::Rayon).dim(), (2, 3, 0));
}

#[test]
fn fourier_mixing_is_the_same_for_any_number_of_threads() {
    let x = narrow(&randn(1, (2, 500, 96)));
    let once = fourier_mix(&x, Threads::Sequential);
    for threads in [1, 2, 3, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(|| fourier_mix(&x, Threads::Rayon)) == once, "{threads} threads");
    }
}

/// Additive attention in f64: the output, the log-sum-exp and the weights.
fn additive(
    weight: &Array2<f64>,
    sees: &dyn Fn(usize, usize, usize) -> bool,
    [q, k, v]: [&Array4<f64>; 3],
) -> (Array4<f64>, Array3<f64>, Array4<f64>) {
    let ((batch, heads, queries, dim), (_, kv, keys, values)) = (q.dim(), v.dim());
    let mut out = Array4::zeros((batch, heads, queries, values));
    let mut lse = Array3::from_elem((batch, heads, queries), f64::NEG_INFINITY);
    let mut weights = Array4::zeros((batch, heads, queries, keys));
    for ((b, h, i), lse) in lse.indexed_iter_mut() {
        let (g, a) = (h / (heads / kv), weight.row(h.min(weight.dim().0 - 1)));
        let score = |j: usize| (0..dim).map(|d| a[d] * (q[[b, h, i, d]] + k[[b, g, j, d]]).tanh()).sum::<f64>();
        let seen: Vec<(usize, f64)> = (0..keys).filter(|j| sees(b, i, *j)).map(|j| (j, score(j).exp())).collect();
        let sum: f64 = seen.iter().map(|(_, e)| e).sum();
        if !seen.is_empty() {
            *lse = sum.ln();
        }
        for (j, e) in seen {
            weights[[b, h, i, j]] = e / sum;
            out.slice_mut(s![b, h, i, ..]).scaled_add(e / sum, &v.slice(s![b, g, j, ..]));
        }
    }
    (out, lse, weights)
}

/// The slope of `loss` in every value of `x`.
fn slopes<D: ndarray::Dimension>(
    x: &ndarray::Array<f64, D>,
    loss: impl Fn(&ndarray::Array<f64, D>) -> f64,
) -> ArrayD<f64> {
    let mut slopes = Vec::new();
    for n in 0..x.len() {
        let moved = |by: f64| {
            let mut x = x.clone();
            x.as_slice_mut().unwrap()[n] += by;
            loss(&x)
        };
        slopes.push((moved(1e-5) - moved(-1e-5)) / 2e-5);
    }
    ArrayD::from_shape_vec(x.shape(), slopes).unwrap()
}

#[test]
fn additive_attention_equals_its_formula() {
    for (queries, keys, dim, weights) in [(1, 1, 1, 1), (3, 5, 4, 4), (6, 4, 17, 1), (0, 3, 2, 1), (3, 0, 2, 1)] {
        let (q, k) = (randn4(1, [2, 4, queries, dim]), randn4(2, [2, 2, keys, dim]));
        let (v, dout) = (randn4(3, [2, 2, keys, 3]), randn4(4, [2, 4, queries, 3]));
        let weight = narrow(&randn(5, (weights, dim)));
        let lengths = [keys, keys / 2];
        type Sees = Box<dyn Fn(usize, usize, usize) -> bool>;
        let none: (Mask, Sees) = (Mask::none(), Box::new(|_, _, _| true));
        let causal: (Mask, Sees) =
            (Mask::causal().and(Mask::padding(lengths)), Box::new(move |b, i, j| j <= i && j < lengths[b]));
        for (mask, sees) in [none, causal] {
            let (q64, k64, v64, w64, dout64) = (widen(&q), widen(&k), widen(&v), widen(&weight), widen(&dout));
            let (out, lse, all) = additive(&w64, &sees, [&q64, &k64, &v64]);
            let loss = |w: &Array2<f64>, arrays: [&Array4<f64>; 3]| (additive(w, &sees, arrays).0 * &dout64).sum();
            let dq = slopes(&q64, |q| loss(&w64, [q, &k64, &v64]));
            let dk = slopes(&k64, |k| loss(&w64, [&q64, k, &v64]));
            let dv = slopes(&v64, |v| loss(&w64, [&q64, &k64, v]));
            let dw = slopes(&w64, |w| loss(w, [&q64, &k64, &v64]));
            for isa in Isa::available() {
                let attention =
                    AdditiveAttention::new(weight.clone()).unwrap().mask(mask.clone()).align(Align::First).isa(isa);
                let fwd = attention.forward(&q, &k, &v).unwrap();
                assert_close("out", dynamic(&fwd.out), dynamic(&out), 1e-5, 5e-6);
                assert_close("lse", dynamic(&fwd.lse), dynamic(&lse), 1e-5, 5e-6);
                assert_close("weights", dynamic(&attention.weights(&q, &k).unwrap()), dynamic(&all), 1e-5, 5e-6);
                let tile = attention.head(&q, &k, &fwd.lse, (1, 3)).unwrap().tile(0..queries, keys / 3..keys).unwrap();
                assert_close("tile", dynamic(&tile), all.slice(s![1, 3, .., keys / 3..]).into_dyn(), 1e-5, 5e-6);
                let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
                assert_close("dq", dynamic(&got.dq), dq.view(), 2e-5, 1e-5);
                assert_close("dk", dynamic(&got.dk), dk.view(), 2e-5, 1e-5);
                assert_close("dv", dynamic(&got.dv), dv.view(), 2e-5, 1e-5);
                assert_close("dweight", dynamic(&got.dweight), dw.view(), 5e-5, 1e-5);
                let once = attention.clone().threads(Threads::Sequential);
                assert_eq!(once.backward(&q, &k, &v, &fwd, &dout).unwrap(), got);
            }
        }
    }
}

#[test]
fn luong_attention_equals_its_formula() {
    let (q, k) = (randn4(1, [2, 4, 5, 6]), randn4(2, [2, 2, 7, 4]));
    let (v, dout) = (randn4(3, [2, 2, 7, 3]), randn4(4, [2, 4, 5, 3]));
    for heads in [1, 4] {
        let weight = narrow(&(randn(5, (heads, 6, 4)) * 0.3));
        let luong = LuongAttention::general(weight.clone()).unwrap().mask(Mask::padding([7, 3]));
        // softmax of q·W·k, written out as dense scores.
        let exact = |q: &Array4<f64>, w: &Array3<f64>, k: &Array4<f64>, v: &Array4<f64>| {
            let mut projected = Array4::zeros((2, 4, 5, 4));
            for ((b, h, i, d), x) in projected.indexed_iter_mut() {
                *x = q.slice(s![b, h, i, ..]).dot(&w.slice(s![h.min(heads - 1), .., d]));
            }
            let attention = Attention::new().scale(1.0).mask(Mask::padding([7, 3]));
            reference::forward(&attention, &projected, k, v).unwrap()
        };
        let (q64, k64, v64, w64, dout64) = (widen(&q), widen(&k), widen(&v), widen(&weight), widen(&dout));
        let want = exact(&q64, &w64, &k64, &v64);
        let fwd = luong.forward(&q, &k, &v).unwrap();
        assert_close("out", dynamic(&fwd.out), dynamic(&want.out), 1e-5, 5e-6);
        assert_close("weights", dynamic(&luong.weights(&q, &k).unwrap()), dynamic(&want.weights), 1e-5, 5e-6);
        let tile = luong.head(&q, &k, &fwd.lse, (1, 2)).unwrap().tile(1..4, 2..7).unwrap();
        assert_close("tile", dynamic(&tile), want.weights.slice(s![1, 2, 1..4, 2..7]).into_dyn(), 1e-5, 5e-6);
        let map = luong.head(&q, &k, &fwd.lse, (1, 2)).unwrap().map(1..4, 2..7, (1, 1), Pool::Sum).unwrap();
        assert!((f64::from(map[[0, 0]]) - want.weights.slice(s![1, 2, 1..4, 2..7]).sum()).abs() < 1e-5);
        let got = luong.backward(&q, &k, &v, &fwd, &dout).unwrap();
        let loss = |q: &Array4<f64>, w: &Array3<f64>, k: &Array4<f64>, v: &Array4<f64>| {
            (exact(q, w, k, v).out * &dout64).sum()
        };
        assert_close("dq", dynamic(&got.dq), slopes(&q64, |q| loss(q, &w64, &k64, &v64)).view(), 2e-5, 1e-5);
        assert_close("dk", dynamic(&got.dk), slopes(&k64, |k| loss(&q64, &w64, k, &v64)).view(), 2e-5, 1e-5);
        assert_close("dv", dynamic(&got.dv), slopes(&v64, |v| loss(&q64, &w64, &k64, v)).view(), 2e-5, 1e-5);
        let dw = slopes(&w64, |w| loss(&q64, w, &k64, &v64));
        assert_close("dweight", dynamic(&got.dweight.unwrap()), dw.view(), 2e-5, 1e-5);
    }
    let (dot, plain) = (LuongAttention::dot(), Attention::new().scale(1.0));
    let fwd = dot.forward(&q, &q, &q).unwrap();
    assert_eq!(fwd, plain.forward(&q, &q, &q).unwrap());
    assert_eq!(dot.weights(&q, &q).unwrap(), plain.weights(&q, &q).unwrap());
    let (got, want) = (dot.backward(&q, &q, &q, &fwd, &q).unwrap(), plain.backward(&q, &q, &q, &fwd, &q).unwrap());
    assert_eq!((got.dq, got.dk, got.dv, got.dweight), (want.dq, want.dk, want.dv, None));
}

#[test]
fn bad_input_is_an_error() {
    let expect = |result: Result<(), Error>, part: &str| {
        let message = result.expect_err(part).to_string();
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    };
    let x = randn4(1, [2, 4, 6, 8]);
    let short = x.slice(s![.., .., ..5, ..]);
    for (shape, part) in [((1, 7), "expected [1, 8]"), ((3, 8), "expected [4, 8]")] {
        expect(AdditiveAttention::new(Array2::zeros(shape)).unwrap().forward(&x, &x, &x).map(|_| ()), part);
    }
    for shape in [(0, 8), (4, 0), (0, 0)] {
        expect(AdditiveAttention::new(Array2::zeros(shape)).map(|_| ()), "its axes are [heads or 1, dim]");
    }
    for shape in [(0, 8, 8), (1, 0, 8), (1, 8, 0)] {
        expect(
            LuongAttention::general(Array3::zeros(shape)).map(|_| ()),
            "its axes are [heads or 1, dim of q, dim of k]",
        );
    }
    let scaled = Attention::new().scale(2.0);
    expect(
        AdditiveAttention::with_options(Array2::zeros((1, 8)), &scaled).map(|_| ()),
        "additive attention has no scale",
    );
    let additive = AdditiveAttention::new(Array2::zeros((1, 8))).unwrap();
    let fwd = additive.forward(&x, &x, &x).unwrap();
    expect(additive.forward(&x, &x, short).map(|_| ()), "v has shape");
    expect(additive.backward(&x, &x, &x, &fwd, short).map(|_| ()), "dout has shape");
    expect(additive.head(&x, &x, &fwd.lse, (0, 4)).and_then(|head| head.tile(0..1, 0..1)).map(|_| ()), "head 4..5");
    expect(additive.clone().mask(Mask::padding([9, 9])).weights(&x, &x).map(|_| ()), "sequence 0 has length 9");
    for (shape, part) in [((1, 7, 8), "expected [1, 8, 8]"), ((3, 8, 8), "expected [4, 8, 8]")] {
        expect(LuongAttention::general(Array3::zeros(shape)).unwrap().forward(&x, &x, &x).map(|_| ()), part);
    }
    let other = LuongAttention::general(Array3::zeros((1, 8, 5))).unwrap();
    expect(other.forward(&x, &x, &x).map(|_| ()), "k has shape [2, 4, 6, 8], expected [2, 4, 6, 5]");
}
