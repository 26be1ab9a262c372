use ndarray::Array2;
use serde::Serialize;

use super::{Caption, caption_setters, check_labels, strings};
use crate::scale::{Scale, default_steps, maximum};
use crate::{Error, Look, Steps};

/// Whether the numbers stand in the cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Numbers {
    /// Where they fit.
    #[default]
    Fitting,
    /// Never.
    Hidden,
}

/// A matrix of weights with a label for each row (query) and column (key), and a colour bar from 0.
///
/// ```
/// use foveal_view::{Heatmap, Look, Scene};
/// use ndarray::array;
///
/// let weights = array![[1.0, 0.0], [0.3, 0.7]];
/// let scene = Scene::from(Heatmap::new(weights, ["A", " cat"], ["A", " cat"])?.title("Self-attention"));
/// assert!(scene.svg(&Look::new())?.contains("cat</text>"));
/// # Ok::<(), foveal_view::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Heatmap {
    pub(crate) values: Array2<f32>,
    pub(crate) rows: Vec<String>,
    pub(crate) cols: Vec<String>,
    pub(crate) row_name: Option<String>,
    pub(crate) col_name: Option<String>,
    pub(crate) value_name: Option<String>,
    pub(crate) max: Option<f32>,
    pub(crate) steps: Option<Steps>,
    pub(crate) numbers: Numbers,
    pub(crate) alignment: bool,
    pub(crate) caption: Caption,
}

impl Heatmap {
    /// Weights [T, S] of T queries over S keys.
    ///
    /// # Errors
    /// If there is no row or no column, or not a label for each.
    pub fn new<Q: Into<String>, K: Into<String>>(
        weights: Array2<f32>,
        queries: impl IntoIterator<Item = Q>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self, Error> {
        let (rows, cols) = (strings(queries), strings(keys));
        check_labels(&weights, &rows, &cols)?;
        Ok(Heatmap {
            values: weights,
            rows,
            cols,
            row_name: None,
            col_name: None,
            value_name: None,
            max: None,
            steps: None,
            numbers: Numbers::Fitting,
            alignment: false,
            caption: Caption::default(),
        })
    }

    /// The cross-attention of a translation, [target, source]: the axes are named so.
    ///
    /// # Errors
    /// As [`new`](Heatmap::new).
    pub fn alignment<T: Into<String>, S: Into<String>>(
        weights: Array2<f32>,
        target: impl IntoIterator<Item = T>,
        source: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        Ok(Heatmap { alignment: true, ..Heatmap::new(weights, target, source)? })
    }

    caption_setters!();

    /// Names of the axes, in place of Query and Key.
    #[must_use]
    pub fn axes(mut self, rows: impl Into<String>, columns: impl Into<String>) -> Self {
        (self.row_name, self.col_name) = (Some(rows.into()), Some(columns.into()));
        self
    }

    /// What the colour bar measures, in place of Weight.
    #[must_use]
    pub fn measure(mut self, name: impl Into<String>) -> Self {
        self.value_name = Some(name.into());
        self
    }

    /// The value at the end of the colour bar; the largest there is by default.
    #[must_use]
    pub fn max(mut self, max: f32) -> Self {
        self.max = Some(max);
        self
    }

    /// The steps of the colours; by default even up to 64 tokens, and even steps of the square root beyond.
    #[must_use]
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Whether numbers stand in the cells.
    #[must_use]
    pub fn numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    pub(crate) fn row_name(&self) -> &str {
        let language = self.caption.language;
        let name = if self.alignment { language.target() } else { language.query() };
        self.row_name.as_deref().unwrap_or(name)
    }

    pub(crate) fn col_name(&self) -> &str {
        let language = self.caption.language;
        let name = if self.alignment { language.source() } else { language.key() };
        self.col_name.as_deref().unwrap_or(name)
    }

    pub(crate) fn value_name(&self) -> &str {
        self.value_name.as_deref().unwrap_or(self.caption.language.weight())
    }

    pub(crate) fn scale(&self, look: &Look) -> Scale {
        // Values on both sides of 0 get colours on both sides of white.
        let below = self.values.iter().filter(|v| v.is_finite()).fold(0f64, |min, &v| min.min(f64::from(v)));
        let max = self.max.map_or_else(|| maximum(&self.values).max(-below), f64::from);
        let scale = if below < 0.0 { Scale::symmetric(max, look) } else { Scale::from_zero(max, look) };
        scale.steps(self.steps.unwrap_or(default_steps(self.values.dim())))
    }
}
