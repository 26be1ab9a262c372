//! Sequences of different lengths without padding: each is what a call of its own would be.
#![allow(missing_docs)]

mod support;

use std::ops::Range;

use foveal::{Align, Attention, Bias, Direction, Isa, Mask, Packed, Part, Pattern, Pool, Upstream, reference};
use ndarray::{Array3, Array4, ArrayD, Axis, concatenate, s};
use support::calls::assert_learned;
use support::{assert_close, chance, dynamic, narrow, randn, randn4, widen};

const ABS: f64 = 1e-5;
const REL: f64 = 5e-6;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 12;
const VALUE_DIM: usize = 20;

/// Queries and keys of each sequence: none, one, odd numbers, more than a tile.
const MIXED: [(usize, usize); 7] = [(5, 9), (0, 3), (1, 1), (33, 0), (70, 64), (3, 270), (40, 260)];
/// The kernels for short sequences.
const SHORT: [(usize, usize); 6] = [(5, 9), (0, 3), (1, 1), (12, 0), (30, 64), (64, 20)];
/// The kernels for a few queries.
const FEW: [(usize, usize); 5] = [(1, 50), (2, 300), (0, 10), (3, 2), (4, 2100)];

/// An attention for packed sequences, and what it is for each of them alone.
struct Case {
    name: &'static str,
    packed: Attention,
    alone: Vec<Attention>,
}

fn starts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0];
    lengths.for_each(|length| starts.push(starts[starts.len() - 1] + length));
    starts
}

fn packed(sequences: &[(usize, usize)]) -> Packed {
    let [queries, keys] = [starts(sequences.iter().map(|s| s.0)), starts(sequences.iter().map(|s| s.1))];
    Packed::new(queries, keys).unwrap()
}

fn longest(sequences: &[(usize, usize)]) -> (usize, usize) {
    let longest = |length: fn(&(usize, usize)) -> usize| sequences.iter().map(length).max().unwrap();
    (longest(|s| s.0), longest(|s| s.1))
}

/// The beginning of an array over the scores, for sequence b; shared axes stay so.
fn cut<A: Clone>(array: &Array4<A>, b: usize, (queries, keys): (usize, usize)) -> Array4<A> {
    let pick = |axis: usize, range: Range<usize>| if array.shape()[axis] == 1 { 0..1 } else { range };
    array.slice(s![pick(0, b..b + 1), .., pick(2, 0..queries), ..keys]).to_owned()
}

fn cases(sequences: &[(usize, usize)]) -> Vec<Case> {
    let (batch, (queries, keys)) = (sequences.len(), longest(sequences));
    let case = |name, attention: Attention, alone: &dyn Fn(usize, (usize, usize)) -> Attention| {
        let alone = sequences.iter().enumerate().map(|(b, size)| {
            // Dropout of sequence b is that of sequence b of a batch.
            alone(b, *size).part(Part { batch: b, ..Part::of(size.0, size.1) })
        });
        Case { name, packed: attention.packed(packed(sequences)), alone: alone.collect() }
    };
    let same = |name, attention: Attention| case(name, attention.clone(), &|_, _| attention.clone());
    let new = Attention::new;
    let pattern = |pattern| Mask::pattern(pattern);
    let mut cases = vec![
        same("plain", new()),
        same("causal", new().mask(Mask::causal())),
        same("window", new().mask(Mask::window(9, 4)).align(Align::First)),
        same("longformer", new().mask(pattern(Pattern::longformer(5, 1, &[0, 8]).unwrap()))),
        same("strided", new().mask(pattern(Pattern::strided(7).unwrap()).and(Mask::causal()))),
        same("ALiBi", new().mask(Mask::causal()).bias(Bias::alibi_with([0.5, 0.1, 0.2, 0.05]))),
        same("T5", new().bias(Bias::t5(narrow(&randn(81, (8, HEADS))), Direction::Both, 20).unwrap())),
        same("Shaw", new().bias(Bias::shaw(narrow(&randn(82, (1, 13, DIM)))).unwrap())),
        same("softcap", new().softcap(1.5).mask(Mask::window(30, 30))),
        same("dropout", new().mask(Mask::causal()).dropout(0.3, 5)),
        same(
            "dropout and bias",
            new().dropout(0.2, 6).bias(Bias::alibi_with([0.25, 0.06, 0.02, 0.004]).constant()).softcap(2.0),
        ),
    ];
    let lengths: Vec<usize> = sequences.iter().map(|(_, keys)| keys - keys / 3).collect();
    cases.push(case("padding", new().mask(Mask::padding(lengths.clone())), &|b, _| {
        new().mask(Mask::padding([lengths[b]]))
    }));
    let offsets: Vec<isize> = (0..batch).map(|b| 3 * b as isize - 5).collect();
    let aligned = new().mask(Mask::causal()).bias(Bias::alibi_with([0.25, 0.06, 0.02, 0.004]).constant());
    cases.push(case("offsets", aligned.clone().align(Align::Offsets(offsets.clone().into())), &|b, _| {
        aligned.clone().align(Align::Offsets([offsets[b]].into()))
    }));
    let keep = chance(92, 0.6, (batch, HEADS, queries, keys));
    cases.push(case("keep", new().mask(Mask::dense(keep.clone())), &|b, size| {
        new().mask(Mask::dense(cut(&keep, b, size)))
    }));
    let keep = chance(93, 0.7, (batch, keys));
    cases.push(case("keys", new().mask(Mask::keys(keep.clone()).and(Mask::causal())), &|b, size| {
        new().mask(Mask::keys(keep.slice(s![b..=b, ..size.1]).to_owned()).and(Mask::causal()))
    }));
    for (name, shape) in [("dense bias", [batch, HEADS, queries, keys]), ("shared bias", [1, 1, 1, keys])] {
        let bias = narrow(&randn(94, shape)).mapv(|x| if x < -1.5 { f32::NEG_INFINITY } else { x });
        cases.push(case(name, new().bias(Bias::dense(bias.clone())), &|b, size| {
            new().bias(Bias::dense(cut(&bias, b, size)))
        }));
    }
    cases
}

/// Sequences one after the other: [1, H, Σ, D] from [1, H, ·, D] each.
fn join(arrays: &[Array4<f32>]) -> Array4<f32> {
    concatenate(Axis(2), &arrays.iter().map(|array| array.view()).collect::<Vec<_>>()).unwrap()
}

/// q, k, v and dout of each sequence.
fn inputs(sequences: &[(usize, usize)]) -> [Vec<Array4<f32>>; 4] {
    let mut arrays = [const { Vec::new() }; 4];
    for (b, (queries, keys)) in sequences.iter().enumerate() {
        let seed = 10 * b as u64;
        arrays[0].push(randn4(seed + 1, [1, HEADS, *queries, DIM]));
        arrays[1].push(randn4(seed + 2, [1, KV_HEADS, *keys, DIM]));
        arrays[2].push(randn4(seed + 3, [1, KV_HEADS, *keys, VALUE_DIM]));
        arrays[3].push(randn4(seed + 4, [1, HEADS, *queries, VALUE_DIM]));
    }
    arrays
}

/// Adds the gradient of one sequence's bias to that of all.
fn add_dbias(sum: &mut ArrayD<f64>, own: &ArrayD<f64>, b: usize, dense: bool) {
    if !dense {
        *sum += own;
        return;
    }
    let mut place = sum.view_mut();
    for axis in 0..4 {
        let start = if axis == 0 && place.shape()[0] > 1 { b } else { 0 };
        place.slice_axis_inplace(Axis(axis), (start..start + own.shape()[axis]).into());
    }
    place += own;
}

fn check(sequences: &[(usize, usize)], case: &Case) {
    let (arrays, lists) = (inputs(sequences), packed(sequences));
    let [q, k, v, dout] = arrays.each_ref().map(|arrays| join(arrays));
    let (_, most_keys) = longest(sequences);
    for isa in Isa::available() {
        let attention = case.packed.clone().isa(isa);
        let fwd = attention.forward(&q, &k, &v).unwrap();
        let got = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
        let weights = attention.weights(&q, &k).unwrap();
        assert_eq!(weights.dim(), (1, HEADS, q.dim().2, most_keys));
        let mut dbias = got.dbias.as_ref().map(|dbias| ArrayD::<f64>::zeros(dbias.shape()));
        for (b, alone) in case.alone.iter().enumerate() {
            let what = |what: &str| format!("{isa}, {}, sequence {b} {:?}: {what}", case.name, sequences[b]);
            let [q_b, k_b, v_b, dout_b] = arrays.each_ref().map(|arrays| widen(&arrays[b]));
            let (rows, keys) = (lists.queries(b), lists.keys(b));
            let want = reference::forward(alone, &q_b, &k_b, &v_b).unwrap();
            let grads = reference::backward(alone, &q_b, &k_b, &v_b, &dout_b).unwrap();
            let of = |array: &Array4<f32>, rows: &Range<usize>| array.slice(s![.., .., rows.clone(), ..]).to_owned();
            assert_close(&what("out"), dynamic(&of(&fwd.out, &rows)), dynamic(&want.out), ABS, REL);
            let lse = fwd.lse.slice(s![.., .., rows.clone()]).to_owned();
            assert_close(&what("lse"), dynamic(&lse), dynamic(&want.lse), ABS, REL);
            let abs = 1e-5 * (1.0 + ((rows.len().max(keys.len()) * VALUE_DIM) as f64).sqrt() / 16.0);
            assert_close(&what("dq"), dynamic(&of(&got.dq, &rows)), dynamic(&grads.dq), abs, REL);
            assert_close(&what("dk"), dynamic(&of(&got.dk, &keys)), dynamic(&grads.dk), abs, REL);
            assert_close(&what("dv"), dynamic(&of(&got.dv, &keys)), dynamic(&grads.dv), abs, REL);
            if let (Some(dbias), Some(own)) = (&mut dbias, &grads.dbias) {
                add_dbias(dbias, own, b, case.name.ends_with(" bias"));
            }

            let own = of(&weights, &rows);
            let (own, beyond) = own.view().split_at(Axis(3), keys.len());
            assert_close(&what("weights"), own.into_dyn(), dynamic(&want.weights), ABS, REL);
            assert!(beyond.iter().all(|x| *x == 0.0), "{}", what("weights beyond its keys"));
            let head = attention.head(&q, &k, &fwd.lse, (b, 3)).unwrap();
            assert_eq!((head.queries(), head.keys()), sequences[b]);
            let (rows, cols) = (rows.len() / 3..rows.len(), keys.len() / 4..keys.len());
            let want = want.weights.slice(s![0, 3, rows.clone(), cols.clone()]);
            let tile = head.tile(rows.clone(), cols.clone()).unwrap();
            assert_close(&what("tile"), dynamic(&tile), want.into_dyn(), ABS, REL);
            if !want.is_empty() {
                let map = head.map(rows, cols, (1, 1), Pool::Sum).unwrap();
                assert!((f64::from(map[[0, 0]]) - want.sum()).abs() < 1e-4, "{}", what("map"));
            }
        }
        let tolerance = 1e-5 * (1.0 + (sequences.len() * longest(sequences).0) as f64);
        assert_learned(&format!("{isa}, {}: dbias", case.name), got.dbias.as_ref(), dbias.as_ref(), tolerance);
    }
}

#[test]
fn every_option_is_each_sequences_own() {
    for sequences in [&MIXED[..], &SHORT, &FEW] {
        // A score of several thousand keys is computed once and pair by pair: not for every option.
        let some = if sequences == FEW { 3 } else { 1 };
        cases(sequences).iter().step_by(some).for_each(|case| check(sequences, case));
    }
}

/// Sinks, and a loss that depends on lse. (A part leaves sinks to the merge, so these are not parts here.)
#[test]
fn sinks_and_dlse() {
    let sinks = [0.5, -1.0, 2.0, 0.0];
    for sequences in [&MIXED[..], &SHORT, &FEW[..3]] {
        let (arrays, lists) = (inputs(sequences), packed(sequences));
        let [q, k, v, dout] = arrays.each_ref().map(|arrays| join(arrays));
        let dlse: Array3<f32> = narrow(&randn(7, (1, HEADS, q.dim().2)));
        for (isa, mask) in Isa::available().flat_map(|isa| [(isa, Mask::none()), (isa, Mask::causal())]) {
            let alone = Attention::new().mask(mask).sinks(sinks).isa(isa);
            let attention = alone.clone().packed(lists.clone());
            let fwd = attention.forward(&q, &k, &v).unwrap();
            let upstream = Upstream { dout: (&dout).into(), dlse: Some(dlse.view()) };
            let got = attention.backward(&q, &k, &v, &fwd, upstream).unwrap();
            let mut dsinks = ndarray::Array1::<f64>::zeros(HEADS);
            for b in 0..sequences.len() {
                let what = |what: &str| format!("{isa}, sequence {b} {:?}: {what}", sequences[b]);
                let [q, k, v, dout] = arrays.each_ref().map(|arrays| widen(&arrays[b]));
                let (rows, keys) = (lists.queries(b), lists.keys(b));
                let want = reference::forward(&alone, &q, &k, &v).unwrap();
                let dlse = widen(&dlse.slice(s![.., .., rows.clone()]).to_owned());
                let views = (q.view(), k.view(), v.view());
                let grads = reference::backward_with(&alone, views, dout.view(), Some(dlse.view())).unwrap();
                let of =
                    |array: &Array4<f32>, rows: &Range<usize>| array.slice(s![.., .., rows.clone(), ..]).to_owned();
                let lse = fwd.lse.slice(s![.., .., rows.clone()]).to_owned();
                assert_close(&what("out"), dynamic(&of(&fwd.out, &rows)), dynamic(&want.out), ABS, REL);
                assert_close(&what("lse"), dynamic(&lse), dynamic(&want.lse), ABS, REL);
                assert_close(&what("dq"), dynamic(&of(&got.dq, &rows)), dynamic(&grads.dq), 5e-5, REL);
                assert_close(&what("dk"), dynamic(&of(&got.dk, &keys)), dynamic(&grads.dk), 5e-5, REL);
                assert_close(&what("dv"), dynamic(&of(&got.dv, &keys)), dynamic(&grads.dv), 5e-5, REL);
                dsinks += &grads.dsinks.unwrap();
            }
            assert_close("dsinks", dynamic(&got.dsinks.unwrap()), dynamic(&dsinks), 1e-4, REL);
        }
    }
}

/// What a sequence alone refuses, a packed call refuses, too.
#[test]
fn each_sequence_must_fit_on_its_own() {
    let x = randn4(1, [1, HEADS, 14, DIM]);
    let documents = || Mask::pattern(Pattern::documents(&[4, 6]).unwrap());
    let swin = || Bias::swin(narrow(&randn(2, (9, HEADS))), (2, 2), (2, 5)).unwrap();
    // The longest of each are 10 queries on 10 keys, which fit. But of the first sequence, queries stand before the first key.
    let lists = Packed::new([0, 10, 14], [0, 4, 14]).unwrap();
    for attention in [Attention::new().mask(documents()), Attention::new().bias(swin())] {
        let first = x.slice(s![.., .., ..4, ..]);
        assert!(attention.forward(x.slice(s![.., .., ..10, ..]), first, first).is_err(), "alone");
        assert!(attention.clone().packed(lists.clone()).forward(&x, &x, &x).is_err(), "packed");
        assert!(attention.packed(lists.clone()).weights(&x, &x).is_err(), "weights");
    }
    let fits = Packed::new([0, 4, 14], [0, 4, 14]).unwrap();
    assert!(Attention::new().mask(documents()).packed(fits.clone()).forward(&x, &x, &x).is_ok());
    // An image has just so many tokens.
    assert!(Attention::new().bias(swin()).packed(fits).forward(&x, &x, &x).is_err());
}

#[test]
fn threads_do_not_change_the_bits() {
    let sequences = [(130, 300), (5, 9), (0, 3), (260, 257), (40, 260)];
    let [q, k, v, dout] = inputs(&sequences).each_ref().map(|arrays| join(arrays));
    let attention = Attention::new().mask(Mask::causal()).bias(Bias::alibi_with([0.5, 0.1, 0.2, 0.05])).dropout(0.1, 3);
    let attention = attention.packed(packed(&sequences));
    let run = || {
        let fwd = attention.forward(&q, &k, &v).unwrap();
        let grads = attention.backward(&q, &k, &v, &fwd, &dout).unwrap();
        (fwd, grads, attention.weights(&q, &k).unwrap())
    };
    let [once, twice, often] =
        [1, 2, 5].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run));
    assert!(once == twice && once == often);
}
