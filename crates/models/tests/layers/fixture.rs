//! What `fixtures/make_layers.py` has written, and comparisons with it.

use std::collections::BTreeMap;

use foveal_models::layer::Parameters;
use ndarray::{Array2, ArrayD, ArrayViewD, Ix2};

use crate::support;

/// One file.
pub struct Fixture {
    name: &'static str,
    tensors: BTreeMap<String, ArrayD<f64>>,
}

impl Fixture {
    pub fn load(name: &'static str) -> Self {
        let path = support::fixture(&format!("layers/{name}.safetensors"));
        Fixture { name, tensors: support::tensors(&path) }
    }

    pub fn get(&self, key: &str) -> &ArrayD<f64> {
        self.tensors.get(key).unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    /// As f32 and with two axes.
    pub fn matrix(&self, key: &str) -> Array2<f32> {
        self.get(key).mapv(|x| x as f32).into_dimensionality::<Ix2>().expect("two axes")
    }

    /// As tokens.
    pub fn tokens(&self, key: &str) -> Vec<u32> {
        self.get(key).iter().map(|x| *x as u32).collect()
    }

    /// Gives a layer its parameters.
    pub fn fill(&self, prefix: &str, layer: &mut impl Parameters) {
        layer.visit_mut(prefix, &mut |name, mut parameter| {
            let value = self.get(&format!("p.{name}"));
            assert_eq!(parameter.shape(), value.shape(), "{}: {name}", self.name);
            parameter.assign(&value.mapv(|x| x as f32));
        });
    }

    /// Within 1e-5, absolute below 1 and relative above.
    pub fn check<'a>(&self, key: &str, got: impl Into<ArrayViewD<'a, f32>>) {
        let (expected, got) = (self.get(key), got.into());
        assert_eq!(expected.shape(), got.shape(), "{}: {key}", self.name);
        for ((index, expected), got) in expected.indexed_iter().zip(got) {
            let error = (f64::from(*got) - expected).abs();
            assert!(error <= 1e-5 * expected.abs().max(1.0), "{}: {key}{index:?} is {got}, not {expected}", self.name);
        }
    }

    /// All gradients, and that there are no others.
    pub fn check_gradients(&self, prefix: &str, grad: &impl Parameters) {
        let mut count = 0;
        grad.visit(prefix, &mut |name, gradient| {
            let key = format!("g.{name}");
            // A bias of keys shifts all scores of a row alike: its true gradient is 0.
            let none = self.get(&key).iter().all(|x| x.abs() < 1e-12);
            assert!(none || gradient.iter().any(|x| *x != 0.0), "{}: {name} has no gradient", self.name);
            self.check(&key, gradient);
            count += 1;
        });
        let in_file = self.tensors.keys().filter(|key| key.starts_with(&format!("g.{prefix}"))).count();
        assert_eq!(count, in_file, "{}: the number of parameters", self.name);
    }
}
