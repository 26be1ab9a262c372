//! Watching a run, and meddling with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use foveal::{Attention, KvCache};
use ndarray::{Array2, ArrayView2, s};

use super::{Capture, Head, LayerTrace, Site, Trace};
use crate::layer::{MultiHeadAttention, Source};
use crate::{Error, Result};

/// What a run is watched with. Every attention of a model goes through it: what it is told to keep it keeps, and heads that
/// are switched off say nothing: their output is 0 before W_o.
///
/// A probe follows a sequence token by token: runs that add to a cache add to its trace.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    capture: Capture,
    off: BTreeSet<Head>,
    listener: Option<Listener>,
    /// What was kept, run by run.
    kept: BTreeMap<Site, Vec<LayerTrace>>,
}

/// Is told of every attention layer that has run.
#[derive(Clone)]
struct Listener(Arc<dyn Fn(Site) -> ControlFlow<()> + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl Probe {
    /// Keeps these layers.
    pub fn new(capture: Capture) -> Self {
        Probe { capture, ..Probe::default() }
    }

    /// Switches these heads off.
    #[must_use]
    pub fn without(mut self, heads: impl IntoIterator<Item = Head>) -> Self {
        self.off.extend(heads);
        self
    }

    /// Calls `listener` after every attention layer: to show how far a run is, or to end it with [`Error::Stopped`].
    #[must_use]
    pub fn on_layer(self, listener: impl Fn(Site) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        Probe { listener: Some(Listener(Arc::new(listener))), ..self }
    }

    /// Whether it keeps anything.
    pub fn captures(&self) -> bool {
        self.capture != Capture::None
    }

    /// A probe that switches off the same heads, tells the same listener, and keeps what it is told to, for a part of a run.
    pub(crate) fn with_capture(&self, capture: Capture) -> Probe {
        Probe { capture, off: self.off.clone(), listener: self.listener.clone(), kept: BTreeMap::new() }
    }

    /// Takes over what another probe has kept of a part of this run, as far as this one keeps it.
    pub(crate) fn absorb(&mut self, other: Probe) {
        for (site, runs) in other.kept {
            if self.capture.wants(site.layer) {
                self.kept.entry(site).or_default().extend(runs);
            }
        }
    }

    /// Forgets what was kept: the sequence begins anew.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// What was attended to so far.
    pub fn trace(&self) -> Trace {
        self.clone().into_trace()
    }

    /// What one layer attended to so far; none if it was not kept.
    pub fn layer(&self, site: Site) -> Option<LayerTrace> {
        self.kept.get(&site).map(|runs| LayerTrace::join(site.kind, runs.clone()))
    }

    /// The same as [`trace`](Self::trace), at the end.
    pub fn into_trace(self) -> Trace {
        let layers = self.kept.into_iter().map(|(site, runs)| (site, LayerTrace::join(site.kind, runs)));
        layers.collect()
    }

    /// Runs an attention layer: y [B·T, D] for x [B·T, D].
    pub(crate) fn attend(
        &mut self,
        site: Site,
        layer: &MultiHeadAttention,
        x: ArrayView2<f32>,
        batch: usize,
        source: Source,
        attention: &Attention,
    ) -> Result<Array2<f32>> {
        let mut record = layer.attend(x, batch, source, attention)?;
        let first = Head { site, head: 0 };
        for off in self.off.range(first..Head { head: layer.heads(), ..first }) {
            record.forward.out.slice_mut(s![.., off.head, .., ..]).fill(0.0);
        }
        let y = layer.join(&record)?;
        if self.capture.wants(site.layer) {
            self.kept.entry(site).or_default().push(LayerTrace::new(record, layer.output.clone()));
        }
        match &self.listener {
            Some(Listener(listener)) if listener(site).is_break() => Err(Error::Stopped),
            _ => Ok(y),
        }
    }

    /// The same for the last token of one sequence, [1, D], after all of them, x: [T, D]. Of the others only keys and values
    /// are needed, unless this layer is kept.
    pub(crate) fn attend_last(
        &mut self,
        site: Site,
        layer: &MultiHeadAttention,
        x: ArrayView2<f32>,
        cache: &mut KvCache,
        attention: &Attention,
    ) -> Result<Array2<f32>> {
        let (start, last) = (cache.len(), x.nrows().saturating_sub(1));
        if last > 0 && self.capture.wants(site.layer) {
            let y = self.attend(site, layer, x, 1, Source::Cache(cache), attention)?;
            return Ok(y.slice(s![last.., ..]).to_owned());
        }
        if last > 0 {
            layer.remember(x.slice(s![..last, ..]), 1, cache)?;
        }
        let y = self.attend(site, layer, x.slice(s![last.., ..]), 1, Source::Cache(cache), attention);
        y.inspect_err(|_| cache.truncate(start))
    }
}
