//! Differential attention (Ye 2024): two softmax maps on the same values, of which the second is taken off the first, so that
//! what both see for no reason cancels out.
//!
//! out = (softmax(Q₁K₁ᵀ/√d) − λ·softmax(Q₂K₂ᵀ/√d))·V, with λ = exp(λq₁·λk₁) − exp(λq₂·λk₂) + λ₀
//!
//! Attention is linear in its weights, so this is out₁ − λ·out₂: two calls, neither of which stores a map. Backward, dout goes to
//! the first and −λ·dout to the second, dV is the sum of both, and dλ = −Σ dout·out₂.
//!
//! `cargo run --example differential`

use foveal::{Attention, Error, Mask, reference};
use ndarray::{Array1, Array4, ArrayView2, Axis, s};

fn main() -> Result<(), Error> {
    let (tokens, dim, layer) = (64, 16, 3);
    let wave = |phase: f32, dim: usize| {
        Array4::from_shape_fn((1, 4, tokens, dim), |(_, h, t, d)| ((5 * h + 3 * t * (d + 1)) as f32 + phase).sin())
    };
    let ([q1, q2], [k1, k2]) = ([0.0, 1.0].map(|phase| wave(phase, dim)), [2.0, 3.0].map(|phase| wave(phase, dim)));
    // Values are as wide as both halves of a query together.
    let (v, dout) = (wave(4.0, 2 * dim), wave(5.0, 2 * dim));
    let learned = |phase: f32| Array1::from_shape_fn(dim, |d| 0.1 * (d as f32 + phase).cos());
    let first = 0.8 - 0.6 * (-0.3 * (layer - 1) as f32).exp();
    let lambda = learned(0.0).dot(&learned(1.0)).exp() - learned(2.0).dot(&learned(5.0)).exp() + first;

    let attention = Attention::new().mask(Mask::causal());
    let (one, two) = (attention.forward(&q1, &k1, &v)?, attention.forward(&q2, &k2, &v)?);
    let out = &one.out - &(&two.out * lambda);
    let grads1 = attention.backward(&q1, &k1, &v, &one, &dout)?;
    let grads2 = attention.backward(&q2, &k2, &v, &two, &(&dout * -lambda))?;
    let dv = &grads1.dv + &grads2.dv;
    let dlambda = -(&dout * &two.out).sum();

    // The same from the definition, in f64: both maps, their difference, and its product with V.
    let [q1, k1, q2, k2, v, dout] = [&q1, &k1, &q2, &k2, &v, &dout].map(|x| x.mapv(f64::from));
    let weights = |q: &Array4<f64>, k: &Array4<f64>| reference::forward(&attention, q, k, &v).map(|fwd| fwd.weights);
    let (w1, w2) = (weights(&q1, &k1)?, weights(&q2, &k2)?);
    let w = |lambda: f64| &w1 - &(&w2 * lambda);
    let times_v = |w: &Array4<f64>, v: &Array4<f64>| {
        let mut out = Array4::zeros(v.raw_dim());
        for (h, mut out) in out.index_axis_mut(Axis(0), 0).outer_iter_mut().enumerate() {
            let (w, v): (ArrayView2<f64>, ArrayView2<f64>) = (w.slice(s![0, h, .., ..]), v.slice(s![0, h, .., ..]));
            out.assign(&w.dot(&v));
        }
        out
    };
    let difference = |got: &Array4<f32>, want: &Array4<f64>| {
        got.iter().zip(want).map(|(got, want)| (f64::from(*got) - want).abs()).fold(0.0, f64::max)
    };
    let loss = |lambda: f64| (times_v(&w(lambda), &v) * &dout).sum();
    let lambda64 = f64::from(lambda);
    let checks = [
        ("out", difference(&out, &times_v(&w(lambda64), &v))),
        ("dv", difference(&dv, &times_v(&w(lambda64).permuted_axes([0, 1, 3, 2]), &dout))),
        ("dλ", (f64::from(dlambda) - (loss(1.0) - loss(0.0))).abs() / loss(1.0).abs()),
        ("dq₁", difference(&grads1.dq, &reference::backward(&attention, &q1, &k1, &v, &dout)?.dq)),
        ("dk₂", difference(&grads2.dk, &(reference::backward(&attention, &q2, &k2, &v, &dout)?.dk * -lambda64))),
    ];
    println!("λ = {lambda:.4} in layer {layer}");
    for (name, error) in checks {
        println!("{name}: at most {error:.1e} off the definition in f64");
        assert!(error < 1e-4, "{name} is wrong");
    }
    let most = |w: &Array4<f64>| w.slice(s![0, 0, tokens - 1, ..]).iter().fold(0.0, |most: f64, w| most.max(*w));
    println!(
        "the largest weight of the last token: {:.4} in the first map, {:.4} in the difference",
        most(&w1),
        most(&w(lambda64))
    );
    Ok(())
}
