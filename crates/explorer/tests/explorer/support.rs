//! Explorers over small models, and short ways to ask them.

use std::path::Path;

use foveal_explorer::{Asker, Catalog, Explorer, Fault, Reply, Request};
use foveal_models::checkpoint::Hub;
use foveal_models::layer::{Parameters, Random};
use foveal_models::model::{Llama, LlamaConfig};
use foveal_models::{Dtype, Tokenizer};
use foveal_view::Language;
use serde_json::{Value, json};

/// Over the models inside.
pub fn inside() -> Explorer {
    Explorer::new(Catalog::new().with_inside())
}

/// A reply, or why there is none.
pub fn ask(explorer: &Explorer, request: Value) -> Result<Reply, Fault> {
    let request = Request::parse(request.to_string().as_bytes())?;
    explorer.ask(&request, &Asker::patient(Language::English))
}

/// The run of a text.
pub fn run(explorer: &Explorer, model: &str, text: &str) -> Value {
    ask(explorer, json!({ "kind": "run", "model": model, "text": text })).unwrap().head
}

/// One matrix of a run.
pub fn at(run: &Value, site: &str, layer: usize, head: i64) -> Value {
    json!({ "run": run["id"], "site": site, "layer": layer, "head": head })
}

/// A buffer as numbers.
pub fn numbers(buffer: &[u8]) -> Vec<f32> {
    buffer.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// A Llama of random weights, saved with the tokenizer of the model inside. `sharp` multiplies queries and keys.
pub fn save_llama(folder: &Path, layers: usize, context: usize, sharp: f32) {
    let asset = foveal_assets::find("shakespeare").unwrap();
    let tokenizer = Tokenizer::from_json("shakespeare", asset.tokenizer.unwrap()).unwrap();
    let config = LlamaConfig { vocabulary: tokenizer.vocabulary(), context, layers, ..LlamaConfig::nano() };
    let mut model = Llama::new(&config, &mut Random::new(7)).unwrap();
    model.params_mut("", &mut |name, parameter| {
        if name.contains("q_proj") || name.contains("k_proj") {
            parameter.into_values().mapv_inplace(|x| x * sharp);
        }
    });
    model.save(folder, Dtype::F32).unwrap();
    tokenizer.save(folder).unwrap();
}

/// Over a model of a folder, which is called as the folder is.
pub fn over(folder: &Path, context: Option<usize>) -> (Explorer, String) {
    let mut catalog = Catalog::new();
    let id = catalog.add_named(&Hub::new(folder).offline(), folder.to_str().unwrap()).unwrap();
    let catalog = context.into_iter().fold(catalog, Catalog::context);
    (Explorer::new(catalog), id)
}

/// A picture of a black digit on white paper, as PNG.
pub fn digit() -> Vec<u8> {
    let mut picture = image::GrayImage::from_pixel(28, 28, image::Luma([255]));
    (5..23).for_each(|y| (13..16).for_each(|x| picture.put_pixel(x, y, image::Luma([0]))));
    let mut png = Vec::new();
    picture.write_to(&mut std::io::Cursor::new(&mut png), image::ImageFormat::Png).unwrap();
    png
}
