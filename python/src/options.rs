//! The engine's options, by keyword.

use foveal::ndarray::{Array4, s};
use foveal::{Align, Attention, Bias, Direction, Mask, Packed};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arrays::{Dtype, bools, floats, four, integers, three, two};
use crate::error::{raised, wrong_type};
use crate::pattern::PyPattern;

/// What is added to the scores, where it is not a plain array: T5's, Shaw's and Swin's tables.
#[pyclass(name = "Bias", module = "foveal", frozen, from_py_object)]
#[derive(Clone)]
pub struct PyBias(pub Bias);

#[pymethods]
impl PyBias {
    /// T5's relative position bias, `table` [buckets, heads].
    #[staticmethod]
    #[pyo3(signature = (table, bidirectional = true, max_distance = 128))]
    fn t5(table: &Bound<'_, PyAny>, bidirectional: bool, max_distance: usize) -> PyResult<Self> {
        let direction = if bidirectional { Direction::Both } else { Direction::Backward };
        let table = two("T5's table", "[buckets, heads]", floats("T5's table", table)?)?;
        Bias::t5(table, direction, max_distance).map(PyBias).map_err(raised)
    }

    /// Relative positions in the keys, `table` [1 or heads, 2·radius + 1, dim].
    #[staticmethod]
    fn shaw(table: &Bound<'_, PyAny>) -> PyResult<Self> {
        let table = three("Shaw's table", "[heads or 1, distances, dim]", floats("Shaw's table", table)?)?;
        Bias::shaw(table).map(PyBias).map_err(raised)
    }

    /// Swin's relative position bias, `table` [(2·height − 1)·(2·width − 1), heads].
    #[staticmethod]
    fn swin(table: &Bound<'_, PyAny>, window: (usize, usize), grid: (usize, usize)) -> PyResult<Self> {
        let table = two("Swin's table", "[distances, heads]", floats("Swin's table", table)?)?;
        Bias::swin(table, window, grid).map(PyBias).map_err(raised)
    }

    /// The same bias, whose gradient is not wanted: the way back is faster.
    fn constant(&self) -> Self {
        PyBias(self.0.clone().constant())
    }
}

/// The options of an attention. Arrays over the scores are kept beside the rest, so that a call can be cut into rows.
#[derive(Clone, Default)]
pub struct Options {
    /// All but the arrays.
    pub base: Attention,
    /// Keep-masks: [1 or B, 1 or H, 1 or T, S].
    pub keep: Option<Array4<bool>>,
    /// A dense bias of the same axes.
    pub dense: Option<Array4<f32>>,
    /// Whether the gradient of the dense bias is wanted.
    pub learned: bool,
    /// Whether another bias has a gradient.
    pub has_bias: bool,
    pub has_sinks: bool,
    pub has_packed: bool,
    /// The type of outputs and gradients; that of the queries if none.
    pub precision: Option<Dtype>,
}

/// What can be asked for, for the message that says so.
const KNOWN: &str = "scale, causal, window, align, lengths, keys, mask, pattern, alibi, bias, bias_gradient, softcap, sinks, \
                     dropout, seed, packed, precision";

impl Options {
    /// From keywords.
    pub fn new(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options { learned: true, ..Options::default() };
        let Some(keywords) = keywords else { return Ok(options) };
        let (mut mask, mut bias, mut dropout, mut seed) = (Mask::none(), None, None, 0u64);
        let mut base = Attention::new();
        let mut and = |other: Mask| mask = std::mem::take(&mut mask).and(other);
        for (key, value) in keywords {
            let key = key.cast::<PyString>()?.to_str()?;
            if value.is_none() {
                continue;
            }
            match key {
                "scale" => base = base.scale(value.extract()?),
                "causal" => {
                    if value.extract()? {
                        and(Mask::causal());
                    }
                }
                "window" => {
                    let (left, right) = window(&value)?;
                    and(Mask::window(left, right));
                }
                "align" => base = base.align(align(&value)?),
                "lengths" => and(Mask::padding(integers::<usize>("lengths", &value)?)),
                "keys" => {
                    let keep = bools("keys", &value)?;
                    let shape = keep.shape().to_vec();
                    let keep = keep.into_dimensionality();
                    let keep = keep.map_err(|_| raised(format!("keys has shape {shape:?}, expected [batch, keys]")))?;
                    and(Mask::keys(keep));
                }
                "mask" => options.keep = Some(four("mask", bools("mask", &value)?)?),
                "pattern" => and(patterns(&value)?),
                "alibi" => {
                    refuse_second(&bias, "alibi")?;
                    bias = Some(alibi(&value)?);
                }
                "bias" => match value.extract::<PyBias>() {
                    Ok(other) => {
                        refuse_second(&bias, "bias")?;
                        bias = Some(other.0);
                    }
                    Err(_) => options.dense = Some(four("bias", floats("bias", &value)?)?),
                },
                "bias_gradient" => options.learned = value.extract()?,
                "softcap" => base = base.softcap(value.extract()?),
                "sinks" => {
                    let sinks: Vec<f32> = floats("sinks", &value)?.iter().copied().collect();
                    base = base.sinks(sinks);
                    options.has_sinks = true;
                }
                "dropout" => dropout = Some(value.extract::<f32>()?),
                "seed" => seed = value.extract()?,
                "packed" => {
                    let (queries, keys): (Bound<'_, PyAny>, Bound<'_, PyAny>) = value.extract()?;
                    let starts = |starts| integers::<usize>("packed", starts);
                    base = base.packed(Packed::new(starts(&queries)?, starts(&keys)?).map_err(raised)?);
                    options.has_packed = true;
                }
                "precision" => options.precision = Some(Dtype::named(&value.str()?.to_string())?),
                _ => return Err(PyTypeError::new_err(format!("there is no option {key:?}; there are {KNOWN}"))),
            }
        }
        if let Some(probability) = dropout.filter(|probability| *probability != 0.0) {
            base = base.dropout(probability, seed);
        }
        if let Some(bias) = bias {
            if options.dense.is_some() {
                return Err(raised("there are two biases; add them up to one dense one"));
            }
            options.has_bias = options.learned;
            base = base.bias(if options.learned { bias } else { bias.constant() });
        }
        options.base = base.mask(mask);
        Ok(options)
    }

    /// The engine's, for whole calls.
    pub fn attention(&self) -> Attention {
        self.rows(None)
    }

    /// The same for some of the queries alone.
    pub fn rows(&self, rows: Option<(usize, usize)>) -> Attention {
        let mut attention = self.base.clone();
        if let Some(keep) = &self.keep {
            attention = attention.and_mask(Mask::dense(cut(keep, rows)));
        }
        if let Some(dense) = &self.dense {
            let bias = Bias::dense(cut(dense, rows));
            attention = attention.bias(if self.learned { bias } else { bias.constant() });
        }
        attention
    }
}

/// Some rows of an array over the scores, all where they are shared.
fn cut<T: Clone>(array: &Array4<T>, rows: Option<(usize, usize)>) -> Array4<T> {
    match rows {
        Some((start, end)) if array.dim().2 != 1 => array.slice(s![.., .., start..end, ..]).to_owned(),
        _ => array.clone(),
    }
}

fn refuse_second(bias: &Option<Bias>, name: &str) -> PyResult<()> {
    match bias {
        Some(_) => Err(raised(format!("{name} is a second bias; add both up to one dense bias"))),
        None => Ok(()),
    }
}

/// (left, right), either of them None for open; or one number for both.
fn window(value: &Bound<'_, PyAny>) -> PyResult<(Option<usize>, Option<usize>)> {
    if let Ok(both) = value.extract::<usize>() {
        return Ok((Some(both), Some(both)));
    }
    value.extract().map_err(|_| {
        wrong_type(
            "window",
            "(left, right), how many keys before and after, None for an open side; or one number",
            value,
        )
    })
}

/// "last", "first", or an offset for each sequence.
fn align(value: &Bound<'_, PyAny>) -> PyResult<Align> {
    if let Ok(name) = value.extract::<String>() {
        return match name.as_str() {
            "last" => Ok(Align::Last),
            "first" => Ok(Align::First),
            _ => Err(raised(format!("align is {name:?}, expected \"last\", \"first\" or an offset for each sequence"))),
        };
    }
    Ok(Align::Offsets(integers::<isize>("align", value)?.into()))
}

/// One pattern, or one a head.
fn patterns(value: &Bound<'_, PyAny>) -> PyResult<Mask> {
    if let Ok(pattern) = value.extract::<PyPattern>() {
        return Ok(Mask::pattern(pattern.0));
    }
    let heads: Vec<PyPattern> =
        value.extract().map_err(|_| wrong_type("pattern", "a Pattern, or a list of one for each head", value))?;
    Ok(Mask::patterns(heads.into_iter().map(|pattern| pattern.0).collect::<Vec<_>>()))
}

/// A number of heads, slopes [heads], or slopes [batch, heads].
fn alibi(value: &Bound<'_, PyAny>) -> PyResult<Bias> {
    if let Ok(heads) = value.extract::<usize>() {
        return Bias::alibi(heads).map_err(raised);
    }
    let slopes = floats("alibi", value)?;
    match slopes.ndim() {
        1 => Ok(Bias::alibi_with(slopes.iter().copied().collect::<Vec<_>>())),
        2 => Ok(Bias::alibi_per_sequence(two("alibi", "[batch, heads]", slopes)?)),
        _ => {
            let shape = slopes.shape();
            Err(raised(format!("alibi has shape {shape:?}, expected [heads] or [batch, heads]")))
        }
    }
}
