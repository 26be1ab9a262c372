//! Answers questions about models and what they have read. No HTTP here: a server and a notebook's kernel ask alike.
//!
//! ```
//! use foveal_explorer::{Asker, Catalog, Explorer, Request};
//! use foveal_view::Language;
//!
//! let explorer = Explorer::new(Catalog::new().with_inside());
//! let asker = Asker::patient(Language::English);
//! let request = Request::parse(br#"{"kind": "run", "model": "shakespeare", "text": "To be or not"}"#)?;
//! let run = explorer.ask(&request, &asker)?.head;
//! let tile = format!(
//!     r#"{{"kind": "tile", "at": {{"run": {}, "site": "decoder", "layer": 0, "head": 0}}, "rows": [0, 2], "cols": [0, 2]}}"#,
//!     run["id"]
//! );
//! let weights = explorer.ask(&Request::parse(tile.as_bytes())?, &asker)?;
//! assert_eq!(weights.buffers[0].len(), 4 * 4); // four numbers of four bytes
//! # Ok::<(), foveal_explorer::Fault>(())
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use foveal_models::trace::Capture;
use foveal_view::Language;
use serde_json::json;

use crate::asker::{Asker, Cancel};
use crate::catalog::Catalog;
use crate::fault::{Fault, Text};
use crate::overview::overview;
use crate::read::{Limits, read};
use crate::reply::Reply;
use crate::request::{At, Measure, Request, RunRequest};
use crate::run::{self, Reading, Run};
use crate::runs::Runs;
use crate::{answer, write};

/// Bytes of runs that are kept.
const BYTES: usize = 4 << 30;
/// Cells of a map from which on it is long work: one head of 16,384 tokens is none, all heads together are.
const LONG_MAP: usize = 1 << 29;

/// What there is to explore.
pub struct Explorer {
    catalog: Catalog,
    runs: Mutex<Runs>,
    limits: Limits,
}

/// How much work a question is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A moment.
    Short,
    /// More, with this model: one such question at a time.
    Long(String),
}

impl Explorer {
    /// Over these models.
    pub fn new(catalog: Catalog) -> Self {
        let limits = Limits { capture: Capture::All, bytes: BYTES };
        Explorer { catalog, runs: Mutex::new(Runs::new(BYTES)), limits }
    }

    /// Keeps runs of this many bytes together; a text that takes more is refused.
    #[must_use]
    pub fn memory(self, bytes: usize) -> Self {
        Explorer { runs: Mutex::new(Runs::new(bytes)), limits: Limits { bytes, ..self.limits }, ..self }
    }

    /// Keeps the attention of these layers.
    #[must_use]
    pub fn capture(self, capture: Capture) -> Self {
        Explorer { limits: Limits { capture, ..self.limits }, ..self }
    }

    /// The models.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Bytes of all runs that are kept.
    pub fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// How much work a question is.
    pub fn work(&self, request: &Request) -> Work {
        let model = |id: &str| self.run(id).map_or(Work::Short, |run| Work::Long(run.request.model.clone()));
        let of_matrix = |at: &At, measure: Measure, cells: usize| {
            let Ok(run) = self.run(&at.run) else { return Work::Short };
            let long = match measure {
                Measure::Rollout => run.site(at.site).is_ok_and(|site| !run.has_rollout(site.kind, at.layer)),
                _ => {
                    let heads = if at.head < 0 { run.site(at.site).map_or(1, |site| site.heads) } else { 1 };
                    cells.saturating_mul(heads) > LONG_MAP
                }
            };
            if long { Work::Long(run.request.model.clone()) } else { Work::Short }
        };
        match request {
            Request::Meta {} | Request::Cell { .. } | Request::Neurons { .. } => Work::Short,
            Request::Run(RunRequest { model, .. }) => Work::Long(model.clone()),
            Request::Overview { run, .. } | Request::Predict { run, .. } | Request::Heads { run, .. } => model(run),
            Request::Generate(request) => model(&request.run),
            Request::Tile(request) => of_matrix(&request.at, request.measure, 0),
            Request::Map(request) => {
                let length = |span: crate::request::Span| span.end.saturating_sub(span.start);
                let cells = length(request.rows).saturating_mul(length(request.cols));
                of_matrix(&request.at, request.measure, cells)
            }
        }
    }

    /// Answers a question. Parts of the answer go to the asker as they come.
    ///
    /// # Errors
    /// If the question makes no sense, or is no longer wanted.
    pub fn ask(&self, request: &Request, asker: &Asker) -> Result<Reply, Fault> {
        asker.cancel.check()?;
        let answer = match request {
            Request::Meta {} => Ok(self.meta(asker.language)),
            Request::Run(request) => self.read(request, asker).map(|run| Reply::new(run.json())),
            Request::Overview { run, site, measure } => overview(&*self.run(run)?, *site, *measure, asker),
            Request::Map(request) => answer::map(&*self.run(&request.at.run)?, request, asker),
            Request::Tile(request) => answer::tile(&*self.run(&request.at.run)?, request),
            Request::Cell { at, query, key } => answer::cell(&*self.run(&at.run)?, at, *query, *key),
            Request::Neurons { at, query, keys } => answer::neurons(&*self.run(&at.run)?, at, *query, *keys),
            Request::Predict { run, off } => {
                let run = self.run(run)?;
                write::predict(&*self.catalog.model(&run.request.model)?, &run, off, asker)
            }
            Request::Generate(request) => {
                let run = self.run(&request.run)?;
                let open = self.catalog.model(&run.request.model)?;
                let run = Arc::new(write::generate(&open, &run, request, &self.limits, asker)?);
                self.lock().insert(run.clone());
                Ok(Reply::new(run.json()))
            }
            Request::Heads { run, site } => answer::heads(&*self.run(run)?, *site, asker),
        };
        // Norms and rollouts are kept with their runs.
        self.lock().shrink();
        answer
    }

    /// Reads a text or an image, or finds what was read before.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn read(&self, request: &RunRequest, asker: &Asker) -> Result<Arc<Run>, Fault> {
        let id = run::id(request, &[]);
        if let Ok(run) = self.run(&id) {
            return Ok(run);
        }
        if !self.catalog.is_open(&request.model) {
            let what = Text::new(format!("opening {}", request.model), format!("{} 여는 중", request.model));
            asker.progress(0.0, &what);
        }
        let open = self.catalog.model(&request.model)?;
        asker.cancel.check()?;
        let reading = read(&open, request, &self.limits, asker)?;
        // The image is kept as the model has seen it.
        let request = RunRequest { image: None, ..request.clone() };
        let run = Arc::new(Run::new(id, request, reading, &asker.cancel)?);
        self.lock().insert(run.clone());
        Ok(run)
    }

    /// Keeps a run of a program of its own, which has read `text` with a model that is not in the catalog: all can be asked about
    /// it but what takes the model.
    ///
    /// ```
    /// use foveal::{Attention, Mask};
    /// use foveal_explorer::{Axis, Catalog, Explorer, Reading};
    /// use foveal_models::TokenAxis;
    /// use foveal_models::trace::{Kind, LayerTrace, Site, Trace};
    /// use ndarray::Array4;
    ///
    /// let x = Array4::<f32>::ones((1, 2, 3, 4));
    /// let layer = LayerTrace::builder(Attention::new().mask(Mask::causal()), &x, &x).build()?;
    /// let trace = Trace::from_iter([(Site { kind: Kind::Decoder, layer: 0 }, layer)]);
    /// let axis = Axis { tokens: TokenAxis::plain(["a", "b", "c"]), ids: vec![0, 1, 2] };
    /// let explorer = Explorer::new(Catalog::new());
    /// let run = explorer.insert("mine", "a b c", Reading::of_self(Kind::Decoder, axis, trace))?;
    /// assert_eq!(run.json()["sites"][0]["heads"], 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the trace is not what the reading says.
    pub fn insert(&self, model: &str, text: &str, reading: Reading) -> Result<Arc<Run>, Fault> {
        let request = RunRequest { model: model.into(), text: Some(text.into()), ..RunRequest::default() };
        let id = format!("{}-{}", run::id(&request, &[]), self.lock().all().len());
        let run = Arc::new(Run::new(id, request, reading, &Cancel::default())?);
        self.lock().insert(run.clone());
        Ok(run)
    }

    fn meta(&self, language: Language) -> Reply {
        let runs = self.lock();
        let newest = runs.all().last();
        let (title, note) = match language {
            Language::English => ("Foveal", "Every weight is computed when you look at it."),
            Language::Korean => ("Foveal", "모든 가중치는 보는 순간 계산됩니다."),
        };
        Reply::new(json!({
            "title": title,
            "note": note,
            "language": match language { Language::English => "en", Language::Korean => "ko" },
            "digits": 4,
            "can": match self.catalog.is_empty() {
                false => json!(["run", "overview", "cell", "neurons", "predict", "generate", "heads"]),
                true => json!(["overview", "cell", "neurons", "heads"]),
            },
            "models": self.catalog.json(),
            "runs": runs.all().iter().map(|run| run.json()).collect::<Vec<_>>(),
            "view": newest.map_or_else(|| json!({}), |run| run.view()),
        }))
    }

    fn run(&self, id: &str) -> Result<Arc<Run>, Fault> {
        self.lock().get(id)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
