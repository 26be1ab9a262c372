//! What the engine promises beyond the numbers: masked rows, NaN, determinism, and errors instead of panics.
#![allow(missing_docs)]

mod support;

use foveal::{
    Align, Attention, Bias, Direction, Error, Forward, GradientsMut, Isa, KvCache, Mask, Pattern, Pool, Scratch,
    Threads, reference,
};
use ndarray::{Array2, Array3, Array4, concatenate, s};
use support::{assert_close, chance, dynamic, narrow, randn, randn4, widen};

/// q, k, v and dout of one shape.
fn inputs(shape: [usize; 4]) -> [Array4<f32>; 4] {
    [1, 2, 3, 4].map(|seed| randn4(seed, shape))
}

#[test]
fn rows_that_see_nothing_are_zero() {
    let [q, k, v, dout] = inputs([2, 2, 40, 16]);
    // Rows 0 to 4 see nothing by the dense mask; all of sequence 1 sees nothing by its length.
    let keep = Array4::from_shape_fn((1, 1, 40, 40), |(_, _, i, _)| i >= 5);
    for isa in Isa::available() {
        let attention = Attention::new().mask(Mask::dense(keep.clone()).and(Mask::padding([40, 0]))).isa(isa);
        let fwd = attention.forward(&q, &k, &v).unwrap();
        let grads = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
        for (b, rows) in [(0, 0..5), (1, 0..40)] {
            assert!(fwd.out.slice(s![b, .., rows.clone(), ..]).iter().all(|x| *x == 0.0));
            assert!(fwd.lse.slice(s![b, .., rows.clone()]).iter().all(|x| *x == f64::NEG_INFINITY));
            assert!(grads.dq.slice(s![b, .., rows.clone(), ..]).iter().all(|x| *x == 0.0));
            let weights = attention.weights(&q, &k).unwrap();
            assert!(weights.slice(s![b, .., rows, ..]).iter().all(|x| *x == 0.0));
        }
        assert!(grads.dk.slice(s![1, .., .., ..]).iter().chain(&grads.dv.slice(s![1, .., .., ..])).all(|x| *x == 0.0));
        assert!(fwd.out.slice(s![0, .., 5.., ..]).iter().all(|x| x.is_finite()));
    }
}

#[test]
fn weights_on_the_future_are_exactly_zero() {
    let [q, k, ..] = inputs([1, 2, 300, 16]);
    for isa in Isa::available() {
        let weights = Attention::new().mask(Mask::causal()).isa(isa).weights(&q, &k).unwrap();
        assert!(weights.indexed_iter().all(|((_, _, i, j), w)| j <= i || *w == 0.0));
    }
}

#[test]
fn very_negative_biases() {
    let [q, k, v, dout] = inputs([1, 1, 20, 8]);
    // −∞ and f32::MIN on part of a row hide it; a row of −∞ alone sees nothing; the first tile all hidden, then a visible one.
    let keys = 600;
    let (k, v) = (
        concatenate(ndarray::Axis(2), &vec![k.view(); keys / 20]).unwrap(),
        concatenate(ndarray::Axis(2), &vec![v.view(); keys / 20]).unwrap(),
    );
    for low in [f32::NEG_INFINITY, f32::MIN] {
        let bias = Array4::from_shape_fn(
            (1, 1, 20, keys),
            |(_, _, i, j)| if j < 590 && i < 10 || j % 3 == 0 { low } else { 0.0 },
        );
        let attention = Attention::new().bias(Bias::dense(bias));
        let want = reference::forward(&attention, &widen(&q), &widen(&k), &widen(&v)).unwrap();
        let grads = reference::backward(&attention, &widen(&q), &widen(&k), &widen(&v), &widen(&dout)).unwrap();
        for isa in Isa::available() {
            let attention = attention.clone().isa(isa);
            let fwd = attention.forward(&q, &k, &v).unwrap();
            assert_close("out", dynamic(&fwd.out), dynamic(&want.out), 1e-5, 5e-6);
            assert_close("lse", dynamic(&fwd.lse), dynamic(&want.lse), 1e-5, 5e-6);
            let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
            assert_close("dq", dynamic(&got.dq), dynamic(&grads.dq), 2e-5, 5e-6);
            assert_close("dk", dynamic(&got.dk), dynamic(&grads.dk), 2e-5, 5e-6);
        }
    }
    let nothing = Attention::new().bias(Bias::dense(Array4::from_elem((1, 1, 1, keys), f32::NEG_INFINITY)));
    let fwd = nothing.forward(&q, &k, &v).unwrap();
    assert!(fwd.out.iter().all(|x| *x == 0.0) && fwd.lse.iter().all(|x| *x == f64::NEG_INFINITY));
    let grads = nothing.backward(&q, &k, &v, &fwd, &dout).unwrap();
    assert!(grads.dq.iter().chain(&grads.dk).chain(&grads.dv).all(|x| *x == 0.0));
}

/// NaN (or ∞) at key 30 of k or v, query 50 of q, or row 50 of dout: exactly what sees it is NaN, in all results.
#[test]
fn nan_spreads_to_what_sees_it_and_no_further() {
    for bad in [f32::NAN, f32::INFINITY] {
        for place in 0..4 {
            let mut arrays = inputs([1, 1, 100, 16]);
            let token = if place == 1 || place == 2 { 30 } else { 50 };
            arrays[place][[0, 0, token, 3]] = bad;
            let [q, k, v, dout] = &arrays;
            let hiding =
                Array4::from_shape_fn(
                    (1, 1, 100, 100),
                    |(_, _, i, j)| if (i + j) % 3 == 0 { f32::NEG_INFINITY } else { 0.1 },
                );
            for attention in [
                Attention::new().mask(Mask::causal()),
                Attention::new().mask(Mask::window(5, 9)),
                Attention::new().mask(Mask::padding([40])),
                Attention::new().mask(Mask::dense(chance(5, 0.5, (1, 1, 100, 100)))),
                Attention::new().mask(Mask::pattern(Pattern::longformer(7, 1, &[2, 60]).unwrap())),
                Attention::new().mask(Mask::pattern(Pattern::swin((10, 10), (5, 5), (2, 2)).unwrap())),
                Attention::new().bias(Bias::dense(hiding)),
                Attention::new().mask(Mask::causal()).bias(Bias::shaw(narrow(&randn(6, (1, 41, 16)))).unwrap()),
            ] {
                let want = reference::forward(&attention, &widen(q), &widen(k), &widen(v)).unwrap();
                let grads = reference::backward(&attention, &widen(q), &widen(k), &widen(v), &widen(dout)).unwrap();
                for isa in Isa::available() {
                    let attention = attention.clone().isa(isa);
                    let fwd = attention.forward(q, k, v).unwrap();
                    let got = attention.backward(q, k, v, &fwd, dout).unwrap();
                    for (name, got, want) in [
                        ("out", &fwd.out, &want.out),
                        ("dq", &got.dq, &grads.dq),
                        ("dk", &got.dk, &grads.dk),
                        ("dv", &got.dv, &grads.dv),
                    ] {
                        let differ =
                            got.iter().zip(want).filter(|(got, want)| got.is_finite() != want.is_finite()).count();
                        assert_eq!(differ, 0, "{isa}, {bad} in array {place}, {name}");
                    }
                    if let (Some(got), Some(want)) = (&got.dbias, &grads.dbias) {
                        assert!(got.iter().zip(want).all(|(got, want)| got.is_finite() == want.is_finite()), "dbias");
                    }
                    let weights = attention.weights(q, k).unwrap();
                    assert!(
                        weights.iter().zip(&want.weights).all(|(got, want)| got.is_finite() == want.is_finite()),
                        "weights"
                    );
                }
            }
        }
    }
}

#[test]
fn bit_identical_over_threads_and_repeats() {
    let [q, k, v, dout] = inputs([1, 3, 700, 40]);
    let (k, v) = (k.slice(s![.., ..1, .., ..]), v.slice(s![.., ..1, .., ..]));
    let decode = q.slice(s![.., .., ..1, ..]);
    let (long_k, long_v) = (randn4(8, [1, 3, 5000, 40]), randn4(9, [1, 3, 5000, 40]));
    for mask in [Mask::none(), Mask::causal(), Mask::window(100, 50)] {
        let attention = Attention::new().mask(mask).bias(Bias::alibi(3).unwrap()).dropout(0.1, 5);
        let run = |attention: &Attention| {
            let fwd = attention.forward(&q, k, v).unwrap();
            let grads = attention.backward(&q, k, v, &fwd, &dout).unwrap();
            let map =
                attention.head(&q, k, &fwd.lse, (0, 1)).unwrap().map(0..700, 3..690, (33, 21), Pool::Mean).unwrap();
            let decoded = attention.forward(decode, &long_k, &long_v).unwrap();
            (fwd, grads, map, decoded)
        };
        let once = run(&attention.clone().threads(Threads::Sequential));
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| run(&attention)) == once, "{threads} threads");
        }
    }
}

#[test]
fn a_call_leaves_nothing_behind() {
    let [q, k, v, dout] = inputs([1, 2, 200, 24]);
    let [small_q, small_k, small_v, small_dout] = inputs([1, 2, 23, 24]);
    for isa in Isa::available() {
        let attention = Attention::new().mask(Mask::causal()).isa(isa).threads(Threads::Sequential);
        let run = || {
            let fwd = attention.forward(&small_q, &small_k, &small_v).unwrap();
            (fwd.clone(), attention.backward(&small_q, &small_k, &small_v, &fwd, &small_dout).unwrap())
        };
        let before = run();
        // The same memory is used again: what is left of these must not change how a finite call is computed.
        let (mut k, mut v) = (k.clone(), v.clone());
        k.fill(f32::NAN);
        v.fill(f32::INFINITY);
        let fwd = attention.forward(&q, &k, &v).unwrap();
        attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
        assert!(run() == before, "{isa:?}");
    }
}

#[test]
fn split_runs_merge_by_lse() {
    let [q, k, v, _] = inputs([1, 2, 64, 16]);
    let attention = Attention::new().scale(0.5);
    let whole = attention.forward(&q, &k, &v).unwrap();
    let part = |keys: std::ops::Range<usize>| {
        attention.forward(&q, k.slice(s![.., .., keys.clone(), ..]), v.slice(s![.., .., keys, ..])).unwrap()
    };
    let (a, b) = (part(0..23), part(23..64));
    for ((bb, h, i), lse) in whole.lse.indexed_iter() {
        let (la, lb) = (a.lse[[bb, h, i]], b.lse[[bb, h, i]]);
        assert!(((la.exp() + lb.exp()).ln() - lse).abs() < 1e-5);
        for d in 0..16 {
            let (a, b) = (f64::from(a.out[[bb, h, i, d]]), f64::from(b.out[[bb, h, i, d]]));
            let merged = (la - lse).exp() * a + (lb - lse).exp() * b;
            assert!((merged - f64::from(whole.out[[bb, h, i, d]])).abs() < 1e-5);
        }
    }
}

#[test]
fn long_decode_equals_the_reference() {
    // Longer than one part of the keys, with grouped heads and a window that leaves whole parts hidden.
    let (q, k, v) = (randn4(1, [2, 4, 1, 24]), randn4(2, [2, 2, 5000, 24]), randn4(3, [2, 2, 5000, 24]));
    let longformer = Mask::pattern(Pattern::longformer(300, 1, &[0, 2500]).unwrap());
    for mask in [Mask::none(), Mask::causal(), Mask::window(600, 0), Mask::padding([4999, 1000]), longformer] {
        let attention = Attention::new().mask(mask);
        let want = reference::forward(&attention, &widen(&q), &widen(&k), &widen(&v)).unwrap();
        let mut cache = KvCache::with_capacity(2, 2, 24, 24, 6000).unwrap();
        cache.append(&k, &v).unwrap();
        for isa in Isa::available() {
            let got = attention.clone().isa(isa).decode(&q, &cache).unwrap();
            assert_close("out", dynamic(&got.out), dynamic(&want.out), 1e-5, 5e-6);
            assert_close("lse", dynamic(&got.lse), dynamic(&want.lse), 1e-5, 5e-6);
        }
    }
}

#[test]
fn a_cache_holds_what_was_appended() {
    // Little and much at a time, with room and without, as it lies in memory and not.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (k, v) = (randn4(1, [2, 700, 3, 40]), randn4(2, [2, 700, 3, 24]));
    let (k, v) = (k.view().permuted_axes([0, 2, 1, 3]), v.view().permuted_axes([0, 2, 1, 3]));
    for capacity in [0, 700] {
        let mut cache = KvCache::with_capacity(2, 3, 40, 24, capacity).unwrap();
        for piece in [0..1, 1..8, 8..700] {
            let new = s![.., .., piece, ..];
            pool.install(|| cache.append(k.slice(new), v.slice(new))).unwrap();
        }
        assert!(cache.k().to_f32() == k && cache.v().to_f32() == v && cache.len() == 700);
    }
}

#[test]
fn empty_axes_have_defined_results() {
    for shape in [[0, 2, 5, 8], [2, 0, 5, 8], [2, 2, 0, 8]] {
        let [q, k, v, dout] = inputs(shape);
        let attention = Attention::new().mask(Mask::causal());
        let fwd = attention.forward(&q, &k, &v).unwrap();
        assert_eq!(fwd.out.shape(), shape);
        assert_eq!(attention.backward(&q, &k, &v, &fwd, &dout).unwrap().dq.shape(), shape);
        assert_eq!(attention.weights(&q, &k).unwrap().len(), 0);
    }
    // No keys: nothing to see.
    let (q, none) = (randn4(1, [1, 2, 5, 8]), Array4::<f32>::zeros((1, 2, 0, 8)));
    let fwd = Attention::new().forward(&q, &none, &none).unwrap();
    let gradients_into = |q: &Array4<f32>, k: &Array4<f32>, fwd: &Forward| {
        let [mut dq, mut dk, mut dv] = [q, k, k].map(|x| Array4::from_elem(x.raw_dim(), f32::NAN));
        let targets = GradientsMut::set(&mut dq, &mut dk, &mut dv);
        Attention::new().backward_into(q, k, k, fwd, q, targets, &mut Scratch::new()).unwrap();
        assert!(dq.iter().chain(&dk).chain(&dv).all(|x| *x == 0.0));
    };
    gradients_into(&q, &none, &fwd);
    // No queries: nobody sees the keys.
    let nobody = Attention::new().forward(&none, &q, &q).unwrap();
    gradients_into(&none, &q, &nobody);
    assert_eq!(fwd, Forward { out: Array4::zeros((1, 2, 5, 8)), lse: Array3::from_elem((1, 2, 5), f64::NEG_INFINITY) });
    // An empty cache.
    let cache = KvCache::new(1, 2, 8, 8);
    assert!(cache.is_empty());
    assert_eq!(Attention::new().decode(&q, &cache).unwrap(), fwd);
}

#[test]
fn bad_input_is_an_error() {
    let [q, k, v, dout] = inputs([2, 4, 6, 8]);
    let fwd = Attention::new().forward(&q, &k, &v).unwrap();
    let forward = |attention: Attention| attention.forward(&q, &k, &v).map(|_| ());
    let expect = |result: Result<(), Error>, part: &str| {
        let message = result.expect_err(part).to_string();
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    };
    let cut =
        |a: &Array4<f32>, axis: usize| a.slice_axis(ndarray::Axis(axis), (..a.shape()[axis] - 1).into()).to_owned();
    let plain = Attention::new();

    expect(plain.forward(&q, &cut(&k, 0), &v).map(|_| ()), "k has shape [1, 4, 6, 8], expected [2, 4, 6, 8]");
    expect(plain.forward(&q, &cut(&k, 1), &cut(&v, 1)).map(|_| ()), "4 query heads cannot be shared evenly by 3");
    expect(plain.forward(&q, &cut(&k, 3), &v).map(|_| ()), "k has shape");
    expect(plain.forward(&q, &k, &cut(&v, 2)).map(|_| ()), "v has shape");
    expect(plain.forward(&cut(&q, 0), &k, &v).map(|_| ()), "expected [1, 4, 6, 8]");
    let none = Array4::<f32>::zeros((2, 4, 6, 0));
    expect(plain.forward(&none, &none, &v).map(|_| ()), "head dimension 0");
    expect(plain.backward(&q, &k, &v, &fwd, &cut(&dout, 2)).map(|_| ()), "dout has shape");
    let short = Forward { out: fwd.out.clone(), lse: Array3::zeros((2, 4, 5)) };
    expect(plain.backward(&q, &k, &v, &short, &dout).map(|_| ()), "lse has shape");
    let [mut dq, mut dk, mut dv] = [&q, &k, &cut(&v, 2)].map(|x| Array4::<f32>::ones(x.raw_dim()));
    let targets = GradientsMut::set(&mut dq, &mut dk, &mut dv);
    let into = plain.backward_into(&q, &k, &v, &fwd, &dout, targets, &mut Scratch::new());
    expect(into.map(|_| ()), "dv has shape [2, 4, 5, 8], expected [2, 4, 6, 8]");
    assert!(dq.iter().chain(&dk).all(|x| *x == 1.0));

    for scale in [f32::NAN, f32::INFINITY] {
        expect(forward(Attention::new().scale(scale)), "scale is");
    }
    for cap in [0.0, -1.0, f32::NAN] {
        expect(forward(Attention::new().softcap(cap)), "softcap is");
    }
    for probability in [-0.1, 1.0, f32::NAN] {
        expect(forward(Attention::new().dropout(probability, 0)), "dropout is");
    }
    expect(forward(Attention::new().mask(Mask::padding([3, 7]))), "sequence 1 has length 7, but there are only 6 keys");
    expect(forward(Attention::new().mask(Mask::padding([3]))), "lengths has shape [1], expected [2]");
    expect(
        forward(Attention::new().mask(Mask::keys(Array2::default((2, 5))))),
        "every axis but the last may also have length 1",
    );
    expect(forward(Attention::new().mask(Mask::dense(Array4::default((2, 3, 6, 6))))), "keep-array has shape");
    expect(forward(Attention::new().align(Align::Offsets([1].into()))), "offsets has shape [1]");
    expect(
        forward(Attention::new().bias(Bias::alibi(3).unwrap())),
        "slopes has shape [3], expected [4]; its axes are [heads]",
    );
    let slopes = |shape| Attention::new().bias(Bias::alibi_per_sequence(Array2::zeros(shape)));
    expect(forward(slopes((2, 3))), "slopes has shape [2, 3], expected [2, 4]; its axes are [batch or 1, heads]");
    expect(forward(slopes((3, 4))), "slopes has shape [3, 4], expected [2, 4]");
    assert!(forward(slopes((1, 4))).is_ok() && forward(slopes((2, 4))).is_ok());
    expect(forward(Attention::new().bias(Bias::dense(Array4::zeros((1, 1, 6, 1))))), "the bias has shape");
    let t5 = |heads| Bias::t5(narrow(&randn(1, (8, heads))), Direction::Both, 16).unwrap();
    expect(forward(Attention::new().bias(t5(3))), "T5's table has shape");
    expect(forward(Attention::new().bias(Bias::shaw(Array3::zeros((1, 5, 7))).unwrap())), "Shaw's table has shape");
    expect(Bias::shaw(Array3::zeros((1, 4, 8))).map(|_| ()), "odd");
    expect(Bias::t5(Array2::zeros((2, 4)), Direction::Both, 16).map(|_| ()), "buckets");
    for distance in [0, 2, usize::MAX] {
        expect(Bias::t5(Array2::zeros((8, 4)), Direction::Both, distance).map(|_| ()), "max_distance");
    }

    let tile = |at, rows, cols| plain.head(&q, &k, &fwd.lse, at).and_then(|head| head.tile(rows, cols)).map(|_| ());
    expect(tile((2, 0), 0..1, 0..1), "sequence 2..3 does not lie within 0..2");
    expect(tile((0, 4), 0..1, 0..1), "head 4..5");
    expect(tile((0, usize::MAX), 0..1, 0..1), "head");
    expect(tile((0, 0), 3..7, 0..1), "rows 3..7 does not lie within 0..6");
    expect(tile((0, 0), 0..1, std::ops::Range { start: 5, end: 2 }), "columns 5..2");
    let map = |pixels| plain.head(&q, &k, &fwd.lse, (0, 0)).unwrap().map(0..6, 0..6, pixels, Pool::Max).map(|_| ());
    expect(map((0, 3)), "0 pixels for 6 rows");
    expect(map((3, 7)), "7 pixels for 6 columns");
    let nothing =
        plain.head(&q, &k, &fwd.lse, (0, 0)).and_then(|head| head.map(2..2, 0..6, (1, 1), Pool::Max)).map(|_| ());
    expect(nothing, "1 pixels for no rows; choose a range with at least one of them");

    let mut cache = KvCache::new(2, 4, 8, 8);
    expect(cache.append(&cut(&k, 3), &v), "the new keys has shape");
    expect(cache.append(&k, &cut(&v, 2)), "the new values has shape");
    assert!(cache.is_empty());
    if let Some(isa) = [Isa::Avx2, Isa::Avx512].into_iter().find(|isa| *isa > Isa::best()) {
        expect(forward(Attention::new().isa(isa)), "cannot run");
    }
}
