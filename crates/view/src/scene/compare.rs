use ndarray::Array2;
use serde::Serialize;

use super::{Caption, caption_setters, check_labels, check_shape, strings};
use crate::Error;

/// What a comparison shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Panels {
    /// Both matrices and their difference.
    #[default]
    All,
    /// The two matrices.
    Both,
    /// The difference alone.
    Difference,
}

/// Two matrices over the same tokens, and the second less the first.
#[derive(Clone, Debug, Serialize)]
pub struct Compare {
    pub(crate) first: (String, Array2<f32>),
    pub(crate) second: (String, Array2<f32>),
    pub(crate) rows: Vec<String>,
    pub(crate) cols: Vec<String>,
    pub(crate) panels: Panels,
    pub(crate) caption: Caption,
}

impl Compare {
    /// Two named matrices [T, S] over the same queries and keys.
    ///
    /// # Errors
    /// If they are empty or differ in shape, or there is not a label for each row and column.
    pub fn new<Q: Into<String>, K: Into<String>>(
        first: (impl Into<String>, Array2<f32>),
        second: (impl Into<String>, Array2<f32>),
        queries: impl IntoIterator<Item = Q>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self, Error> {
        let (rows, cols) = (strings(queries), strings(keys));
        check_labels(&first.1, &rows, &cols)?;
        check_shape("the second matrix", first.1.dim(), second.1.dim())?;
        let (first, second) = ((first.0.into(), first.1), (second.0.into(), second.1));
        Ok(Compare { first, second, rows, cols, panels: Panels::All, caption: Caption::default() })
    }

    caption_setters!();

    /// Which of them to show.
    #[must_use]
    pub fn panels(mut self, panels: Panels) -> Self {
        self.panels = panels;
        self
    }

    /// The second less the first.
    pub(crate) fn difference(&self) -> Array2<f32> {
        &self.second.1 - &self.first.1
    }

    pub(crate) fn difference_name(&self) -> String {
        format!("{}: {} − {}", self.caption.language.difference(), self.second.0, self.first.0)
    }
}
