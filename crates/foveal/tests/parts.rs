//! A call cut into parts, over queries, keys, heads and sequences: merged and added up, they are the whole.
#![allow(missing_docs)]

mod support;

use std::ops::Range;

use foveal::{
    Align, Attention, Bias, BigBird, Direction, GradientsMut, Isa, Mask, Part, Pattern, Saved, Scratch, Upstream,
    reference,
};
use ndarray::{Array1, Array3, Array4, ArrayD, Axis, s};
use support::calls::{Size, assert_learned};
use support::{Random, assert_close, chance, dynamic, narrow, randn, widen};

const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;
const SIZE: Size = Size { batch: 1, heads: 4, kv_heads: 2, queries: 40, keys: 210, dim: 12, value_dim: 20 };

/// An attention and, of arrays over the scores, what its parts take.
struct Case {
    name: &'static str,
    whole: Attention,
    keep: Option<Array4<bool>>,
    bias: Option<Array4<f32>>,
}

impl Case {
    /// For some queries and keys of the whole.
    fn part(&self, queries: &Range<usize>, keys: &Range<usize>) -> Attention {
        let of = Part::of(SIZE.queries, SIZE.keys);
        let part = Part { queries: queries.start as isize, keys: keys.start as isize, ..of };
        let mut attention = self.whole.clone().part(part);
        if let Some(keep) = &self.keep {
            attention = attention.mask(Mask::dense(cut(keep, queries, keys)));
        }
        if let Some(bias) = &self.bias {
            attention = attention.bias(Bias::dense(cut(bias, queries, keys)));
        }
        attention
    }
}

fn cut<A: Clone>(array: &Array4<A>, queries: &Range<usize>, keys: &Range<usize>) -> Array4<A> {
    let rows = if array.dim().2 == 1 { 0..1 } else { queries.clone() };
    array.slice(s![.., .., rows, keys.clone()]).to_owned()
}

fn patterns() -> Vec<(&'static str, Pattern)> {
    let big_bird = BigBird { block: 10, window: 3, global_start: 1, global_end: 1, random: 2, seed: 1 };
    vec![
        ("longformer", Pattern::longformer(9, 1, &[0, 100]).unwrap()),
        ("dilated", Pattern::longformer(9, 3, &[60]).unwrap()),
        ("strided", Pattern::strided(11).unwrap()),
        ("fixed", Pattern::fixed(13, 2).unwrap()),
        ("BigBird", Pattern::big_bird(SIZE.keys, big_bird).unwrap()),
        ("documents", Pattern::documents(&[30, 1, 0, 150, 29]).unwrap()),
        ("Swin", Pattern::swin((14, 15), (7, 5), (3, 2)).unwrap()),
        ("blocks", Pattern::blocks(30, (0..7).map(|r| (0..7).filter(|c| (r + c) % 3 == 0).collect())).unwrap()),
    ]
}

fn cases() -> Vec<Case> {
    let Size { heads, queries, keys, dim, .. } = SIZE;
    let new = |name, whole| Case { name, whole, keep: None, bias: None };
    let (plain, causal) = (Attention::new(), Attention::new().mask(Mask::causal()));
    let t5 = Bias::t5(narrow(&randn(81, (8, heads))), Direction::Both, 20).unwrap();
    let mut cases = vec![
        new("plain", plain.clone()),
        new("causal", causal.clone()),
        new("causal, first", causal.clone().align(Align::First)),
        new("window", plain.clone().mask(Mask::window(60, 9)).align(Align::Offsets([90].into()))),
        new("padding", plain.clone().mask(Mask::padding([100]))),
        new("ALiBi", causal.clone().bias(Bias::alibi_with([0.5, 0.1, 0.2, 0.05]))),
        new("T5", plain.clone().bias(t5)),
        new("Shaw", causal.clone().bias(Bias::shaw(narrow(&randn(82, (heads, 13, dim)))).unwrap())),
        new("Swin's bias", plain.clone().bias(Bias::swin(narrow(&randn(83, (39, heads))), (2, 7), (14, 15)).unwrap())),
        new("softcap", causal.clone().softcap(1.5)),
        new("dropout", causal.clone().dropout(0.3, 5)),
        new("sinks", causal.clone().sinks([0.5, -1.0, 2.0, 0.0])),
        new(
            "all",
            causal
                .softcap(2.0)
                .bias(Bias::alibi_with([0.25, 0.06, 0.02, 0.004]).constant())
                .dropout(0.1, 6)
                .sinks([0.5; 4]),
        ),
    ];
    cases.extend(patterns().into_iter().map(|(name, pattern)| new(name, plain.clone().mask(Mask::pattern(pattern)))));
    let keep = chance(92, 0.6, (1, heads, queries, keys));
    let whole = plain.clone().mask(Mask::dense(keep.clone()));
    cases.push(Case { keep: Some(keep), ..new("keep", whole) });
    for (name, shape) in [("dense bias", [1, heads, queries, keys]), ("shared bias", [1, 1, 1, keys])] {
        let bias = narrow(&randn(94, shape)).mapv(|x| if x < -1.5 { f32::NEG_INFINITY } else { x });
        cases.push(Case { bias: Some(bias.clone()), ..new(name, plain.clone().bias(Bias::dense(bias))) });
    }
    cases
}

/// [B, H, T, D], with the heads of a token side by side in memory.
fn by_token(shape: [usize; 4]) -> Array4<f32> {
    let [b, h, t, d] = shape;
    Array4::zeros([b, t, h, d]).permuted_axes([0, 2, 1, 3])
}

/// Adds the gradient of a part's bias to that of the whole.
fn add_dbias(sum: &mut ArrayD<f64>, own: &ArrayD<f32>, (queries, keys): (&Range<usize>, &Range<usize>), dense: bool) {
    let mut place = sum.view_mut();
    if dense {
        if place.shape()[2] > 1 {
            place.slice_axis_inplace(Axis(2), queries.clone().into());
        }
        place.slice_axis_inplace(Axis(3), keys.clone().into());
    }
    place += &own.mapv(f64::from);
}

#[test]
fn parts_are_the_whole() {
    let [q, k, v, dout] = SIZE.inputs(1);
    let dlse: Array3<f32> = narrow(&randn(9, (1, SIZE.heads, SIZE.queries)));
    let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
    let some = |array: &Array4<f32>, range: &Range<usize>| array.slice(s![.., .., range.clone(), ..]).to_owned();
    for case in cases() {
        let want = reference::forward(&case.whole, &q64, &k64, &v64).unwrap();
        let views = (q64.view(), k64.view(), v64.view());
        let dlse64 = widen(&dlse);
        let grads = reference::backward_with(&case.whole, views, dout64.view(), Some(dlse64.view())).unwrap();
        for (n, isa) in Isa::available().enumerate() {
            let what = |what: &str| format!("{isa}, {}: {what}", case.name);
            let key_cuts = [[0..50, 50..51, 51..120, 120..210], [0..3, 3..90, 90..90, 90..210]][n % 2].clone();
            let (mut dq, mut dk, mut dv) =
                (by_token(q.dim().into()), by_token(k.dim().into()), by_token(v.dim().into()));
            let mut dbias = grads.dbias.as_ref().map(|dbias| ArrayD::<f64>::zeros(dbias.shape()));
            let mut dsinks = grads.dsinks.as_ref().map(|_| Array1::<f32>::zeros(SIZE.heads));
            for queries in [0..33, 33..40] {
                let rows = s![.., .., queries.clone(), ..];
                let parts = key_cuts.clone().map(|keys| {
                    let attention = case.part(&queries, &keys).isa(isa);
                    attention.forward(q.slice(rows), &some(&k, &keys), &some(&v, &keys)).unwrap()
                });
                let merged = case.whole.merge(&parts).unwrap();
                let exact = want.out.slice(rows);
                assert_close(&what("out"), dynamic(&merged.out), exact.into_dyn(), ABS, REL);
                let exact = want.lse.slice(s![.., .., queries.clone()]);
                assert_close(&what("lse"), dynamic(&merged.lse), exact.into_dyn(), ABS, REL);

                // Once for these queries, whatever their parts over the keys are.
                let upstream =
                    Upstream { dout: dout.slice(rows).into(), dlse: Some(dlse.slice(s![.., .., queries.clone()])) };
                let own = case.whole.sink_gradient(&merged, upstream).unwrap();
                assert_eq!(own.is_some(), dsinks.is_some());
                dsinks = dsinks.zip(own).map(|(sum, own)| sum + own);

                // The whole's output and lse, as views of larger arrays that lie otherwise.
                let mut out = by_token([1, SIZE.heads, SIZE.queries, 2 * SIZE.value_dim]);
                out.slice_mut(s![.., .., queries.clone(), ..;2]).assign(&merged.out);
                for keys in &key_cuts {
                    let saved =
                        Saved { out: out.slice(s![.., .., queries.clone(), ..;2]).into(), lse: merged.lse.view() };
                    let dlse = dlse.slice(s![.., .., queries.clone()]);
                    let upstream = Upstream { dout: dout.slice(rows).into(), dlse: Some(dlse) };
                    let of_keys = s![.., .., keys.clone(), ..];
                    let targets = GradientsMut::add(dq.slice_mut(rows), dk.slice_mut(of_keys), dv.slice_mut(of_keys));
                    let inputs = (q.slice(rows), k.slice(of_keys), v.slice(of_keys));
                    let attention = case.part(&queries, keys).isa(isa);
                    let learned = attention
                        .backward_into(inputs.0, inputs.1, inputs.2, saved, upstream, targets, &mut Scratch::new())
                        .unwrap();
                    assert!(learned.dsinks.is_none(), "{}", what("each part would add it again"));
                    if let (Some(sum), Some(own)) = (&mut dbias, &learned.dbias) {
                        add_dbias(sum, own, (&queries, keys), case.bias.is_some());
                    }
                    // Weights of a part are the whole's, from the whole's lse.
                    if !keys.is_empty() {
                        let head = attention.head(inputs.0, inputs.1, merged.lse.view(), (0, 1)).unwrap();
                        let tile = head.tile(0..queries.len(), 0..keys.len()).unwrap();
                        let exact = want.weights.slice(s![0, 1, queries.clone(), keys.clone()]);
                        assert_close(&what("tile"), dynamic(&tile), exact.into_dyn(), ABS, REL);
                    }
                }
            }
            let abs = SIZE.gradient_tolerance();
            assert_close(&what("dq"), dynamic(&dq), dynamic(&grads.dq), 2.0 * abs, REL);
            assert_close(&what("dk"), dynamic(&dk), dynamic(&grads.dk), 2.0 * abs, REL);
            assert_close(&what("dv"), dynamic(&dv), dynamic(&grads.dv), 2.0 * abs, REL);
            if let (Some(dsinks), Some(exact)) = (&dsinks, &grads.dsinks) {
                assert_close(&what("dsinks"), dynamic(dsinks), dynamic(exact), 2.0 * abs, REL);
            }
            let dbias = dbias.map(|dbias| dbias.mapv(|x| x as f32));
            assert_learned(&what("dbias"), dbias.as_ref(), grads.dbias.as_ref(), SIZE.learned_tolerance());
        }
    }
}

/// Heads and sequences of a larger call: their dropout is that of the whole.
#[test]
fn parts_over_heads_and_sequences() {
    let size = Size { batch: 3, ..SIZE };
    let [q, k, v, dout] = size.inputs(2);
    let whole = Attention::new().mask(Mask::causal()).dropout(0.4, 9);
    let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
    let want = reference::forward(&whole, &q64, &k64, &v64).unwrap();
    let grads = reference::backward(&whole, &q64, &k64, &v64, &dout64).unwrap();
    for isa in Isa::available() {
        let part = Part { batch: 1, head: 2, ..Part::of(size.queries, size.keys) };
        let attention = whole.clone().part(part).isa(isa);
        let (heads, key_heads) = (s![1..3, 2..4, .., ..], s![1..3, 1..2, .., ..]);
        let (q, k, v) = (q.slice(heads), k.slice(key_heads), v.slice(key_heads));
        let fwd = attention.forward(q, k, v).unwrap();
        assert_close("out", dynamic(&fwd.out), want.out.slice(heads).into_dyn(), ABS, REL);
        let got = attention.backward(q, k, v, &fwd, dout.slice(heads)).unwrap();
        let abs = size.gradient_tolerance();
        assert_close("dq", dynamic(&got.dq), grads.dq.slice(heads).into_dyn(), abs, REL);
        assert_close("dk", dynamic(&got.dk), grads.dk.slice(key_heads).into_dyn(), abs, REL);
        assert_close("dv", dynamic(&got.dv), grads.dv.slice(key_heads).into_dyn(), abs, REL);
    }
}

/// Parts that stand anywhere, also before the first token of the whole or behind its last.
#[test]
fn any_origin_is_as_the_definition_says() {
    let mut random = Random::new(3);
    // Arrays over the scores are cut by the caller, and Swin's bias is made for the tokens of its image alone.
    let anywhere = |case: &Case| case.keep.is_none() && case.bias.is_none() && case.name != "Swin's bias";
    let cases: Vec<Case> = cases().into_iter().filter(anywhere).collect();
    for round in 0..3 {
        for case in &cases {
            let mut origin = |reach: usize| random.below(2 * reach) as isize - reach as isize;
            let part = Part { queries: origin(100), keys: origin(250), ..Part::of(SIZE.queries, SIZE.keys) };
            let size = Size { queries: [5, 30, 2][round], keys: [60, 110, 90][round], ..SIZE };
            let [q, k, v, dout] = size.inputs(round as u64);
            let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(widen);
            let whole = case.whole.clone().part(part);
            let want = reference::forward(&whole, &q64, &k64, &v64).unwrap();
            let grads = reference::backward(&whole, &q64, &k64, &v64, &dout64).unwrap();
            for isa in Isa::available() {
                let what = |what: &str| format!("{isa}, {}, {part:?}: {what}", case.name);
                let attention = whole.clone().isa(isa);
                let fwd = attention.forward(&q, &k, &v).unwrap();
                assert_close(&what("out"), dynamic(&fwd.out), dynamic(&want.out), ABS, REL);
                assert_close(&what("lse"), dynamic(&fwd.lse), dynamic(&want.lse), ABS, REL);
                let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
                let abs = size.gradient_tolerance();
                assert_close(&what("dq"), dynamic(&got.dq), dynamic(&grads.dq), abs, REL);
                assert_close(&what("dk"), dynamic(&got.dk), dynamic(&grads.dk), abs, REL);
                assert_close(&what("dv"), dynamic(&got.dv), dynamic(&grads.dv), abs, REL);
                let weights = attention.weights(&q, &k).unwrap();
                assert_close(&what("weights"), dynamic(&weights), dynamic(&want.weights), ABS, REL);
            }
        }
    }
}

#[test]
fn swins_bias_refuses_what_is_not_on_its_image() {
    let swin = Bias::swin(narrow(&randn(83, (39, 4))), (2, 7), (14, 15)).unwrap();
    let [q, k, v, _] = Size { keys: 50, ..SIZE }.inputs(5);
    for (queries, keys, fits) in
        [(0, 0, true), (0, 160, true), (0, 161, false), (-1, 0, false), (1, 0, false), (0, -1, false)]
    {
        let part = Part { queries, keys, ..Part::of(SIZE.queries, SIZE.keys) };
        let attention = Attention::new().bias(swin.clone()).part(part);
        assert_eq!(attention.forward(&q, &k, &v).is_ok(), fits, "{part:?}");
    }
}

#[test]
fn merging_refuses_what_does_not_fit() {
    let [q, k, v, _] = SIZE.inputs(4);
    let attention = Attention::new();
    let fwd = attention.forward(&q, &k, &v).unwrap();
    assert!(attention.merge(&[]).is_err());
    let shorter = attention.forward(q.slice(s![.., .., 1.., ..]), &k, &v).unwrap();
    assert!(attention.merge(&[fwd.clone(), shorter]).is_err());
    assert!(attention.clone().sinks([0.0; 3]).merge(std::slice::from_ref(&fwd)).is_err());
    let dout = Array4::<f32>::ones(fwd.out.dim());
    assert!(attention.sink_gradient(&fwd, &dout).unwrap().is_none());
    assert!(attention.clone().sinks([0.0; 3]).sink_gradient(&fwd, &dout).is_err());
    assert!(attention.clone().sinks([0.0; 4]).sink_gradient(&fwd, dout.slice(s![.., .., 1.., ..])).is_err());
    // One part is itself, and parts in which nothing is visible add nothing.
    let nothing = foveal::Forward { out: Array4::zeros(fwd.out.dim()), lse: fwd.lse.mapv(|_| f64::NEG_INFINITY) };
    for parts in [vec![fwd.clone()], vec![nothing.clone(), fwd.clone(), nothing.clone()]] {
        let merged = attention.merge(&parts).unwrap();
        assert_close("out", dynamic(&merged.out), dynamic(&widen(&fwd.out)), 1e-7, 1e-6);
        assert_close("lse", dynamic(&merged.lse), dynamic(&fwd.lse), 1e-12, 1e-12);
    }
    assert_eq!(attention.merge(&[nothing.clone(), nothing.clone()]).unwrap(), nothing);
}
