//! Backward passes against central differences of the formulas, written out again in f64.
//!
//! Every case names its inputs (activations and parameters alike), a function from them to the output, and the layer's own
//! gradients of Σ y·dy. The differences have an error of about 1e-9, the f32 gradients one of about 1e-6.

use foveal::{Attention, Mask};
use foveal_models::layer::{
    Activation, CrossEntropy, Embedding, GatedMlp, Guide, LayerNorm, Linear, Mlp, MultiHeadAttention, Parameters,
    Random, RmsNorm,
};
use ndarray::{Array1, Array2, ArrayD, Axis, Ix1, Ix2, concatenate, s};

type Inputs = Vec<(String, ArrayD<f64>)>;

/// A row's worth of random numbers.
fn random(seed: u64, shape: (usize, usize)) -> Array2<f32> {
    Random::new(seed).normal(shape, 1.0)
}

/// x and the parameters of a layer, as f64.
fn inputs(x: &[(&str, &Array2<f32>)], layer: &impl Parameters) -> Inputs {
    let mut all: Inputs = x.iter().map(|(name, x)| ((*name).to_owned(), x.mapv(f64::from).into_dyn())).collect();
    layer.visit("", &mut |name, parameter| all.push((name.to_owned(), parameter.mapv(f64::from))));
    all
}

/// The same for gradients.
fn gradients(dx: &[(&str, &Array2<f32>)], grad: &impl Parameters) -> Inputs {
    inputs(dx, grad)
}

/// Fills all parameters with random numbers, biases and norms too.
fn randomise<P: Parameters>(mut layer: P) -> P {
    let mut random = Random::new(9);
    layer.visit_mut("", &mut |_, mut parameter| {
        let shape = parameter.raw_dim();
        parameter.assign(&random.normal(shape, 0.5));
    });
    layer
}

/// dΣ(y·dy)/d(every input) by central differences, against `got`.
fn check(name: &str, mut at: Inputs, dy: &Array2<f32>, y: impl Fn(&Inputs) -> Array2<f64>, got: &Inputs) {
    const STEP: f64 = 1e-5;
    assert_eq!(at.len(), got.len());
    let dy = dy.mapv(f64::from);
    for part in 0..at.len() {
        assert_eq!(at[part].0, got[part].0, "{name}");
        for i in 0..at[part].1.len() {
            let value = |at: &mut Inputs, shift: f64| {
                let x = at[part].1.as_slice_memory_order_mut().expect("contiguous");
                let old = x[i];
                x[i] += shift;
                let sum = (y(at) * &dy).sum();
                at[part].1.as_slice_memory_order_mut().expect("contiguous")[i] = old;
                sum
            };
            let slope = (value(&mut at, STEP) - value(&mut at, -STEP)) / (2.0 * STEP);
            let ours = got[part].1.as_slice_memory_order().expect("contiguous")[i];
            let error = (ours - slope).abs();
            assert!(error <= 2e-5 * slope.abs().max(1.0), "{name}: d{}[{i}] is {ours}, not {slope}", at[part].0);
        }
    }
}

fn find(at: &Inputs, name: &str) -> Option<ArrayD<f64>> {
    at.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

fn matrix(at: &Inputs, name: &str) -> Array2<f64> {
    find(at, name).unwrap_or_else(|| panic!("no {name}")).into_dimensionality::<Ix2>().expect("a matrix")
}

fn vector(at: &Inputs, name: &str) -> Array1<f64> {
    find(at, name).unwrap_or_else(|| panic!("no {name}")).into_dimensionality::<Ix1>().expect("a vector")
}

/// x·Wᵀ + b of the layer called `name`.
fn linear(at: &Inputs, name: &str, x: &Array2<f64>) -> Array2<f64> {
    let key = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    let y = x.dot(&matrix(at, &key("weight")).t());
    match find(at, &key("bias")) {
        Some(bias) => y + bias.into_dimensionality::<Ix1>().expect("a vector"),
        None => y,
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The error function by its series, exact to 1e-15 for the arguments here.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let sum = (1..200).fold(x, |sum, n| {
        term *= -x * x / f64::from(n);
        sum + term / f64::from(2 * n + 1)
    });
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn activation(kind: Activation, x: f64) -> f64 {
    match kind {
        Activation::Gelu => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        Activation::Silu => x * sigmoid(x),
        Activation::Relu => x.max(0.0),
    }
}

const ALL: [Activation; 4] = [Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Relu];

#[test]
fn of_linear() {
    let layer = randomise(Linear::new(5, 4, &mut Random::new(1)));
    let (x, dy, mut grad) = (random(2, (6, 5)), random(3, (6, 4)), layer.zeros_like());
    let dx = layer.backward(&x, &dy, &mut grad).unwrap();
    let y = |at: &Inputs| linear(at, "", &matrix(at, "x"));
    check("linear", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));
}

#[test]
fn of_norms() {
    let (x, dy) = (random(2, (6, 7)) * 2.0 + 0.5, random(3, (6, 7)));
    let layer = randomise(LayerNorm::new(7, 1e-5));
    let mut grad = layer.zeros_like();
    let dx = layer.backward(&layer.forward(&x.to_shared()).unwrap().1, &dy, &mut grad).unwrap();
    let y = |at: &Inputs| {
        let x = matrix(at, "x");
        let x = &x - x.mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
        let deviation = x.mapv(|x| x * x).mean_axis(Axis(1)).unwrap().mapv(|v| (v + 1e-5).sqrt());
        x / deviation.insert_axis(Axis(1)) * vector(at, "weight") + vector(at, "bias")
    };
    check("layer norm", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));

    let layer = randomise(RmsNorm::new(7, 1e-6));
    let mut grad = layer.zeros_like();
    let dx = layer.backward(&layer.forward(&x.to_shared()).unwrap().1, &dy, &mut grad).unwrap();
    let y = |at: &Inputs| {
        let x = matrix(at, "x");
        let root = x.mapv(|x| x * x).mean_axis(Axis(1)).unwrap().mapv(|v| (v + 1e-6).sqrt());
        x / root.insert_axis(Axis(1)) * vector(at, "weight")
    };
    check("RMS norm", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));
}

#[test]
fn of_embeddings() {
    let layer = randomise(Embedding::new(5, 3, &mut Random::new(1)));
    let (tokens, dy, mut grad) = ([4, 0, 4, 2], random(3, (4, 3)), layer.zeros_like());
    layer.backward(&tokens, &dy, &mut grad).unwrap();
    let y = |at: &Inputs| matrix(at, "weight").select(Axis(0), &tokens.map(|t| t as usize));
    check("embedding", inputs(&[], &layer), &dy, y, &gradients(&[], &grad));

    let mut grad = layer.zeros_like();
    layer.add_positions_backward(&dy, 2, 1, &mut grad).unwrap();
    let y = |at: &Inputs| matrix(at, "weight").select(Axis(0), &[1, 2, 1, 2]);
    check("positions", inputs(&[], &layer), &dy, y, &gradients(&[], &grad));

    let (x, dy, mut grad) = (random(2, (4, 3)), random(3, (4, 5)), layer.zeros_like());
    let dx = layer.logits_backward(&x, &dy, &mut grad).unwrap();
    let y = |at: &Inputs| matrix(at, "x").dot(&matrix(at, "weight").t());
    check("logits", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));
}

#[test]
fn of_activations() {
    let none: Option<Linear> = None;
    for kind in ALL {
        let (x, mut dx) = (random(2, (10, 20)) * 2.0, random(3, (10, 20)));
        let dy = dx.clone();
        kind.forward(x.clone()).1.apply(&mut dx).unwrap();
        let y = |at: &Inputs| matrix(at, "x").mapv(|x| activation(kind, x));
        check(&format!("{kind:?}"), inputs(&[("x", &x)], &none), &dy, y, &gradients(&[("x", &dx)], &none));
    }
}

#[test]
fn of_mlps() {
    for kind in ALL {
        let layer = randomise(Mlp::new(5, 8, kind, &mut Random::new(1)));
        let (x, dy, mut grad) = (random(2, (6, 5)), random(3, (6, 5)), layer.zeros_like());
        let dx = layer.backward(&layer.forward(&x.to_shared()).unwrap().1, &dy, &mut grad).unwrap();
        let y = |at: &Inputs| {
            let hidden = linear(at, "up_proj", &matrix(at, "x"));
            linear(at, "down_proj", &hidden.mapv(|x| activation(kind, x)))
        };
        check("MLP", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));

        let layer = randomise(GatedMlp::new(5, 8, kind, &mut Random::new(1)));
        let mut grad = layer.zeros_like();
        let dx = layer.backward(&layer.forward(&x.to_shared()).unwrap().1, &dy, &mut grad).unwrap();
        let y = |at: &Inputs| {
            let x = matrix(at, "x");
            let gate = linear(at, "gate_proj", &x).mapv(|x| activation(kind, x));
            linear(at, "down_proj", &(gate * linear(at, "up_proj", &x)))
        };
        check("gated MLP", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));
    }
}

#[test]
fn of_cross_entropy() {
    let none: Option<Linear> = None;
    let loss = CrossEntropy { label_smoothing: 0.2, ignore: Some(3), of: None };
    let (x, targets) = (random(2, (5, 7)) * 3.0, [6u32, 3, 0, 3, 1]);
    let mut dx = x.clone();
    loss.forward_backward(&mut dx, &targets).unwrap();
    let y = |at: &Inputs| {
        let x = matrix(at, "x");
        let rows = targets.iter().zip(x.outer_iter()).filter(|(t, _)| **t != 3);
        let losses = rows.map(|(target, x)| {
            let lse = x.mapv(f64::exp).sum().ln();
            lse - 0.8 * x[*target as usize] - 0.2 * x.mean().unwrap()
        });
        Array2::from_elem((1, 1), losses.sum::<f64>() / 3.0)
    };
    let one = Array2::ones((1, 1));
    check("cross-entropy", inputs(&[("x", &x)], &none), &one, y, &gradients(&[("x", &dx)], &none));
}

/// The heads of one sequence, by the textbook: q [T, H·Dh], k and v [S, G·Dh].
fn heads(q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, dim: usize, causal: bool) -> Array2<f64> {
    let (h, g) = (q.ncols() / dim, k.ncols() / dim);
    let outputs = (0..h).map(|head| {
        let kv = head / (h / g) * dim;
        let (q, k) = (q.slice(s![.., head * dim..(head + 1) * dim]), k.slice(s![.., kv..kv + dim]));
        let mut w = (q.dot(&k.t()) / (dim as f64).sqrt()).mapv(f64::exp);
        if causal {
            w.indexed_iter_mut().filter(|((i, j), _)| j > i).for_each(|(_, w)| *w = 0.0);
        }
        let sums = w.sum_axis(Axis(1)).insert_axis(Axis(1));
        (w / sums).dot(&v.slice(s![.., kv..kv + dim]))
    });
    let outputs: Vec<_> = outputs.collect();
    concatenate(Axis(1), &outputs.iter().map(|o| o.view()).collect::<Vec<_>>()).unwrap()
}

/// Position p turned by p·10000^(−2m/dim) in the planes (m, m + dim/2) of every head.
fn turned(x: &Array2<f64>, dim: usize) -> Array2<f64> {
    let mut y = x.clone();
    for ((t, j), y) in y.indexed_iter_mut() {
        let (m, first) = (j % dim % (dim / 2), j % dim < dim / 2);
        let angle = t as f64 * 1e4f64.powf(-2.0 * m as f64 / dim as f64);
        let other = if first { -x[[t, j + dim / 2]] } else { x[[t, j - dim / 2]] };
        *y = x[[t, j]] * angle.cos() + other * angle.sin();
    }
    y
}

#[test]
fn of_self_attention() {
    let attention = Attention::new().mask(Mask::causal());
    let separate = MultiHeadAttention::new(8, 2, &mut Random::new(1)).unwrap();
    let grouped = MultiHeadAttention::grouped(8, 4, 2, &mut Random::new(1)).unwrap();
    let fused = MultiHeadAttention::fused(8, 2, &mut Random::new(1)).unwrap();
    for layer in [separate, grouped, fused].map(randomise) {
        let (x, dy, mut grad) = (random(2, (2 * 3, 8)), random(3, (2 * 3, 8)), layer.zeros_like());
        let saved = layer.forward(&x.to_shared(), None, 2, &attention).unwrap().1;
        let dx = layer.backward(&saved, &dy, &mut grad).unwrap().dx;
        let (dim, width) = (layer.head_dim(), layer.heads() * layer.head_dim());
        let y = |at: &Inputs| {
            let outputs: Vec<_> = (0..2)
                .map(|b| {
                    let x = matrix(at, "x").slice(s![3 * b..3 * b + 3, ..]).to_owned();
                    let (mut q, mut k, v) = if find(at, "qkv_proj.weight").is_some() {
                        let all = linear(at, "qkv_proj", &x);
                        let part = |i: usize| all.slice(s![.., i * width..(i + 1) * width]).to_owned();
                        (part(0), part(1), part(2))
                    } else {
                        (linear(at, "q_proj", &x), linear(at, "k_proj", &x), linear(at, "v_proj", &x))
                    };
                    if layer.rope.is_some() {
                        (q, k) = (turned(&q, dim), turned(&k, dim));
                    }
                    linear(at, "o_proj", &heads(&q, &k, &v, dim, true))
                })
                .collect();
            concatenate(Axis(0), &[outputs[0].view(), outputs[1].view()]).unwrap()
        };
        check("self-attention", inputs(&[("x", &x)], &layer), &dy, y, &gradients(&[("x", &dx)], &grad));
    }
}

#[test]
fn of_cross_attention() {
    let layer = randomise(MultiHeadAttention::new(8, 2, &mut Random::new(1)).unwrap());
    let (x, memory, dy) = (random(2, (3, 8)), random(4, (5, 8)), random(3, (3, 8)));
    let mut grad = layer.zeros_like();
    let saved = layer.forward(&x.to_shared(), Some(&memory.to_shared()), 1, &Attention::new()).unwrap().1;
    let got = layer.backward(&saved, &dy, &mut grad).unwrap();
    let y = |at: &Inputs| {
        let (x, memory) = (matrix(at, "x"), matrix(at, "memory"));
        let (q, k, v) = (linear(at, "q_proj", &x), linear(at, "k_proj", &memory), linear(at, "v_proj", &memory));
        linear(at, "o_proj", &heads(&q, &k, &v, 4, false))
    };
    let at = inputs(&[("x", &x), ("memory", &memory)], &layer);
    let got = gradients(&[("x", &got.dx), ("memory", &got.dmemory.unwrap())], &grad);
    check("cross-attention", at, &dy, y, &got);
}

/// The loss of a guided head beside that of the output: Σ dy·y + factor·(−Σ a ln w), whose gradients come together.
#[test]
fn of_a_guided_head() {
    let (dim, heads_of) = (4, |q: &Array2<f64>, k: &Array2<f64>, head: usize| {
        let part = |x: &Array2<f64>| x.slice(s![.., head * 4..head * 4 + 4]).to_owned();
        let w = (part(q).dot(&part(k).t()) / 2.0).mapv(f64::exp);
        let sums = w.sum_axis(Axis(1)).insert_axis(Axis(1));
        w / sums
    });
    let layer = randomise(MultiHeadAttention::new(8, 2, &mut Random::new(1)).unwrap());
    let (x, memory, dy) = (random(2, (3, 8)), random(4, (5, 8)), random(3, (3, 8)));
    // The second query may look anywhere.
    let gold = ndarray::arr3(&[[[0.5, 0.0, 0.5, 0.0, 0.0], [0.0; 5], [0.0, 1.0, 0.0, 0.0, 0.0]]]);
    let guide = Guide { head: 1, gold: gold.view(), factor: 0.7 };
    let mut grad = layer.zeros_like();
    let saved = layer.forward(&x.to_shared(), Some(&memory.to_shared()), 1, &Attention::new()).unwrap().1;
    let got = layer.backward_with(&saved, &dy, Some(guide.into()), &mut grad).unwrap();
    // A row of its own for the loss of the guide, whose dy is 1.
    let y = |at: &Inputs| {
        let (x, memory) = (matrix(at, "x"), matrix(at, "memory"));
        let (q, k, v) = (linear(at, "q_proj", &x), linear(at, "k_proj", &memory), linear(at, "v_proj", &memory));
        let w = heads_of(&q, &k, 1);
        let loss: f64 = w.iter().zip(&gold).map(|(w, gold)| -0.7 * f64::from(*gold) * w.ln()).sum();
        let y = linear(at, "o_proj", &heads(&q, &k, &v, dim, false));
        concatenate(Axis(0), &[y.view(), Array2::from_elem((1, 8), loss / 8.0).view()]).unwrap()
    };
    let at = inputs(&[("x", &x), ("memory", &memory)], &layer);
    let expected: f64 = y(&at).row(3).sum();
    assert!((f64::from(guide.loss(&saved).unwrap()) - expected).abs() < 1e-4);
    let dy = concatenate(Axis(0), &[dy.view(), Array2::ones((1, 8)).view()]).unwrap();
    let got = gradients(&[("x", &got.dx), ("memory", &got.dmemory.unwrap())], &grad);
    check("a guided head", at, &dy, y, &got);
}
