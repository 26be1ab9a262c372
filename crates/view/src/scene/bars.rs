use ndarray::{Array2, ArrayView1};
use serde::Serialize;

use super::{Caption, caption_setters, check_count, strings};
use crate::Error;

/// What one token attends to: a bar for each key.
#[derive(Clone, Debug, Serialize)]
pub struct Bars {
    pub(crate) values: Vec<f32>,
    pub(crate) labels: Vec<String>,
    pub(crate) token: Option<usize>,
    pub(crate) value_name: Option<String>,
    pub(crate) caption: Caption,
}

impl Bars {
    /// One value for each label.
    ///
    /// # Errors
    /// If there are no values, or not a label for each.
    pub fn new<S: Into<String>>(
        values: impl IntoIterator<Item = f32>,
        labels: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        let (values, labels): (Vec<f32>, _) = (values.into_iter().collect(), strings(labels));
        if values.is_empty() {
            return Err(Error::Empty { what: "bars" });
        }
        check_count("labels", values.len(), labels.len())?;
        Ok(Bars { values, labels, token: None, value_name: None, caption: Caption::default() })
    }

    /// Row `query` of weights [T, S]. Where queries and keys are the same tokens, [`token`](Bars::token) marks the
    /// token itself.
    ///
    /// # Errors
    /// As [`new`](Bars::new); also if there is no such row.
    pub fn of_row<S: Into<String>>(
        weights: &Array2<f32>,
        query: usize,
        keys: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        if query >= weights.nrows() {
            let expected = "a row of the matrix, counted from 0";
            return Err(Error::Value { what: "the query", expected, got: query as f64 });
        }
        let row: ArrayView1<f32> = weights.row(query);
        Bars::new(row.iter().copied(), keys)
    }

    caption_setters!();

    /// The bar that is the token itself; it is marked.
    #[must_use]
    pub fn token(mut self, index: usize) -> Self {
        self.token = Some(index);
        self
    }

    /// What the bars measure, in place of Weight.
    #[must_use]
    pub fn measure(mut self, name: impl Into<String>) -> Self {
        self.value_name = Some(name.into());
        self
    }

    pub(crate) fn value_name(&self) -> &str {
        self.value_name.as_deref().unwrap_or(self.caption.language.weight())
    }
}
