//! What `fixtures/make_models.py` has written, and comparisons with it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use foveal_models::layer::Parameters;
use foveal_models::{Checkpoint, Dtype, Trace};
use ndarray::{Array2, Array4, ArrayD, ArrayViewD, AsArray, Dimension, IxDyn};

use crate::stored::Stored;
use crate::support;

/// How far results may lie apart.
const NEAR: f64 = 1e-4;

/// The folder of a model.
pub fn folder(model: &str) -> PathBuf {
    support::fixture("models").join(model)
}

/// The model of a folder.
pub fn load<M: Stored>(model: &str) -> M {
    M::load(&Checkpoint::open(folder(model)).unwrap()).unwrap()
}

/// What is expected of a model.
pub struct Expected {
    model: &'static str,
    tensors: BTreeMap<String, ArrayD<f64>>,
}

impl Expected {
    pub fn of(model: &'static str) -> Self {
        Expected { model, tensors: support::tensors(&folder(model).join("expected.safetensors")) }
    }

    pub fn get(&self, key: &str) -> &ArrayD<f64> {
        self.tensors.get(key).unwrap_or_else(|| panic!("{} has no {key}", self.model))
    }

    /// As token ids.
    pub fn tokens(&self, key: &str) -> Vec<u32> {
        self.get(key).iter().map(|x| *x as u32).collect()
    }

    /// As lengths or places.
    pub fn sizes(&self, key: &str) -> Vec<usize> {
        self.get(key).iter().map(|x| *x as usize).collect()
    }

    /// The sequences [B, T] of `key` without their last tokens, and without their first: what is read, and what is to come.
    pub fn shifted(&self, key: &str) -> (Vec<u32>, Vec<u32>) {
        let tokens = self.tokens(key);
        let sequences = tokens.chunks(self.get(key).shape()[1]);
        sequences.map(|sequence| (&sequence[..sequence.len() - 1], &sequence[1..])).fold(
            (Vec::new(), Vec::new()),
            |(inputs, targets), (input, target)| {
                ([inputs, input.to_vec()].concat(), [targets, target.to_vec()].concat())
            },
        )
    }

    /// As images: [B, C, H, W].
    pub fn images(&self, key: &str) -> Array4<f32> {
        self.get(key).mapv(|x| x as f32).into_dimensionality().expect("four axes")
    }

    /// Whether the rows, [B·T, D], are those expected: [B, T, D] or [B, D].
    pub fn check_rows(&self, key: &str, got: &Array2<f32>) {
        let expected = self.get(key);
        let got = got.to_shape(expected.shape()).unwrap_or_else(|_| panic!("{key} has shape {:?}", got.shape()));
        near(format_args!("{}: {key}", self.model), expected, &got.mapv(f64::from), NEAR);
    }

    /// Whether the loss is the one expected.
    pub fn check_loss(&self, got: f32) {
        near(format_args!("{}: loss", self.model), self.get("loss"), &ndarray::arr0(f64::from(got)), NEAR);
    }

    /// Whether every attention layer has the weights expected, and no layer is absent. Of sequences of different lengths,
    /// only what lies within them counts.
    pub fn check_trace(&self, prefix: &str, trace: &Trace, lengths: Option<&[usize]>) {
        let names = self.tensors.keys().filter(|key| key.starts_with(&format!("{prefix}weights.")));
        assert_eq!(trace.layers().len(), names.count(), "{}: the number of layers", self.model);
        for (site, layer) in trace.layers() {
            let key = format!("{prefix}weights.{}.{}", site.kind, site.layer);
            let expected = self.get(&key);
            assert_eq!(expected.shape(), [layer.batch(), layer.heads(), layer.queries(), layer.keys()], "{key}");
            for (b, expected) in expected.outer_iter().enumerate() {
                for (head, expected) in expected.outer_iter().enumerate() {
                    let length = lengths.map_or(layer.queries(), |lengths| lengths[b]);
                    let got = layer.tile(b, head, 0..length, 0..layer.keys()).unwrap().mapv(f64::from);
                    let expected = expected.slice_axis(ndarray::Axis(0), (0..length).into());
                    near(format_args!("{}: {key}, head {head} of {b}", self.model), expected, &got, NEAR);
                }
            }
        }
    }

    /// Whether all gradients are those expected, to 1e-4 of the largest number of each.
    pub fn check_gradients<M: Stored + Parameters>(&self, grad: &M) {
        let saved = tempfile::tempdir().unwrap();
        grad.save_as(saved.path(), Dtype::F32).unwrap();
        let got = support::tensors(&saved.path().join("model.safetensors"));
        let expected = support::tensors(&folder(self.model).join("gradients.safetensors"));
        assert!(got.keys().eq(expected.keys()), "{}: {:?}", self.model, got.keys());
        let largest = |x: &ArrayD<f64>| x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let of_all = expected.values().map(largest).fold(0.0, f64::max);
        for (key, expected) in &expected {
            // The true gradient of a bias of keys is 0, and what is there is rounding.
            let scale = largest(expected).max(1e-3 * of_all);
            near(format_args!("{}: the gradient of {key}", self.model), expected, &got[key], NEAR * scale);
        }
    }
}

/// Whether no two numbers lie further apart than `limit`.
pub fn near<'a, D: Dimension, E: Dimension>(
    what: impl fmt::Display,
    expected: impl AsArray<'a, f64, D>,
    got: impl AsArray<'a, f64, E>,
    limit: f64,
) {
    let (expected, got): (ArrayViewD<f64>, ArrayViewD<f64>) = (expected.into().into_dyn(), got.into().into_dyn());
    assert_eq!(expected.shape(), got.shape(), "{what}");
    let error = |at: &IxDyn| (expected[at] - got[at]).abs();
    let all = ndarray::indices(expected.raw_dim()).into_iter();
    let Some(worst) = all.max_by(|a, b| error(a).total_cmp(&error(b))) else { return };
    assert!(error(&worst) <= limit, "{what}, at {:?}: {} instead of {}", worst, got[&worst], expected[&worst]);
    println!("{what}: differs by {:.1e}, {:.1e} allowed", error(&worst), limit);
}
