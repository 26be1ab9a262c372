//! What a run attended to: the one thing that passes from models to everything that looks.
//!
//! For each attention layer a [`Trace`] keeps queries, keys, values, the log-sum-exp of each row, the options and W_o: O(n)
//! memory, from which any weight of any head follows exactly, and every step of its arithmetic.
//!
//! ```
//! use foveal_models::layer::Random;
//! use foveal_models::model::{Gpt2, Gpt2Config, LanguageModel};
//! use foveal_models::trace::{Capture, Kind, Probe};
//!
//! let model = Gpt2::new(&Gpt2Config { layers: 2, ..Gpt2Config::nano() }, &mut Random::new(1))?;
//! let mut probe = Probe::new(Capture::All);
//! let hidden = model.infer(&[3, 1, 4, 1, 5], 1, None, &mut probe)?;
//! let trace = probe.into_trace();
//! let layer = trace.layer(Kind::Decoder, 1)?;
//! let weights = layer.weights(0, 2)?; // sequence 0, head 2
//! assert_eq!(weights.dim(), (5, 5));
//! assert_eq!(weights[[0, 1]], 0.0); // the future is hidden
//! let cell = layer.cell(0, 2, 4, 3)?; // query 4 on key 3, step by step
//! assert!((cell.weight - f64::from(weights[[4, 3]])).abs() < 1e-6);
//! # Ok::<(), foveal_models::Error>(())
//! ```

mod array;
mod builder;
mod cell;
mod layer;
mod probe;
mod watch;

use std::collections::BTreeMap;
use std::fmt;

pub use self::array::TraceArray;
pub use self::builder::LayerTraceBuilder;
pub use self::cell::Cell;
pub use self::layer::LayerTrace;
pub use self::probe::Probe;
pub use self::watch::{record, watch};
use crate::{Error, Result};

/// Which attention of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An encoder's, of a sequence to itself.
    Encoder,
    /// A decoder's, of a sequence to its own past.
    Decoder,
    /// Of a decoder's sequence to the encoder's.
    Cross,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Encoder => "encoder",
            Kind::Decoder => "decoder",
            Kind::Cross => "cross",
        })
    }
}

/// One attention layer of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Which attention.
    pub kind: Kind,
    /// In which layer, from 0.
    pub layer: usize,
}

/// One head of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Head {
    /// Its layer.
    pub site: Site,
    /// Its number in the layer, from 0.
    pub head: usize,
}

impl Head {
    /// Head `head` of layer `layer`.
    pub fn new(kind: Kind, layer: usize, head: usize) -> Self {
        Head { site: Site { kind, layer }, head }
    }
}

/// Which layers to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// None: nothing is kept, and nothing is spent.
    #[default]
    None,
    /// These, of every kind of attention.
    Layers(Vec<usize>),
    /// All.
    All,
}

impl Capture {
    /// Whether this layer is kept.
    pub fn wants(&self, layer: usize) -> bool {
        match self {
            Capture::None => false,
            Capture::Layers(layers) => layers.contains(&layer),
            Capture::All => true,
        }
    }
}

/// What was attended to in a run, layer by layer.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    layers: BTreeMap<Site, LayerTrace>,
}

impl FromIterator<(Site, LayerTrace)> for Trace {
    fn from_iter<I: IntoIterator<Item = (Site, LayerTrace)>>(layers: I) -> Self {
        Trace { layers: layers.into_iter().collect() }
    }
}

impl Trace {
    /// Adds a layer, in place of one that is there.
    pub fn insert(&mut self, site: Site, layer: LayerTrace) {
        self.layers.insert(site, layer);
    }

    /// The layers there are, encoder first, then decoder, then cross attention.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = (Site, &LayerTrace)> {
        self.layers.iter().map(|(site, layer)| (*site, layer))
    }

    /// The layers of one kind, in order.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (usize, &LayerTrace)> {
        self.layers().filter(move |(site, _)| site.kind == kind).map(|(site, layer)| (site.layer, layer))
    }

    /// The kinds of attention there are.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.layers.keys().map(|site| site.kind).collect();
        kinds.dedup();
        kinds
    }

    /// One layer.
    ///
    /// # Errors
    /// If it was not captured; the error lists those that were.
    pub fn layer(&self, kind: Kind, layer: usize) -> Result<&LayerTrace> {
        self.layers.get(&Site { kind, layer }).ok_or_else(|| Error::NotCaptured {
            site: Site { kind, layer },
            captured: self.layers.keys().copied().collect(),
        })
    }
}
