//! Numbers of 16 bits: what is computed from them is as exact as from the same numbers in 32, and rounded once where 16 bits
//! are asked for.
#![allow(missing_docs)]

mod support;

use foveal::{
    Attention, Forward, GradientsMut, Isa, KvCache, Pool, Precision, Saved, Scratch, Tensor, bf16, f16, reference,
};
use ndarray::{Array3, Array4, s};
use support::calls::{Size, assert_learned, sweep};
use support::{assert_close, dynamic, randn4, widen};

const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    F32,
    F16,
    Bf16,
}
use Type::{Bf16, F16, F32};

/// Half a unit of the last place, and a whole one for bf16.
fn rounding(to: Type) -> f64 {
    match to {
        F32 => REL,
        F16 => 2f64.powi(-11),
        Bf16 => 2f64.powi(-8),
    }
}

/// An array of any of the types.
enum Typed {
    F32(Array4<f32>),
    F16(Array4<f16>),
    Bf16(Array4<bf16>),
}

impl Typed {
    fn new(number: Type, values: &Array4<f32>) -> Typed {
        match number {
            F32 => Typed::F32(values.clone()),
            F16 => Typed::F16(values.mapv(f16::from_f32)),
            Bf16 => Typed::Bf16(values.mapv(bf16::from_f32)),
        }
    }

    fn tensor(&self) -> Tensor<'_> {
        match self {
            Typed::F32(array) => array.into(),
            Typed::F16(array) => array.into(),
            Typed::Bf16(array) => array.into(),
        }
    }

    fn wide(&self) -> Array4<f64> {
        match self {
            Typed::F32(array) => widen(array),
            Typed::F16(array) => widen(array),
            Typed::Bf16(array) => widen(array),
        }
    }
}

/// Kernels for short sequences, for long ones, for a few rows, and for the many heads of one key head.
const SIZES: [Size; 4] = [
    Size { batch: 2, heads: 4, kv_heads: 2, queries: 17, keys: 23, dim: 16, value_dim: 24 },
    Size { batch: 1, heads: 2, kv_heads: 1, queries: 70, keys: 210, dim: 33, value_dim: 8 },
    Size { batch: 2, heads: 2, kv_heads: 2, queries: 3, keys: 300, dim: 64, value_dim: 64 },
    Size { batch: 1, heads: 12, kv_heads: 1, queries: 2, keys: 90, dim: 20, value_dim: 17 },
];

/// Of q, k, v and dout.
const TYPES: [[Type; 4]; 4] = [[Bf16; 4], [F16; 4], [F32, Bf16, Bf16, F32], [F16, F32, Bf16, Bf16]];

/// A case of the sweep: every option of a size, with two of the combinations of types.
fn for_each_case(size: Size, work: impl Fn(&str, &Attention, &[Typed; 4], &[Array4<f64>; 4])) {
    for (n, (name, attention)) in sweep(&size).into_iter().enumerate() {
        for types in [TYPES[n % 4], TYPES[(n + 1) % 4]] {
            let mut kinds = types.into_iter();
            let arrays = size.inputs(n as u64).map(|array| Typed::new(kinds.next().unwrap(), &array));
            let wide = arrays.each_ref().map(Typed::wide);
            work(&format!("{name}, {types:?}, {size:?}"), &attention, &arrays, &wide);
        }
    }
}

#[test]
fn f32_results_are_as_exact_as_ever() {
    for size in SIZES {
        for_each_case(size, |name, attention, [q, k, v, dout], [q64, k64, v64, dout64]| {
            let want = reference::forward(attention, q64, k64, v64).unwrap();
            let grads = reference::backward(attention, q64, k64, v64, dout64).unwrap();
            for isa in Isa::available() {
                let attention = attention.clone().isa(isa);
                let name = format!("{isa}, {name}");
                let fwd = attention.forward(q.tensor(), k.tensor(), v.tensor()).unwrap();
                assert_close(&format!("{name}: out"), dynamic(&fwd.out), dynamic(&want.out), ABS, REL);
                assert_close(&format!("{name}: lse"), dynamic(&fwd.lse), dynamic(&want.lse), ABS, REL);
                let got = attention.backward(q.tensor(), k.tensor(), v.tensor(), &fwd, dout.tensor()).unwrap();
                let abs = size.gradient_tolerance();
                assert_close(&format!("{name}: dq"), dynamic(&got.dq), dynamic(&grads.dq), abs, REL);
                assert_close(&format!("{name}: dk"), dynamic(&got.dk), dynamic(&grads.dk), abs, REL);
                assert_close(&format!("{name}: dv"), dynamic(&got.dv), dynamic(&grads.dv), abs, REL);
                let learned = size.learned_tolerance();
                assert_learned(&format!("{name}: dbias"), got.dbias.as_ref(), grads.dbias.as_ref(), learned);
                let weights = attention.weights(q.tensor(), k.tensor()).unwrap();
                assert_close(&format!("{name}: weights"), dynamic(&weights), dynamic(&want.weights), ABS, REL);
                let at = (size.batch - 1, size.heads - 1);
                let head = attention.head(q.tensor(), k.tensor(), &fwd.lse, at).unwrap();
                let (rows, cols) = (size.queries / 3..size.queries, size.keys / 4..size.keys);
                let want = want.weights.slice(s![at.0, at.1, rows.clone(), cols.clone()]);
                let tile = head.tile(rows.clone(), cols.clone()).unwrap();
                assert_close(&format!("{name}: tile"), dynamic(&tile), want.into_dyn(), ABS, REL);
                let map = head.map(rows, cols, (1, 1), Pool::Max).unwrap();
                let max = want.iter().copied().fold(0.0, f64::max);
                assert!((f64::from(map[[0, 0]]) - max).abs() <= ABS + REL * max, "{name}: map");
            }
        });
    }
}

/// Forward and backward in 16 bits, as new arrays and into others.
fn in_16_bits<T: foveal::Number + Into<f64>>(to: Type)
where
    for<'a> &'a mut Array4<T>: Into<foveal::TensorMut<'a>>,
    for<'a> ndarray::ArrayViewMut4<'a, T>: Into<foveal::TensorMut<'a>>,
{
    for size in [SIZES[0], SIZES[1], SIZES[2]] {
        for_each_case(size, |name, attention, [q, k, v, dout], [q64, k64, v64, dout64]| {
            let want = reference::forward(attention, q64, k64, v64).unwrap();
            let grads = reference::backward(attention, q64, k64, v64, dout64).unwrap();
            let close = |what: &str, got: &Array4<T>, want: &Array4<f64>, abs: f64| {
                assert_close(&format!("{to:?}, {name}: {what}"), dynamic(got), dynamic(want), abs, rounding(to));
            };
            let (q, k, v, dout) = (q.tensor(), k.tensor(), v.tensor(), dout.tensor());
            let fwd: Forward<T> = attention.forward_as(q, k, v).unwrap();
            close("out", &fwd.out, &want.out, ABS);
            assert_close("lse", dynamic(&fwd.lse), dynamic(&want.lse), ABS, REL);
            // Into every second value of a larger array.
            let [b, h, t, d] = size.shapes()[3];
            let (mut out, mut lse) = (Array4::from_elem([b, h, t, 2 * d], T::ZERO), Array3::zeros([b, h, t]));
            let target = out.slice_mut(s![.., .., .., ..;2]);
            attention.forward_into(q, k, v, target, lse.view_mut(), &mut Scratch::new()).unwrap();
            close("out in its place", &out.slice(s![.., .., .., ..;2]).to_owned(), &want.out, ABS);
            assert!(out.slice(s![.., .., .., 1..;2]).iter().all(|x| (*x).into() == 0.0), "{name}");

            let exact = attention.forward(q, k, v).unwrap();
            let abs = size.gradient_tolerance();
            let got = attention.backward_as::<T>(q, k, v, &exact, dout).unwrap();
            close("dq", &got.dq, &grads.dq, abs);
            close("dk", &got.dk, &grads.dk, abs);
            close("dv", &got.dv, &grads.dv, abs);
            // Added twice to 0: each sum is rounded.
            let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| Array4::from_elem(x.dim(), T::ZERO));
            for _ in 0..2 {
                let targets = GradientsMut::add(&mut dq, &mut dk, &mut dv);
                attention.backward_into(q, k, v, &exact, dout, targets, &mut Scratch::new()).unwrap();
            }
            for (what, got, want) in [("dq", dq, &grads.dq), ("dk", dk, &grads.dk), ("dv", dv, &grads.dv)] {
                let what = format!("{to:?}, {name}: {what} twice");
                assert_close(&what, dynamic(&got), dynamic(&(2.0 * want)), 2.0 * abs, 2.0 * rounding(to));
            }
        });
    }
}

#[test]
fn f16_results_are_rounded_once() {
    in_16_bits::<f16>(F16);
}

#[test]
fn bf16_results_are_rounded_once() {
    in_16_bits::<bf16>(Bf16);
}

/// A saved output in 16 bits is what it is: δ = dout·out comes from the rounded one, which is as if dlse were the difference.
#[test]
fn backward_takes_the_output_that_was_saved() {
    for size in SIZES {
        let [q, k, v, dout] = size.inputs(3);
        let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
        for isa in Isa::available() {
            // Small scores: where they are large, δ is summed from the weights, whatever the output was rounded to.
            let attention = Attention::new().isa(isa).scale(0.02);
            let exact = reference::forward(&attention, &q64, &k64, &v64).unwrap();
            let fwd: Forward<bf16> = attention.forward_as(&q, &k, &v).unwrap();
            let lost = &exact.out - &widen(&fwd.out);
            let dlse = (&dout64 * &lost).sum_axis(ndarray::Axis(3));
            let views = (q64.view(), k64.view(), v64.view());
            let want = reference::backward_with(&attention, views, dout64.view(), Some(dlse.view())).unwrap();
            let saved = Saved { out: (&fwd.out).into(), lse: fwd.lse.view() };
            let got = attention.backward(&q, &k, &v, saved, &dout).unwrap();
            let abs = size.gradient_tolerance();
            assert_close("dq", dynamic(&got.dq), dynamic(&want.dq), abs, REL);
            assert_close("dk", dynamic(&got.dk), dynamic(&want.dk), abs, REL);
            assert_close("dv", dynamic(&got.dv), dynamic(&want.dv), abs, REL);
        }
    }
}

#[test]
fn a_query_of_16_bits_reads_a_cache_of_16_bits() {
    let (k, v) = (randn4(1, [2, 2, 2500, 24]), randn4(2, [2, 2, 2500, 40]));
    for (heads, queries) in [(2, 1), (6, 2), (16, 3), (10, 20)] {
        let q = Typed::new(Bf16, &randn4(3, [2, heads, queries, 24]));
        for (precision, number) in [(Precision::F16, F16), (Precision::Bf16, Bf16), (Precision::F32, F32)] {
            let mut cache = KvCache::new(2, 2, 24, 40).precision(precision).unwrap();
            cache.append(&k, &v).unwrap();
            let (k, v) = (Typed::new(number, &k).wide(), Typed::new(number, &v).wide());
            let attention = Attention::new().mask(foveal::Mask::causal());
            let want = reference::forward(&attention, &q.wide(), &k, &v).unwrap();
            for isa in Isa::available() {
                let got = attention.clone().isa(isa).decode(q.tensor(), &cache).unwrap();
                let what = format!("{isa}, {heads} heads, {queries} queries, {precision:?}");
                assert_close(&format!("{what}: out"), dynamic(&got.out), dynamic(&want.out), ABS, REL);
                assert_close(&format!("{what}: lse"), dynamic(&got.lse), dynamic(&want.lse), ABS, REL);
            }
        }
    }
}

#[test]
fn threads_do_not_change_the_bits() {
    let [q, k, v] = [1, 2, 3].map(|seed| randn4(seed, [1, 3, 400, 24]).mapv(bf16::from_f32));
    let one = q.slice(s![.., .., ..1, ..]);
    let attention = Attention::new().mask(foveal::Mask::causal());
    let run = || {
        let fwd: Forward<bf16> = attention.forward_as(&q, &k, &v).unwrap();
        let grads = attention.backward_as::<f16>(&q, &k, &v, &fwd, &q).unwrap();
        let (long_k, long_v) = (k.broadcast((9, 3, 400, 24)).unwrap(), v.broadcast((9, 3, 400, 24)).unwrap());
        let many = one.broadcast((9, 3, 1, 24)).unwrap();
        (fwd, grads, attention.forward(many, long_k, long_v).unwrap())
    };
    let [once, twice, often] =
        [1, 2, 5].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run));
    assert!(once == twice && once == often);
}
