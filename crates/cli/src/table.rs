//! Tables of text, aligned also where characters are two columns wide.

use foveal_labs::Text;
use unicode_width::UnicodeWidthStr;

use crate::language::Language;

/// A table: the first column left, the others right, unless they say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<usize>,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Table { head: head.into_iter().map(Into::into).collect(), left: vec![0], ..Table::default() }
    }

    /// A lab's table in one language.
    pub fn of_lab(table: &foveal_labs::Table, language: Language) -> Self {
        let texts = |cells: &[Text]| cells.iter().map(|cell| cell.get(language.into()).clone()).collect::<Vec<_>>();
        Table {
            title: table.title.get(language.into()).clone(),
            head: texts(&table.head),
            rows: table.rows.iter().map(|row| texts(row)).collect(),
            left: table.text_columns.clone(),
        }
    }

    /// Columns of text, which begin at the left.
    pub fn text_columns(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.left.extend(columns);
        self
    }

    /// One more row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines of it, none ending in space.
    pub fn lines(&self) -> Vec<String> {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let columns = all().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let space = " ".repeat(widths[column] - cell.width());
                if self.left.contains(&column) { format!("{cell}{space}") } else { format!("{space}{cell}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(self.title.clone());
        }
        lines.push(line(&self.head));
        lines.push("─".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1)));
        lines.extend(self.rows.iter().map(line));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangul_takes_two_columns() {
        let mut table = Table::new(["token", "weight"]);
        table.row(["학교", "0.5"]);
        table.row(["school", "0.25"]);
        assert_eq!(table.lines(), ["token   weight", "──────────────", "학교       0.5", "school    0.25"]);
    }
}
