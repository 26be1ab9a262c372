//! A layer of many heads, the scores of a model's heads, and a model with one of them switched off.
//!
//! `cargo run --release -p foveal-models --example heads -- crates/assets/models/shakespeare`

use foveal_models::analysis;
use foveal_models::layer::{MultiHeadAttention, Parameters, Random};
use foveal_models::trace::{Head, Kind};
use foveal_models::{OpenModel, Result};

fn main() -> Result<()> {
    // One width, any number of heads.
    let layer = MultiHeadAttention::new(64, 8, &mut Random::new(1))?; // d_model 64, 8 heads of 8
    assert_eq!(layer.parameter_count(), 4 * (64 * 64 + 64)); // W_q, W_k, W_v, W_o and their biases

    let Some(name) = std::env::args().nth(1) else {
        println!("usage: heads MODEL, a language model");
        return Ok(());
    };
    // What each head looks at.
    let open = OpenModel::open(&name)?;
    let seen = open.observe("to be, or not to be")?;
    for layer in seen.layers() {
        for links in analysis::top(seen.layer(layer)?, 0, 0, 1)?.iter().take(3) {
            println!("layer {layer}, head 0: {links:?}");
        }
    }
    // The same text without one head.
    let tokens = open.tokenizer()?.encode("to be, or not to be")?;
    let off = analysis::ablate(open.model.as_language_model()?, tokens.ids(), &[Head::new(Kind::Decoder, 0, 0)])?;
    println!("without layer 0, head 0 the loss changes by {:.3}", off.change());
    Ok(())
}
