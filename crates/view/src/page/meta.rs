//! What a page says about itself and its data, as JSON: the head of `meta` (see page/source.js), and where its numbers lie.

use foveal::HeadOptions;
use serde::Serialize;

use super::layer::{Data, Layer};
use super::pictures::SMALL;
use super::{Group, Kind, Page, Tokens};

/// Beyond this many tokens, a rollout takes longer than anyone waits for it.
const ROLLOUT: usize = 1024;

#[derive(Serialize)]
pub(super) struct File<'a> {
    pub meta: Meta<'a>,
    pub sites: Vec<Stored>,
}

#[derive(Serialize)]
pub(super) struct Meta<'a> {
    title: &'a str,
    note: &'a str,
    language: &'static str,
    digits: u8,
    can: Vec<&'static str>,
    models: [(); 0],
    runs: [Run<'a>; 1],
    view: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct Run<'a> {
    id: &'static str,
    model: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<&'a str>,
    axes: Vec<Axis<'a>>,
    sites: Vec<Site>,
    off: [(); 0],
    next: Vec<Prediction<'a>>,
}

#[derive(Serialize)]
struct Prediction<'a> {
    token: usize,
    label: &'a str,
    p: f32,
}

#[derive(Serialize)]
struct Axis<'a> {
    labels: &'a [String],
    words: &'a [usize],
    word_labels: &'a [String],
    special: Vec<usize>,
}

#[derive(Serialize)]
struct Site {
    kind: &'static str,
    queries: usize,
    keys: usize,
    layers: Vec<usize>,
    heads: usize,
    measures: Vec<&'static str>,
    salient: (usize, usize),
}

/// The numbers of a site.
#[derive(Serialize)]
pub(super) struct Stored {
    /// Pixels of the small pictures, down and across.
    small: (usize, usize),
    /// The largest value of each small picture, for weights and norms.
    pub max: Vec<Vec<f32>>,
    pub layers: Vec<StoredLayer>,
}

#[derive(Serialize)]
pub(super) struct StoredLayer {
    /// Whether weights are stored, instead of what they are computed from.
    dense: bool,
    half: bool,
    /// G and D.
    groups: usize,
    dim: usize,
    /// One list a head, in the order that the engine's module takes.
    options: Vec<[Option<f64>; 8]>,
    norms: bool,
    /// Dv and D of the output, where values are stored.
    values: Option<(usize, usize)>,
    /// Pixels of the pictures of long texts, and the largest value of each; no pixels if there are none.
    pub pyramid: (usize, usize),
    pub pyramid_max: Vec<f32>,
}

impl Stored {
    pub fn of(group: &Group, half: bool) -> Self {
        let (rows, cols) = group.layers[0].1.size();
        Stored {
            small: (rows.min(SMALL), cols.min(SMALL)),
            max: Vec::new(),
            layers: group.layers.iter().map(|(_, layer)| StoredLayer::of(layer, half)).collect(),
        }
    }
}

impl StoredLayer {
    fn of(layer: &Layer, half: bool) -> Self {
        let (dense, groups, dim, options) = match &layer.data {
            Data::Weights(_) => (true, 0, 0, Vec::new()),
            Data::Scores(scores) => {
                let (groups, _, dim) = scores.k.dim();
                (false, groups, dim, scores.options.iter().map(numbers).collect())
            }
        };
        StoredLayer {
            dense,
            half: half && !dense,
            groups,
            dim,
            options,
            norms: layer.norms.is_some(),
            values: layer.values.as_ref().map(|values| (values.v.dim().2, values.output.nrows())),
            pyramid: (0, 0),
            pyramid_max: Vec::new(),
        }
    }
}

fn numbers(options: &HeadOptions) -> [Option<f64>; 8] {
    let count = |x: Option<usize>| x.map(|x| x as f64);
    [
        Some(options.scale.into()),
        options.softcap.map(f64::from),
        count(options.left),
        count(options.right),
        Some(options.offset as f64),
        Some(options.length as f64),
        Some(options.slope.into()),
        options.sink.map(f64::from),
    ]
}

pub(super) fn meta<'a>(page: &'a Page, digits: u8) -> Meta<'a> {
    let mut axes: Vec<&'a Tokens> = Vec::new();
    let mut axis = |tokens: &'a Tokens| match axes.iter().position(|other| *other == tokens) {
        Some(at) => at,
        None => {
            axes.push(tokens);
            axes.len() - 1
        }
    };
    let sites: Vec<Site> = page
        .groups
        .iter()
        .map(|group| {
            let (first, layer) = &group.layers[0];
            Site {
                kind: kind(group.kind),
                queries: axis(&group.queries),
                keys: axis(&group.keys),
                layers: group.layers.iter().map(|(number, _)| *number).collect(),
                heads: layer.heads(),
                measures: measures(group),
                salient: group.salient.unwrap_or((*first, 0)),
            }
        })
        .collect();
    let mut can = vec!["overview", "heads"];
    if page.groups.iter().all(|group| group.layers.iter().all(|(_, layer)| matches!(layer.data, Data::Scores(_)))) {
        can.extend(["cell", "neurons"]);
    }
    let next = page.next.iter().enumerate();
    let run = Run {
        id: "0",
        model: &page.model,
        text: &page.caption.title,
        written: page.written.as_deref(),
        axes: axes.into_iter().map(Axis::from).collect(),
        sites,
        off: [],
        next: next.map(|(token, (label, p))| Prediction { token, label, p: *p }).collect(),
    };
    Meta {
        title: &page.caption.title,
        note: &page.caption.note,
        language: page.caption.language.code(),
        digits,
        can,
        models: [],
        runs: [run],
        view: page.view.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect(),
    }
}

impl<'a> From<&'a Tokens> for Axis<'a> {
    fn from(tokens: &'a Tokens) -> Self {
        let special = (0..tokens.special.len()).filter(|&i| tokens.special[i]).collect();
        Axis { labels: &tokens.labels, words: &tokens.words, word_labels: &tokens.word_labels, special }
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Attention => "attention",
        Kind::Encoder => "encoder",
        Kind::Decoder => "decoder",
        Kind::Cross => "cross",
    }
}

/// What the page can show of a group. A rollout goes through all layers from the first.
fn measures(group: &Group) -> Vec<&'static str> {
    let mut measures = vec!["weights"];
    if group.layers.iter().all(|(_, layer)| layer.norms.is_some()) {
        measures.push("norms");
    }
    let whole = group.layers.iter().enumerate().all(|(at, (number, _))| at == *number);
    if group.is_square() && whole && group.layers.len() > 1 && group.queries.labels.len() <= ROLLOUT {
        measures.push("rollout");
    }
    measures
}
