//! Which threads do the work.
//!
//! Without a choice it is rayon's global pool, which the engine replaces by a new one after a fork. Whoever chooses a number gets
//! a pool of that many threads, and after a fork another one: the threads of a pool do not survive it.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Floating-point operations below which the engine works on the calling thread alone, so that no pool is entered.
const ALONE: f64 = 4e6;

struct Chosen {
    threads: usize,
    /// The process that the pool was made in, and the pool.
    pool: Option<(u32, Arc<ThreadPool>)>,
}

static CHOSEN: Mutex<Option<Chosen>> = Mutex::new(None);

/// Threads that calls use, in the whole process. Without this call: as many as there are processors.
#[pyfunction]
pub fn set_num_threads(threads: usize) -> PyResult<()> {
    if threads == 0 {
        return Err(PyValueError::new_err("the number of threads is 0, expected 1 or more"));
    }
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    if chosen.as_ref().is_none_or(|chosen| chosen.threads != threads) {
        *chosen = Some(Chosen { threads, pool: None });
    }
    Ok(())
}

/// Threads that calls use.
#[pyfunction]
pub fn get_num_threads() -> usize {
    let chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    chosen.as_ref().map_or_else(rayon::current_num_threads, |chosen| chosen.threads)
}

/// The pool of the chosen number of threads; none without a choice.
fn pool() -> Option<Arc<ThreadPool>> {
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    let chosen = chosen.as_mut()?;
    let process = std::process::id();
    match &chosen.pool {
        Some((made_in, pool)) if *made_in == process => Some(pool.clone()),
        other => {
            // A pool of before a fork is nobody's: dropping it would wait for threads that are gone.
            if let Some((_, pool)) = other {
                std::mem::forget(pool.clone());
            }
            let pool = Arc::new(ThreadPoolBuilder::new().num_threads(chosen.threads).build().ok()?);
            chosen.pool = Some((process, pool.clone()));
            Some(pool)
        }
    }
}

/// Runs work of about so many floating-point operations on the chosen threads, with the interpreter released.
pub fn run<R: Send>(py: Python<'_>, flops: f64, work: impl FnOnce() -> R + Send) -> R {
    if flops < ALONE {
        return py.detach(work);
    }
    py.detach(|| match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    })
}

/// The same for work whose size is not known: long enough.
pub fn run_long<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    run(py, f64::INFINITY, work)
}
