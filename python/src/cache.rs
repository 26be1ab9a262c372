//! Keys and values of all tokens so far.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use foveal::{KvCache, Precision};
use pyo3::prelude::*;

use crate::arrays::{Dtype, Input, give};
use crate::error::raised;

/// Keys and values of all tokens so far, for generating one token after another.
///
/// >>> import numpy as np, foveal
/// >>> cache = foveal.KvCache(batch=1, heads=2, dim=8)
/// >>> attention = foveal.Attention(causal=True)
/// >>> for _ in range(5):
/// ...     q, kv = np.ones((1, 4, 1, 8), np.float32), np.ones((1, 2, 1, 8), np.float32)
/// ...     cache.append(kv, kv)
/// ...     out, lse = attention.decode(q, cache)
/// >>> len(cache), out.shape
/// (5, (1, 4, 1, 8))
#[pyclass(name = "KvCache", module = "foveal", frozen)]
pub struct PyKvCache(RwLock<KvCache>);

/// Another thread has failed while it wrote.
fn broken<T>(_: T) -> PyErr {
    raised("this cache was left half written by a call that failed; make a new one")
}

impl PyKvCache {
    pub fn read(&self) -> PyResult<RwLockReadGuard<'_, KvCache>> {
        self.0.read().map_err(broken)
    }

    fn write(&self) -> PyResult<RwLockWriteGuard<'_, KvCache>> {
        self.0.write().map_err(broken)
    }
}

#[pymethods]
impl PyKvCache {
    /// An empty cache. With `pages`, sequences share that many pages of `page` tokens each.
    #[new]
    #[pyo3(signature = (batch, heads, dim, value_dim = None, *, capacity = 0, precision = "float32", pages = None, page = 16))]
    #[expect(clippy::too_many_arguments, reason = "sizes")]
    fn new(
        batch: usize,
        heads: usize,
        dim: usize,
        value_dim: Option<usize>,
        capacity: usize,
        precision: &str,
        pages: Option<usize>,
        page: usize,
    ) -> PyResult<Self> {
        let value_dim = value_dim.unwrap_or(dim);
        let cache = match pages {
            Some(pages) => KvCache::paged(pages, page, batch, heads, dim, value_dim),
            None => KvCache::with_capacity(batch, heads, dim, value_dim, capacity),
        }
        .map_err(raised)?;
        let precision = match Dtype::named(precision)? {
            Dtype::F32 => Precision::F32,
            Dtype::F16 => Precision::F16,
            Dtype::Bf16 => Precision::Bf16,
        };
        Ok(PyKvCache(RwLock::new(cache.precision(precision).map_err(raised)?)))
    }

    /// Adds keys [B, H, new, D] and values [B, H, new, Dv] of new tokens; with `sequence`, to that one alone.
    #[pyo3(signature = (k, v, sequence = None))]
    fn append(
        &self,
        py: Python<'_>,
        k: &Bound<'_, PyAny>,
        v: &Bound<'_, PyAny>,
        sequence: Option<usize>,
    ) -> PyResult<()> {
        let (k, v) = (Input::new("k", k)?, Input::new("v", v)?);
        let (k, v) = (k.tensor(), v.tensor());
        py.detach(|| {
            let mut cache = self.write()?;
            match sequence {
                Some(sequence) => cache.append_to(sequence, k, v).map_err(raised),
                None => cache.append(k, v).map_err(raised),
            }
        })
    }

    /// Forgets all but the first `length` tokens, of every sequence or of one.
    #[pyo3(signature = (length, sequence = None))]
    fn truncate(&self, length: usize, sequence: Option<usize>) -> PyResult<()> {
        match sequence {
            Some(sequence) => self.write()?.truncate_sequence(sequence, length).map_err(raised),
            None => {
                self.write()?.truncate(length);
                Ok(())
            }
        }
    }

    /// A cache of these of its sequences, each as often as it is named.
    fn select(&self, sequences: Vec<usize>) -> PyResult<Self> {
        Ok(PyKvCache(RwLock::new(self.read()?.select(&sequences).map_err(raised)?)))
    }

    /// The number of tokens of each sequence.
    #[getter]
    fn lengths(&self) -> PyResult<Vec<usize>> {
        Ok(self.read()?.lengths().to_vec())
    }

    /// Pages that no sequence uses.
    #[getter]
    fn free_pages(&self) -> PyResult<usize> {
        Ok(self.read()?.free_pages())
    }

    /// A copy of the keys, [B, H, len, D] of float32.
    #[getter]
    fn k<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(give(py, self.read()?.k().to_f32()))
    }

    /// A copy of the values, [B, H, len, Dv] of float32.
    #[getter]
    fn v<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(give(py, self.read()?.v().to_f32()))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.read()?.len())
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<foveal.KvCache of lengths {:?}>", self.read()?.lengths()))
    }
}
