//! Colours: perceptually uniform maps for values, and a few that stay apart for every colour vision.

use crate::Theme;
use crate::colour_tables::{BERLIN, CIVIDIS, DEVON, MAKO, VIK, VIRIDIS};

/// A colour of the screen, 8 bits a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    pub(crate) const fn from_hex(hex: u32) -> Self {
        Rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
    }

    /// `#rrggbb`.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The colour `t` of the way from here to `other`.
    pub(crate) fn mix(self, other: Rgb, t: f64) -> Rgb {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * t).round() as u8;
        Rgb(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    /// Relative luminance as WCAG defines it, 0 to 1.
    pub(crate) fn luminance(self) -> f64 {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Black or white, whichever is easier to read on this colour.
    pub(crate) fn ink(self) -> Rgb {
        // Where the contrast ratios (L + 0.05) / 0.05 and 1.05 / (L + 0.05) are equal.
        if self.luminance() > 0.179 { Rgb(0x11, 0x14, 0x1c) } else { Rgb(0xff, 0xff, 0xff) }
    }

    /// The nearest of the 6 × 6 × 6 cube and the 24 greys of a terminal with 256 colours.
    pub(crate) fn ansi256(self) -> u8 {
        const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        let nearest = |c: u8| (0..6).min_by_key(|&i| LEVELS[i].abs_diff(c)).unwrap_or(0);
        let (r, g, b) = (nearest(self.0), nearest(self.1), nearest(self.2));
        let cube = Rgb(LEVELS[r], LEVELS[g], LEVELS[b]);
        let mean = (u32::from(self.0) + u32::from(self.1) + u32::from(self.2)) / 3;
        let step = (mean.saturating_sub(3) / 10).min(23) as u8;
        let grey = Rgb(8 + 10 * step, 8 + 10 * step, 8 + 10 * step);
        if self.distance(grey) < self.distance(cube) { 232 + step } else { (16 + 36 * r + 6 * g + b) as u8 }
    }

    fn distance(self, other: Rgb) -> u32 {
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(self.0, other.0) + square(self.1, other.1) + square(self.2, other.2)
    }
}

/// The colours of values from 0 up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Palette {
    /// 0 is the colour of the paper, so that what is not attended to is not there: devon from white on light, mako from
    /// black on dark.
    #[default]
    Paper,
    /// Dark violet to yellow.
    Viridis,
    /// Dark blue to yellow; looks almost the same to every colour vision.
    Cividis,
}

impl Palette {
    /// The colour of `t`, 0 to 1.
    pub(crate) fn colour(self, theme: Theme, t: f64) -> Rgb {
        match (self, theme) {
            (Palette::Paper, Theme::Light) => between(&DEVON, 1.0 - t),
            // The first fifth of mako is hardly lighter than the paper; the paper takes its place.
            (Palette::Paper, Theme::Dark) => {
                between(&MAKO, 0.2 + 0.8 * t).mix(theme.paper(), (1.0 - t / 0.06).max(0.0))
            }
            (Palette::Viridis, _) => between(&VIRIDIS, t),
            (Palette::Cividis, _) => between(&CIVIDIS, t),
        }
    }
}

/// The colour of `t`, −1 to 1: blue below, red above, and 0 as pale as the paper (vik) or as dark (berlin).
pub(crate) fn diverging(theme: Theme, t: f64) -> Rgb {
    let table = if theme == Theme::Light { &VIK } else { &BERLIN };
    // Both have a tint in the middle; a difference of 0 is the paper itself.
    between(table, (t + 1.0) / 2.0).mix(theme.paper(), (1.0 - t.abs() / 0.15).max(0.0))
}

/// The colours of Okabe and Ito for things that have no order; after seven they come again.
pub(crate) fn categorical(theme: Theme, i: usize) -> Rgb {
    let colours = match theme {
        // Their yellow is darkened: as published it vanishes on white.
        Theme::Light => [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x8a7c00],
        Theme::Dark => [0x56b4e9, 0xe69f00, 0x00b184, 0xd98cb8, 0xf0e442, 0x3a93d0, 0xe8702a],
    };
    Rgb::from_hex(colours[i % colours.len()])
}

fn between(table: &[u32], t: f64) -> Rgb {
    let t = if t.is_nan() { 0.0 } else { t.clamp(0.0, 1.0) };
    let at = t * (table.len() - 1) as f64;
    let i = (at as usize).min(table.len() - 2);
    Rgb::from_hex(table[i]).mix(Rgb::from_hex(table[i + 1]), at - i as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_runs_one_way() {
        for (palette, theme) in [
            (Palette::Paper, Theme::Light),
            (Palette::Paper, Theme::Dark),
            (Palette::Viridis, Theme::Light),
            (Palette::Cividis, Theme::Dark),
        ] {
            let light: Vec<f64> = (0..=64).map(|i| palette.colour(theme, f64::from(i) / 64.0).luminance()).collect();
            let rising = light[64] > light[0];
            assert!(light.windows(2).all(|w| (w[1] - w[0] > -2e-3) == rising || (w[1] - w[0]).abs() < 2e-3));
        }
    }

    #[test]
    fn the_middle_of_a_difference_is_paper() {
        assert!(diverging(Theme::Light, 0.0).luminance() > 0.7);
        assert!(diverging(Theme::Dark, 0.0).luminance() < 0.02);
    }

    #[test]
    fn terminals_get_their_nearest_colour() {
        assert_eq!(Rgb(0, 0, 0).ansi256(), 16);
        assert_eq!(Rgb(255, 255, 255).ansi256(), 231);
        assert_eq!(Rgb(128, 128, 128).ansi256(), 244);
        assert_eq!(Rgb(255, 0, 0).ansi256(), 196);
    }
}
