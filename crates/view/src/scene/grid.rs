use ndarray::Array2;
use serde::Serialize;

use super::{Caption, caption_setters, check_count, check_not_empty, strings};
use crate::scale::{Scale, default_steps};
use crate::{Error, Language, Look, Steps};

/// Width that all panels should take together.
const ROOM: f64 = 960.0;

/// What the colours of many panels are measured against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Range {
    /// The largest value of all: panels can be compared.
    #[default]
    Shared,
    /// The largest value of each: every panel shows its pattern.
    Own,
}

/// Many small matrices: all heads of a layer, or all layers × heads.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// Row by row; the last row may be short.
    pub(crate) panels: Vec<Array2<f32>>,
    /// The size of the matrices where panels are pictures of them.
    matrix: Option<(usize, usize)>,
    /// What rows and columns of every panel stand for.
    pub(crate) tokens: Option<(Vec<String>, Vec<String>)>,
    pub(crate) columns: usize,
    pub(crate) kind: GridKind,
    pub(crate) row_names: Option<Vec<String>>,
    pub(crate) names: Option<Vec<String>>,
    pub(crate) range: Range,
    pub(crate) caption: Caption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum GridKind {
    /// A name over each panel.
    Heads,
    /// Headings of rows and columns.
    LayersHeads,
}

impl Grid {
    /// One panel for each head, in rows of about equal length.
    ///
    /// # Errors
    /// If there is no head, or a head has no row or no column.
    pub fn heads(heads: Vec<Array2<f32>>) -> Result<Self, Error> {
        let columns = Grid::columns(heads.len());
        Grid::new(heads, columns, GridKind::Heads)
    }

    /// How many panels of [`heads`](Self::heads) stand beside each other.
    pub fn columns(heads: usize) -> usize {
        match heads {
            0..=4 => heads,
            5..=8 => heads.div_ceil(2),
            n => (1..=n).find(|c| c * c * 3 >= n * 4).unwrap_or(n),
        }
    }

    /// The pixels, height and width, that a matrix of so many rows and columns takes in a file where `columns` panels stand
    /// beside each other. Panels of this size, each pixel the largest weight of its block, give the same picture as the matrices
    /// themselves; see [`pooled_from`](Self::pooled_from).
    pub fn pixels(columns: usize, (rows, cols): (usize, usize)) -> (usize, usize) {
        let (height, width) = Grid::extent(Grid::side(columns).0, (rows, cols), rows.max(cols));
        ((height as usize).clamp(1, rows.max(1)), (width as usize).clamp(1, cols.max(1)))
    }

    /// The side of a panel's square and the gap to the next.
    pub(crate) fn side(columns: usize) -> (f64, f64) {
        let size = (ROOM / columns.max(1) as f64).clamp(40.0, 216.0);
        let gap = (size * 0.1).clamp(6.0, 18.0);
        ((size - gap).floor(), gap)
    }

    /// Height and width of a matrix in a square that `longest` rows or columns fill.
    pub(crate) fn extent(side: f64, (rows, cols): (usize, usize), longest: usize) -> (f64, f64) {
        let of = |count: usize| (side * count as f64 / longest.max(1) as f64).max(3.0);
        (of(rows), of(cols))
    }

    /// One row for each layer, one column for each head.
    ///
    /// # Errors
    /// If there is no layer, the layers have different numbers of heads, or a head has no row or no column.
    pub fn layers(layers: Vec<Vec<Array2<f32>>>) -> Result<Self, Error> {
        let heads = layers.first().map_or(0, Vec::len);
        for layer in &layers {
            check_count("heads in a layer", heads, layer.len())?;
        }
        Grid::new(layers.into_iter().flatten().collect(), heads, GridKind::LayersHeads)
    }

    fn new(panels: Vec<Array2<f32>>, columns: usize, kind: GridKind) -> Result<Self, Error> {
        if panels.is_empty() {
            return Err(Error::Empty { what: "panels" });
        }
        panels.iter().try_for_each(check_not_empty)?;
        let range = Range::Shared;
        Ok(Grid {
            panels,
            matrix: None,
            tokens: None,
            columns,
            kind,
            row_names: None,
            names: None,
            range,
            caption: Caption::default(),
        })
    }

    caption_setters!();

    /// Names in place of `Head 0`, `Head 1`, …: of the panels, or of the columns of layers × heads.
    #[must_use]
    pub fn names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.names = Some(strings(names));
        self
    }

    /// Names in place of `Layer 0`, `Layer 1`, …
    #[must_use]
    pub fn row_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.row_names = Some(strings(names));
        self
    }

    /// What the colours are measured against.
    #[must_use]
    pub fn range(mut self, range: Range) -> Self {
        self.range = range;
        self
    }

    /// What the rows and columns of every matrix stand for; files of numbers name them.
    #[must_use]
    pub fn tokens<S: Into<String>>(
        mut self,
        queries: impl IntoIterator<Item = S>,
        keys: impl IntoIterator<Item = S>,
    ) -> Self {
        self.tokens = Some((strings(queries), strings(keys)));
        self
    }

    /// Says that the panels are pictures of matrices with so many rows and columns; see [`pixels`](Self::pixels).
    #[must_use]
    pub fn pooled_from(mut self, matrix: (usize, usize)) -> Self {
        self.matrix = Some(matrix);
        self
    }

    /// The size of a panel's matrix.
    pub(crate) fn matrix(&self, panel: &Array2<f32>) -> (usize, usize) {
        self.matrix.unwrap_or(panel.dim())
    }

    /// The colours of a panel, or of all.
    pub(crate) fn scale(&self, max: f64, look: &Look) -> Scale {
        let steps = self.panels.iter().map(|p| default_steps(self.matrix(p))).find(|s| *s != Steps::Linear);
        Scale::from_zero(max, look).steps(steps.unwrap_or_default())
    }

    pub(crate) fn rows(&self) -> usize {
        self.panels.len().div_ceil(self.columns)
    }

    /// Name of a panel, or of a column.
    pub(crate) fn name(&self, i: usize) -> String {
        named(&self.names, i, |language| language.head(), self.caption.language)
    }

    pub(crate) fn row_name(&self, i: usize) -> String {
        named(&self.row_names, i, |language| language.layer(), self.caption.language)
    }
}

fn named(names: &Option<Vec<String>>, i: usize, word: fn(Language) -> &'static str, language: Language) -> String {
    names.as_ref().and_then(|names| names.get(i).cloned()).unwrap_or_else(|| format!("{} {i}", word(language)))
}
