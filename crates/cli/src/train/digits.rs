//! `foveal train digits`: a vision transformer on handwritten digits.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use foveal_models::layer::{Family, Parameters, Random};
use foveal_models::model::{Vit, VitConfig};
use foveal_models::train::{Images, Plan, Schedule};
use ndarray::Array4;
use serde_json::json;

use super::{curve, ending};
use crate::arguments::TrainDigits;
use crate::output::Output;
use crate::report::Report;

/// Larger than MNIST's 60,000 images.
const MOST: u64 = 256 << 20;
/// The share of the images that is held out.
const HELD_OUT: usize = 10;

pub fn run(arguments: &TrainDigits, output: Output) -> Result<()> {
    output.check_file()?;
    let (sizes, pixels) = idx(&arguments.images)?;
    let (counts, classes) = idx(&arguments.labels)?;
    let (&[count, height, width], &[labels]) = (&sizes[..], &counts[..]) else {
        bail!("images of {sizes:?} and digits of {counts:?}; expected [images, height, width] and [images]")
    };
    if height != width || count != labels {
        bail!("{count} images of {height} × {width} and {labels} digits; expected square images, and a digit for each");
    }
    let images = Array4::from_shape_vec(
        (count, 1, height, width),
        pixels.iter().map(|x| f32::from(*x) / 127.5 - 1.0).collect(),
    )?;
    let classes: Vec<u32> = classes.into_iter().map(u32::from).collect();
    let run = &arguments.run;
    let base = VitConfig::digits();
    let width = run.dims.unwrap_or(base.width);
    let patch = arguments.patch.unwrap_or(if height.is_multiple_of(4) { 4 } else { 2 });
    // Swin's windows tile the image: there is no place for a token that is no patch.
    let class_token = !matches!(run.attention, Family::Swin { .. });
    let sizes =
        VitConfig { image: height, patch, width, hidden: 2 * width, class_token, attention: run.attention, ..base };
    let sizes =
        VitConfig { layers: run.layers.unwrap_or(base.layers), heads: run.heads.unwrap_or(base.heads), ..sizes };
    let model = Vit::new(&sizes, &mut Random::new(run.seed))?;
    let task = Images::new(images, classes, count / HELD_OUT, run.batch.unwrap_or(64))?;
    let plan = Plan {
        steps: 2500,
        peak: 2e-3,
        warmup: 100,
        schedule: Schedule::Cosine,
        evaluate_every: 500,
        ..Plan::default()
    };
    let parameters = model.parameter_count();
    let mut trainer = run.trainer(&task, model, run.plan(Plan { dropout: 0.05, weight_decay: 0.05, ..plan }))?;
    let ended = run.train(&mut trainer, &mut |trainer, progress| {
        progress.line(&format!("  {:.2} % of held-out digits", 100.0 * task.accuracy(trainer.model())?));
        Ok(())
    })?;
    trainer.best().save(&run.folder, run.dtype())?;
    let accuracy = task.accuracy(trainer.best())?;
    output.show(&Report {
        title: format!("{}: {parameters} parameters, {:.2} % of held-out digits", run.folder.display(), 100.0 * accuracy),
        notes: vec![ending(ended, run, &output)],
        scenes: vec![curve(&trainer, &output)],
        figures: json!({ "parameters": parameters, "images": count, "accuracy": accuracy, "steps": trainer.records().len() }),
        ..Report::default()
    })
}

/// An IDX file of bytes, as MNIST has them, perhaps compressed: its sizes and its values.
fn idx(path: &Path) -> Result<(Vec<usize>, Vec<u8>)> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut whole = Vec::new();
        let unpacked = flate2::read::GzDecoder::new(&bytes[..]).take(MOST).read_to_end(&mut whole);
        unpacked.with_context(|| format!("cannot unpack {}", path.display()))?;
        bytes = whole;
    }
    let (sizes, values) = foveal_models::train::idx(path, &bytes)?;
    Ok((sizes, values.to_vec()))
}
