//! What a picture shows, apart from how it is drawn. Each scene is checked when it is made; drawing it cannot fail for
//! what it holds.

mod bars;
mod chart;
mod compare;
mod grid;
mod heatmap;
mod lines;
mod map;
mod patches;

pub use bars::Bars;
pub use chart::{Chart, Series};
pub use compare::{Compare, Panels};
pub(crate) use grid::GridKind;
pub use grid::{Grid, Range};
pub use heatmap::{Heatmap, Numbers};
pub use lines::Lines;
pub use map::Map;
pub use patches::Patches;

use ndarray::Array2;
use serde::Serialize;

use crate::{Error, Language};

/// Any picture.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub enum Scene {
    /// A matrix of weights with a label for each row and column.
    Heatmap(Heatmap),
    /// What one token attends to.
    Bars(Bars),
    /// Many small matrices.
    Grid(Grid),
    /// Lines from the queries on the left to the keys on the right.
    Lines(Lines),
    /// A large matrix, pooled to pixels.
    Map(Map),
    /// Weights over the patches of an image.
    Patches(Patches),
    /// Curves over two axes.
    Chart(Chart),
    /// Two matrices, and their difference.
    Compare(Compare),
}

macro_rules! scenes {
    ($($name:ident),*) => {$(
        impl From<$name> for Scene {
            fn from(scene: $name) -> Self {
                Scene::$name(scene)
            }
        }
    )*};
}

scenes!(Heatmap, Bars, Grid, Lines, Map, Patches, Chart, Compare);

impl Scene {
    pub(crate) fn caption(&self) -> &Caption {
        match self {
            Scene::Heatmap(scene) => &scene.caption,
            Scene::Bars(scene) => &scene.caption,
            Scene::Grid(scene) => &scene.caption,
            Scene::Lines(scene) => &scene.caption,
            Scene::Map(scene) => &scene.caption,
            Scene::Patches(scene) => &scene.caption,
            Scene::Chart(scene) => &scene.caption,
            Scene::Compare(scene) => &scene.caption,
        }
    }
}

/// What stands over a picture, and in which language.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Caption {
    pub title: String,
    pub note: String,
    pub language: Language,
}

/// The setters that all scenes have.
macro_rules! caption_setters {
    () => {
        /// What stands over the picture.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.caption.title = title.into();
            self
        }

        /// A smaller line under the title: which model, layer, head.
        #[must_use]
        pub fn note(mut self, note: impl Into<String>) -> Self {
            self.caption.note = note.into();
            self
        }

        /// The language of the words that the picture adds: names of axes, headings.
        #[must_use]
        pub fn language(mut self, language: $crate::Language) -> Self {
            self.caption.language = language;
            self
        }
    };
}
pub(crate) use caption_setters;

pub(crate) fn strings<S: Into<String>>(labels: impl IntoIterator<Item = S>) -> Vec<String> {
    labels.into_iter().map(Into::into).collect()
}

/// Not empty, and a label for each row and column.
pub(crate) fn check_labels(values: &Array2<f32>, rows: &[String], cols: &[String]) -> Result<(), Error> {
    check_not_empty(values)?;
    check_count("row labels", values.nrows(), rows.len())?;
    check_count("column labels", values.ncols(), cols.len())
}

pub(crate) fn check_not_empty(values: &Array2<f32>) -> Result<(), Error> {
    match values.dim() {
        (0, _) => Err(Error::Empty { what: "rows" }),
        (_, 0) => Err(Error::Empty { what: "columns" }),
        _ => Ok(()),
    }
}

pub(crate) fn check_count(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Count { what, expected, got }) }
}

pub(crate) fn check_shape(what: &'static str, expected: (usize, usize), got: (usize, usize)) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
}
