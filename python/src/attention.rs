//! `foveal.Attention`.

use std::ops::Range;

use foveal::ndarray::{Array3, Array4, ArrayView4, ArrayViewMut4, s};
use foveal::{Attention, GradientsMut, Number, Part, Pool, Saved, Scratch, TensorMut, Upstream, bf16, f16};
use numpy::{PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{Dtype, Input, bits, give, lse};
use crate::error::{raised, wrong_type};
use crate::options::Options;
use crate::pool;

/// Floating-point operations from which a call is cut into blocks of queries, between which Ctrl-C is heard: some seconds.
const LONG: f64 = 2e11;
/// Operations of one block, about.
const BLOCK: f64 = 5e10;

/// Attention and its options: made once, used on any arrays [batch, heads, tokens, dim].
///
/// Options, all by keyword: scale (1/√dim), causal, window (left, right), align ("last", "first" or an offset for each sequence),
/// lengths [batch], keys [batch, keys] and mask [.., queries, keys] of bool (True: visible), pattern, alibi, bias, softcap, sinks
/// [heads], dropout and seed, packed (starts of queries, starts of keys), precision ("float32", "float16", "bfloat16"; that of q).
///
/// >>> import numpy as np, foveal
/// >>> x = np.ones((1, 2, 100, 8), np.float32)
/// >>> attention = foveal.Attention(causal=True)
/// >>> out, lse = attention.forward(x, x, x)
/// >>> attention.tile(x, x, lse, head=1, rows=(3, 4), cols=(0, 5))
/// array([[0.25, 0.25, 0.25, 0.25, 0.  ]], dtype=float32)
#[pyclass(name = "Attention", module = "foveal", frozen)]
pub struct PyAttention {
    pub options: Options,
    pub whole: Attention,
    keywords: Option<Py<PyDict>>,
}

/// What backward gives back.
#[pyclass(name = "Gradients", module = "foveal", frozen, get_all)]
pub struct PyGradients {
    /// Shaped like q.
    dq: Py<PyAny>,
    /// Shaped like k.
    dk: Py<PyAny>,
    /// Shaped like v.
    dv: Py<PyAny>,
    /// Shaped like the bias, or None.
    dbias: Option<Py<PyAny>>,
    /// [heads], or None.
    dsinks: Option<Py<PyAny>>,
}

#[pymethods]
impl PyGradients {
    fn __repr__(&self) -> &'static str {
        "<foveal.Gradients: dq, dk, dv, dbias, dsinks>"
    }
}

#[pymethods]
impl PyAttention {
    #[new]
    #[pyo3(signature = (**options))]
    fn new(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let keywords = options.map(|options| options.copy()).transpose()?.map(Bound::unbind);
        let options = Options::new(options)?;
        Ok(PyAttention { whole: options.attention(), options, keywords })
    }

    /// The output [B, H, T, Dv] and the log-sum-exp of every row of scores [B, H, T], in O(T + S) memory.
    ///
    /// `tokens_first` has the memory of the output lie as [B, T, H, Dv], as what comes after attention wants it.
    #[pyo3(signature = (q, k, v, *, tokens_first = false))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        v: &Bound<'py, PyAny>,
        tokens_first: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let call = Call { q: Input::new("q", q)?, k: Input::new("k", k)?, v: Input::new("v", v)? };
        match self.options.precision.unwrap_or(call.q.dtype()) {
            Dtype::F32 => {
                let (out, lse) = self.forward_as::<f32>(py, &call, tokens_first)?;
                Ok((give(py, in_order(out, tokens_first)), give(py, lse)))
            }
            Dtype::F16 => {
                let (out, lse) = self.forward_as::<f16>(py, &call, tokens_first)?;
                Ok((give(py, in_order(out, tokens_first)), give(py, lse)))
            }
            Dtype::Bf16 => {
                let (out, lse) = self.forward_as::<bf16>(py, &call, tokens_first)?;
                let out = give(py, in_order(bits(out), tokens_first));
                Ok((call.q.as_it_came(out)?, give(py, lse)))
            }
        }
    }

    /// The gradients of a loss whose gradient in the output is `dout`, and in the log-sum-exp `dlse`.
    #[pyo3(signature = (q, k, v, out, lse, dout, dlse = None))]
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
        dlse: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyGradients> {
        let call = Call { q: Input::new("q", q)?, k: Input::new("k", k)?, v: Input::new("v", v)? };
        let saved = (Input::new("out", out)?, self::lse(lse)?);
        let dout = Input::new("dout", dout)?;
        let dlse = dlse.map(gradient_of_lse).transpose()?;
        let dlse = dlse.as_ref().map(|dlse| dlse.as_array());
        let saved = Saved { out: saved.0.tensor(), lse: saved.1.as_array() };
        let upstream = Upstream { dout: dout.tensor(), dlse };
        match self.options.precision.unwrap_or(call.q.dtype()) {
            Dtype::F32 => {
                let grads = self.backward_f32(py, &call, saved, upstream)?;
                Ok(gradients(py, [grads.0, grads.1, grads.2].map(|x| give(py, x)), grads.3))
            }
            Dtype::F16 => {
                let grads = self.backward_as::<f16>(py, &call, saved, upstream)?;
                Ok(gradients(py, [grads.0, grads.1, grads.2].map(|x| give(py, x)), grads.3))
            }
            Dtype::Bf16 => {
                let grads = self.backward_as::<bf16>(py, &call, saved, upstream)?;
                let given = |x| call.q.as_it_came(give(py, bits(x)));
                Ok(gradients(py, [given(grads.0)?, given(grads.1)?, given(grads.2)?], grads.3))
            }
        }
    }

    /// All weights: [B, H, T, S]. For small inputs; otherwise see `tile` and `map`.
    fn weights<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (q, k) = (Input::new("q", q)?, Input::new("k", k)?);
        let (q, k) = (q.tensor(), k.tensor());
        let weights = pool::run(py, flops(q.dim(), k.dim(), 0), || self.whole.weights(q, k)).map_err(raised)?;
        Ok(give(py, weights))
    }

    /// The weights of queries `rows` on keys `cols` of one head: ranges (start, end), or all. Nothing else is computed.
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
        let (q, k, lse) = (Input::new("q", q)?, Input::new("k", k)?, self::lse(lse)?);
        let (q, k, lse) = (q.tensor(), k.tensor(), lse.as_array());
        let work = || {
            let head = self.whole.head(q, k, lse, (sequence, head))?;
            head.tile(range(rows, head.queries()), range(cols, head.keys()))
        };
        Ok(give(py, pool::run_long(py, work).map_err(raised)?))
    }

    /// A picture of the weights of a rectangle, pooled to `size` = (height, width) pixels by "max", "mean" or "sum".
    #[pyo3(signature = (q, k, lse, head = 0, sequence = 0, rows = None, cols = None, size = (256, 256), pool = "max"))]
    #[expect(clippy::too_many_arguments, reason = "a rectangle of a head of a call, and its picture")]
    fn map<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        lse: &Bound<'py, PyAny>,
        head: usize,
        sequence: usize,
        rows: Option<(usize, usize)>,
        cols: Option<(usize, usize)>,
        size: (usize, usize),
        pool: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (q, k, lse) = (Input::new("q", q)?, Input::new("k", k)?, self::lse(lse)?);
        let (q, k, lse, pooled) = (q.tensor(), k.tensor(), lse.as_array(), pooling(pool)?);
        let work = || {
            let head = self.whole.head(q, k, lse, (sequence, head))?;
            let (rows, cols) = (range(rows, head.queries()), range(cols, head.keys()));
            // A picture has no more pixels than there are weights.
            let size = (size.0.min(rows.len()), size.1.min(cols.len()));
            head.map(rows, cols, size, pooled)
        };
        Ok(give(py, pool::run_long(py, work).map_err(raised)?))
    }

    /// The output of the newest queries against everything in the cache, and the log-sum-exp of their scores.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        cache: &crate::cache::PyKvCache,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let q = Input::new("q", q)?;
        let (q, cache) = (q.tensor(), cache.read()?);
        let forward = pool::run_long(py, || self.whole.decode(q, &cache)).map_err(raised)?;
        Ok((give(py, forward.out), give(py, forward.lse)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("foveal._options")?.getattr("attention_of")?;
        let keywords = self.keywords.as_ref().map_or_else(|| PyDict::new(py), |keywords| keywords.bind(py).clone());
        Ok((make, PyTuple::new(py, [keywords])?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Some(keywords) = &self.keywords else { return Ok("foveal.Attention()".into()) };
        let mut parts = Vec::new();
        for (key, value) in keywords.bind(py) {
            let value = match value.getattr("shape") {
                Ok(shape) => format!("<array {}>", shape.str()?),
                Err(_) => value.repr()?.to_string(),
            };
            parts.push(format!("{key}={value}"));
        }
        Ok(format!("foveal.Attention({})", parts.join(", ")))
    }
}

/// What a call is given.
struct Call<'py> {
    q: Input<'py>,
    k: Input<'py>,
    v: Input<'py>,
}

impl Call<'_> {
    fn flops(&self) -> f64 {
        flops(self.q.tensor().dim(), self.k.tensor().dim(), self.v.tensor().dim()[3])
    }
}

type Gradients<T> = (Array4<T>, Array4<T>, Array4<T>, foveal::Learned);

impl PyAttention {
    /// The output as it lies in memory, and the log-sum-exp.
    fn forward_as<T: Number + Send>(
        &self,
        py: Python<'_>,
        call: &Call<'_>,
        tokens_first: bool,
    ) -> PyResult<(Array4<T>, Array3<f64>)>
    where
        for<'a> TensorMut<'a>: From<ArrayViewMut4<'a, T>>,
    {
        let ([batch, heads, queries, _], [.., dim]) = (call.q.tensor().dim(), call.v.tensor().dim());
        let shape = if tokens_first { [batch, queries, heads, dim] } else { [batch, heads, queries, dim] };
        let (mut out, mut lse) = (Array4::from_elem(shape, T::ZERO), Array3::zeros((batch, heads, queries)));
        let flops = call.flops();
        let block = self.block(call, flops);
        for start in (0..queries.max(1)).step_by(block) {
            let end = (start + block).min(queries);
            let view = out.view_mut();
            let view = if tokens_first { view.permuted_axes([0, 2, 1, 3]) } else { view };
            let (out, lse) = (view.slice_move(s![.., .., start..end, ..]), lse.slice_mut(s![.., .., start..end]));
            let (q, k, v) = (call.q.rows(start, end), call.k.tensor(), call.v.tensor());
            let part;
            let attention = if block < queries {
                py.check_signals()?;
                part = self.part(start, end, (queries, k.dim()[2]));
                &part
            } else {
                &self.whole
            };
            let work = || Scratch::lend(|scratch| attention.forward_into(q, k, v, out, lse, scratch));
            pool::run(py, flops, work).map_err(raised)?;
        }
        Ok((out, lse))
    }

    /// Queries of a block: all, unless the call is long and can be cut.
    fn block(&self, call: &Call<'_>, flops: f64) -> usize {
        let queries = call.q.tensor().dim()[2].max(1);
        let Options { has_sinks, has_packed, .. } = self.options;
        if flops < LONG || has_sinks || has_packed {
            return queries;
        }
        ((queries as f64 * BLOCK / flops) as usize).clamp(64.min(queries), queries)
    }

    /// The attention of the queries from `start` to before `end`, of a call of so many queries and keys.
    fn part(&self, start: usize, end: usize, of: (usize, usize)) -> Attention {
        self.options.rows(Some((start, end))).part(Part { queries: start as isize, ..Part::of(of.0, of.1) })
    }

    fn backward_f32<'a>(
        &self,
        py: Python<'_>,
        call: &'a Call<'_>,
        saved: Saved<'a>,
        upstream: Upstream<'a>,
    ) -> PyResult<Gradients<f32>> {
        let (q, k, v) = (call.q.tensor(), call.k.tensor(), call.v.tensor());
        let flops = 2.5 * call.flops();
        let queries = q.dim()[2];
        let block = self.block(call, flops);
        let learned = self.options.has_bias || (self.options.dense.is_some() && self.options.learned);
        let (Some(out), Some(dout)) = (saved.out.as_f32(), upstream.dout.as_f32()) else {
            return self.backward_as(py, call, saved, upstream);
        };
        if block >= queries || learned {
            return self.backward_as(py, call, saved, upstream);
        }
        let (mut dq, mut dk, mut dv) = (Array4::zeros(q.dim()), Array4::zeros(k.dim()), Array4::zeros(v.dim()));
        for start in (0..queries).step_by(block) {
            py.check_signals()?;
            let end = (start + block).min(queries);
            let rows = s![.., .., start..end, ..];
            let part = self.part(start, end, (queries, k.dim()[2]));
            let (out, dout): (ArrayView4<f32>, ArrayView4<f32>) = (out.slice(rows), dout.slice(rows));
            let few = s![.., .., start..end];
            let dlse = upstream.dlse.as_ref().map(|dlse| dlse.slice(few));
            let (saved, upstream) =
                (Saved { out: out.into(), lse: saved.lse.slice(few) }, Upstream { dout: dout.into(), dlse });
            let targets = GradientsMut::add(dq.slice_mut(rows), &mut dk, &mut dv);
            let q = call.q.rows(start, end);
            let work = || Scratch::lend(|scratch| part.backward_into(q, k, v, saved, upstream, targets, scratch));
            pool::run(py, flops, work).map_err(raised)?;
        }
        Ok((dq, dk, dv, foveal::Learned::default()))
    }

    fn backward_as<'a, T: Number + Send>(
        &self,
        py: Python<'_>,
        call: &'a Call<'_>,
        saved: Saved<'a>,
        upstream: Upstream<'a>,
    ) -> PyResult<Gradients<T>> {
        let (q, k, v) = (call.q.tensor(), call.k.tensor(), call.v.tensor());
        let work = || self.whole.backward_as::<T>(q, k, v, saved, upstream);
        let grads = pool::run(py, 2.5 * call.flops(), work).map_err(raised)?;
        let mut learned = foveal::Learned::default();
        (learned.dbias, learned.dsinks) = (grads.dbias, grads.dsinks);
        Ok((grads.dq, grads.dk, grads.dv, learned))
    }
}

/// [B, H, T, D], from memory that lies so or with tokens first.
fn in_order<T>(out: Array4<T>, tokens_first: bool) -> Array4<T> {
    if tokens_first { out.permuted_axes([0, 2, 1, 3]) } else { out }
}

fn gradients(py: Python<'_>, [dq, dk, dv]: [Bound<'_, PyAny>; 3], learned: foveal::Learned) -> PyGradients {
    PyGradients {
        dq: dq.unbind(),
        dk: dk.unbind(),
        dv: dv.unbind(),
        dbias: learned.dbias.map(|dbias| give(py, dbias).unbind()),
        dsinks: learned.dsinks.map(|dsinks| give(py, dsinks).unbind()),
    }
}

/// The gradient of the log-sum-exp: [B, H, T] of f32.
fn gradient_of_lse<'py>(array: &Bound<'py, PyAny>) -> PyResult<numpy::PyReadonlyArray3<'py, f32>> {
    match array.cast::<PyArray3<f32>>() {
        Ok(array) => array.try_readonly().map_err(raised),
        Err(_) => Err(wrong_type("dlse", "a float32 array [batch, heads, tokens]", array)),
    }
}

/// Operations of the two products of a call.
fn flops(q: [usize; 4], k: [usize; 4], value_dim: usize) -> f64 {
    [q[0], q[1], q[2], k[2], q[3] + value_dim].iter().map(|x| *x as f64).product::<f64>() * 2.0
}

/// A range, or all.
pub fn range(range: Option<(usize, usize)>, all: usize) -> Range<usize> {
    range.map_or(0..all, |(start, end)| start..end)
}

/// How a pixel becomes one number.
pub fn pooling(name: &str) -> PyResult<Pool> {
    match name {
        "max" => Ok(Pool::Max),
        "mean" => Ok(Pool::Mean),
        "sum" => Ok(Pool::Sum),
        _ => Err(raised(format!("pool is {name:?}, expected \"max\", \"mean\" or \"sum\""))),
    }
}
