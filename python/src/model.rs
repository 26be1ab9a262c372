//! Models of our own, from Python.

use std::sync::Arc;

use foveal_models::generate::{Choice, GenerateOptions, Sampling, Session};
use foveal_models::model::Sentences;
use foveal_models::trace::Probe;
use foveal_models::{Model, Observation, OpenModel, ReadOptions, TokenAxis};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::give;
use crate::error::raised;
use crate::pool;
use crate::trace::PyTrace;

/// A model with its tokenizer: a folder, a file, a name on the hub, or one of those inside the package.
#[pyclass(name = "Model", module = "foveal", frozen)]
pub struct PyModel(Arc<OpenModel>);

#[pymethods]
impl PyModel {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        Ok(PyModel(Arc::new(pool::run_long(py, || OpenModel::open(name)).map_err(raised)?)))
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The tokens of a text.
    fn encode(&self, text: &str) -> PyResult<Vec<u32>> {
        Ok(self.0.tokenizer().map_err(raised)?.encode(text).map_err(raised)?.ids().to_vec())
    }

    /// The text of tokens.
    fn decode(&self, tokens: Vec<u32>) -> PyResult<String> {
        self.0.target_tokenizer().map_err(raised)?.decode(&tokens).map_err(raised)
    }

    /// The scores of all tokens that may come next: [V].
    fn run<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let ids = self.encode(text)?;
        let logits = pool::run_long(py, || self.0.session()?.feed(&ids)).map_err(raised)?;
        Ok(give(py, logits))
    }

    /// Reads a text, and keeps all that is attended to.
    #[pyo3(signature = (text, *, chat = false))]
    fn read(&self, py: Python<'_>, text: &str, chat: bool) -> PyResult<PyReading> {
        let options = ReadOptions { chat, ..ReadOptions::default() };
        let seen = pool::run_long(py, || Observation::of(&self.0, text, &options)).map_err(raised)?;
        let ids = options.encode(&self.0, text).map_err(raised)?.ids().to_vec();
        Ok(PyReading { seen, ids })
    }

    /// A translation.
    fn translate(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        self.0.translator().map_err(raised)?;
        let seen = pool::run_long(py, || self.0.observe(text)).map_err(raised)?;
        Ok(seen.written.map(|written| written.text).unwrap_or_default())
    }

    /// One vector for each text, [texts, dim]: of sentence encoders.
    fn embed<'py>(&self, py: Python<'py>, texts: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let Model::Bert(model) = &self.0.model else {
            return Err(raised(format!("{} makes no vectors of sentences; load a sentence encoder", self.0.name)));
        };
        let ids = texts.iter().map(|text| self.encode(text)).collect::<PyResult<Vec<_>>>()?;
        let work = || model.embed(&Sentences::new(&ids), &mut Probe::default());
        Ok(give(py, pool::run_long(py, work).map_err(raised)?))
    }

    /// The pieces of text that come after `prompt`, one by one.
    #[pyo3(signature = (prompt, most = 128, *, temperature = 0.0, top_k = None, top_p = None, seed = 0))]
    #[expect(clippy::too_many_arguments, reason = "how to go on, all but the first by keyword")]
    fn generate(
        &self,
        py: Python<'_>,
        prompt: &str,
        most: usize,
        temperature: f32,
        top_k: Option<usize>,
        top_p: Option<f32>,
        seed: u64,
    ) -> PyResult<PyGeneration> {
        let choice =
            if temperature == 0.0 { Choice::Greedy } else { Choice::Sample(Sampling { temperature, top_k, top_p }) };
        let options = GenerateOptions { most, choice, seed, stop: self.0.stop.clone() };
        PyGeneration::new(py, self.0.clone(), self.encode(prompt)?, options)
    }

    fn __repr__(&self) -> String {
        format!("<foveal.Model {}: {}>", self.0.name, self.0.summary())
    }
}

/// Text as it comes: an iterator.
#[pyclass(name = "Generation", module = "foveal")]
pub struct PyGeneration {
    pieces: Option<std::sync::Mutex<std::sync::mpsc::Receiver<Result<String, String>>>>,
}

impl PyGeneration {
    /// The session borrows the model, so both live on a thread of their own, which waits until a piece is asked for.
    fn new(_: Python<'_>, open: Arc<OpenModel>, prompt: Vec<u32>, options: GenerateOptions) -> PyResult<Self> {
        let (send, pieces) = std::sync::mpsc::sync_channel(0);
        let write = move || {
            let run = || -> foveal_models::Result<()> {
                let mut session: Session<'_> = open.session()?;
                let tokenizer = open.target_tokenizer()?;
                let mut stream = tokenizer.stream_after(&prompt)?;
                for token in session.generate(&prompt, options)? {
                    let piece = stream.push(token?)?;
                    if !piece.is_empty() && send.send(Ok(piece)).is_err() {
                        return Ok(()); // nobody listens any more
                    }
                }
                let rest = stream.finish();
                if !rest.is_empty() {
                    send.send(Ok(rest)).ok();
                }
                Ok(())
            };
            if let Err(error) = run() {
                send.send(Err(error.to_string())).ok();
            }
        };
        std::thread::Builder::new()
            .name("foveal-generation".into())
            .spawn(write)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(PyGeneration { pieces: Some(std::sync::Mutex::new(pieces)) })
    }
}

#[pymethods]
impl PyGeneration {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        let Some(pieces) = &self.pieces else { return Ok(None) };
        loop {
            let wait = std::time::Duration::from_millis(100);
            let got = py.detach(|| match pieces.lock() {
                Ok(pieces) => pieces.recv_timeout(wait),
                Err(_) => Err(Disconnected),
            });
            match got {
                Ok(Ok(piece)) => return Ok(Some(piece)),
                Ok(Err(message)) => {
                    self.pieces = None;
                    return Err(raised(message));
                }
                // Ctrl-C ends the waiting, and with the receiver gone the thread ends.
                Err(Timeout) => py.check_signals()?,
                Err(Disconnected) => {
                    self.pieces = None;
                    return Ok(None);
                }
            }
        }
    }
}

/// What was observed while a model read a text.
#[pyclass(name = "_Reading", module = "foveal", frozen)]
pub struct PyReading {
    seen: Observation,
    ids: Vec<u32>,
}

fn side<'py>(py: Python<'py>, axis: &TokenAxis, ids: Vec<u32>) -> PyResult<Bound<'py, PyDict>> {
    let mut words = vec![0usize; axis.len()];
    for (word, group) in axis.groups.iter().enumerate() {
        group.tokens.clone().for_each(|token| words[token] = word);
    }
    let side = PyDict::new(py);
    side.set_item("labels", axis.labels.clone())?;
    side.set_item("ids", ids)?;
    side.set_item("special", axis.special.clone())?;
    side.set_item("words", words)?;
    Ok(side)
}

#[pymethods]
impl PyReading {
    /// What was read.
    #[getter]
    fn text(&self) -> &str {
        &self.seen.text
    }

    /// What was written, by an encoder-decoder.
    #[getter]
    fn written(&self) -> Option<String> {
        self.seen.written.as_ref().map(|written| written.text.clone())
    }

    /// The kind of attention that queries and keys belong to.
    #[getter]
    fn kind(&self) -> String {
        self.seen.kind.to_string()
    }

    /// The most probable tokens to come next: [(label, probability), …].
    #[getter]
    fn predictions(&self) -> Vec<(String, f32)> {
        self.seen.predictions.iter().map(|next| (next.label.clone(), next.probability)).collect()
    }

    /// What was attended to.
    fn trace(&self) -> PyTrace {
        PyTrace(self.seen.trace.clone())
    }

    /// The tokens along the rows and columns.
    fn sides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ids = |axis: &TokenAxis| match axis.len() == self.ids.len() {
            true => self.ids.clone(),
            false => (0..axis.len() as u32).collect(),
        };
        let (queries, keys) = (&self.seen.queries, &self.seen.keys);
        PyList::new(py, [side(py, queries, ids(queries))?, side(py, keys, ids(keys))?])
    }
}
