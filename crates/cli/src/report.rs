//! What a command has found, before it is shown.

use foveal_view::{Page, Scene};
use serde_json::Value;

use crate::table::Table;

/// Text, tables and pictures, and all figures of them for other programs.
#[derive(Default)]
pub struct Report {
    /// The first line.
    pub title: String,
    /// Sentences below it.
    pub notes: Vec<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Pictures. The first is the one that goes to a file.
    pub scenes: Vec<Scene>,
    /// The page that goes to a file of that kind, where there is more to show than the first picture.
    pub page: Option<Page>,
    /// The whole report as a page, where it is more than a picture: text, tables and all pictures.
    pub document: Option<String>,
    /// The figures, for `--json`.
    pub figures: Value,
}
