//! The extension module `foveal._foveal`: the engine, its models and its pictures, for Python.
//!
//! Arrays come in without a copy, whatever their strides; the interpreter is released while the engine computes; the engine's
//! messages are the exceptions'. What is convenient in Python is written there, in `foveal/*.py`.

mod arrays;
mod attention;
mod cache;
mod error;
mod family;
mod model;
mod options;
mod page;
mod pattern;
mod pool;
mod rope;
mod trace;

use pyo3::prelude::*;

/// The engine, its models and its pictures.
#[pymodule]
fn _foveal(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add_class::<attention::PyAttention>()?;
    module.add_class::<attention::PyGradients>()?;
    module.add_class::<pattern::PyPattern>()?;
    module.add_class::<options::PyBias>()?;
    module.add_class::<cache::PyKvCache>()?;
    module.add_class::<rope::PyRope>()?;
    module.add_class::<family::PyLinear>()?;
    module.add_class::<family::PyAdditive>()?;
    module.add_class::<family::PyLuong>()?;
    module.add_class::<trace::PyTrace>()?;
    module.add_class::<model::PyModel>()?;
    module.add_class::<model::PyGeneration>()?;
    module.add_class::<model::PyReading>()?;
    module.add_class::<page::PyExplorer>()?;
    module.add_function(wrap_pyfunction!(pool::set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(pool::get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(rope::alibi_slopes, module)?)?;
    module.add_function(wrap_pyfunction!(rope::positional_encoding, module)?)?;
    module.add_function(wrap_pyfunction!(page::framed_page, module)?)?;
    module.add_function(wrap_pyfunction!(page::picture, module)?)?;
    Ok(())
}
