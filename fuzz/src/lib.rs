//! What the targets share: folders of files, and trying what came of them.

use foveal_models::model::{LanguageModel, Model, Sentences};
use foveal_models::trace::Probe;
use foveal_models::{Checkpoint, Tokenizer};
use ndarray::Array4;
use tempfile::TempDir;

/// A folder with these files.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("a file in it");
    }
    folder
}

/// The bytes before the first byte 0xFF, between it and the next, and so on: parts of UTF-8 never have one.
pub fn parts<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut parts = bytes.splitn(N, |byte| *byte == 0xFF);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Reads every tensor, makes the model and lets it read a few tokens.
pub fn try_checkpoint(checkpoint: &Checkpoint) {
    let _ = checkpoint.architecture();
    for name in checkpoint.names() {
        let _ = checkpoint.tensor(name).expect("a listed tensor").to_f32();
    }
    match Model::load(checkpoint) {
        Ok(Model::Gpt2(model)) => try_language(&model),
        Ok(Model::Llama(model)) => try_language(&model),
        Ok(Model::Bert(model)) => {
            let hidden = model.infer(&Sentences::new(&[[0u32, 1, 2]]), &mut Probe::default());
            let _ = hidden.map(|hidden| model.guess(hidden.view()));
        }
        Ok(Model::Vit(model)) => {
            let (image, channels) = (model.config().image, model.config().channels);
            if image * image * channels <= 1 << 20 {
                let picture = Array4::zeros((1, channels, image, image));
                let _ = model.infer(&picture, &mut Probe::default()).map(|hidden| model.classify(&hidden));
            }
        }
        _ => {}
    }
}

fn try_language(model: &dyn LanguageModel) {
    if let Ok(hidden) = model.infer(&[0, 1, 2], 1, None, &mut Probe::default()) {
        let _ = model.logits(hidden.view());
    }
}

/// Encodes, decodes and describes; errors are allowed, panics are not.
pub fn try_tokenizer(tokenizer: &Tokenizer) {
    for text in ["The capital of France. 한국의 수도", "", " ab <|endoftext|>[MASK] é中\u{0}"] {
        let Ok(encoding) = tokenizer.encode(text) else { continue };
        let _ = (tokenizer.decode(encoding.ids()), tokenizer.describe(encoding.ids()));
        let (before, after) = encoding.ids().split_at(encoding.len() / 2);
        let _ = tokenizer.describe_after(before, after);
    }
}
