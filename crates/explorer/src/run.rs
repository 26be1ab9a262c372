//! What a model has read, kept so that anything can be asked of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use foveal_models::analysis::{norms, rollout, salience};
use foveal_models::trace::{Kind, LayerTrace, Trace};
use foveal_models::{Prediction, TokenAxis};
use ndarray::{Array1, Array2};
use serde_json::{Value, json};

use crate::asker::Cancel;
use crate::fault::Fault;
use crate::image::Picture;
use crate::request::{HeadName, Measure, RunRequest, SiteKind};

/// Tokens up to which there is a rollout: it takes n² memory and n³ work for every layer.
const ROLLOUT_TOKENS: usize = 4096;
/// Bytes of rollouts that a run keeps.
const ROLLOUT_BYTES: usize = 256 << 20;
/// Queries up to which all are asked which head to open with, and how many are asked beyond.
const SALIENCE_ROWS: usize = 512;
const SALIENCE_SAMPLE: usize = 32;

/// Tokens along one side of matrices.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What they are called.
    pub tokens: TokenAxis,
    /// What the model was fed at these places.
    pub ids: Vec<u32>,
}

/// What may come next: ln p of every token or class.
#[derive(Clone, Debug)]
pub struct Next {
    /// ln p: \[V\].
    pub log_probabilities: Array1<f32>,
    /// The most probable, most probable first.
    pub predictions: Vec<Prediction>,
}

/// A passage that a question was put to.
#[derive(Clone, Debug, PartialEq)]
pub struct PassageShare {
    /// Its text.
    pub text: String,
    /// Its share of the attention: the mean over layers, heads and tokens of the answer.
    pub weight: f32,
    /// Where it stands among the keys.
    pub keys: std::ops::Range<usize>,
}

/// What reading gives.
pub struct Reading {
    /// What was written, where something was.
    pub written: Option<String>,
    /// The passages that a question was put to.
    pub passages: Option<Vec<PassageShare>>,
    /// The image that was read, where one was.
    pub picture: Option<Picture>,
    /// The axes there are.
    pub axes: Vec<Axis>,
    /// The kinds of attention, with the axes of their rows and columns.
    pub sites: Vec<(Kind, usize, usize)>,
    /// The head to open with, where the model says it.
    pub salient: Option<(Kind, usize, i64)>,
    /// What was attended to.
    pub trace: Trace,
    /// What may come next.
    pub next: Option<Next>,
}

impl Reading {
    /// Of a sequence that attends to itself.
    pub fn of_self(kind: Kind, axis: Axis, trace: Trace) -> Self {
        let sites = vec![(kind, 0, 0)];
        let (written, passages, picture, salient, next) = (None, None, None, None, None);
        Reading { written, passages, picture, axes: vec![axis], sites, salient, trace, next }
    }
}

/// One kind of attention of a run.
#[derive(Clone, Debug)]
pub struct Site {
    /// Which.
    pub kind: Kind,
    /// The axis of its rows.
    pub queries: usize,
    /// The axis of its columns.
    pub keys: usize,
    /// The layers that were kept.
    pub layers: Vec<usize>,
    /// Heads of each.
    pub heads: usize,
    /// What can be asked for.
    pub measures: Vec<Measure>,
    /// The layer and head to open with; −1 is the mean.
    pub salient: (usize, i64),
}

/// ‖v·W_o‖ of each key, by kind, layer and head.
type Norms = HashMap<(Kind, usize, usize), Arc<Array1<f32>>>;
/// Rollouts by kind and layer, the oldest first.
type Rollouts = Vec<((Kind, usize), Arc<Array2<f32>>)>;

/// A run.
pub struct Run {
    /// What links call it. The same text read by the same model has the same id.
    pub id: String,
    /// What was asked for.
    pub request: RunRequest,
    /// What was read, written and attended to.
    pub reading: Reading,
    /// The kinds of attention there are.
    pub sites: Vec<Site>,
    bytes: usize,
    norms: Mutex<Norms>,
    rollouts: Mutex<Rollouts>,
}

/// The id of a run that begins with `request` and goes on with `written`.
pub fn id(request: &RunRequest, written: &[u32]) -> String {
    let mut hasher = DefaultHasher::new();
    (request, written).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Run {
    /// Keeps what was read.
    ///
    /// # Errors
    /// If the trace is not what the sites say.
    pub fn new(id: String, request: RunRequest, reading: Reading, cancel: &Cancel) -> Result<Self, Fault> {
        let site = |&(kind, queries, keys): &(Kind, usize, usize)| site(&reading, (kind, queries, keys), cancel);
        let sites = reading.sites.iter().map(site).collect::<Result<Vec<_>, _>>()?;
        let arrays: usize = reading.trace.layers().map(|(_, layer)| layer_bytes(layer)).sum();
        let labels: usize = reading.axes.iter().map(|axis| axis.tokens.len() * 200).sum();
        let bytes = arrays
            + labels
            + request.text.as_ref().map_or(0, String::len)
            + request.passages.as_ref().map_or(0, String::len)
            + request.image.as_ref().map_or(0, String::len);
        Ok(Run { id, request, reading, sites, bytes, norms: Mutex::default(), rollouts: Mutex::default() })
    }

    /// The bytes in memory, about.
    pub fn bytes(&self) -> usize {
        let norms = lock(&self.norms).values().map(|norms| norms.len() * 4).sum::<usize>();
        let rollouts = lock(&self.rollouts).iter().map(|(_, rollout)| rollout.len() * 4).sum::<usize>();
        self.bytes + norms + rollouts
    }

    /// The attention of this kind.
    ///
    /// # Errors
    /// If there is none.
    pub fn site(&self, wanted: SiteKind) -> Result<&Site, Fault> {
        let found = match wanted.kind() {
            Some(kind) => self.sites.iter().find(|site| site.kind == kind),
            None => self.sites.first(),
        };
        found.ok_or_else(|| {
            let kinds: Vec<String> = self.sites.iter().map(|site| site.kind.to_string()).collect();
            Fault::request(
                format!("this run has no such attention; it has {}", kinds.join(", ")),
                format!("이 실행에는 그런 어텐션이 없습니다. 있는 것: {}", kinds.join(", ")),
            )
        })
    }

    /// One layer of a site.
    ///
    /// # Errors
    /// If it was not kept.
    pub fn layer(&self, site: &Site, layer: usize) -> Result<&LayerTrace, Fault> {
        Ok(self.reading.trace.layer(site.kind, layer)?)
    }

    /// ‖v·W_o‖ of every key of a head, computed once.
    ///
    /// # Errors
    /// If there is no such layer or head.
    pub fn norms(&self, site: &Site, layer: usize, head: usize) -> Result<Arc<Array1<f32>>, Fault> {
        let key = (site.kind, layer, head);
        if let Some(norms) = lock(&self.norms).get(&key) {
            return Ok(norms.clone());
        }
        let norms = Arc::new(norms::of_keys(self.layer(site, layer)?, 0, head)?);
        lock(&self.norms).insert(key, norms.clone());
        Ok(norms)
    }

    /// Whether the rollout up to this layer is there already.
    pub fn has_rollout(&self, kind: Kind, layer: usize) -> bool {
        lock(&self.rollouts).iter().any(|(key, _)| *key == (kind, layer))
    }

    /// The rollout up to a layer, kept while there is room for it.
    ///
    /// # Errors
    /// If there is none.
    pub fn rollout(&self, site: &Site, layer: usize) -> Result<Arc<Array2<f32>>, Fault> {
        if !site.measures.contains(&Measure::Rollout) {
            return Err(Fault::request(
                format!(
                    "there is no rollout here: it needs all layers of a sequence to itself, up to {ROLLOUT_TOKENS} tokens"
                ),
                format!(
                    "롤아웃을 계산할 수 없습니다. 한 문장의 모든 층이 있어야 하고 토큰은 {ROLLOUT_TOKENS}개까지입니다"
                ),
            ));
        }
        let key = (site.kind, layer);
        if let Some((_, rollout)) = lock(&self.rollouts).iter().find(|(other, _)| *other == key) {
            return Ok(rollout.clone());
        }
        let rollout = Arc::new(rollout(&self.reading.trace, site.kind, 0, layer)?);
        let mut rollouts = lock(&self.rollouts);
        rollouts.push((key, rollout.clone()));
        while rollouts.len() > 1 && rollouts.len() * rollout.len() * 4 > ROLLOUT_BYTES {
            rollouts.remove(0);
        }
        Ok(rollout)
    }

    /// The run as the page sees it.
    pub fn json(&self) -> Value {
        let Reading { written, passages, picture, axes, next, .. } = &self.reading;
        let mut run = json!({
            "id": self.id,
            "model": self.request.model,
            "text": self.request.text.as_deref().unwrap_or(""),
            "axes": axes.iter().map(|axis| axis_json(&axis.tokens)).collect::<Value>(),
            "sites": self.sites.iter().map(site_json).collect::<Value>(),
            "off": self.request.off.iter().map(head_json).collect::<Value>(),
            "next": next.as_ref().map_or(json!([]), |next| next.predictions.iter().map(prediction_json).collect()),
        });
        if let Some(written) = written {
            run["written"] = json!(written);
        }
        if let Some(passages) = passages {
            let share = |PassageShare { text, weight, keys }: &PassageShare| json!({ "text": text, "weight": weight, "keys": [keys.start, keys.end] });
            run["passages"] = passages.iter().map(share).collect();
        }
        if let Some(picture) = picture {
            run["image"] = picture.json();
        }
        run
    }

    /// The fragment of a link to it: its first site's salient head.
    pub fn view(&self) -> Value {
        let Some(site) = self.opening() else { return json!({ "run": self.id }) };
        let (layer, head) = site.salient;
        json!({ "run": self.id, "site": site.kind.to_string(), "layer": layer.to_string(), "head": head.to_string() })
    }

    /// The attention to open with: from one sequence to another where there is that.
    fn opening(&self) -> Option<&Site> {
        self.sites.iter().find(|site| site.kind == Kind::Cross).or_else(|| self.sites.first())
    }
}

/// A token that may come, as JSON.
pub fn prediction_json(prediction: &Prediction) -> Value {
    json!({ "token": prediction.token, "label": prediction.label, "p": prediction.probability })
}

fn axis_json(axis: &TokenAxis) -> Value {
    let mut words = vec![0; axis.len()];
    for (word, group) in axis.groups.iter().enumerate() {
        group.tokens.clone().for_each(|token| words[token] = word);
    }
    let special: Vec<usize> = (0..axis.len()).filter(|&token| axis.special[token]).collect();
    let names: Vec<&str> = axis.groups.iter().map(|group| group.label.as_str()).collect();
    json!({ "labels": axis.labels, "words": words, "word_labels": names, "special": special })
}

fn site_json(site: &Site) -> Value {
    json!({
        "kind": site.kind.to_string(),
        "queries": site.queries,
        "keys": site.keys,
        "layers": site.layers,
        "heads": site.heads,
        "measures": site.measures.iter().map(|measure| measure.name()).collect::<Vec<_>>(),
        "salient": [json!(site.salient.0), json!(site.salient.1)],
    })
}

fn head_json(&(site, layer, head): &HeadName) -> Value {
    let kind = site.kind().map_or_else(|| "attention".to_owned(), |kind| kind.to_string());
    json!([kind, layer, head])
}

/// One kind of attention of a trace.
fn site(reading: &Reading, (kind, queries, keys): (Kind, usize, usize), cancel: &Cancel) -> Result<Site, Fault> {
    let layers: Vec<(usize, &LayerTrace)> = reading.trace.of_kind(kind).collect();
    let Some((first, layer)) = layers.first() else {
        return Err(Fault::request(
            "this model has no attention weights to show",
            "이 모델에는 보여 줄 어텐션 가중치가 없습니다",
        ));
    };
    let mut measures = vec![Measure::Weights];
    if layer.v().is_some() && layer.output().is_some() {
        measures.push(Measure::Norms);
    }
    let all = layers.iter().enumerate().all(|(n, (number, _))| n == *number);
    if kind != Kind::Cross && all && layer.queries() == layer.keys() && layer.queries() <= ROLLOUT_TOKENS {
        measures.push(Measure::Rollout);
    }
    let mut salient = (*first, 0);
    match reading.salient {
        Some((of, layer, head)) if of == kind => salient = (layer, head),
        _ => {
            let mut most = -1.0;
            for (number, layer) in &layers {
                for head in 0..layer.heads() {
                    cancel.check()?;
                    let score = salience(layer, head, kind == Kind::Cross, sample(layer.queries()))?;
                    if score > most {
                        (most, salient) = (score, (*number, head as i64));
                    }
                }
            }
        }
    }
    let (heads, layers) = (layer.heads(), layers.iter().map(|(number, _)| *number).collect());
    Ok(Site { kind, queries, keys, layers, heads, measures, salient })
}

/// All rows of a short text, and some of a long one.
fn sample(queries: usize) -> Vec<std::ops::Range<usize>> {
    if queries <= SALIENCE_ROWS {
        return std::iter::once(0..queries).collect();
    }
    (1..=SALIENCE_SAMPLE).map(|n| n * queries / SALIENCE_SAMPLE).map(|end| end - 1..end).collect()
}

fn layer_bytes(layer: &LayerTrace) -> usize {
    let count = |(b, h, t, d): (usize, usize, usize, usize)| b * h * t * d * 4;
    count(layer.q().dim()) + count(layer.k().dim()) + layer.v().map_or(0, |v| count(v.dim())) + layer.lse().len() * 8
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
