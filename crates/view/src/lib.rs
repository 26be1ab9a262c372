//! Pictures of attention: one scene, four surfaces.
//!
//! A [`Scene`] holds plain matrices and labels, checked when it is made. The same scene becomes text for a terminal
//! ([`Scene::terminal`]), SVG ([`Scene::svg`]), PNG ([`Scene::png`]), or a file of a format chosen by its name
//! ([`Scene::save`]). A [`Page`] holds all layers and heads of a run and becomes one HTML file to explore them in, which
//! fetches nothing.
//!
//! Tokens are shown as they are, with spaces at their ends and line ends made visible. Colours are perceptually uniform
//! and safe for every colour vision. A value that is no number is drawn as such, never as a 0.

#![forbid(unsafe_code)]

mod colour;
mod colour_tables;
mod error;
mod font;
mod label;
mod language;
mod look;
mod page;
mod png;
mod pool;
mod save;
mod scale;
mod scene;
mod svg;
mod table;
mod terminal;

pub use colour::{Palette, Rgb};
pub use error::Error;
pub use language::Language;
pub use look::{Look, Theme};
pub use page::{Group, Kind, Layer, Page, Storage, Tokens, lesson_script};
pub use pool::pool;
pub use save::{Format, write};
pub use scale::Steps;
pub use scene::{Bars, Chart, Compare, Grid, Heatmap, Lines, Map, Numbers, Panels, Patches, Range, Scene, Series};
pub use terminal::{Depth, Terminal};

impl Scene {
    /// The picture as an SVG document: the same text for the same scene, always.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn svg(&self, look: &Look) -> Result<String, Error> {
        svg::draw(self, look)
    }

    /// The picture as a PNG: the SVG, drawn with the font inside this crate.
    ///
    /// # Errors
    /// If there is nothing to draw, or the picture would be larger than 16,384 pixels a side.
    pub fn png(&self, look: &Look) -> Result<Vec<u8>, Error> {
        png::rasterise(&self.svg(look)?, look.scale)
    }

    /// The picture as lines of text, each ended by a line feed, none wider than the terminal.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn terminal(&self, terminal: &Terminal) -> Result<String, Error> {
        terminal::draw(self, terminal)
    }
}
