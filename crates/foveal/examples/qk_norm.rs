//! QK-norm (Henry 2020): queries and keys have length 1 and a learned scale g takes the place of 1/√d, so that no score is
//! larger than g, whatever the layers before have learned.
//!
//! q̂ = q/|q|, k̂ = k/|k|, s = g·q̂·k̂
//!
//! Normalisation stands before attention, and its gradient after attention's: dq = (dq̂ − q̂·(q̂·dq̂)) / |q|, and likewise for k.
//! Since dq̂ = g·Σ ds·k̂, what g learns is dg = Σ q̂·dq̂ / g.
//!
//! `cargo run --example qk_norm`

use foveal::{Attention, Error, Mask, reference};
use ndarray::{Array4, Axis, Zip};

/// x / |x| of every row, and |x|.
fn normalised(x: &Array4<f32>) -> (Array4<f32>, Array4<f32>) {
    let lengths = x.mapv(|x| x * x).sum_axis(Axis(3)).mapv(f32::sqrt).insert_axis(Axis(3));
    (x / &lengths, lengths)
}

/// The gradient in x from that in x / |x|.
fn normalised_backward(unit: &Array4<f32>, lengths: &Array4<f32>, dunit: &Array4<f32>) -> Array4<f32> {
    let along = (unit * dunit).sum_axis(Axis(3)).insert_axis(Axis(3));
    (dunit - unit * &along) / lengths
}

/// ⟨out, dout⟩ in f64, from the definition.
fn exact_loss(mask: &Mask, q: &Array4<f64>, k: &Array4<f64>, v: &Array4<f64>, g: f64, dout: &Array4<f64>) -> f64 {
    let unit = |x: &Array4<f64>| x / &x.mapv(|x| x * x).sum_axis(Axis(3)).mapv(f64::sqrt).insert_axis(Axis(3));
    // g goes with the queries: the scale of an `Attention` is an f32.
    let attention = Attention::new().mask(mask.clone()).scale(1.0);
    let out = reference::forward(&attention, &(unit(q) * g), &unit(k), v).map(|fwd| fwd.out);
    out.map_or(f64::NAN, |out| (out * dout).sum())
}

fn main() -> Result<(), Error> {
    let (tokens, dim, g) = (48, 16, 10.0);
    let wave = |phase: f32, size: f32| {
        Array4::from_shape_fn((1, 2, tokens, dim), |(_, h, t, d)| {
            size * ((7 * h + 3 * t * (d + 1)) as f32 + phase).sin()
        })
    };
    // Queries of any size: only their direction counts.
    let (q, k, v, dout) = (wave(0.5, 50.0), wave(1.0, 0.02), wave(2.0, 1.0), wave(3.0, 1.0));
    let mask = Mask::causal();
    let attention = Attention::new().mask(mask.clone()).scale(g);

    let ((q_unit, q_lengths), (k_unit, k_lengths)) = (normalised(&q), normalised(&k));
    let fwd = attention.forward(&q_unit, &k_unit, &v)?;
    let grads = attention.backward(&q_unit, &k_unit, &v, &fwd, &dout)?;
    let dq = normalised_backward(&q_unit, &q_lengths, &grads.dq);
    let dk = normalised_backward(&k_unit, &k_lengths, &grads.dk);
    let dg = (&q_unit * &grads.dq).sum() / g;

    let loss = (&fwd.out * &dout).mapv(f64::from).sum();
    let [q64, k64, v64, dout64] = [&q, &k, &v, &dout].map(|x| x.mapv(f64::from));
    let exact = |q: &Array4<f64>, k: &Array4<f64>, g: f64| exact_loss(&mask, q, k, &v64, g, &dout64);
    println!("loss {loss:.6}, in f64 {:.6}", exact(&q64, &k64, g.into()));

    // Slopes along a direction in which all queries, or all keys, move at once.
    let slope = |f: &dyn Fn(f64) -> f64| (f(1e-5) - f(-1e-5)) / 2e-5;
    let direction = wave(4.0, 1.0).mapv(f64::from);
    let along = |gradient: &Array4<f32>| Zip::from(gradient).and(&direction).fold(0.0, |s, g, d| s + f64::from(*g) * d);
    let checks = [
        ("dq", along(&dq), slope(&|e| exact(&(&q64 + &direction * e), &k64, g.into()))),
        ("dk", along(&dk), slope(&|e| exact(&q64, &(&k64 + &direction * (1e-3 * e)), g.into())) * 1e3),
        ("dg", dg.into(), slope(&|e| exact(&q64, &k64, f64::from(g) + e))),
    ];
    for (name, got, want) in checks {
        let error = (got - want).abs() / want.abs();
        println!(
            "{name} along a direction: {got:.6}, by finite differences in f64 {want:.6}, relative error {error:.1e}"
        );
        assert!(error < 1e-3, "{name} is wrong");
    }
    let largest = fwd.lse.iter().copied().fold(f64::MIN, f64::max);
    println!("the largest log-sum-exp is {largest:.3}, and no score is larger than g = {g}");
    Ok(())
}
