//! The attention of one sentence, kept at chosen steps of a run: how alignment forms.

use std::path::Path;

use ndarray::{Array3, Axis, stack};

use crate::checkpoint::{Checkpoint, save_tensors};
use crate::trace::{Kind, Trace};
use crate::{Error, Result};

/// One kind of attention of one sentence, at several steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshots {
    /// What the rows are called.
    pub queries: Vec<String>,
    /// What the columns are called.
    pub keys: Vec<String>,
    /// The step and, for each layer, the weights of all heads: [H, T, S].
    pub frames: Vec<(usize, Vec<Array3<f32>>)>,
}

impl Snapshots {
    /// None yet.
    pub fn new(queries: Vec<String>, keys: Vec<String>) -> Self {
        Snapshots { queries, keys, frames: Vec::new() }
    }

    /// Keeps what was attended to.
    ///
    /// # Errors
    /// If the trace has none of this kind.
    pub fn keep(&mut self, step: usize, trace: &Trace, kind: Kind) -> Result<()> {
        let mut layers = Vec::new();
        for (_, layer) in trace.of_kind(kind) {
            let heads = (0..layer.heads()).map(|head| layer.weights(0, head)).collect::<Result<Vec<_>>>()?;
            let views: Vec<_> = heads.iter().map(|head| head.view()).collect();
            layers.push(stack(Axis(0), &views).expect("heads of one layer"));
        }
        if layers.is_empty() {
            trace.layer(kind, 0)?;
        }
        self.frames.push((step, layers));
        Ok(())
    }

    /// Saves them as one safetensors file, whole or not at all: `step.00250.layer.0`, [H, T, S].
    ///
    /// # Errors
    /// If it cannot be written; what was there before is then still there.
    pub fn save(&self, path: &Path) -> Result<()> {
        let tensors = self.frames.iter().flat_map(|(step, layers)| {
            let named = move |(layer, weights): (usize, &'_ Array3<f32>)| (name(*step, layer), weights.clone());
            layers.iter().enumerate().map(named)
        });
        let tensors: Vec<(String, Array3<f32>)> = tensors.collect();
        let labels = |labels: &[String]| serde_json::to_string(labels).expect("texts");
        let metadata = [("queries".to_owned(), labels(&self.queries)), ("keys".to_owned(), labels(&self.keys))];
        save_tensors(path, tensors.iter().map(|(name, weights)| (name.clone(), weights.view().into_dyn())), &metadata)
    }

    /// Reads what [`save`](Snapshots::save) has written.
    ///
    /// # Errors
    /// If the file is no such thing.
    pub fn load(path: &Path) -> Result<Self> {
        let file = Checkpoint::of_tensors(path)?;
        let wrong =
            |at: &str, problem: &str| Error::Format { path: path.into(), at: at.into(), problem: problem.into() };
        let labels = |key: &str| {
            let labels = file.metadata(key).and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
            labels.ok_or_else(|| wrong(key, "absent; these are no snapshots of attention"))
        };
        let mut snapshots = Snapshots::new(labels("queries")?, labels("keys")?);
        for tensor in file.names() {
            let place = tensor.strip_prefix("step.").and_then(|rest| rest.split_once(".layer."));
            let place =
                place.and_then(|(step, layer)| Some((step.parse::<usize>().ok()?, layer.parse::<usize>().ok()?)));
            let (step, layer) = place.ok_or_else(|| wrong(tensor, "expected step.N.layer.N"))?;
            let weights = file.tensor(tensor)?.to_f32()?.into_dimensionality();
            let weights: Array3<f32> = weights.map_err(|_| wrong(tensor, "expected [heads, queries, keys]"))?;
            // Names come sorted, and steps are written with leading zeros.
            if snapshots.frames.last().is_none_or(|(last, _)| *last != step) {
                snapshots.frames.push((step, Vec::new()));
            }
            let frame = snapshots.frames.last_mut().expect("one was just pushed");
            if frame.1.len() != layer {
                return Err(wrong(tensor, "the layers of a step are not all there"));
            }
            frame.1.push(weights);
        }
        Ok(snapshots)
    }
}

fn name(step: usize, layer: usize) -> String {
    format!("step.{step:08}.layer.{layer}")
}
