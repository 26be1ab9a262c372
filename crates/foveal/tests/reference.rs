//! The f64 reference against finite differences, against numbers worked out by hand, and on its rules for hidden cells.

mod support;

use foveal::reference::{self, Forward};
use foveal::{Align, Attention, Bias, Direction, Mask};
use ndarray::{Array1, Array2, Array4, ArrayD, Axis, Dimension, array, s};
use support::{assert_close_f64, chance, dynamic, randn};

/// B, H, key heads, T, S, D, Dv.
type Sizes = [usize; 7];

/// As many queries as keys, more keys, and more queries; heads in groups of two.
const SQUARE: Sizes = [2, 2, 2, 4, 4, 3, 2];
const WIDE: Sizes = [2, 4, 2, 3, 5, 3, 2];
const TALL: Sizes = [2, 2, 1, 5, 3, 2, 4];

fn arrays([b, h, g, t, s, d, dv]: Sizes) -> [Array4<f64>; 4] {
    [randn(1, [b, h, t, d]), randn(2, [b, g, s, d]), randn(3, [b, g, s, dv]), randn(4, [b, h, t, dv])]
}

/// The derivative of `loss` at 0 by five points: the error is O(step⁴).
fn derivative(step: f64, loss: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (loss(step) - loss(-step)) - (loss(2.0 * step) - loss(-2.0 * step))) / (12.0 * step)
}

/// The gradient of `loss` in every element of `x`.
fn gradient<D: Dimension>(
    x: &ndarray::Array<f64, D>,
    step: f64,
    loss: impl Fn(&ndarray::Array<f64, D>) -> f64,
) -> ArrayD<f64> {
    let flat = |n: usize, by: f64| {
        let mut shifted = x.clone();
        *shifted.iter_mut().nth(n).unwrap() += by;
        loss(&shifted)
    };
    ArrayD::from_shape_vec(x.shape(), (0..x.len()).map(|n| derivative(step, |by| flat(n, by))).collect()).unwrap()
}

/// Makes a bias of an array.
type Make<'a> = &'a dyn Fn(ArrayD<f32>) -> Bias;

/// dq, dk, dv of the loss Σ dout·out, and dbias, for which the bias is made anew from shifted arrays.
fn check(name: &str, sizes: Sizes, attention: &Attention, bias: Option<(&ArrayD<f32>, Make)>) {
    let [q, k, v, dout] = &arrays(sizes);
    let attention = match &bias {
        Some((made_of, make)) => attention.clone().bias(make((*made_of).clone())),
        None => attention.clone(),
    };
    let loss = |attention: &Attention, q: &Array4<f64>, k: &Array4<f64>, v: &Array4<f64>| {
        (reference::forward(attention, q, k, v).unwrap().out * dout).sum()
    };
    let grads = reference::backward(&attention, q, k, v, dout).unwrap();
    let close = |what: &str, got: &ArrayD<f64>, want: ArrayD<f64>| {
        assert_close_f64(&format!("{name}, {what}"), got.view(), want.view(), 1e-8, 1e-8);
        assert!(got.iter().any(|x| *x != 0.0), "{name}, {what}: all gradients are zero");
    };
    close("dq", &grads.dq.into_dyn(), gradient(q, 1e-3, |q| loss(&attention, q, k, v)));
    close("dk", &grads.dk.into_dyn(), gradient(k, 1e-3, |k| loss(&attention, q, k, v)));
    close("dv", &grads.dv.into_dyn(), gradient(v, 1e-3, |v| loss(&attention, q, k, v)));
    match bias {
        Some((made_of, make)) => {
            // Biases are f32. On a grid of 2⁻⁸ a step of 2⁻⁹ loses nothing.
            let want = gradient(&made_of.mapv(f64::from), 2f64.powi(-9), |made_of| {
                loss(&attention.clone().bias(make(made_of.mapv(|x| x as f32))), q, k, v)
            });
            close("dbias", &grads.dbias.unwrap(), want);
        }
        None => assert_eq!(grads.dbias, None),
    }
}

/// Random numbers on a grid of 2⁻⁸.
fn grid(seed: u64, shape: &[usize]) -> ArrayD<f32> {
    randn(seed, shape).mapv(|x| ((x * 256.0).round() / 256.0) as f32)
}

#[test]
fn gradients_under_every_mask() {
    for (name, sizes) in [("square", SQUARE), ("wide", WIDE), ("tall", TALL)] {
        let [b, h, _, t, s, ..] = sizes;
        let check = |what: &str, attention: Attention| check(&format!("{name}, {what}"), sizes, &attention, None);
        check("plain", Attention::new());
        check("scale", Attention::new().scale(0.3));
        check("causal, last", Attention::new().mask(Mask::causal()));
        check("causal, first", Attention::new().mask(Mask::causal()).align(Align::First));
        check("causal, offsets", Attention::new().mask(Mask::causal()).align(Align::Offsets([0, 1].into())));
        check("window", Attention::new().mask(Mask::window(1, 1)));
        check("padding", Attention::new().mask(Mask::padding([s - 1, 0])));
        check("keys", Attention::new().mask(Mask::keys(chance(5, 0.6, [b, s]))));
        check("dense", Attention::new().mask(Mask::dense(chance(6, 0.6, [b, h, t, s]))));
        let both = Mask::causal().and(Mask::dense(chance(7, 0.8, [1, h, 1, s]))).and(Mask::padding([s, s - 1]));
        check("combined", Attention::new().mask(both));
    }
}

#[test]
fn gradients_through_softcap_and_dropout() {
    for (name, sizes) in [("square", SQUARE), ("wide", WIDE), ("tall", TALL)] {
        let check = |what: &str, attention: Attention| check(&format!("{name}, {what}"), sizes, &attention, None);
        check("softcap", Attention::new().softcap(0.8));
        check("dropout", Attention::new().dropout(0.3, 11));
        check("all", Attention::new().softcap(1.5).dropout(0.2, 12).mask(Mask::causal()).scale(0.9));
    }
}

#[test]
fn gradients_of_every_bias() {
    for (name, sizes) in [("square", SQUARE), ("wide", WIDE), ("tall", TALL)] {
        let [b, h, _, t, s, d, _] = sizes;
        let options = [
            ("plain", Attention::new()),
            ("first", Attention::new().align(Align::First)),
            ("softcap and dropout", Attention::new().softcap(0.8).dropout(0.3, 13)),
            ("causal and padding", Attention::new().mask(Mask::causal().and(Mask::padding([s, s - 1])))),
        ];
        for (option, attention) in options {
            let check = |bias: &str, made_of: ArrayD<f32>, make: Make| {
                check(&format!("{name}, {option}, {bias}"), sizes, &attention, Some((&made_of, make)));
            };
            check("ALiBi", grid(21, &[h]), &|slopes| Bias::alibi_with(slopes.into_raw_vec_and_offset().0));
            for sequences in [1, b] {
                check("ALiBi per sequence", grid(21, &[sequences, h]), &|slopes| {
                    Bias::alibi_per_sequence(slopes.into_dimensionality().unwrap())
                });
            }
            for direction in [Direction::Both, Direction::Backward] {
                check("T5", grid(22, &[6, h]), &|table| {
                    Bias::t5(table.into_dimensionality().unwrap(), direction, 4).unwrap()
                });
            }
            for heads in [1, h] {
                check("Shaw", grid(23, &[heads, 5, d]), &|table| {
                    Bias::shaw(table.into_dimensionality().unwrap()).unwrap()
                });
            }
            for shape in [[b, h, t, s], [1, h, t, s], [b, 1, 1, s], [1, 1, t, s]] {
                check("dense", grid(24, &shape), &|bias| Bias::dense(bias.into_dimensionality().unwrap()));
            }
            let mut hiding = grid(25, &[1, h, t, s]);
            hiding.slice_mut(s![.., 0, 0, ..]).fill(f32::NEG_INFINITY);
            hiding.slice_mut(s![.., .., .., 1]).fill(f32::NEG_INFINITY);
            check("dense with −∞", hiding, &|bias| Bias::dense(bias.into_dimensionality().unwrap()));
        }
    }
}

/// A loss that depends on out and on lse, with a sink for each head and without.
#[test]
fn gradients_of_sinks_and_through_lse() {
    for (name, sizes) in [("square", SQUARE), ("wide", WIDE), ("tall", TALL)] {
        let [b, h, _, t, s, ..] = sizes;
        let [q, k, v, dout] = &arrays(sizes);
        let (sinks, dlse) = (randn(5, h).mapv(|x| (256.0 * x).round() / 256.0), randn(6, [b, h, t]));
        for (option, attention) in [
            ("plain", Attention::new()),
            ("softcap and dropout", Attention::new().softcap(0.8).dropout(0.3, 13)),
            // Sequence 1 sees nothing: its rows are the sink's alone, and without one they have no loss.
            ("causal and padding", Attention::new().mask(Mask::causal().and(Mask::padding([s, 0])))),
        ] {
            for sinks in [Some(&sinks), None] {
                // Sinks are f32: the differences are taken at multiples of a power of two, which are exact.
                let with = |sinks: Option<&Array1<f64>>| {
                    let logits = sinks.map(|sinks| sinks.iter().map(|x| *x as f32).collect::<Vec<_>>());
                    logits.into_iter().fold(attention.clone(), Attention::sinks)
                };
                let loss = |q: &Array4<f64>, k: &Array4<f64>, v: &Array4<f64>, sinks: Option<&Array1<f64>>| {
                    let fwd = reference::forward(&with(sinks), q, k, v);
                    let Forward { out, lse, .. } = fwd.unwrap();
                    let of_lse = lse.iter().zip(&dlse).filter(|(lse, _)| lse.is_finite()).map(|(lse, d)| lse * d);
                    (out * dout).sum() + of_lse.sum::<f64>()
                };
                let qkv = (q.into(), k.into(), v.into());
                let grads = reference::backward_with(&with(sinks), qkv, dout.view(), Some(dlse.view())).unwrap();
                let close = |what: &str, got: ArrayD<f64>, want: ArrayD<f64>| {
                    assert_close_f64(&format!("{name}, {option}, {what}"), got.view(), want.view(), 1e-8, 1e-8);
                    assert!(got.iter().any(|x| *x != 0.0), "{name}, {option}, {what}: all gradients are zero");
                };
                close("dq", grads.dq.into_dyn(), gradient(q, 1e-3, |q| loss(q, k, v, sinks)));
                close("dk", grads.dk.into_dyn(), gradient(k, 1e-3, |k| loss(q, k, v, sinks)));
                close("dv", grads.dv.into_dyn(), gradient(v, 1e-3, |v| loss(q, k, v, sinks)));
                assert_eq!(grads.dsinks.is_some(), sinks.is_some());
                if let (Some(sinks), Some(dsinks)) = (sinks, grads.dsinks) {
                    close(
                        "dsinks",
                        dsinks.into_dyn(),
                        gradient(sinks, 1.0 / 1024.0, |sinks| loss(q, k, v, Some(sinks))),
                    );
                }
            }
        }
    }
}

#[test]
fn a_row_that_sees_nothing_has_its_sinks_lse() {
    let [q, k, v, _] = &arrays(SQUARE);
    let hidden = Attention::new().mask(Mask::padding([0, 0]));
    let fwd = reference::forward(&hidden.clone().sinks([0.5, -2.0]), q, k, v).unwrap();
    assert!(fwd.out.iter().chain(&fwd.weights).all(|x| *x == 0.0));
    for (h, sink) in [0.5, -2.0].into_iter().enumerate() {
        assert!(fwd.lse.index_axis(Axis(1), h).iter().all(|lse| *lse == sink));
    }
    assert!(reference::forward(&hidden.sinks([0.5]), q, k, v).is_err());
}

/// One sequence and one head.
fn alone(x: &Array2<f64>) -> Array4<f64> {
    x.clone().insert_axis(Axis(0)).insert_axis(Axis(0))
}

fn one_head(attention: &Attention, q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
    let Forward { out, weights, .. } = reference::forward(attention, &alone(q), &alone(k), &alone(v)).unwrap();
    (out.slice_move(s![0, 0, .., ..]), weights.slice_move(s![0, 0, .., ..]))
}

#[test]
fn numbers_worked_out_by_hand() {
    let close = |what: &str, got: &Array2<f64>, want: &Array2<f64>| {
        assert_close_f64(what, dynamic(got), dynamic(want), 5e-6, 0.0);
    };
    let q = array![[1., 0., 1., 0.], [0., 1., 0., 1.], [1., 1., 0., 0.]];
    let v = array![[1., 2., 3., 4.], [5., 6., 7., 8.], [9., 10., 11., 12.]];
    let (out, weights) = one_head(&Attention::new(), &q, &q, &v);
    close("weights", &weights.slice_move(s![..1, ..]), &array![[0.50648, 0.18632, 0.30720]]);
    close("output", &out.slice_move(s![..1, ..]), &array![[4.20286, 5.20286, 6.20286, 7.20286]]);

    let (q, k, v) = (array![[1., 1.], [0., 1.]], array![[1., 0.], [0., 1.]], array![[2., 3.], [4., 5.]]);
    let (out, weights) = one_head(&Attention::new(), &q, &k, &v);
    close("second weights", &weights, &array![[0.5, 0.5], [0.33024, 0.66976]]);
    close("second output", &out, &array![[3., 4.], [3.33952, 4.33952]]);

    // The scores are given: queries against the unit vectors, unscaled.
    let scores = array![[2.1, 1.5, 0.8, 1.2], [1.3, 2.5, 1.1, 0.9], [0.7, 1.8, 2.2, 1.4], [1., 1.6, 1.9, 2.3]];
    let causal = Attention::new().scale(1.0).mask(Mask::causal());
    let (out, weights) = one_head(&causal, &scores, &Array2::eye(4), &Array2::eye(4));
    let want = array![
        [1., 0., 0., 0.],
        [0.23148, 0.76852, 0., 0.],
        [0.11784, 0.35402, 0.52814, 0.],
        [0.11172, 0.20357, 0.27478, 0.40993]
    ];
    close("causal weights", &weights, &want);
    assert_eq!(out, weights);
    assert_eq!(weights.indexed_iter().filter(|((i, j), w)| j > i && **w == 0.0).count(), 6);
}

#[test]
fn rows_that_see_nothing_are_zero() {
    let sizes @ [_, h, _, t, s, ..] = WIDE;
    let [q, k, v, dout] = &arrays(sizes);
    let minus = |shape| Bias::dense(Array4::from_elem(shape, f32::NEG_INFINITY));
    for attention in [
        Attention::new().mask(Mask::padding([0, 0])),
        Attention::new().mask(Mask::dense(Array4::from_elem((1, 1, 1, s), false))),
        Attention::new().bias(minus((1, h, t, s))),
        Attention::new().mask(Mask::causal()).align(Align::First).bias(minus((1, 1, 1, s))),
    ] {
        let fwd = reference::forward(&attention, q, k, v).unwrap();
        assert!(fwd.out.iter().chain(&fwd.weights).all(|x| *x == 0.0));
        assert!(fwd.lse.iter().all(|x| *x == f64::NEG_INFINITY));
        let grads = reference::backward(&attention, q, k, v, dout).unwrap();
        assert!(grads.dq.iter().chain(&grads.dk).chain(&grads.dv).all(|x| *x == 0.0));
        assert!(grads.dbias.is_none_or(|dbias| dbias.iter().all(|x| *x == 0.0)));
    }
    // A score of −∞ that comes from the products themselves: the same.
    let (mut q, mut k) = (q.clone(), k.clone());
    q.fill(1.0);
    k.fill(f64::NEG_INFINITY);
    let fwd = reference::forward(&Attention::new(), &q, &k, v).unwrap();
    assert!(fwd.out.iter().all(|x| *x == 0.0) && fwd.lse.iter().all(|x| *x == f64::NEG_INFINITY));
}

#[test]
fn nan_spreads_from_visible_cells_only() {
    let [q, k, v, dout] = arrays([1, 1, 1, 4, 4, 3, 2]);
    let (mut k_bad, mut v_bad) = (k.clone(), v.clone());
    k_bad.slice_mut(s![.., .., 2, ..]).fill(f64::NAN);
    v_bad.slice_mut(s![.., .., 2, ..]).fill(f64::NAN);

    // Key 2 is hidden from all: by lengths, by a keep-array, or by a bias of −∞.
    let without = || ndarray::Array::from_shape_fn((1, 1, 1, 4), |(.., j)| j != 2);
    let minus = without().mapv(|keep| if keep { 0.0 } else { f32::NEG_INFINITY });
    for attention in [
        Attention::new().mask(Mask::padding([2])),
        Attention::new().mask(Mask::dense(without())),
        Attention::new().bias(Bias::dense(minus)),
    ] {
        let fwd = reference::forward(&attention, &q, &k_bad, &v_bad).unwrap();
        assert_eq!(fwd, reference::forward(&attention, &q, &k, &v).unwrap());
        let grads = reference::backward(&attention, &q, &k_bad, &v_bad, &dout).unwrap();
        assert_eq!(grads, reference::backward(&attention, &q, &k, &v, &dout).unwrap());
        assert!(grads.dk.slice(s![.., .., 2, ..]).iter().all(|x| *x == 0.0));
    }

    // Causal: queries 2 and 3 see it, 0 and 1 do not.
    let causal = Attention::new().mask(Mask::causal());
    let clean = reference::forward(&causal, &q, &k, &v).unwrap();
    for (k, v, lse_spoilt) in [(&k_bad, &v, true), (&k, &v_bad, false)] {
        let fwd = reference::forward(&causal, &q, k, v).unwrap();
        assert_eq!(fwd.out.slice(s![.., .., ..2, ..]), clean.out.slice(s![.., .., ..2, ..]));
        assert!(fwd.out.slice(s![.., .., 2.., ..]).iter().all(|x| x.is_nan()));
        assert!(fwd.lse.slice(s![.., .., 2..]).iter().all(|x| x.is_nan() == lse_spoilt));
        let grads = reference::backward(&causal, &q, k, v, &dout).unwrap();
        assert!(grads.dq.slice(s![.., .., ..2, ..]).iter().all(|x| x.is_finite()));
        assert!(grads.dq.slice(s![.., .., 2.., ..]).iter().all(|x| x.is_nan()));
    }
    // A row whose only visible key is NaN is NaN, not empty.
    let alone = Attention::new().mask(Mask::window(0, 0));
    let fwd = reference::forward(&alone, &q, &k_bad, &v).unwrap();
    assert!(fwd.lse[[0, 0, 2]].is_nan() && fwd.out.slice(s![0, 0, 2, ..]).iter().all(|x| x.is_nan()));
    assert!(fwd.lse[[0, 0, 1]].is_finite());
}

#[test]
fn dropout_scales_what_it_keeps_and_leaves_the_weights() {
    let (q, k) = (randn(1, [2, 3, 8, 4]), randn(2, [2, 3, 9, 4]));
    // Against unit vectors as values the output is the dropped weights.
    let v = Array4::from_shape_fn((2, 3, 9, 9), |(.., j, d)| f64::from(u8::from(j == d)));
    let whole = reference::forward(&Attention::new(), &q, &k, &v).unwrap();
    let dropped = reference::forward(&Attention::new().dropout(0.25, 5), &q, &k, &v).unwrap();
    assert_eq!((&dropped.weights, &dropped.lse), (&whole.weights, &whole.lse));
    let kept = ndarray::Zip::from(&dropped.out).and(&whole.weights).fold(0, |kept, out, w| {
        assert!(*out == 0.0 || (out - w / 0.75).abs() < 1e-7);
        kept + usize::from(*out != 0.0)
    });
    let share = kept as f64 / whole.weights.len() as f64;
    assert!((share - 0.75).abs() < 0.1, "kept {share}");
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let [q, k, v, dout] = &arrays(SQUARE);
    let attention = Attention::new();
    assert!(reference::forward(&attention, q, &randn(1, [2, 2, 4, 5]), v).is_err());
    assert!(reference::forward(&attention, q, k, &randn(1, [2, 2, 3, 2])).is_err());
    assert!(reference::forward(&attention.clone().softcap(-1.0), q, k, v).is_err());
    assert!(reference::forward(&attention.clone().mask(Mask::padding([5, 1])), q, k, v).is_err());
    assert!(reference::backward(&attention, q, k, v, &dout.slice(s![.., .., ..3, ..]).to_owned()).is_err());
}
