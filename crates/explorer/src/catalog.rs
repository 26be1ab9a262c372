//! The models that can be chosen: those inside the program, those in the hub's cache, and files that were named when the
//! program was started. Nothing else is opened: a name in a request is looked up here and is never a path.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use foveal_models::checkpoint::Hub;
use foveal_models::{Architecture, Checkpoint, OpenModel, Result};
use serde_json::{Value, json};

use crate::fault::Fault;

/// Models that are kept open at a time: two can be compared.
const OPEN: usize = 2;
/// Models of the cache that are listed.
const LISTED: usize = 200;

/// Where a model comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Inside the program.
    Inside,
    /// The hub's cache.
    Cache,
    /// A file or folder that was named.
    File,
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// A text.
    Text,
    /// A text to translate.
    Translation,
    /// An image.
    Image,
    /// A question, and passages to find the answer in.
    Question,
}

struct Entry {
    id: String,
    reads: Reads,
    origin: Origin,
    place: Place,
}

enum Place {
    Inside,
    Path(PathBuf),
    Open(Arc<OpenModel>),
}

/// The models that can be chosen. The first is the one to begin with.
#[derive(Default)]
pub struct Catalog {
    entries: Vec<Entry>,
    context: Option<usize>,
    /// The last ones that were used, the newest at the end.
    open: Mutex<Vec<(String, Arc<OpenModel>)>>,
}

impl Catalog {
    /// No model.
    pub fn new() -> Self {
        Catalog::default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The models inside the program.
    #[must_use]
    pub fn with_inside(mut self) -> Self {
        for asset in &foveal_assets::MODELS {
            let checkpoint = Checkpoint::embedded(asset.name, asset.config, asset.weights);
            if let Ok(architecture) = checkpoint.and_then(|checkpoint| checkpoint.architecture()) {
                self.add(asset.name, reads(architecture), Origin::Inside, Place::Inside);
            }
        }
        self
    }

    /// The models in the cache of a hub that there is an architecture for.
    #[must_use]
    pub fn with_cache(mut self, hub: &Hub) -> Self {
        for name in hub.cached().into_iter().take(LISTED) {
            let Ok(path) = hub.clone().offline().resolve(&name) else { continue };
            if let Ok(architecture) = Checkpoint::open(&path).and_then(|checkpoint| checkpoint.architecture()) {
                self.add(&name, reads(architecture), Origin::Cache, Place::Path(path));
            }
        }
        self
    }

    /// Adds a folder, a file, or a name on the hub, which is downloaded if it is not in the cache. The id of the model, which
    /// may have been there already.
    ///
    /// # Errors
    /// If there is nothing of this name, or it is no checkpoint of a known architecture.
    pub fn add_named(&mut self, hub: &Hub, name: &str) -> Result<String> {
        let path = PathBuf::from(name);
        if !path.exists() && self.reads(name).is_some() {
            return Ok(name.to_owned());
        }
        let place = hub.resolve(name)?;
        let architecture = Checkpoint::open(&place)?.architecture()?;
        let (id, origin) = match path.exists() {
            true => (path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(), Origin::File),
            false => (name.to_owned(), Origin::Cache),
        };
        Ok(self.add(&id, reads(architecture), origin, Place::Path(place)))
    }

    /// A model that is open already.
    #[must_use]
    pub fn with_model(mut self, model: OpenModel) -> Self {
        let id = model.name.clone();
        self.add(&id, reads(model.model.architecture()), Origin::File, Place::Open(Arc::new(model)));
        self
    }

    /// Lets models see this many tokens, where their positions allow it.
    #[must_use]
    pub fn context(self, tokens: usize) -> Self {
        Catalog { context: Some(tokens), ..self }
    }

    fn add(&mut self, name: &str, reads: Reads, origin: Origin, place: Place) -> String {
        let taken = |id: &str| self.entries.iter().any(|entry| entry.id == id);
        let id = match taken(name) {
            false => name.to_owned(),
            true => (2..).map(|n| format!("{name} ({n})")).find(|id| !taken(id)).expect("numbers do not end"),
        };
        self.entries.push(Entry { id: id.clone(), reads, origin, place });
        id
    }

    /// What the model of this id takes.
    pub fn reads(&self, id: &str) -> Option<Reads> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| entry.reads)
    }

    /// The models, as `meta` lists them.
    pub fn json(&self) -> Value {
        let model = |entry: &Entry| {
            let reads = match entry.reads {
                Reads::Text => "text",
                Reads::Translation => "translation",
                Reads::Image => "image",
                Reads::Question => "question",
            };
            let from = match entry.origin {
                Origin::Inside => "inside",
                Origin::Cache => "cache",
                Origin::File => "file",
            };
            json!({ "id": entry.id, "name": entry.id, "reads": [reads], "from": from })
        };
        self.entries.iter().map(model).collect()
    }

    /// Whether the model of this id is open already.
    pub fn is_open(&self, id: &str) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().any(|(other, _)| other == id)
    }

    /// The model of this id.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    pub fn model(&self, id: &str) -> Result<Arc<OpenModel>, Fault> {
        let entry = self.entries.iter().find(|entry| entry.id == id).ok_or_else(|| {
            let ids: Vec<&str> = self.entries.iter().map(|entry| entry.id.as_str()).collect();
            Fault::request(
                format!("there is no model {id:?}; there are {}", ids.join(", ")),
                format!("모델 {id:?}이(가) 없습니다. 고를 수 있는 모델: {}", ids.join(", ")),
            )
        })?;
        let kept = |open: &mut Vec<(String, Arc<OpenModel>)>| {
            let at = open.iter().position(|(other, _)| other == id)?;
            let found = open.remove(at);
            open.push(found);
            open.last().map(|(_, model)| model.clone())
        };
        if let Some(model) = kept(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(model);
        }
        let model = match &entry.place {
            Place::Open(model) => return Ok(model.clone()),
            Place::Inside => OpenModel::inside(id).unwrap_or_else(|| OpenModel::open(id))?,
            Place::Path(path) => OpenModel::of(&Checkpoint::open(path)?)?,
        };
        let mut model = self.raised(model);
        id.clone_into(&mut model.name);
        let model = Arc::new(model);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((id.to_owned(), model.clone()));
        if open.len() > OPEN {
            open.remove(0);
        }
        Ok(model)
    }

    /// The model with the context that was asked for; as it is, if its positions end.
    fn raised(&self, mut open: OpenModel) -> OpenModel {
        if let Some(tokens) = self.context {
            open.model.raise_context(tokens).ok();
        }
        open
    }
}

fn reads(architecture: Architecture) -> Reads {
    match architecture {
        Architecture::Vit => Reads::Image,
        Architecture::Transformer => Reads::Translation,
        Architecture::Reader => Reads::Question,
        _ => Reads::Text,
    }
}
