//! Pictures, the page as a file, and the page in a notebook.

use foveal_explorer::{Asker, Axis, Catalog, Explorer, Reading, Request, page_group};
use foveal_models::TokenAxis;
use foveal_models::analysis::words::Group;
use foveal_models::trace::Kind;
use foveal_view::{Format, Heatmap, Language, Look, Map, Page, Scene, Storage, Theme};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::Mutex;

use crate::arrays::{floats, two};
use crate::error::raised;
use crate::pool;
use crate::trace::{PyTrace, kind};

fn language(name: &str) -> PyResult<Language> {
    match name {
        "en" => Ok(Language::English),
        "ko" => Ok(Language::Korean),
        _ => Err(raised(format!("language is {name:?}, expected \"en\" or \"ko\""))),
    }
}

/// Tokens along one side: labels, ids, which are special, and the word that each belongs to.
#[derive(FromPyObject)]
pub struct Side {
    #[pyo3(item)]
    labels: Vec<String>,
    #[pyo3(item)]
    ids: Vec<u32>,
    #[pyo3(item)]
    special: Vec<bool>,
    #[pyo3(item)]
    words: Vec<usize>,
}

impl Side {
    fn axis(&self) -> PyResult<Axis> {
        let count = self.labels.len();
        for (what, got) in [("ids", self.ids.len()), ("special", self.special.len()), ("words", self.words.len())] {
            if got != count {
                return Err(raised(format!("there are {got} {what} for {count} tokens; give one for each")));
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for (n, label) in self.labels.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if n > 0 && self.words[n] == self.words[n - 1] => {
                    group.label.push_str(label);
                    group.tokens.end = n + 1;
                }
                _ => groups.push(Group { label: label.clone(), tokens: n..n + 1 }),
            }
        }
        let tokens = TokenAxis { labels: self.labels.clone(), groups, special: self.special.clone() };
        Ok(Axis { tokens, ids: self.ids.clone() })
    }
}

/// A kind of attention with the tokens of its rows and columns, by their places in the list of axes.
type Sites = Vec<(String, usize, usize)>;

fn sites(sites: &Sites) -> PyResult<Vec<(Kind, usize, usize)>> {
    sites.iter().map(|(name, queries, keys)| Ok((kind(name)?, *queries, *keys))).collect()
}

#[pymethods]
impl PyTrace {
    /// The page as one HTML file that fetches nothing.
    #[pyo3(signature = (axes, sites, title, model, language = "en", exact = false, salient = None))]
    #[expect(clippy::too_many_arguments, reason = "what a page shows")]
    fn html(
        &self,
        py: Python<'_>,
        axes: Vec<Side>,
        sites: Sites,
        title: &str,
        model: &str,
        language: &str,
        exact: bool,
        salient: Option<(usize, usize)>,
    ) -> PyResult<String> {
        let axes = axes.iter().map(Side::axis).collect::<PyResult<Vec<_>>>()?;
        let (sites, language) = (self::sites(&sites)?, self::language(language)?);
        pool::run_long(py, || {
            let mut groups = Vec::new();
            for (kind, queries, keys) in sites {
                let (queries, keys) = (&axes[queries].tokens, &axes[keys].tokens);
                let group = page_group(&self.0, kind, (queries, keys), false).map_err(raised)?;
                groups.push(match salient {
                    Some((layer, head)) => group.salient(layer, head),
                    None => group,
                });
            }
            let storage = if exact { Storage::Exact } else { Storage::Fitting };
            let page = Page::new(groups).storage(storage).language(language).title(title).model(model);
            page.html().map_err(raised)
        })
    }
}

/// Answers a page's questions about a trace.
#[pyclass(name = "_Explorer", module = "foveal", frozen)]
pub struct PyExplorer {
    explorer: Explorer,
    language: Language,
}

#[pymethods]
impl PyExplorer {
    #[new]
    #[pyo3(signature = (trace, axes, sites, text, model, language = "en"))]
    fn new(trace: &PyTrace, axes: Vec<Side>, sites: Sites, text: &str, model: &str, language: &str) -> PyResult<Self> {
        let axes = axes.iter().map(Side::axis).collect::<PyResult<Vec<_>>>()?;
        let (written, passages, picture, salient, next) = (None, None, None, None, None);
        let sites = self::sites(&sites)?;
        let reading = Reading { written, passages, picture, axes, sites, salient, trace: trace.0.clone(), next };
        let explorer = Explorer::new(Catalog::new());
        explorer.insert(model, text, reading).map_err(raised)?;
        Ok(PyExplorer { explorer, language: self::language(language)? })
    }

    /// The answer to a request of JSON: its parts, the last one the whole, each (head of JSON, [buffers]).
    fn ask<'py>(&self, py: Python<'py>, request: &str) -> PyResult<Bound<'py, PyList>> {
        let replies = pool::run_long(py, || {
            let parts = std::sync::Arc::new(Mutex::new(Vec::new()));
            let sink = parts.clone();
            let asker = Asker::new(self.language, move |part| {
                if let Ok(mut parts) = sink.lock() {
                    parts.push(part);
                }
            });
            let answer = Request::parse(request.as_bytes()).and_then(|request| self.explorer.ask(&request, &asker));
            let last = answer.unwrap_or_else(|fault| fault.reply(self.language));
            let mut replies = parts.lock().map(|mut parts| std::mem::take(&mut *parts)).unwrap_or_default();
            replies.push(last);
            replies
        });
        let list = PyList::empty(py);
        for reply in replies {
            let buffers = reply.buffers.iter().map(|buffer| PyBytes::new(py, buffer));
            list.append((reply.head.to_string(), PyList::new(py, buffers)?))?;
        }
        Ok(list)
    }
}

/// The page without data, for a frame inside a notebook.
#[pyfunction]
#[pyo3(signature = (language = "en"))]
pub fn framed_page(language: &str) -> PyResult<String> {
    Page::framed(self::language(language)?).map_err(raised)
}

/// A matrix as a picture in "svg", "png", "json" or "csv"; with labels as a heat map, without as a map of pixels.
#[pyfunction]
#[pyo3(signature = (matrix, format, rows = None, cols = None, size = None, title = "", note = "", language = "en", dark = false))]
#[expect(clippy::too_many_arguments, reason = "what a picture shows")]
pub fn picture<'py>(
    py: Python<'py>,
    matrix: &Bound<'py, PyAny>,
    format: &str,
    rows: Option<Vec<String>>,
    cols: Option<Vec<String>>,
    size: Option<(usize, usize)>,
    title: &str,
    note: &str,
    language: &str,
    dark: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let matrix = two("the matrix", "[queries, keys]", floats("the matrix", matrix)?)?;
    let language = self::language(language)?;
    let format = Format::of(format!("x.{format}")).map_err(raised)?;
    let look = Look::new().theme(if dark { Theme::Dark } else { Theme::Light });
    let bytes = py.detach(|| {
        let scene: Scene = match (rows, cols) {
            (Some(rows), Some(cols)) => {
                Heatmap::new(matrix, rows, cols).map_err(raised)?.title(title).note(note).language(language).into()
            }
            _ => {
                let (queries, keys) = size.unwrap_or(matrix.dim());
                let map = Map::new(matrix, 0..queries, 0..keys).map_err(raised)?;
                map.title(title).note(note).language(language).into()
            }
        };
        scene.render(format, &look).map_err(raised)
    })?;
    Ok(PyBytes::new(py, &bytes))
}
