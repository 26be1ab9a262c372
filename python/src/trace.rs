//! What a run attended to, and its analysis.

use foveal_models::analysis::{head_scores, norms, rollout, top};
use foveal_models::trace::{Kind, LayerTrace, Site, Trace, TraceArray};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{Input, floats, give, lse, two};
use crate::attention::{PyAttention, pooling, range};
use crate::error::raised;
use crate::pool;

/// Layers of attention: queries, keys, values, the log-sum-exp of each row, the options and W_o.
#[pyclass(name = "_Trace", module = "foveal")]
#[derive(Default)]
pub struct PyTrace(pub Trace);

/// The kind of this name.
pub fn kind(name: &str) -> PyResult<Kind> {
    match name {
        "encoder" => Ok(Kind::Encoder),
        "decoder" => Ok(Kind::Decoder),
        "cross" => Ok(Kind::Cross),
        _ => Err(raised(format!("the kind of attention is {name:?}, expected \"encoder\", \"decoder\" or \"cross\""))),
    }
}

/// A copy of an array, for as long as the trace lives.
fn kept(what: &str, array: &Bound<'_, PyAny>) -> PyResult<TraceArray> {
    Ok(match Input::new(what, array)? {
        Input::F32(array) => array.as_array().into(),
        Input::F16(array) => array.as_array().into(),
        other => other.to_f32().into(),
    })
}

#[pymethods]
impl PyTrace {
    #[new]
    fn new() -> Self {
        PyTrace::default()
    }

    /// Adds a layer. `output` is W_o, [D, H·Dv].
    #[pyo3(signature = (kind, layer, attention, q, k, lse = None, v = None, output = None))]
    #[expect(clippy::too_many_arguments, reason = "all that a layer is")]
    fn add(
        &mut self,
        py: Python<'_>,
        kind: &str,
        layer: usize,
        attention: &PyAttention,
        q: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        lse: Option<&Bound<'_, PyAny>>,
        v: Option<&Bound<'_, PyAny>>,
        output: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let site = Site { kind: self::kind(kind)?, layer };
        let mut builder = LayerTrace::builder(attention.whole.clone(), kept("q", q)?, kept("k", k)?);
        if let Some(lse) = lse {
            builder = builder.lse(self::lse(lse)?.as_array().to_owned());
        }
        if let Some(v) = v {
            builder = builder.values(kept("v", v)?);
        }
        if let Some(output) = output {
            builder = builder.output(two("W_o", "[dim, heads·value dim]", floats("W_o", output)?)?);
        }
        self.0.insert(site, pool::run_long(py, || builder.build()).map_err(raised)?);
        Ok(())
    }

    /// (kind, layer, heads, queries, keys) of every layer.
    #[getter]
    fn layers(&self) -> Vec<(String, usize, usize, usize, usize)> {
        let row = |(site, layer): (Site, &LayerTrace)| {
            (site.kind.to_string(), site.layer, layer.heads(), layer.queries(), layer.keys())
        };
        self.0.layers().map(row).collect()
    }

    /// Queries, keys, values and lse of a layer as NumPy arrays.
    fn arrays<'py>(&self, py: Python<'py>, kind: &str, layer: usize) -> PyResult<Bound<'py, PyDict>> {
        let layer = self.layer(kind, layer)?;
        let arrays = PyDict::new(py);
        arrays.set_item("q", give(py, layer.q().to_f32().into_owned()))?;
        arrays.set_item("k", give(py, layer.k().to_f32().into_owned()))?;
        if let Some(v) = layer.v() {
            arrays.set_item("v", give(py, v.to_f32().into_owned()))?;
        }
        arrays.set_item("lse", give(py, layer.lse().to_owned()))?;
        Ok(arrays)
    }

    #[pyo3(signature = (kind, layer, head, sequence = 0, rows = None, cols = None))]
    #[expect(clippy::too_many_arguments, reason = "a rectangle of a head of a layer")]
    fn tile<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        layer: usize,
        head: usize,
        sequence: usize,
        rows: Option<(usize, usize)>,
        cols: Option<(usize, usize)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let layer = self.layer(kind, layer)?;
        let (rows, cols) = (range(rows, layer.queries()), range(cols, layer.keys()));
        Ok(give(py, pool::run_long(py, || layer.tile(sequence, head, rows, cols)).map_err(raised)?))
    }

    #[pyo3(signature = (kind, layer, head, sequence = 0, rows = None, cols = None, size = (256, 256), pool = "max"))]
    #[expect(clippy::too_many_arguments, reason = "a rectangle of a head of a layer, and its picture")]
    fn map<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        layer: usize,
        head: usize,
        sequence: usize,
        rows: Option<(usize, usize)>,
        cols: Option<(usize, usize)>,
        size: (usize, usize),
        pool: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (layer, pooled) = (self.layer(kind, layer)?, pooling(pool)?);
        let (rows, cols) = (range(rows, layer.queries()), range(cols, layer.keys()));
        let size = (size.0.min(rows.len()), size.1.min(cols.len()));
        Ok(give(py, pool::run_long(py, || layer.map((sequence, head), rows, cols, size, pooled)).map_err(raised)?))
    }

    /// Attention rollout up to a layer: [T, T].
    fn rollout<'py>(&self, py: Python<'py>, kind: &str, layer: usize, sequence: usize) -> PyResult<Bound<'py, PyAny>> {
        let kind = self::kind(kind)?;
        Ok(give(py, pool::run_long(py, || rollout(&self.0, kind, sequence, layer)).map_err(raised)?))
    }

    /// ‖w·v·W_o‖ of one head, or of all heads together: [T, S].
    #[pyo3(signature = (kind, layer, head, sequence))]
    fn norms<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        layer: usize,
        head: Option<usize>,
        sequence: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let layer = self.layer(kind, layer)?;
        let work = || match head {
            Some(head) => norms::of_head(layer, sequence, head),
            None => norms::of_layer(layer, sequence),
        };
        Ok(give(py, pool::run_long(py, work).map_err(raised)?))
    }

    /// For every query the `count` keys with the most weight: [(key, weight), …].
    fn top(
        &self,
        py: Python<'_>,
        kind: &str,
        layer: usize,
        head: usize,
        sequence: usize,
        count: usize,
    ) -> PyResult<Vec<Vec<(usize, f32)>>> {
        let layer = self.layer(kind, layer)?;
        let table = pool::run_long(py, || top(layer, sequence, head, count)).map_err(raised)?;
        Ok(table.into_iter().map(|row| row.into_iter().map(|link| (link.key, link.weight)).collect()).collect())
    }

    /// What each head does, in numbers.
    #[pyo3(signature = (kind, sequence, tokens, period = None))]
    fn head_scores<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        sequence: usize,
        tokens: Vec<u32>,
        period: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let kind = self::kind(kind)?;
        let work = || head_scores(&self.0, kind, sequence, &tokens, period);
        let rows = PyList::empty(py);
        for scores in pool::run_long(py, work).map_err(raised)? {
            let row = PyDict::new(py);
            row.set_item("layer", scores.head.site.layer)?;
            row.set_item("head", scores.head.head)?;
            row.set_item("entropy", scores.entropy)?;
            row.set_item("confidence", scores.confidence)?;
            row.set_item("previous", scores.previous)?;
            row.set_item("next", scores.next)?;
            row.set_item("duplicate", scores.duplicate)?;
            row.set_item("induction", scores.induction)?;
            row.set_item("sink", scores.sink.map(|sink| (sink.key, sink.share)))?;
            rows.append(row)?;
        }
        Ok(rows)
    }

    /// Every step from q·k to one weight.
    #[expect(clippy::too_many_arguments, reason = "a cell of a head of a layer")]
    fn cell<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        layer: usize,
        head: usize,
        sequence: usize,
        query: usize,
        key: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let cell = self.layer(kind, layer)?.cell(sequence, head, query, key).map_err(raised)?;
        let steps = PyDict::new(py);
        for (name, value) in [
            ("product", cell.product),
            ("scale", cell.scale),
            ("scaled", cell.scaled),
            ("score", cell.score),
            ("max", cell.max),
            ("exp", cell.exp),
            ("sum", cell.sum),
            ("weight", cell.weight),
        ] {
            steps.set_item(name, value)?;
        }
        steps.set_item("visible", cell.visible)?;
        Ok(steps)
    }
}

impl PyTrace {
    fn layer(&self, kind: &str, layer: usize) -> PyResult<&LayerTrace> {
        self.0.layer(self::kind(kind)?, layer).map_err(raised)
    }
}
