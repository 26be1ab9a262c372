//! The attention of a vision model over an image.

use std::path::Path;

use anyhow::{Context, Result, bail};
use foveal_explorer::image::decode;
use foveal_models::Model;
use foveal_models::model::Vit;
use foveal_models::trace::{Capture, Kind, Probe, Trace};
use foveal_view::Patches;
use ndarray::{Array2, Array3, s};
use serde_json::json;

use crate::arguments::{See, Which};
use crate::model;
use crate::output::Output;
use crate::report::Report;
use crate::table::Table;

pub fn run(see: &See, path: &Path, output: Output) -> Result<()> {
    let open = model::open(&see.model, "digits")?;
    let Model::Vit(model) = &open.model else {
        bail!("{} reads text, not images; leave out --model for the one inside, or name a ViT", open.name)
    };
    let picture = read(model, path)?;
    let mut probe = Probe::new(Capture::All);
    let hidden = model.infer(&model.preprocessor().values(&picture), &mut probe)?;
    let scores = model.classify(&hidden).ok().map(|logits| probabilities(&logits));
    let trace = probe.into_trace();
    let layer = match see.layer {
        Some(Which::One(layer)) => layer,
        _ => model.config().layers - 1,
    };
    let head = match see.head {
        Some(Which::One(head)) => Some(head),
        _ => None,
    };
    // To draw: from 0 to 1.
    let picture = picture.mapv(|x| f32::from(x) / 255.0);
    output.show(&report(model, &picture, &trace, (layer, head), see.token, scores, &output)?)
}

/// The image in the size of the model: [height, width, C].
fn read(model: &Vit, path: &Path) -> Result<Array3<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    decode(model, &bytes).with_context(|| format!("cannot read {} as an image", path.display()))
}

fn probabilities(logits: &Array2<f32>) -> Vec<f32> {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, x| max.max(*x));
    let exp: Vec<f32> = logits.row(0).iter().map(|x| (x - max).exp()).collect();
    let sum: f32 = exp.iter().sum();
    exp.into_iter().map(|x| x / sum).collect()
}

fn report(
    model: &Vit,
    picture: &Array3<f32>,
    trace: &Trace,
    (layer, head): (usize, Option<usize>),
    query: Option<usize>,
    scores: Option<Vec<f32>>,
    output: &Output,
) -> Result<Report> {
    let tr = |english, korean| output.language.of(english, korean);
    let traced = trace.layer(Kind::Encoder, layer)?;
    let (grid, heads) = (model.config().grid(), traced.heads());
    if let Some(head) = head.filter(|head| *head >= heads) {
        bail!("there is no head {head}; there are {heads}, counted from 0");
    }
    // The token that the class is read from comes first; without one, the patch in the middle is asked.
    let first = model.config().first_patch();
    let patch = match query {
        Some(patch) if patch >= grid * grid => {
            bail!("there is no patch {patch}; there are {}, counted from 0", grid * grid)
        }
        None if first == 0 => Some(grid / 2 * grid + grid / 2),
        query => query,
    };
    let row = patch.map_or(0, |patch| first + patch);
    let over_patches = |head: usize| -> Result<Array2<f32>> {
        let weights = traced.tile(0, head, row..row + 1, first..traced.keys())?;
        Ok(weights.into_shape_with_order((grid, grid)).expect("a weight for each patch"))
    };
    let maps = (0..heads).map(over_patches).collect::<Result<Vec<_>>>()?;
    let mean = maps.iter().fold(Array2::zeros((grid, grid)), |sum, map| sum + map) / heads as f32;
    let shown = head.map_or(&mean, |head| &maps[head]).clone();
    let name = head.map_or_else(
        || tr("mean of the heads", "헤드 평균").to_owned(),
        |head| format!("{} {head}", tr("head", "헤드")),
    );
    let mut patches = match picture.dim().2 {
        1 => Patches::grey(&picture.slice(s![.., .., 0]).to_owned(), shown)?,
        _ => Patches::rgb(picture.clone(), shown)?,
    };
    patches = patches.name(name);
    if head.is_none() {
        for (head, map) in maps.iter().enumerate() {
            patches = patches.and(format!("{} {head}", tr("head", "헤드")), map.clone())?;
        }
    }
    if let Some(patch) = patch {
        patches = patches.query(patch / grid, patch % grid);
    }
    let title = match &scores {
        Some(scores) => {
            let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
            format!("{} {}, p = {:.3}", tr("class", "분류"), model.labels()[best], scores[best])
        }
        None => String::new(),
    };
    let from = match patch {
        None => tr("the class token's attention", "분류 토큰의 어텐션").to_owned(),
        Some(patch) => format!("{} {patch}", tr("patch", "패치")),
    };
    let note = format!("{} {layer} · {from}", tr("layer", "층"));
    let scene = patches.title(title).note(note).language(output.language.into());
    let mut report = Report { scenes: vec![scene.into()], ..Report::default() };
    if let Some(scores) = &scores {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let mut table = Table::new([tr("class", "분류"), "p"]);
        let row = |class: &usize| [model.labels()[*class].clone(), format!("{:.3}", scores[*class])];
        order.iter().take(3).for_each(|class| table.row(row(class)));
        report.tables.push(table);
    }
    let rows = |map: &Array2<f32>| map.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    report.figures = json!({
        "classes": scores, "labels": model.labels(), "layer": layer, "query": patch, "heads": maps.iter().map(rows).collect::<Vec<_>>(),
    });
    Ok(report)
}
