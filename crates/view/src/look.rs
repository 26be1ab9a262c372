use crate::Palette;
use crate::colour::Rgb;

/// Light or dark paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Dark ink on white.
    #[default]
    Light,
    /// Light ink on near black.
    Dark,
}

impl Theme {
    pub(crate) fn paper(self) -> Rgb {
        Rgb::from_hex(if self == Theme::Light { 0xffffff } else { 0x0d1017 })
    }

    /// What is read first: titles, labels.
    pub(crate) fn ink(self) -> Rgb {
        Rgb::from_hex(if self == Theme::Light { 0x1b1f29 } else { 0xe8ebf2 })
    }

    /// What is read last: names of axes, ticks.
    pub(crate) fn muted(self) -> Rgb {
        Rgb::from_hex(if self == Theme::Light { 0x646b7a } else { 0x98a1b3 })
    }

    /// Frames and grid lines.
    pub(crate) fn rule(self) -> Rgb {
        Rgb::from_hex(if self == Theme::Light { 0xd8dbe3 } else { 0x343b4a })
    }

    /// The two greys that mark a value that is no number.
    pub(crate) fn nan(self) -> (Rgb, Rgb) {
        match self {
            Theme::Light => (Rgb::from_hex(0xf3ece6), Rgb::from_hex(0xa58b76)),
            Theme::Dark => (Rgb::from_hex(0x2a2522), Rgb::from_hex(0x8f7a69)),
        }
    }
}

/// How a picture looks, whatever it shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub(crate) theme: Theme,
    pub(crate) palette: Palette,
    pub(crate) scale: f32,
}

impl Default for Look {
    fn default() -> Self {
        Look { theme: Theme::Light, palette: Palette::Paper, scale: 2.0 }
    }
}

impl Look {
    /// Light, values in the colours of [`Palette::Paper`], PNG with two pixels to a unit of the SVG.
    pub fn new() -> Self {
        Look::default()
    }

    /// Light or dark.
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

    /// Pixels of a PNG to a unit of the SVG, above 0 and at most 16; 2 by default, for sharp screens.
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }
}
