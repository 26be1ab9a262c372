//! A matrix with its labels: keys on top, queries at the left. Labels are shortened, turned, or left out for counts of
//! tokens, as their number asks.

use ndarray::Array2;

use super::canvas::{Anchor, BASE, Canvas, Type, n, png};
use super::frame::SMALL;
use crate::font;
use crate::pool::pool;
use crate::scale::{Scale, Steps, cell_text, maximum, ticks};
use crate::scene::Numbers;
use crate::{Error, label};

/// Labels are not longer than this.
const LONGEST: f64 = 132.0;
/// Below this height of a cell, labels would not be readable.
const READABLE: f64 = 8.5;
/// More cells than this are drawn as one picture of pixels.
const MANY: usize = 2500;

#[derive(Clone, Copy, PartialEq)]
enum Heads {
    Level,
    Slanted,
    Upright,
    Counted,
}

pub(crate) struct Panel<'a> {
    values: &'a Array2<f32>,
    rows: Vec<String>,
    cols: Vec<String>,
    row_name: &'a str,
    col_name: &'a str,
    scale: Scale,
    numbers: Numbers,
    cell: f64,
    size: f64,
    heads: Heads,
    /// From the left edge to the cells, and from the top edge.
    pub left: f64,
    pub top: f64,
}

impl<'a> Panel<'a> {
    /// `room`: the size that the cells should take together.
    pub fn new(
        values: &'a Array2<f32>,
        (rows, cols): (&[String], &[String]),
        (row_name, col_name): (&'a str, &'a str),
        scale: Scale,
        numbers: Numbers,
        room: f64,
    ) -> Self {
        let (height, width) = values.dim();
        let cell = (room / width as f64).min(room / height as f64).clamp(0.25, 60.0);
        // A pixel of the picture, or a whole number of them, so that cells come out alike.
        let cell = if cell >= 4.0 { cell.floor() } else { cell };
        let size = BASE.min(cell * 0.86);
        let short = |labels: &[String]| -> Vec<String> {
            labels.iter().map(|l| font::shorten(&label::visible(l), size, LONGEST)).collect()
        };
        let (rows, cols) = if cell < READABLE { (Vec::new(), Vec::new()) } else { (short(rows), short(cols)) };
        let longest = |labels: &[String]| labels.iter().map(|l| font::width(l, size)).fold(0.0, f64::max);
        let heads = if cell < READABLE {
            Heads::Counted
        } else if longest(&cols) <= cell - 6.0 {
            Heads::Level
        } else if cell >= 17.0 {
            Heads::Slanted
        } else {
            Heads::Upright
        };
        let count_width = font::width(&crate::scale::number(height as f64), SMALL) + 4.0;
        let label_left = if heads == Heads::Counted { count_width } else { longest(&rows) };
        let label_top = match heads {
            Heads::Counted => SMALL + 4.0,
            Heads::Level => size,
            Heads::Slanted => longest(&cols) * 0.7072 + size * 0.5,
            Heads::Upright => longest(&cols),
        };
        let name = SMALL + 10.0;
        let (left, top) = (label_left + 8.0 + name, label_top + 8.0 + name);
        Panel { values, rows, cols, row_name, col_name, scale, numbers, cell, size, heads, left, top }
    }

    /// Width of the cells together.
    pub fn inner_width(&self) -> f64 {
        self.cell * self.values.ncols() as f64
    }

    /// Height of the cells together.
    pub fn inner_height(&self) -> f64 {
        self.cell * self.values.nrows() as f64
    }

    /// How far slanted labels reach past the right edge.
    pub fn overhang(&self) -> f64 {
        if self.heads != Heads::Slanted {
            return 0.0;
        }
        let count = self.cols.len();
        let reach = |(j, text): (usize, &String)| {
            font::width(text, self.size) * 0.7072 - (count - j) as f64 * self.cell + self.cell / 2.0 + 4.0
        };
        self.cols.iter().enumerate().map(reach).fold(0.0, f64::max)
    }

    /// Draws it with its upper left corner at (x, y), labels included.
    pub fn draw(&self, canvas: &mut Canvas, x: f64, y: f64) -> Result<(), Error> {
        let theme = canvas.theme();
        let (x0, y0) = (x + self.left, y + self.top);
        let (width, height) = (self.inner_width(), self.inner_height());
        self.cells(canvas, x0, y0)?;
        canvas.frame(x0 - 0.5, y0 - 0.5, width + 1.0, height + 1.0, theme.rule(), 1.0);
        let name = Type::new(SMALL, theme.muted()).bold().anchor(Anchor::Middle);
        canvas.text_mid(x0 + width / 2.0, y + SMALL / 2.0, self.col_name, name);
        canvas.text_mid(x + SMALL / 2.0, y0 + height / 2.0, self.row_name, name.turned(-90.0));
        if self.heads == Heads::Counted {
            self.counts(canvas, x0, y0);
        } else {
            self.labels(canvas, x0, y0);
        }
        Ok(())
    }

    fn cells(&self, canvas: &mut Canvas, x0: f64, y0: f64) -> Result<(), Error> {
        let (rows, cols) = self.values.dim();
        if rows * cols > MANY {
            // Two pixels to a unit are enough for any screen; below half a unit a cell, cells are pooled.
            let most = |cells: usize| cells.min((cells as f64 * self.cell * 2.0) as usize);
            let pixels = pool(self.values.view(), most(rows), most(cols));
            let (rows, cols) = pixels.dim();
            let picture = png(cols, rows, |i, j| self.scale.pixel(pixels[[i, j]], i, j))?;
            canvas.image(x0, y0, self.inner_width(), self.inner_height(), &picture);
            return Ok(());
        }
        let paper = canvas.theme().paper();
        let gap = if self.cell >= 12.0 { 1.0 } else { 0.0 };
        let (pale, dark) = canvas.theme().nan();
        for ((i, j), &value) in self.values.indexed_iter() {
            let (x, y, side) = (x0 + j as f64 * self.cell, y0 + i as f64 * self.cell, self.cell - gap);
            match self.scale.colour(f64::from(value)) {
                Some(colour) if colour == paper => {}
                Some(colour) => canvas.rect(x, y, side, side, colour),
                None => {
                    canvas.rect(x, y, side, side, pale);
                    let (l, t, r, b) = (n(x), n(y), n(x + side), n(y + side));
                    canvas.path(&format!("M{l} {t}L{r} {b}M{r} {t}L{l} {b}"), dark, 1.0, 1.0);
                }
            }
        }
        let size = match self.cell {
            c if c >= 48.0 => 13.0,
            c if c >= 34.0 => 11.5,
            c if c >= 22.0 => 9.0,
            _ => return Ok(()),
        };
        if self.numbers == Numbers::Hidden {
            return Ok(());
        }
        let texts = self.values.mapv(|v| cell_text(v, self.cell < 34.0));
        if texts.iter().any(|t| font::width(t, size) > self.cell - 3.0) || maximum(self.values) > 999.0 {
            return Ok(());
        }
        for ((i, j), text) in texts.indexed_iter() {
            let Some(colour) = self.scale.colour(f64::from(self.values[[i, j]])) else { continue };
            let (x, y) = (x0 + (j as f64 + 0.5) * self.cell, y0 + (i as f64 + 0.5) * self.cell);
            // Weights near 0 are many; they recede.
            let faint = self.scale.fraction(f64::from(self.values[[i, j]])).is_some_and(|t| t < 0.04);
            let ink = if faint && self.scale.lo == 0.0 { canvas.theme().muted() } else { colour.ink() };
            canvas.text_mid(x - gap / 2.0, y - gap / 2.0, text, Type::new(size, ink).anchor(Anchor::Middle));
        }
        Ok(())
    }

    fn labels(&self, canvas: &mut Canvas, x0: f64, y0: f64) {
        let style = Type::new(self.size, canvas.theme().ink());
        for (i, text) in self.rows.iter().enumerate() {
            canvas.text_mid(x0 - 8.0, y0 + (i as f64 + 0.5) * self.cell, text, style.anchor(Anchor::End));
        }
        for (j, text) in self.cols.iter().enumerate() {
            let x = x0 + (j as f64 + 0.5) * self.cell;
            match self.heads {
                Heads::Level => canvas.text(x, y0 - 8.0, text, style.anchor(Anchor::Middle)),
                Heads::Slanted => canvas.text_mid(x, y0 - 8.0, text, style.turned(-45.0)),
                Heads::Upright | Heads::Counted => canvas.text_mid(x, y0 - 8.0, text, style.turned(-90.0)),
            }
        }
    }

    /// Token numbers along both axes.
    fn counts(&self, canvas: &mut Canvas, x0: f64, y0: f64) {
        let theme = canvas.theme();
        let style = Type::new(SMALL, theme.muted());
        let marks = |count: usize, length: f64| {
            ticks(0.0, count as f64 - 1.0, Steps::Linear, (length / 90.0).clamp(2.0, 8.0) as usize)
                .into_iter()
                .filter(|t| t.0.fract() == 0.0)
        };
        for (token, text) in marks(self.values.nrows(), self.inner_height()) {
            let y = y0 + (token + 0.5) * self.cell;
            canvas.line((x0 - 4.0, y), (x0, y), theme.muted(), 1.0);
            canvas.text_mid(x0 - 8.0, y, &text, style.anchor(Anchor::End));
        }
        for (token, text) in marks(self.values.ncols(), self.inner_width()) {
            let x = x0 + (token + 0.5) * self.cell;
            canvas.line((x, y0 - 4.0), (x, y0), theme.muted(), 1.0);
            canvas.text(x, y0 - 8.0, &text, style.anchor(Anchor::Middle));
        }
    }
}
