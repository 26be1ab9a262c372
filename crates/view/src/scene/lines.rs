use ndarray::Array2;
use serde::Serialize;

use super::{Caption, caption_setters, check_labels, check_shape, strings};
use crate::Error;

/// Lines from the queries on the left to the keys on the right, the stronger the weight the darker; several heads in
/// several colours.
#[derive(Clone, Debug, Serialize)]
pub struct Lines {
    pub(crate) heads: Vec<(String, Array2<f32>)>,
    pub(crate) queries: Vec<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) token: Option<usize>,
    pub(crate) axes: Option<(String, String)>,
    pub(crate) caption: Caption,
}

impl Lines {
    /// Weights [T, S] of T queries over S keys.
    ///
    /// # Errors
    /// If there is no query or no key, or not a label for each.
    pub fn new<Q: Into<String>, K: Into<String>>(
        weights: Array2<f32>,
        queries: impl IntoIterator<Item = Q>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self, Error> {
        let (queries, keys) = (strings(queries), strings(keys));
        check_labels(&weights, &queries, &keys)?;
        let heads = vec![(String::new(), weights)];
        Ok(Lines { heads, queries, keys, token: None, axes: None, caption: Caption::default() })
    }

    /// Several heads over the same tokens, each with its name.
    ///
    /// # Errors
    /// As [`new`](Lines::new); also if there is no head, or they differ in shape.
    pub fn heads<Q: Into<String>, K: Into<String>>(
        heads: Vec<(String, Array2<f32>)>,
        queries: impl IntoIterator<Item = Q>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self, Error> {
        let first = heads.first().ok_or(Error::Empty { what: "heads" })?;
        let lines = Lines::new(first.1.clone(), queries, keys)?;
        for (_, weights) in &heads {
            check_shape("a head", first.1.dim(), weights.dim())?;
        }
        Ok(Lines { heads, ..lines })
    }

    caption_setters!();

    /// Shows the lines of this query alone; the others are drawn faintly.
    #[must_use]
    pub fn token(mut self, query: usize) -> Self {
        self.token = Some(query);
        self
    }

    /// Names of the two columns, in place of Query and Key.
    #[must_use]
    pub fn axes(mut self, queries: impl Into<String>, keys: impl Into<String>) -> Self {
        self.axes = Some((queries.into(), keys.into()));
        self
    }

    pub(crate) fn names(&self) -> (&str, &str) {
        let language = self.caption.language;
        self.axes.as_ref().map_or((language.query(), language.key()), |(q, k)| (q, k))
    }
}
