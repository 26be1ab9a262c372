//! The family: linear, additive and Luong's attention. They compute in f32.

use foveal::{AdditiveAttention, Attention, FeatureMap, Forward, LinearAttention, LuongAttention};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Input, floats, give, lse, three, two};
use crate::attention::{pooling, range};
use crate::error::raised;
use crate::options::Options;
use crate::pool;

/// Mask, window, lengths and the like, for a kind of attention that has no other options.
fn masks(options: Option<&Bound<'_, PyDict>>) -> PyResult<Attention> {
    Ok(Options::new(options)?.attention())
}

/// The gradient of what a kind of attention learns, for Python.
trait Learned {
    fn learned<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>>;
}

impl Learned for foveal::Gradients {
    fn learned<'py>(&self, _: Python<'py>) -> Option<Bound<'py, PyAny>> {
        None
    }
}

impl Learned for foveal::AdditiveGradients {
    fn learned<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        Some(give(py, self.dweight.clone()))
    }
}

impl Learned for foveal::LuongGradients {
    fn learned<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.dweight.clone().map(|dweight| give(py, dweight))
    }
}

/// What all of them are asked for, written once.
macro_rules! asked_alike {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// The output [B, H, T, Dv], and lse [B, H, T], with which any weight can be had again.
            fn forward<'py>(
                &self,
                py: Python<'py>,
                q: &Bound<'py, PyAny>,
                k: &Bound<'py, PyAny>,
                v: &Bound<'py, PyAny>,
            ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
                let (q, k, v) =
                    (Input::new("q", q)?.to_f32(), Input::new("k", k)?.to_f32(), Input::new("v", v)?.to_f32());
                let forward = pool::run_long(py, || self.0.forward(&q, &k, &v)).map_err(raised)?;
                Ok((give(py, forward.out), give(py, forward.lse)))
            }

            /// (dq, dk, dv, gradient of what is learned or None).
            #[expect(clippy::too_many_arguments, reason = "what the pass takes")]
            fn backward<'py>(
                &self,
                py: Python<'py>,
                q: &Bound<'py, PyAny>,
                k: &Bound<'py, PyAny>,
                v: &Bound<'py, PyAny>,
                out: &Bound<'py, PyAny>,
                lse: &Bound<'py, PyAny>,
                dout: &Bound<'py, PyAny>,
            ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
                let (q, k, v) =
                    (Input::new("q", q)?.to_f32(), Input::new("k", k)?.to_f32(), Input::new("v", v)?.to_f32());
                let lse = self::lse(lse)?.as_array().to_owned();
                let forward = Forward { out: Input::new("out", out)?.to_f32(), lse };
                let dout = Input::new("dout", dout)?.to_f32();
                let grads = pool::run_long(py, || self.0.backward(&q, &k, &v, &forward, &dout)).map_err(raised)?;
                let weight = grads.learned(py);
                Ok((give(py, grads.dq), give(py, grads.dk), give(py, grads.dv), weight))
            }

            /// All weights: [B, H, T, S].
            fn weights<'py>(
                &self,
                py: Python<'py>,
                q: &Bound<'py, PyAny>,
                k: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let (q, k) = (Input::new("q", q)?.to_f32(), Input::new("k", k)?.to_f32());
                Ok(give(py, pool::run_long(py, || self.0.weights(&q, &k)).map_err(raised)?))
            }

            /// The weights of queries `rows` on keys `cols` of one head.
            #[pyo3(signature = (q, k, lse, head = 0, sequence = 0, rows = None, cols = None))]
            #[expect(clippy::too_many_arguments, reason = "a rectangle of a head of a call")]
            fn tile<'py>(
                &self,
                py: Python<'py>,
                q: &Bound<'py, PyAny>,
                k: &Bound<'py, PyAny>,
                lse: &Bound<'py, PyAny>,
                head: usize,
                sequence: usize,
                rows: Option<(usize, usize)>,
                cols: Option<(usize, usize)>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let (q, k) = (Input::new("q", q)?.to_f32(), Input::new("k", k)?.to_f32());
                let lse = self::lse(lse)?;
                let lse = lse.as_array();
                let work = || {
                    let head = self.0.head(&q, &k, lse, (sequence, head))?;
                    head.tile(range(rows, head.queries()), range(cols, head.keys()))
                };
                Ok(give(py, pool::run_long(py, work).map_err(raised)?))
            }

            /// A picture of the weights, pooled to `size` pixels.
            #[pyo3(signature = (q, k, lse, head = 0, sequence = 0, size = (256, 256), pool = "max"))]
            #[expect(clippy::too_many_arguments, reason = "a head of a call, and its picture")]
            fn map<'py>(
                &self,
                py: Python<'py>,
                q: &Bound<'py, PyAny>,
                k: &Bound<'py, PyAny>,
                lse: &Bound<'py, PyAny>,
                head: usize,
                sequence: usize,
                size: (usize, usize),
                pool: &str,
            ) -> PyResult<Bound<'py, PyAny>> {
                let (q, k) = (Input::new("q", q)?.to_f32(), Input::new("k", k)?.to_f32());
                let (lse, pooled) = (self::lse(lse)?, pooling(pool)?);
                let lse = lse.as_array();
                let work = || {
                    let head = self.0.head(&q, &k, lse, (sequence, head))?;
                    let (rows, cols) = (head.queries(), head.keys());
                    head.map(0..rows, 0..cols, (size.0.min(rows), size.1.min(cols)), pooled)
                };
                Ok(give(py, pool::run_long(py, work).map_err(raised)?))
            }
        }
    };
}

/// Linear attention: O(n), by features in place of exp(q·k). `features`: "elu" (Katharopoulos 2020) or "favor" (Performer), the
/// latter with `dim`, the head dimension, and `count` features.
#[pyclass(name = "LinearAttention", module = "foveal", frozen)]
pub struct PyLinear(LinearAttention);

#[pymethods]
impl PyLinear {
    #[new]
    #[pyo3(signature = (features = "elu", *, dim = None, count = 256, seed = 0, **options))]
    fn new(
        features: &str,
        dim: Option<usize>,
        count: usize,
        seed: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let map = match (features, dim) {
            ("elu", _) => FeatureMap::Elu,
            ("favor", Some(dim)) => FeatureMap::favor(dim, count, seed).map_err(raised)?,
            ("favor", None) => return Err(raised("favor draws vectors of the head dimension; give it as dim")),
            _ => return Err(raised(format!("features is {features:?}, expected \"elu\" or \"favor\""))),
        };
        LinearAttention::with_options(map, &masks(options)?).map(PyLinear).map_err(raised)
    }
}
asked_alike!(PyLinear);

/// Bahdanau's attention: s = a·tanh(q + k), with `weight` = a: [1 or heads, dim].
#[pyclass(name = "AdditiveAttention", module = "foveal", frozen)]
pub struct PyAdditive(AdditiveAttention);

#[pymethods]
impl PyAdditive {
    #[new]
    #[pyo3(signature = (weight, **options))]
    fn new(weight: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let weight = two("weight", "[1 or heads, dim]", floats("weight", weight)?)?;
        AdditiveAttention::with_options(weight, &masks(options)?).map(PyAdditive).map_err(raised)
    }
}
asked_alike!(PyAdditive);

/// Luong's attention: s = q·k, or s = q·W·k with `weight` = W: [1 or heads, dim of q, dim of k].
#[pyclass(name = "LuongAttention", module = "foveal", frozen)]
pub struct PyLuong(LuongAttention);

#[pymethods]
impl PyLuong {
    #[new]
    #[pyo3(signature = (weight = None, *, causal = false))]
    fn new(weight: Option<&Bound<'_, PyAny>>, causal: bool) -> PyResult<Self> {
        let attention = match weight {
            None => LuongAttention::dot(),
            Some(weight) => {
                let weight = three("weight", "[1 or heads, dim of q, dim of k]", floats("weight", weight)?)?;
                LuongAttention::general(weight).map_err(raised)?
            }
        };
        Ok(PyLuong(if causal { attention.mask(foveal::Mask::causal()) } else { attention }))
    }
}
asked_alike!(PyLuong);
