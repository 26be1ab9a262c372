//! NumPy arrays as the engine's, without a copy, and the other way round.

use foveal::ndarray::{Array, Array2, Array3, Array4, ArrayD, ArrayView4, Dimension, IxDyn, RawArrayView, s};
use foveal::{Tensor, bf16, f16};
use half::vec::HalfFloatVecExt;
use numpy::{
    Element, PyArray, PyArray3, PyArray4, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArray3,
    PyReadonlyArray4, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{raised, wrong_type};

/// The types that queries, keys, values, outputs and gradients come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// `float32`
    F32,
    /// `float16`
    F16,
    /// `bfloat16` of ml_dtypes, or its bits as `uint16`.
    Bf16,
}

impl Dtype {
    /// By its name.
    pub fn named(name: &str) -> PyResult<Self> {
        match name {
            "float32" | "f32" => Ok(Dtype::F32),
            "float16" | "f16" => Ok(Dtype::F16),
            "bfloat16" | "bf16" => Ok(Dtype::Bf16),
            _ => Err(PyTypeError::new_err(format!("precision is {name:?}, expected float32, float16 or bfloat16"))),
        }
    }
}

/// Queries, keys or values: [B, H, T, D] with any strides.
pub enum Input<'py> {
    F32(PyReadonlyArray4<'py, f32>),
    F16(PyReadonlyArray4<'py, f16>),
    /// The bits of bf16. `Some`: the dtype that they came as.
    Bf16(PyReadonlyArray4<'py, u16>, Option<Bound<'py, PyAny>>),
}

impl<'py> Input<'py> {
    /// The array that is called `what`.
    pub fn new(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = array.cast::<PyArray4<f32>>() {
            check(what, array.as_untyped())?;
            return Ok(Input::F32(array.try_readonly().map_err(raised)?));
        }
        if let Ok(array) = array.cast::<PyArray4<f16>>() {
            check(what, array.as_untyped())?;
            return Ok(Input::F16(array.try_readonly().map_err(raised)?));
        }
        if let Ok(array) = array.cast::<PyArray4<u16>>() {
            check(what, array.as_untyped())?;
            return Ok(Input::Bf16(array.try_readonly().map_err(raised)?, None));
        }
        let Ok(untyped) = array.cast::<PyUntypedArray>() else {
            return Err(wrong_type(what, "a NumPy array [batch, heads, tokens, dim]", array));
        };
        let dtype = untyped.dtype();
        let name: String = dtype.getattr("name")?.extract()?;
        if untyped.ndim() != 4 {
            let shape = untyped.shape();
            return Err(raised(format!("{what} has shape {shape:?}, expected four axes: [batch, heads, tokens, dim]")));
        }
        if name == "bfloat16" {
            let bits = array.call_method1("view", ("uint16",))?;
            let bits = bits.cast::<PyArray4<u16>>().map_err(|_| wrong_type(what, "a NumPy array", &bits))?;
            check(what, bits.as_untyped())?;
            return Ok(Input::Bf16(bits.try_readonly().map_err(raised)?, Some(dtype.into_any())));
        }
        let advice = match name.as_str() {
            "float64" => "; the engine computes in float32: use .astype(np.float32)",
            _ if dtype.byteorder() == b'>' => "; its bytes are in the other order: use .astype(np.float32)",
            _ => "",
        };
        Err(PyTypeError::new_err(format!(
            "{what} is an array of {name}, expected float32, float16 or bfloat16 (as ml_dtypes has it, or its bits as uint16){advice}"
        )))
    }

    /// What the engine reads.
    pub fn tensor(&self) -> Tensor<'_> {
        match self {
            Input::F32(array) => array.as_array().into(),
            Input::F16(array) => array.as_array().into(),
            Input::Bf16(array, _) => as_bf16(&array.as_array()).into(),
        }
    }

    /// The rows from `start` to before `end` of every head.
    pub fn rows(&self, start: usize, end: usize) -> Tensor<'_> {
        let rows = s![.., .., start..end, ..];
        match self {
            Input::F32(array) => array.as_array().slice_move(rows).into(),
            Input::F16(array) => array.as_array().slice_move(rows).into(),
            Input::Bf16(array, _) => as_bf16(&array.as_array()).slice_move(rows).into(),
        }
    }

    /// As f32, copied where they are not.
    pub fn to_f32(&self) -> Array4<f32> {
        match self {
            Input::F32(array) => array.as_array().to_owned(),
            _ => self.tensor().to_f32(),
        }
    }

    /// The type.
    pub fn dtype(&self) -> Dtype {
        match self {
            Input::F32(_) => Dtype::F32,
            Input::F16(_) => Dtype::F16,
            Input::Bf16(..) => Dtype::Bf16,
        }
    }

    /// The bits of a result, as the numbers that they came as.
    pub fn as_it_came(&self, bits: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Input::Bf16(_, Some(dtype)) => bits.call_method1("view", (dtype,)),
            _ => Ok(bits),
        }
    }
}

/// Refuses arrays that cannot be read where they lie.
fn check(what: &str, array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    let size = array.dtype().itemsize() as isize;
    if array.is_aligned() && array.strides().iter().all(|stride| stride % size == 0) {
        return Ok(());
    }
    Err(raised(format!("the numbers of {what} do not lie at multiples of their size; pass a copy: {what}.copy()")))
}

/// The bits of bf16 as bf16.
fn as_bf16<'a>(bits: &ArrayView4<'a, u16>) -> ArrayView4<'a, bf16> {
    let raw: RawArrayView<bf16, _> = bits.raw_view().cast();
    // SAFETY: bf16 is a transparent u16, of which all bits are valid, and the view is borrowed for 'a.
    unsafe { raw.deref_into_view() }
}

/// An array for Python that takes over the memory.
pub fn give<T: Element, D: Dimension>(py: Python<'_>, array: Array<T, D>) -> Bound<'_, PyAny> {
    PyArray::from_owned_array(py, array).into_any()
}

/// The bits of bf16, in the same memory. The array is in standard layout.
pub fn bits(array: Array4<bf16>) -> Array4<u16> {
    let dim = array.raw_dim();
    let bits: Vec<u16> = array.into_raw_vec_and_offset().0.reinterpret_into();
    Array::from_shape_vec(dim, bits).expect("as many as there were")
}

/// A log-sum-exp: [B, H, T] of f64.
pub fn lse<'py>(array: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray3<'py, f64>> {
    match array.cast::<PyArray3<f64>>() {
        Ok(array) => array.try_readonly().map_err(raised),
        Err(_) => Err(wrong_type("lse", "the float64 array [batch, heads, tokens] that forward gave", array)),
    }
}

/// Any array of numbers as f32, copied.
pub fn floats(what: &str, array: &Bound<'_, PyAny>) -> PyResult<ArrayD<f32>> {
    if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
        check(what, array.as_untyped())?;
        return Ok(array.try_readonly().map_err(raised)?.as_array().to_owned());
    }
    let numpy = array.py().import("numpy")?;
    let wrong = |_| wrong_type(what, "an array of numbers", array);
    let array = numpy.call_method1("asarray", (array, "float32")).map_err(wrong)?;
    let array = array.cast::<PyArrayDyn<f32>>().map_err(|_| wrong_type(what, "an array of numbers", &array))?;
    Ok(array.try_readonly().map_err(raised)?.as_array().to_owned())
}

/// Any array of truth values, copied.
pub fn bools(what: &str, array: &Bound<'_, PyAny>) -> PyResult<ArrayD<bool>> {
    let numpy = array.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let Ok(array) = array.cast::<PyArrayDyn<bool>>() else {
        return Err(wrong_type(what, "an array of bool, True where a key is visible", &array));
    };
    Ok(array.try_readonly().map_err(raised)?.as_array().to_owned())
}

/// Whole numbers: a list, a tuple, an array.
pub fn integers<T: TryFrom<i64>>(what: &str, numbers: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let wrong = || wrong_type(what, "a list of whole numbers", numbers);
    let list = match numbers.hasattr("tolist")? {
        true => numbers.call_method0("tolist")?,
        false => numbers.clone(),
    };
    let numbers: Vec<i64> = list.extract().map_err(|_| wrong())?;
    let fits = |x: i64| T::try_from(x).map_err(|_| raised(format!("{what} holds {x}, expected 0 or more")));
    numbers.into_iter().map(fits).collect()
}

/// An array of up to four axes as one of four: axes of length 1 are put in front.
pub fn four<T: Clone>(what: &str, array: ArrayD<T>) -> PyResult<Array4<T>> {
    let shape = array.shape().to_vec();
    if shape.len() > 4 {
        return Err(raised(format!(
            "{what} has shape {shape:?}, expected up to four axes: [batch, heads, queries, keys]"
        )));
    }
    let mut full = vec![1; 4 - shape.len()];
    full.extend(&shape);
    let array = if array.is_standard_layout() { array } else { array.as_standard_layout().into_owned() };
    let array = array.into_shape_with_order(IxDyn(&full)).map_err(raised)?;
    array.into_dimensionality().map_err(raised)
}

/// An array of just two axes.
pub fn two(what: &str, axes: &str, array: ArrayD<f32>) -> PyResult<Array2<f32>> {
    let shape = array.shape().to_vec();
    array.into_dimensionality().map_err(|_| raised(format!("{what} has shape {shape:?}, expected two axes: {axes}")))
}

/// An array of just three axes.
pub fn three(what: &str, axes: &str, array: ArrayD<f32>) -> PyResult<Array3<f32>> {
    let shape = array.shape().to_vec();
    array.into_dimensionality().map_err(|_| raised(format!("{what} has shape {shape:?}, expected three axes: {axes}")))
}
