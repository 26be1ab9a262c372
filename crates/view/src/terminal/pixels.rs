//! A matrix as pixels: two to a character in colour (▀), one character for two in plain text.

use ndarray::Array2;

use super::styled::{Ink, Line, Page, ramp};
use crate::colour::Rgb;
use crate::scale::Scale;

/// One line for each two rows of pixels.
pub(super) fn rows(page: &Page, rows: usize, cols: usize, pixel: impl Fn(usize, usize) -> Rgb) -> Vec<Line> {
    let paper = page.terminal.theme.paper();
    (0..rows.div_ceil(2))
        .map(|k| {
            let mut line = Line::default();
            for j in 0..cols {
                let above = pixel(2 * k, j);
                let below = if 2 * k + 1 < rows { Some(pixel(2 * k + 1, j)) } else { None };
                match below {
                    Some(below) if below == above => line.push(" ", background(above, paper)),
                    Some(below) => {
                        line.push("▀", Ink { fore: Some(above), back: background(below, paper).back, bold: false });
                    }
                    None => line.push("▀", Ink::fore(above)),
                }
            }
            line
        })
        .collect()
}

/// The paper's own colour is left to the terminal.
fn background(colour: Rgb, paper: Rgb) -> Ink {
    Ink { back: (colour != paper).then_some(colour), ..Ink::default() }
}

/// The pixels of a matrix.
pub(super) fn matrix(page: &Page, values: &Array2<f32>, scale: &Scale) -> Vec<Line> {
    let (height, width) = values.dim();
    if !page.is_plain() {
        return rows(page, height, width, |i, j| scale.pixel(values[[i, j]], i, j));
    }
    (0..height.div_ceil(2))
        .map(|k| {
            let mut line = Line::default();
            for j in 0..width {
                line.plain(&plain(values[[2 * k, j]], values.get([2 * k + 1, j]).copied(), scale).to_string());
            }
            line
        })
        .collect()
}

/// The darker of two values as a character; `?` if one is no number.
fn plain(above: f32, below: Option<f32>, scale: &Scale) -> char {
    let values = [Some(above), below];
    if values.iter().flatten().any(|v| v.is_nan()) {
        return '?';
    }
    ramp(values.iter().flatten().filter_map(|&v| scale.fraction(f64::from(v))).fold(0.0, f64::max))
}
