//! The options of attention, one after the other, each in a line or two.
//!
//! `cargo run --example options`

use foveal::{AdditiveAttention, Attention, Bias, Error, LuongAttention, Mask, Pattern, Rope, add_positional_encoding};
use ndarray::{Array2, Array3, Array4};

/// Two heads of `tokens` tokens, four dimensions.
fn wave(tokens: usize, seed: f32) -> Array4<f32> {
    Array4::from_shape_fn((1, 2, tokens, 4), |(_, h, i, d)| (seed + (h + 1) as f32 * (3 * i + d) as f32).sin())
}

fn main() -> Result<(), Error> {
    // The scale.
    let attention = Attention::new(); // 1/√d
    let unscaled = Attention::new().scale(1.0); // softmax of q·k as it is
    let x = wave(5, 0.0);
    let largest = |weights: Array4<f32>| weights.iter().copied().fold(0.0, f32::max);
    println!("largest weight {:.3}", largest(attention.weights(&x, &x)?));
    println!("… without the scale {:.3}", largest(unscaled.weights(&x, &x)?));

    // Self-attention and cross-attention.
    let (x, y) = (wave(5, 1.0), wave(3, 2.0));
    let own = attention.weights(&y, &y)?; // three words on themselves
    let cross = attention.weights(&y, &x)?; // three words on five others
    println!("self {:?}, cross {:?}", own.dim(), cross.dim());

    // Positions.
    let mut summed = x.clone();
    add_positional_encoding(&mut summed, 0)?; // sinusoidal, added to the input
    let mut turned = x.clone();
    Rope::new(4)?.rotate(&mut turned, 0)?; // RoPE: q and k are turned by their positions
    let near = Attention::new().bias(Bias::alibi(2)?); // ALiBi: a penalty on distance
    for (what, weights) in [
        ("sines", attention.weights(&summed, &summed)?),
        ("RoPE", attention.weights(&turned, &turned)?),
        ("ALiBi", near.weights(&x, &x)?),
    ] {
        println!("{what}: query 4 on key 0 {:.3}", weights[[0, 0, 4, 0]]);
    }

    // Attention before the Transformer.
    let additive = AdditiveAttention::new(Array2::ones((2, 4)))?; // Bahdanau: v·tanh(q + k)
    let luong = LuongAttention::general(Array3::from_elem((1, 4, 4), 0.1))?; // Luong: q·W·k
    println!("additive {:.3}", additive.weights(&x, &x)?[[0, 0, 0, 0]]);
    println!("multiplicative {:.3}", luong.weights(&x, &x)?[[0, 0, 0, 0]]);

    // Windows of an image: 8 × 8 patches in windows of 4 × 4, shifted by half a window.
    let patches = wave(64, 3.0);
    let swin = Attention::new().mask(Mask::pattern(Pattern::swin((8, 8), (4, 4), (2, 2))?));
    let seen = swin.weights(&patches, &patches)?.slice(ndarray::s![0, 0, 20, ..]).iter().filter(|w| **w > 0.0).count();
    println!("a patch sees {seen} of 64");
    Ok(())
}
