//! A row's bits depend on what it sees, and on nothing else: whatever stands in a hidden place, on any number of threads and every
//! instruction set.
#![allow(missing_docs)]

mod support;

use foveal::{Attention, Bias, Forward, Gradients, Isa, Mask, Pattern, reference};
use ndarray::{Array3, Array4, ArrayView1, s};
use rayon::{ThreadPool, ThreadPoolBuilder};
use support::{chance, narrow, randn, randn4, widen};

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const GROUP: usize = HEADS / KV_HEADS;
const DIM: usize = 8;

/// Where q, k, v and dout stand among the inputs.
const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const DOUT: usize = 3;

/// Which of q, k, v and dout, which head of it, which token.
type Place = (usize, usize, usize);

fn pools() -> Vec<ThreadPool> {
    [1, 2, 4].map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap()).into()
}

/// q, k, v and dout.
fn inputs(tokens: usize) -> [Array4<f32>; 4] {
    [(1, HEADS), (2, KV_HEADS), (3, KV_HEADS), (4, HEADS)].map(|(seed, heads)| randn4(seed, [1, heads, tokens, DIM]))
}

fn with(arrays: &[Array4<f32>; 4], places: &[Place], bad: f32) -> [Array4<f32>; 4] {
    let mut arrays = arrays.clone();
    for &(array, head, token) in places {
        arrays[array][[0, head, token, token % DIM]] = bad;
    }
    arrays
}

type Results = (Forward, Gradients);

fn run(attention: &Attention, [q, k, v, dout]: &[Array4<f32>; 4]) -> Results {
    let fwd = attention.forward(q, k, v).unwrap();
    let grads = attention.backward(q, k, v, &fwd, dout).unwrap();
    (fwd, grads)
}

/// What a result may know of a bad place.
struct Spread {
    /// Rows whose output, and whose weights, do: [H, T].
    out: Array3<bool>,
    weights: Array3<bool>,
    /// Rows of each gradient: [1, H or key heads, T].
    dq: Array3<bool>,
    dk: Array3<bool>,
    dv: Array3<bool>,
}

/// By the definition, pair by pair.
fn spread(visible: &Array4<bool>, places: &[Place], tokens: usize) -> Spread {
    let none = |heads| Array3::from_elem((1, heads, tokens), false);
    let mut spread =
        Spread { out: none(HEADS), weights: none(HEADS), dq: none(HEADS), dk: none(KV_HEADS), dv: none(KV_HEADS) };
    let bad = |array, head, token| places.contains(&(array, head, token));
    for h in 0..HEADS {
        let kv = h / GROUP;
        for i in 0..tokens {
            let seen: Vec<usize> = (0..tokens).filter(|j| visible[[0, h, i, *j]]).collect();
            let weights = bad(Q, h, i) && !seen.is_empty() || seen.iter().any(|j| bad(K, kv, *j));
            let out = weights || seen.iter().any(|j| bad(V, kv, *j));
            let ds = out || bad(DOUT, h, i);
            spread.weights[[0, h, i]] = weights;
            spread.out[[0, h, i]] = out;
            spread.dq[[0, h, i]] = ds;
            for j in seen {
                spread.dk[[0, kv, j]] |= ds;
                spread.dv[[0, kv, j]] |= weights || bad(DOUT, h, i);
            }
        }
    }
    spread
}

/// Equal to the bit. Of zeros the sign does not count: 0·x has that of x, which may stand in a hidden place.
fn same_bits(a: ArrayView1<f32>, b: ArrayView1<f32>) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || *a == 0.0 && *b == 0.0)
}

/// Rows that know nothing of the bad places are as without them.
fn assert_untouched(what: &str, clean: &Results, got: &Results, spread: &Spread) {
    for ((_, h, i), _) in spread.weights.indexed_iter().filter(|(_, knows)| !**knows) {
        let (clean, got) = (clean.0.lse[[0, h, i]], got.0.lse[[0, h, i]]);
        assert_eq!(clean.to_bits(), got.to_bits(), "{what}: lse of row {i} of head {h}");
    }
    for (name, clean, got, knows) in [
        ("out", &clean.0.out, &got.0.out, &spread.out),
        ("dq", &clean.1.dq, &got.1.dq, &spread.dq),
        ("dk", &clean.1.dk, &got.1.dk, &spread.dk),
        ("dv", &clean.1.dv, &got.1.dv, &spread.dv),
    ] {
        let untouched: Vec<_> = knows.indexed_iter().filter(|(_, knows)| !**knows).map(|(at, _)| at).collect();
        let differ = |(_, h, i): &(usize, usize, usize)| {
            !same_bits(clean.slice(s![0, *h, *i, ..]), got.slice(s![0, *h, *i, ..]))
        };
        let wrong: Vec<_> = untouched.iter().filter(|at| differ(at)).collect();
        assert!(
            wrong.is_empty(),
            "{what}: {} of {} rows of {name} differ, first {:?}",
            wrong.len(),
            untouched.len(),
            wrong[0]
        );
    }
}

fn masks(tokens: usize) -> Vec<(&'static str, Mask)> {
    let sevenths = tokens / 7;
    vec![
        ("causal", Mask::causal()),
        ("window", Mask::window(sevenths, 2)),
        ("padding", Mask::padding([tokens - sevenths]).and(Mask::causal())),
        ("keep", Mask::dense(chance(5, 0.5, (1, HEADS, tokens, tokens)))),
        ("keys", Mask::keys(chance(6, 0.5, (1, tokens)))),
        ("longformer", Mask::pattern(Pattern::longformer(4, 1, &[2]).unwrap())),
        ("documents", Mask::pattern(Pattern::documents(&[sevenths, tokens - 2 * sevenths, sevenths]).unwrap())),
        ("fixed", Mask::pattern(Pattern::fixed(9, 1).unwrap()).and(Mask::causal())),
    ]
}

/// Every mask, and every option that goes through the scores.
fn attentions(tokens: usize) -> Vec<(&'static str, Attention)> {
    let mut attentions: Vec<_> =
        masks(tokens).into_iter().map(|(name, mask)| (name, Attention::new().mask(mask))).collect();
    let causal = Attention::new().mask(Mask::causal());
    let dense = narrow(&randn(7, [1, 1, tokens, tokens])).mapv(|x| if x < 0.0 { f32::NEG_INFINITY } else { x });
    attentions.extend([
        ("Shaw", causal.clone().bias(Bias::shaw(narrow(&randn(6, (1, 41, DIM)))).unwrap())),
        ("ALiBi", causal.clone().bias(Bias::alibi_with([0.5, 0.2, 0.1, 0.05]))),
        ("dense bias", Attention::new().bias(Bias::dense(dense))),
        ("softcap", causal.clone().softcap(3.0)),
        ("sinks", causal.clone().sinks([0.0, 1.0, -1.0, 0.5])),
        ("dropout", causal.dropout(0.2, 3)),
    ]);
    attentions
}

/// With queries of 0, what a row sees has weight.
fn visible(attention: &Attention, tokens: usize) -> Array4<bool> {
    let [q, k, v, _] = inputs(tokens).map(|array| Array4::<f64>::zeros(array.raw_dim()));
    reference::forward(attention, &q, &k, &v).unwrap().weights.mapv(|weight| weight > 0.0)
}

/// The bad places of a case: one of each array, or all of them at once.
fn cases(tokens: usize) -> Vec<Vec<Place>> {
    let (late, middle) = (tokens - 1, tokens / 2);
    let one = [(Q, 1, middle), (K, 0, late), (V, 1, late), (DOUT, 2, middle), (V, 0, middle), (K, 1, 3)];
    let mut cases: Vec<Vec<Place>> = one.iter().map(|place| vec![*place]).collect();
    cases.push(one[..4].to_vec());
    cases
}

/// Short sequences (kernels of their own) and such of one tile and a few blocks, with every mask and every bad place.
#[test]
fn hidden_places_change_no_bit() {
    let pools = pools();
    for tokens in [16, 64, 200] {
        let arrays = inputs(tokens);
        for (name, attention) in attentions(tokens) {
            let visible = visible(&attention, tokens);
            let cases: Vec<_> =
                cases(tokens).into_iter().map(|places| (spread(&visible, &places, tokens), places)).collect();
            for isa in Isa::available() {
                let attention = attention.clone().isa(isa);
                let clean = pools[0].install(|| run(&attention, &arrays));
                for (n, (spread, places)) in cases.iter().enumerate() {
                    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][n % 3];
                    let dirty = with(&arrays, places, bad);
                    for pool in &pools {
                        let got = pool.install(|| run(&attention, &dirty));
                        let threads = pool.current_num_threads();
                        let what = format!("{isa}, {name}, {tokens} tokens, {bad} at {places:?}, {threads} threads");
                        assert_untouched(&what, &clean, &got, spread);
                    }
                }
            }
        }
    }
}

/// Several tiles and blocks, whose cuts follow from the number of threads.
#[test]
fn a_thousand_tokens() {
    let (tokens, pools) = (1024, pools());
    let arrays = inputs(tokens);
    let longformer = Mask::pattern(Pattern::longformer(40, 1, &[2]).unwrap());
    for (name, mask) in [("causal", Mask::causal()), ("window", Mask::window(300, 9)), ("longformer", longformer)] {
        let attention = Attention::new().mask(mask);
        let visible = visible(&attention, tokens);
        let cases = [vec![(V, 0, 1023)], vec![(Q, 1, 500), (K, 0, 1023), (V, 1, 1000), (DOUT, 2, 700)]]
            .map(|places| (spread(&visible, &places, tokens), places));
        for isa in Isa::available() {
            let attention = attention.clone().isa(isa);
            let clean = pools[0].install(|| run(&attention, &arrays));
            for (spread, places) in &cases {
                let dirty = with(&arrays, places, f32::NAN);
                for pool in &pools {
                    let got = pool.install(|| run(&attention, &dirty));
                    let what = format!("{isa}, {name}, NaN at {places:?}, {} threads", pool.current_num_threads());
                    assert_untouched(&what, &clean, &got, spread);
                }
            }
        }
    }
}

/// A few new queries against many keys: the first of them do not see the last keys.
#[test]
fn a_few_queries() {
    for (heads, queries) in [(2, 4), (8, 3), (80, 2)] {
        let (q, k, v) = (randn4(1, [1, heads, queries, 32]), randn4(2, [1, 2, 3000, 32]), randn4(3, [1, 2, 3000, 32]));
        for isa in Isa::available() {
            for (mask, sees_first) in [(Mask::causal(), true), (Mask::window(100, 0), false)] {
                let attention = Attention::new().mask(mask).isa(isa);
                let clean = attention.forward(&q, &k, &v).unwrap();
                for (of_values, token) in [(true, 2999), (false, 2999), (true, 0)] {
                    let (mut k, mut v) = (k.clone(), v.clone());
                    let array = if of_values { &mut v } else { &mut k };
                    array[[0, 0, token, 5]] = f32::NAN;
                    let got = attention.forward(&q, &k, &v).unwrap();
                    let last = queries - 1;
                    for h in 0..heads {
                        // The last key is seen by the last query alone, the first by all or none; the second key head has
                        // nothing bad at all.
                        let first_head = h < heads / 2;
                        let seeing = if token == 2999 {
                            1
                        } else if sees_first {
                            queries
                        } else {
                            0
                        };
                        let hidden = if first_head { queries - seeing } else { queries };
                        let what = format!("{isa}, {heads} heads, {queries} queries, {of_values}, {token}, head {h}");
                        for i in 0..hidden {
                            assert!(
                                same_bits(clean.out.slice(s![0, h, i, ..]), got.out.slice(s![0, h, i, ..])),
                                "{what}, {i}"
                            );
                            assert_eq!(clean.lse[[0, h, i]].to_bits(), got.lse[[0, h, i]].to_bits(), "{what}, {i}");
                        }
                        if token == 2999 && first_head {
                            assert!(got.out[[0, h, last, 5]].is_nan(), "{what}");
                        }
                    }
                }
            }
        }
    }
}

/// What sees a bad place is NaN or infinite where f64 says so, in every result, and finite elsewhere.
#[test]
fn what_sees_a_bad_place_is_as_the_definition_says() {
    for tokens in [16, 90] {
        let arrays = inputs(tokens);
        for (name, attention) in attentions(tokens) {
            for (n, places) in cases(tokens).into_iter().enumerate() {
                let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][(n + tokens) % 3];
                let dirty = with(&arrays, &places, bad);
                let [q, k, v, dout] = dirty.each_ref().map(widen);
                let want = reference::forward(&attention, &q, &k, &v).unwrap();
                let grads = reference::backward(&attention, &q, &k, &v, &dout).unwrap();
                for isa in Isa::available() {
                    let got = run(&attention.clone().isa(isa), &dirty);
                    let what = format!("{isa}, {name}, {tokens} tokens, {bad} at {places:?}");
                    assert!(
                        got.0.lse.iter().zip(&want.lse).all(|(x, y)| x.is_finite() == y.is_finite()),
                        "{what}: lse"
                    );
                    for (array, got, want) in [
                        ("out", &got.0.out, &want.out),
                        ("dq", &got.1.dq, &grads.dq),
                        ("dk", &got.1.dk, &grads.dk),
                        ("dv", &got.1.dv, &grads.dv),
                    ] {
                        let wrong = got.indexed_iter().zip(want).find(|((_, x), y)| x.is_finite() != y.is_finite());
                        assert!(wrong.is_none(), "{what}: {array}, {wrong:?}");
                    }
                }
            }
        }
    }
}
