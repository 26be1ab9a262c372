//! Attention by hand, step by step, on three tokens: q·kᵀ, divided by √d, softmax, times v.
//!
//! `cargo run --example by_hand`

use foveal::{Align, Error, causal_mask, scaled_dot_product_attention};
use ndarray::{Array2, array};

fn show(what: &str, matrix: &Array2<f32>) {
    println!("{what}");
    for row in matrix.rows() {
        println!("  {}", row.iter().map(|x| format!("{x:9.5}")).collect::<String>());
    }
}

fn main() -> Result<(), Error> {
    let q = array![[1.0f32, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]];
    let k = q.clone();
    let v = array![[1.0f32, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]];

    let scores = q.dot(&k.t());
    show("scores q·kᵀ", &scores);
    show("divided by √4", &(scores / 2.0));
    let (out, weights) = scaled_dot_product_attention(&q, &k, &v, None)?;
    show("weights: softmax of each row", &weights);
    show("output: weights·v", &out);

    let (_, weights) =
        scaled_dot_product_attention(&q, &k, &v, Some(causal_mask(3, 3, &Align::Last)?.view().into_dyn()))?;
    show("weights under the causal mask", &weights);
    Ok(())
}
