//! Positions: RoPE, ALiBi's slopes, sines.

use foveal::ndarray::Array1;
use foveal::{Rope, RopeLayout, RopeScaling};
use pyo3::prelude::*;

use crate::arrays::{Input, give};
use crate::error::raised;

/// Rotary position embedding of the first `dim` coordinates of each head.
///
/// >>> import numpy as np, foveal
/// >>> rope = foveal.Rope(64, base=500_000.0)
/// >>> q = np.ones((1, 32, 10, 64), np.float32)
/// >>> turned = rope.rotate(q)
/// >>> bool(np.allclose(rope.rotate_back(turned), q, atol=1e-6))
/// True
#[pyclass(name = "Rope", module = "foveal", frozen)]
pub struct PyRope(Rope);

#[pymethods]
impl PyRope {
    /// `layout`: "halves" (Llama as Hugging Face has it, GPT-NeoX) or "interleaved" (GPT-J). `linear` and `ntk` are factors that
    /// reach beyond the trained length.
    #[new]
    #[pyo3(signature = (dim, *, base = 10_000.0, layout = "halves", linear = None, ntk = None))]
    fn new(dim: usize, base: f64, layout: &str, linear: Option<f64>, ntk: Option<f64>) -> PyResult<Self> {
        let layout = match layout {
            "halves" => RopeLayout::Halves,
            "interleaved" => RopeLayout::Interleaved,
            _ => return Err(raised(format!("layout is {layout:?}, expected \"halves\" or \"interleaved\""))),
        };
        let scaling = match (linear, ntk) {
            (None, None) => RopeScaling::None,
            (Some(factor), None) => RopeScaling::Linear(factor),
            (None, Some(factor)) => RopeScaling::Ntk(factor),
            _ => return Err(raised("linear and ntk are two ways to the same end; give one of them")),
        };
        Ok(PyRope(Rope::new(dim).map_err(raised)?.base(base).layout(layout).scaling(scaling)))
    }

    /// x [B, H, T, D], turned, its tokens at positions `start`, `start` + 1, …: a new array of float32.
    #[pyo3(signature = (x, start = 0))]
    fn rotate<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>, start: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut x = Input::new("x", x)?.to_f32();
        py.detach(|| self.0.rotate(&mut x, start)).map_err(raised)?;
        Ok(give(py, x))
    }

    /// The backward of `rotate`, and its inverse.
    #[pyo3(signature = (dx, start = 0))]
    fn rotate_back<'py>(&self, py: Python<'py>, dx: &Bound<'py, PyAny>, start: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut dx = Input::new("dx", dx)?.to_f32();
        py.detach(|| self.0.rotate_back(&mut dx, start)).map_err(raised)?;
        Ok(give(py, dx))
    }

    /// The angle by which each pair turns from one position to the next.
    #[getter]
    fn frequencies(&self) -> Vec<f64> {
        self.0.frequencies()
    }
}

/// ALiBi's slopes for so many heads.
#[pyfunction]
pub fn alibi_slopes(py: Python<'_>, heads: usize) -> PyResult<Bound<'_, PyAny>> {
    Ok(give(py, Array1::from(foveal::alibi_slopes(heads).map_err(raised)?)))
}

/// The sines and cosines of the Transformer: [tokens, dim].
#[pyfunction]
pub fn positional_encoding(py: Python<'_>, tokens: usize, dim: usize) -> PyResult<Bound<'_, PyAny>> {
    Ok(give(py, foveal::positional_encoding(tokens, dim).map_err(raised)?))
}
