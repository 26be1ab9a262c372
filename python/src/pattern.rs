//! Sparse patterns.

use foveal::{BigBird, Pattern};
use pyo3::prelude::*;

use crate::error::raised;

/// Which keys each position sees, sparse enough that most of the matrix is never touched. Patterns join with `|`, and combine
/// with the other masks of an Attention.
///
/// >>> import foveal
/// >>> print(foveal.Pattern.longformer(1, global_tokens=[0]).picture(4), end="")
/// ■ ■ ■ ■
/// ■ ■ ■ ·
/// ■ ■ ■ ■
/// ■ · ■ ■
#[pyclass(name = "Pattern", module = "foveal", frozen, from_py_object)]
#[derive(Clone)]
pub struct PyPattern(pub Pattern);

#[pymethods]
impl PyPattern {
    /// `window` keys to each side, `dilation` apart, and tokens that see all and are seen by all.
    #[staticmethod]
    #[pyo3(signature = (window, dilation = 1, global_tokens = vec![]))]
    fn longformer(window: usize, dilation: usize, global_tokens: Vec<usize>) -> PyResult<Self> {
        Pattern::longformer(window, dilation, &global_tokens).map(PyPattern).map_err(raised)
    }

    /// BigBird for up to `tokens` tokens; all other sizes count blocks.
    #[staticmethod]
    #[pyo3(signature = (tokens, *, block = 64, window = 3, global_start = 1, global_end = 1, random = 3, seed = 0))]
    fn big_bird(
        tokens: usize,
        block: usize,
        window: usize,
        global_start: usize,
        global_end: usize,
        random: usize,
        seed: u64,
    ) -> PyResult<Self> {
        let sizes = BigBird { block, window, global_start, global_end, random, seed };
        Pattern::big_bird(tokens, sizes).map(PyPattern).map_err(raised)
    }

    /// The `stride` keys to each side, and every `stride`-th key beyond (Sparse Transformer).
    #[staticmethod]
    fn strided(stride: usize) -> PyResult<Self> {
        Pattern::strided(stride).map(PyPattern).map_err(raised)
    }

    /// The own block of `stride` tokens, and the last `summary` tokens of every block.
    #[staticmethod]
    fn fixed(stride: usize, summary: usize) -> PyResult<Self> {
        Pattern::fixed(stride, summary).map(PyPattern).map_err(raised)
    }

    /// Swin's windows on an image of `grid` = (height, width) tokens.
    #[staticmethod]
    #[pyo3(signature = (grid, window, shift = (0, 0)))]
    fn swin(grid: (usize, usize), window: (usize, usize), shift: (usize, usize)) -> PyResult<Self> {
        Pattern::swin(grid, window, shift).map(PyPattern).map_err(raised)
    }

    /// Texts of these lengths, one after the other: each sees itself alone.
    #[staticmethod]
    fn documents(lengths: Vec<usize>) -> PyResult<Self> {
        Pattern::documents(&lengths).map(PyPattern).map_err(raised)
    }

    /// The queries of block r see the blocks `rows[r]`.
    #[staticmethod]
    fn blocks(size: usize, rows: Vec<Vec<usize>>) -> PyResult<Self> {
        Pattern::blocks(size, rows).map(PyPattern).map_err(raised)
    }

    /// Whether a query at `position` sees `key`.
    fn visible(&self, position: usize, key: usize) -> bool {
        self.0.visible(position, key)
    }

    /// The pattern of so many queries and keys, one line each: ■ visible, · hidden.
    fn picture(&self, tokens: usize) -> String {
        self.0.picture(tokens)
    }

    fn __or__(&self, other: &PyPattern) -> PyResult<Self> {
        self.0.clone().or(other.0.clone()).map(PyPattern).map_err(raised)
    }

    fn __repr__(&self) -> String {
        format!("<foveal.Pattern\n{}>", self.0.picture(8))
    }
}
