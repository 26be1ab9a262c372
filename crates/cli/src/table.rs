//! Tables of text, aligned also where characters are two columns wide.

use foveal_labs::Text;
use unicode_width::UnicodeWidthStr;

use crate::language::Language;
use crate::prose;

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

    /// The lines of it, none ending in space, and none wider than this where that can be had: the longest text is broken into
    /// lines, and what is still too wide goes on below, under the first column again.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let mut lines = prose::wrap(&self.title, width);
        let mut widths = self.widths();
        let excess = (widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)).saturating_sub(width);
        let text = |column: &usize| self.left.contains(column);
        if let Some(longest) = (0..widths.len()).filter(text).max_by_key(|&column| widths[column]) {
            widths[longest] = widths[longest].saturating_sub(excess).max(widths[longest].min(NARROWEST));
        }
        for (block, columns) in blocks(&widths, width).into_iter().enumerate() {
            if block > 0 {
                lines.push(String::new());
            }
            // A rule between groups says nothing at the edge of a block.
            let ruled = |column: &usize| self.head.get(*column).is_some_and(|name| name == "│");
            let first = usize::from(block > 0);
            let columns: Vec<usize> =
                columns.iter().enumerate().filter(|(i, c)| *i != first || !ruled(c)).map(|(_, c)| *c).collect();
            let columns = match columns.split_last() {
                Some((last, rest)) if ruled(last) => rest,
                _ => &columns[..],
            };
            lines.extend(self.row_lines(&self.head, columns, &widths));
            let total = columns.iter().map(|&column| widths[column]).sum::<usize>();
            lines.push("─".repeat(total + GAP * columns.len().saturating_sub(1)));
            lines.extend(self.rows.iter().flat_map(|row| self.row_lines(row, columns, &widths)));
        }
        lines
    }

    /// What each column needs.
    fn widths(&self) -> Vec<usize> {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let columns = all().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
        (0..columns).map(width).collect()
    }

    /// Some columns of a row; several lines where a cell is wider than its column.
    fn row_lines(&self, row: &[String], columns: &[usize], widths: &[usize]) -> Vec<String> {
        let cells: Vec<Vec<String>> = columns
            .iter()
            .map(|&column| {
                let cell = row.get(column).map_or("", String::as_str);
                if cell.width() <= widths[column] { vec![cell.to_owned()] } else { prose::wrap(cell, widths[column]) }
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |k: usize| {
            let cells = cells.iter().zip(columns).map(|(cell, &column)| {
                let part = cell.get(k).map_or("", String::as_str);
                let space = " ".repeat(widths[column].saturating_sub(part.width()));
                if self.left.contains(&column) { format!("{part}{space}") } else { format!("{space}{part}") }
            });
            cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }
}

/// Spaces between columns.
const GAP: usize = 2;
/// What a column of text is narrowed to at most.
const NARROWEST: usize = 14;

/// The columns of each block, which all begin with the first one.
fn blocks(widths: &[usize], width: usize) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = vec![vec![]];
    let mut used = 0;
    for column in 0..widths.len() {
        let block = blocks.last().map_or(0, Vec::len);
        if block > usize::from(blocks.len() > 1) && used + GAP + widths[column] > width {
            blocks.push(vec![0]);
            used = widths[0];
        }
        used += widths[column] + if column > 0 { GAP } else { 0 };
        if let Some(block) = blocks.last_mut() {
            block.push(column);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangul_takes_two_columns() {
        let mut table = Table::new(["token", "weight"]);
        table.row(["학교", "0.5"]);
        table.row(["school", "0.25"]);
        assert_eq!(table.lines(80), ["token   weight", "──────────────", "학교       0.5", "school    0.25"]);
    }

    #[test]
    fn what_is_too_wide_goes_on_below() {
        let mut table = Table::new(["n", "first", "second", "third"]);
        table.row(["1", "0.25", "0.5", "1"]);
        let lines =
            ["n  first  second", "────────────────", "1   0.25     0.5", "", "n  third", "────────", "1      1"];
        assert_eq!(table.lines(17), lines);
    }

    #[test]
    fn long_text_is_broken_into_lines() {
        let mut table = Table::new(["", "what it says"]).text_columns([1]);
        table.row(["a", "to be or not to be, that is the question"]);
        assert!(table.lines(24).iter().all(|line| line.width() <= 24), "{:?}", table.lines(24));
        assert!(table.lines(24).join(" ").contains("the question"));
    }
}
