use std::ops;

use ndarray::Array2;
use serde::Serialize;

use super::{Caption, caption_setters, check_not_empty};
use crate::{Error, Steps};

/// A large matrix, pooled to pixels; the axes count tokens.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    pub(crate) pixels: Array2<f32>,
    pub(crate) queries: ops::Range<usize>,
    pub(crate) keys: ops::Range<usize>,
    pub(crate) steps: Steps,
    pub(crate) axes: Option<(String, String)>,
    pub(crate) value_name: Option<String>,
    pub(crate) caption: Caption,
}

impl Map {
    /// Pixels that stand for the weights of the tokens `queries` over the tokens `keys`.
    ///
    /// # Errors
    /// If there are no pixels or no tokens.
    pub fn new(pixels: Array2<f32>, queries: ops::Range<usize>, keys: ops::Range<usize>) -> Result<Self, Error> {
        check_not_empty(&pixels)?;
        if queries.is_empty() || keys.is_empty() {
            return Err(Error::Empty { what: "tokens" });
        }
        let steps = Steps::Log;
        Ok(Map { pixels, queries, keys, steps, axes: None, value_name: None, caption: Caption::default() })
    }

    caption_setters!();

    /// Colours in steps of equal ratio (the default: weights of long texts span orders of magnitude), or even steps.
    #[must_use]
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }

    /// Names of the axes, in place of Query and Key.
    #[must_use]
    pub fn axes(mut self, queries: impl Into<String>, keys: impl Into<String>) -> Self {
        self.axes = Some((queries.into(), keys.into()));
        self
    }

    /// What the colour bar measures, in place of Weight.
    #[must_use]
    pub fn measure(mut self, name: impl Into<String>) -> Self {
        self.value_name = Some(name.into());
        self
    }

    pub(crate) fn names(&self) -> (&str, &str) {
        let language = self.caption.language;
        self.axes.as_ref().map_or((language.query(), language.key()), |(q, k)| (q, k))
    }

    pub(crate) fn value_name(&self) -> &str {
        self.value_name.as_deref().unwrap_or(self.caption.language.weight())
    }

    /// The ends of the colour bar: four orders of magnitude at most where the steps are of equal ratio.
    pub(crate) fn limits(&self) -> (f64, f64) {
        let hi = crate::scale::maximum(&self.pixels);
        let positive = self.pixels.iter().filter(|v| v.is_finite() && **v > 0.0);
        let lo = positive.fold(f64::INFINITY, |min, &v| min.min(f64::from(v)));
        (lo.max(hi * 1e-4), hi)
    }
}
