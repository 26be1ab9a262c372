//! Opens any checkpoint, lets it read a text, and asks for a tile of its attention.
//!
//!     cargo run --release -p foveal-models --example tile -- MODEL "some text"
use foveal_models::{OpenModel, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, text] = &arguments[..] else {
        println!("usage: tile MODEL TEXT; MODEL is a folder, a .gguf file or a name on the hub");
        return Ok(());
    };
    let model = OpenModel::open(name)?;
    println!("{}: {}", model.name, model.summary());
    let seen = model.observe(text)?;
    let (layer, head) = seen.salient_head(None)?;
    let (rows, columns) = (0..seen.queries.len().min(8), 0..seen.keys.len().min(8));
    let tile = seen.layer(layer)?.tile(0, head, rows.clone(), columns.clone())?;
    println!("layer {layer}, head {head}: {:?} on {:?}", &seen.queries.labels[rows], &seen.keys.labels[columns]);
    println!("{tile:.3}");
    Ok(())
}
