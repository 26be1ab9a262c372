//! Tables as data.

use serde::Serialize;

use crate::Text;

/// A table: the first column is text, the others are numbers, unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// What stands over it.
    pub title: Text,
    /// The names of the columns.
    pub head: Vec<Text>,
    /// The cells; a row may end early.
    pub rows: Vec<Vec<Text>>,
    /// Columns of text, which begin at the left.
    pub text_columns: Vec<usize>,
}

impl Table {
    /// A table with these columns.
    pub fn new<T: Into<Text>>(head: impl IntoIterator<Item = T>) -> Self {
        Table { head: head.into_iter().map(Into::into).collect(), text_columns: vec![0], ..Table::default() }
    }

    /// What stands over it.
    #[must_use]
    pub fn title(self, title: impl Into<Text>) -> Self {
        Table { title: title.into(), ..self }
    }

    /// Further columns of text.
    #[must_use]
    pub fn text_columns(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.text_columns.extend(columns);
        self
    }

    /// One more row.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}
