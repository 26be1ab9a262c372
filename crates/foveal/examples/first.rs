//! The first call: causal attention over eight tokens, and where the last of them looks.
//!
//! `cargo run --example first`

use foveal::{Attention, Mask};
use ndarray::{Array4, s};

fn main() -> Result<(), foveal::Error> {
    // One sequence, two heads, eight tokens, four dimensions: token i points in direction i mod 4.
    let tokens =
        Array4::from_shape_fn((1, 2, 8, 4), |(_, h, i, d)| if i % 4 == d { 2.0 + 2.0 * h as f32 } else { 0.0 });

    let attention = Attention::new().mask(Mask::causal());
    let fwd = attention.forward(&tokens, &tokens, &tokens)?;
    println!("output {:?}, log-sum-exp {:?}", fwd.out.dim(), fwd.lse.dim());

    let weights = attention.weights(&tokens, &tokens)?;
    for head in 0..2 {
        println!("head {head}: token 7 looks at 0 to 7 with {:.2}", weights.slice(s![0, head, 7, ..]));
    }
    Ok(())
}
