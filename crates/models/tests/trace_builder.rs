//! Traces that others make: their weights against dense ones, computed in plain loops of f64.

use foveal::{AdditiveAttention, Attention, Bias, FeatureMap, LinearAttention, Mask, Pool};
use foveal_models::Error;
use foveal_models::analysis::norms;
use foveal_models::layer::Random;
use foveal_models::trace::{Kind, LayerTrace, Site, Trace};
use ndarray::{Array2, Array3, Array4, s};

/// B, H, G, T, S, D and Dv: grouped heads, fewer queries than keys, values of another dimension.
const SIZES: (usize, usize, usize, usize, usize, usize, usize) = (2, 4, 2, 7, 11, 6, 5);

fn inputs() -> (Array4<f32>, Array4<f32>, Array4<f32>) {
    let (b, h, g, t, s, d, dv) = SIZES;
    let mut random = Random::new(7);
    let mut normal = |heads, tokens, dim| random.normal((b, heads, tokens, dim), 1.5);
    (normal(h, t, d), normal(g, s, d), normal(g, s, dv))
}

/// Softmax over `score`, in f64: [T, S]; `None` hides a key.
fn softmax(t: usize, s: usize, score: impl Fn(usize, usize) -> Option<f64>) -> Array2<f64> {
    let mut weights = Array2::from_shape_fn((t, s), |(i, j)| score(i, j).map_or(0.0, f64::exp));
    for mut row in weights.outer_iter_mut() {
        let sum = row.sum();
        row.mapv_inplace(|w| if sum > 0.0 { w / sum } else { 0.0 });
    }
    weights
}

fn dot(q: &Array4<f32>, k: &Array4<f32>, b: usize, (h, g): (usize, usize), (i, j): (usize, usize)) -> f64 {
    let (q, k) = (q.slice(s![b, h, i, ..]), k.slice(s![b, g, j, ..]));
    q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum()
}

fn near(got: &Array2<f32>, expected: &Array2<f64>, what: &str) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    let error = got.iter().zip(expected).map(|(got, want)| (f64::from(*got) - want).abs()).fold(0.0, f64::max);
    assert!(error < 2e-6, "{what} differs by {error:.1e}");
}

/// Every head of a trace, by every question that can be asked of it.
fn check(name: &str, layer: &LayerTrace, expected: impl Fn(usize, usize) -> Array2<f64>) {
    for (b, h) in (0..layer.batch()).flat_map(|b| (0..layer.heads()).map(move |h| (b, h))) {
        let (expected, what) = (expected(b, h), format!("{name}, sequence {b}, head {h}"));
        near(&layer.weights(b, h).unwrap(), &expected, &what);
        let tile = layer.tile(b, h, 2..5, 3..9).unwrap();
        near(&tile, &expected.slice(s![2..5, 3..9]).to_owned(), &format!("tile of {what}"));
        let (t, s) = (layer.queries(), layer.keys());
        let map = layer.map((b, h), 0..t, 0..s, (1, 1), Pool::Sum).unwrap();
        assert!((f64::from(map[[0, 0]]) - expected.sum()).abs() < 1e-5, "map of {what}");
        let cell = layer.cell(b, h, t - 1, 2).unwrap();
        assert!((cell.weight - expected[[t - 1, 2]]).abs() < 2e-6, "cell of {what}: {cell:?}");
    }
}

#[test]
fn softmax_attention_with_all_options() {
    let ((q, k, v), (_, h, g, t, s, d, _)) = (inputs(), SIZES);
    let group = h / g;
    let slopes = [0.5f32, 0.25, 0.125, 0.0625];
    // The last query stands at the last key.
    let at = |i: usize| i + s - t;
    let plain = |b: usize, h: usize, i: usize, j: usize| dot(&q, &k, b, (h, h / group), (i, j)) / (d as f64).sqrt();
    let attention = Attention::new();
    let lse = attention.forward(&q, &k, &v).unwrap().lse;
    let layer = LayerTrace::builder(attention, &q, &k).lse(lse).build().unwrap();
    check("plain", &layer, |b, h| softmax(t, s, |i, j| Some(plain(b, h, i, j))));

    let attention = Attention::new().scale(0.3).mask(Mask::causal()).bias(Bias::alibi_with(slopes)).softcap(4.0);
    // Without lse: it is computed.
    let layer = LayerTrace::builder(attention, q.view(), k.view()).build().unwrap();
    check("causal", &layer, |b, h| {
        softmax(t, s, |i, j| {
            let score = 0.3 * dot(&q, &k, b, (h, h / group), (i, j));
            let score = 4.0 * (score / 4.0).tanh() - f64::from(slopes[h]) * at(i).abs_diff(j) as f64;
            Some(score).filter(|_| j <= at(i))
        })
    });

    let attention = Attention::new().mask(Mask::window(2, 1).and(Mask::padding([11, 6])));
    let layer = LayerTrace::builder(attention, q.clone(), k.clone()).values(&v).build().unwrap();
    check("window and padding", &layer, |b, h| {
        softmax(t, s, |i, j| Some(plain(b, h, i, j)).filter(|_| j + 2 >= at(i) && j <= at(i) + 1 && j < [11, 6][b]))
    });
}

#[test]
fn the_rest_of_the_family() {
    let ((q, k, _), (b, h, g, t, s, d, _)) = (inputs(), SIZES);
    let group = h / g;
    let elu = |x: f32| if x > 0.0 { f64::from(x) + 1.0 } else { f64::from(x).exp() };
    let layer = LayerTrace::builder(LinearAttention::new(FeatureMap::Elu), &q, &k).build().unwrap();
    check("linear", &layer, |b, h| {
        let (q, k) = (q.mapv(elu), k.mapv(elu));
        softmax(t, s, |i, j| Some(q.slice(s![b, h, i, ..]).dot(&k.slice(s![b, h / group, j, ..])).ln()))
    });
    let learned = Random::new(3).normal((h, d), 1.0);
    let keys = Array4::from_shape_fn((b, h, s, d), |(b, h, j, c)| k[[b, h / group, j, c]]);
    let layer = LayerTrace::builder(AdditiveAttention::new(learned.clone()).unwrap(), &q, &keys).build().unwrap();
    check("additive", &layer, |b, h| {
        softmax(t, s, |i, j| {
            let tanh = |c: usize| f64::from(q[[b, h, i, c]] + keys[[b, h, j, c]]).tanh();
            Some((0..d).map(|c| f64::from(learned[[h, c]]) * tanh(c)).sum())
        })
    });
}

#[test]
fn values_and_output_show_what_reaches_it() {
    let ((q, k, v), (_, h, g, t, s, d, dv)) = (inputs(), SIZES);
    let width = 9;
    let output = Random::new(5).normal((width, h * dv), 0.7);
    let builder = LayerTrace::builder(Attention::new(), &q, &k);
    let layer = builder.clone().values(&v).output(output.clone()).build().unwrap();
    for (b, head) in [(0, 0), (1, 3)] {
        let group = head / (h / g);
        let weights = softmax(t, s, |i, j| Some(dot(&q, &k, b, (head, group), (i, j)) / (d as f64).sqrt()));
        // vⱼ·W_oʰ, [S, D].
        let through = Array2::from_shape_fn((s, width), |(j, out)| {
            (0..dv).map(|c| f64::from(v[[b, group, j, c]]) * f64::from(output[[out, head * dv + c]])).sum::<f64>()
        });
        let transformed = layer.transformed(b, head).unwrap();
        assert!(transformed.iter().zip(&through).all(|(got, want)| (f64::from(*got) - want).abs() < 1e-5));
        let norms = norms::of_head(&layer, b, head).unwrap();
        for (i, j) in [(0, 0), (3, 10), (6, 4)] {
            let row = through.row(j);
            let norm = weights[[i, j]] * row.dot(&row).sqrt();
            assert!((f64::from(norms[[i, j]]) - norm).abs() < 1e-5, "norm at {i}, {j}");
            let share = layer.cell(b, head, i, j).unwrap().share.unwrap();
            assert!(share.iter().zip(row).all(|(got, want)| (f64::from(*got) - weights[[i, j]] * want).abs() < 1e-5));
        }
    }
    let bare = builder.build().unwrap();
    assert!(bare.v().is_none() && bare.output().is_none());
    assert!(bare.cell(0, 0, 0, 0).unwrap().share.is_none());
    let error = bare.transformed(0, 0).unwrap_err();
    assert!(matches!(error, Error::NotTraced { part: "values" }), "{error}");
    assert!(error.to_string().contains("LayerTraceBuilder::values"), "{error}");
    assert!(norms::of_layer(&bare, 0).is_err());
}

#[test]
fn a_trace_of_several_layers_is_asked_as_that_of_a_run() {
    let (q, k, _) = inputs();
    let layer = LayerTrace::builder(Attention::new(), &q, &k).build().unwrap();
    let site = |kind, layer| Site { kind, layer };
    let mut trace = Trace::from_iter([(site(Kind::Cross, 3), layer.clone()), (site(Kind::Encoder, 0), layer.clone())]);
    trace.insert(site(Kind::Encoder, 1), layer);
    assert_eq!(trace.kinds(), [Kind::Encoder, Kind::Cross]);
    assert_eq!(trace.of_kind(Kind::Encoder).map(|(number, _)| number).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(trace.layer(Kind::Cross, 3).unwrap().weights(1, 2).unwrap().dim(), (7, 11));
    assert!(matches!(trace.layer(Kind::Decoder, 0), Err(Error::NotCaptured { .. })));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (q, k, v) = inputs();
    let refused = |layer: foveal_models::Result<LayerTrace>, said: &str| {
        let error = layer.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    };
    let builder = |q: &Array4<f32>, k: &Array4<f32>| LayerTrace::builder(Attention::new(), q, k);
    refused(builder(&q, &Array4::zeros((2, 2, 11, 5))).build(), "the keys");
    refused(builder(&q, &Array4::zeros((1, 2, 11, 6))).build(), "the keys");
    refused(builder(&q, &Array4::zeros((2, 3, 11, 6))).build(), "heads");
    refused(builder(&q, &k).lse(Array3::zeros((2, 4, 11))).build(), "the log-sum-exp");
    refused(builder(&q, &k).values(Array4::<f32>::zeros((2, 2, 10, 5))).build(), "the values");
    refused(builder(&q, &k).values(&v).output(Array2::<f32>::zeros((9, 24))).build(), "W_o");
    let mask = Mask::keys(Array2::from_elem((2, 5), true));
    let lse = Array3::zeros((2, 4, 7));
    assert!(LayerTrace::builder(Attention::new().mask(mask), &q, &k).lse(lse).build().is_err());
    // Nothing to attend with is no error.
    let none = builder(&Array4::zeros((0, 4, 7, 6)), &Array4::zeros((0, 2, 11, 6))).build().unwrap();
    assert_eq!((none.batch(), none.heads()), (0, 4));
}
