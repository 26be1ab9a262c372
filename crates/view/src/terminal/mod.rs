//! Scenes as lines of text: in 24-bit colour, in 256 colours, or in plain characters.

mod bars;
mod chart;
mod compare;
mod grid;
mod heatmap;
mod lines;
mod map;
mod patches;
mod pixels;
mod styled;

use crate::{Error, Look, Palette, Scene, Theme};
use styled::Page;

/// What a terminal can show of colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Any colour.
    #[default]
    True,
    /// The 256 that most terminals have.
    Ansi256,
    /// None: no escape codes at all, values as characters from ` ` to `@`.
    Plain,
}

/// The terminal that is drawn for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terminal {
    pub(crate) width: usize,
    pub(crate) depth: Depth,
    pub(crate) theme: Theme,
    pub(crate) palette: Palette,
}

impl Terminal {
    /// No line is wider than this, counted in columns, of which Hangul takes two. Below 20 it is taken as 20. Any
    /// colour, dark.
    pub fn new(width: usize) -> Self {
        Terminal { width: width.max(20), depth: Depth::True, theme: Theme::Dark, palette: Palette::Paper }
    }

    /// What it can show of colour.
    #[must_use]
    pub fn depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Whether its background is light or dark.
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// The colours of values.
    #[must_use]
    pub fn palette(mut self, palette: Palette) -> Self {
        self.palette = palette;
        self
    }

    fn look(&self) -> Look {
        Look::new().theme(self.theme).palette(self.palette)
    }
}

pub(crate) fn draw(scene: &Scene, terminal: &Terminal) -> Result<String, Error> {
    let mut page = Page::new(*terminal);
    page.caption(scene.caption());
    match scene {
        Scene::Heatmap(scene) => heatmap::draw(scene, &mut page),
        Scene::Bars(scene) => bars::draw(scene, &mut page),
        Scene::Grid(scene) => grid::draw(scene, &mut page),
        Scene::Lines(scene) => lines::draw(scene, &mut page),
        Scene::Map(scene) => map::draw(scene, &mut page),
        Scene::Patches(scene) => patches::draw(scene, &mut page),
        Scene::Chart(scene) => chart::draw(scene, &mut page)?,
        Scene::Compare(scene) => compare::draw(scene, &mut page),
    }
    Ok(page.finish())
}
