//! What a lab has found.

use foveal_view::{Language, Scene};
use serde::Serialize;
use serde_json::Value;

use crate::{Bilingual, Result, Table, Text};

/// Prose, tables and pictures in reading order, and the figures behind them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What there is to read, from top to bottom.
    pub sections: Vec<Section>,
    /// All numbers, for other programs.
    pub figures: Value,
}

/// A part of a report.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// A paragraph.
    Prose(Text),
    /// A table.
    Table(Table),
    /// A picture, with its labels in each language.
    Scene(Box<Bilingual<Scene>>),
}

impl Report {
    /// A report with these figures and nothing to read yet.
    pub fn new(figures: Value) -> Self {
        Report { sections: Vec::new(), figures }
    }

    /// One more paragraph.
    #[must_use]
    pub fn prose(mut self, prose: impl Into<Text>) -> Self {
        self.sections.push(Section::Prose(prose.into()));
        self
    }

    /// One more table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.sections.push(Section::Table(table));
        self
    }

    /// One more picture, drawn once for each language.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn scene<S: Into<Scene>>(mut self, draw: impl Fn(Language) -> Result<S>) -> Result<Self> {
        let scene = Bilingual::build(|language| draw(language).map(Into::into))?;
        self.sections.push(Section::Scene(Box::new(scene)));
        Ok(self)
    }

    /// The tables in it.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().filter_map(|section| if let Section::Table(table) = section { Some(table) } else { None })
    }

    /// The pictures in it.
    pub fn scenes(&self) -> impl Iterator<Item = &Bilingual<Scene>> {
        self.sections
            .iter()
            .filter_map(|section| if let Section::Scene(scene) = section { Some(&**scene) } else { None })
    }
}
